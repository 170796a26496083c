"""When a group-partition loses unread records, from what is known of it: a part of the rules of
:mod:`lagwise.domain.status`."""

from typing import NamedTuple

from lagwise.domain import lag as lags
from lagwise.domain.evidence import Evidence
from lagwise.domain.loss.records import NOTHING_LOST, Lost
from lagwise.domain.loss.retention import (
    log_start_rate,
    longest_kept_seconds,
    seconds_to_deletion,
    seconds_to_log_start,
    seconds_to_truncation,
    soonest,
)
from lagwise.domain.vocabulary import LossCause

#: From this share of the retention on, a lag that grows is told however slowly it does.
SHARE_NEAR_EDGE = 0.9


class Deletion(NamedTuple):
    """Time until unread records are deleted (None is never), whether it may well come sooner, and until when they are
    at the latest (None is not known)."""

    seconds: float | None
    is_upper_bound: bool = False
    at_latest: float | None = None


class Pull(NamedTuple):
    """What a group does that may lose it records: it ``stands``, its lag ``grows``, or grows too slowly to matter
    anywhere but ``near_edge`` of what is kept; it has been ``behind`` for long enough to tell how fast it reads."""

    stands: bool
    grows: bool
    near_edge: bool
    behind: bool


def is_near_edge(e: Evidence) -> bool:
    """Whether the oldest unread record is so old that the slowest growth counts."""
    kept = e.retention_seconds
    return kept is not None and (e.lag_seconds or 0.0) >= SHARE_NEAR_EDGE * kept


def is_set_back(e: Evidence) -> bool:
    """Whether the group was set back to older records while its rate was measured: before that it had them read, and
    its rate does not say how fast it can."""
    return e.rewound_seconds is not None and e.rewound_seconds < e.span_seconds


def by_age(e: Evidence, kept: float | None, overtaken: float | None, pull: Pull, produced: float) -> float | None:
    """When unread records are as old as ``kept``: of those that are written, where retention overtakes the reader, or
    else, at today's rates, of those to come."""
    age, consumed = e.lag_seconds or 0.0, e.consume_rate_per_second or 0.0
    if kept is None or age >= kept or pull.stands:
        return seconds_to_deletion(age, kept, 1.0)
    if pull.behind and overtaken is not None:
        return overtaken
    if not (pull.grows or pull.near_edge) or produced <= 0:
        return None
    to_come = seconds_to_deletion(age, kept, min(1.0, max(0.0, 1 - consumed / produced)))
    # All that is written is read in time, where that is known, and what is not written yet is kept for so long.
    return max(to_come, kept) if to_come is not None and pull.behind and consumed > 0 else to_come


def deletion_of(e: Evidence, lag: int, pull: Pull) -> Deletion:
    """When the ``lag`` unread records are deleted."""
    if lag == 0 or e.committed is None or e.log_start is None or e.high_watermark is None:
        return Deletion(None)
    produced, consumed = e.produce_rate_per_second or 0.0, e.consume_rate_per_second or 0.0
    if pull.stands:
        consumed = 0.0
    steady = produced if e.steady_produce_rate_per_second is None else e.steady_produce_rate_per_second
    by_time = by_age(e, e.retention_seconds, e.overtaken_seconds, pull, steady)
    others: list[float | None] = []
    loses_ground = pull.stands or pull.grows
    margin = lags.reads_from(e.committed, e.next_record) - e.log_start
    if loses_ground and e.lag_seconds_is_lower_bound and e.retention_seconds is not None:
        moves = log_start_rate(
            e.log_start_rate_per_second, e.high_watermark - e.log_start, e.log_start, e.retention_seconds
        )
        others.append(seconds_to_log_start(margin, moves, consumed))
    jumps = e.log_start_jumps
    if loses_ground and e.retention_is_by_size and jumps is not None:
        by_size = seconds_to_truncation(
            margin,
            jumps.records,
            max(0, e.high_watermark - jumps.high_watermark),
            produce_rate_per_second=produced,
            consume_rate_per_second=consumed,
        )
        others.append(by_size)
    seconds = soonest(by_time, *others)
    longest_kept = longest_kept_seconds(e.retention_seconds, e.segment_seconds)
    at_latest = by_age(e, longest_kept, e.overtaken_at_latest_seconds, pull, steady)
    return Deletion(seconds, e.lag_seconds_is_lower_bound and bool(seconds) and seconds == by_time, at_latest)


def is_at_edge(e: Evidence, lag: int, interval_seconds: float) -> bool:
    """Whether what it reads is about as old as is kept. There the lag need not grow while records are lost: it is cut
    off. An age is known to within an interval."""
    kept, age = e.retention_seconds, e.lag_seconds or 0.0
    return kept is not None and lag > 0 and age + interval_seconds >= kept


def lost_by_now(e: Evidence, reads_from: int, log_start: int, *, goes_on: bool) -> int:
    """How many records are missing. A consumer that finds its records deleted goes on with the oldest there are, at
    whose edge it stays: where the loss ``goes_on``, between two of them it is what was lost lately.

    What a client had deleted, the group itself may have: Kafka Streams does so with what it has read and committed. Its
    commit is read a moment before the log start, and may be the older one by that; by the next minute it is not.
    """
    if not e.deleted_by_request:
        return lags.records_lost(reads_from, log_start) or (e.lost_lately if goes_on else 0)
    if e.earlier_log_start is None:
        return 0
    return lags.records_lost(reads_from, min(log_start, e.earlier_log_start))


def lost_of_day(e: Evidence, missing: int = 0) -> Lost:
    """What was lost within a day, of which so much is ``missing`` now. What is missing from earlier days counts."""
    lost = NOTHING_LOST if e.deleted_by_request else e.lost_of_day
    return lost._replace(at_least=max(lost.at_least, missing), at_most=max(lost.at_most, missing))


def loss_cause_of(seconds_to_loss: float | None, seconds_to_deletion: float | None) -> LossCause | None:
    """How the nearest loss would come."""
    if seconds_to_loss is None:
        return None
    return LossCause.DELETION if seconds_to_loss == seconds_to_deletion else LossCause.EXPIRY
