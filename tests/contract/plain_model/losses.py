"""Unread records that are deleted: when, and how many there were."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import floor
from typing import NamedTuple

from lagwise.domain.loss.records import NOTHING_LOST, Lost, of_partitions
from lagwise.domain.verdicts.loss import SHARE_NEAR_EDGE
from lagwise.domain.verdicts.retention import CHECK_SECONDS, ROUNDING
from tests.contract.plain_model.records import Evidence


class LostInStep(NamedTuple):
    """Records that were deleted unread from one sample to the next."""

    at_least: int
    at_most: int


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


def lost_in_step(
    reads_from: int, log_start: int, previous_reads_from: int | None = None, previous_log_start: int | None = None
) -> LostInStep:
    """What was lost since the sample before: of the first one all that is missing."""
    missing = max(0, log_start - reads_from)
    if previous_reads_from is None or previous_log_start is None:
        return LostInStep(missing, missing)
    counted = previous_log_start if previous_log_start > previous_reads_from else reads_from
    at_least = max(0, log_start - max(reads_from, counted))
    return LostInStep(at_least, max(at_least, log_start - max(previous_reads_from, previous_log_start)))


def of_stretches(stretches: Iterable[Sequence[tuple[float, LostInStep]]]) -> Lost:
    """What was lost in several stretches of time: steps, each with how many seconds ago it ended. A stretch in which
    none shows a loss adds nothing."""
    return of_partitions(_lost_together(steps) for steps in stretches)


def _lost_together(steps: Sequence[tuple[float, LostInStep]]) -> Lost:
    lossy = [round(seconds, 6) for seconds, lost in steps if lost.at_least > 0]
    if not lossy:
        return NOTHING_LOST
    at_least, at_most = (sum(numbers) for numbers in zip(*(lost for _, lost in steps), strict=True))
    return Lost(at_least, at_most, max(lossy), min(lossy))


def longest_kept_seconds(retention_seconds: float | None, segment_seconds: float | None) -> float | None:
    if retention_seconds is None or segment_seconds is None:
        return None
    return retention_seconds + segment_seconds + CHECK_SECONDS


def rate_while_behind(consume_rate_per_second: float, span_seconds: float, age_seconds: float) -> float:
    return consume_rate_per_second * max(1.0, span_seconds / age_seconds) if age_seconds > 0 else 0.0


def seconds_to_overtaking(
    unread: Sequence[tuple[int, float]], consume_rate_per_second: float, kept_seconds: float | None
) -> float | None:
    """Time until a record is as old as is kept that is not read by then, from offsets and the ages of their records,
    between which records are taken to have been written at one rate."""
    if kept_seconds is None or not consume_rate_per_second or not unread:
        return None
    begin, oldest = unread[0]
    if oldest >= kept_seconds:
        return 0.0
    for (a, a_age), (b, b_age) in pairwise(unread):
        # Their ages when they are read.
        a_then, b_then = (age + (offset - begin) / consume_rate_per_second for offset, age in ((a, a_age), (b, b_age)))
        if b_then > kept_seconds:
            share = (kept_seconds - a_then) / (b_then - a_then)
            return kept_seconds - a_age - share * (b_age - a_age)
    return None


def seconds_to_deletion(age: float, kept: float | None, growth: float) -> float | None:
    """Time until a record of this age, which grows by so much a second, is as old as is kept."""
    if kept is None:
        return None
    if age >= kept:
        return 0.0
    return (kept - age) / growth if growth > 0 else None


def seconds_to_truncation(e: Evidence, margin: int, produced: float, consumed: float) -> float | None:
    """Time until the log start jumps past the group, ``margin`` ahead of it, at today's rates."""
    jumps = e.log_start_jumps
    if jumps is None or e.high_watermark is None or consumed >= produced:
        return None
    since = max(0, e.high_watermark - jumps.high_watermark)
    share_read, size = consumed / produced, max(jumps.records, since)
    number = floor((margin - share_read * since) / (size * (1 - share_read)) + ROUNDING) + 1
    return (max(1, number) * size - since) / produced


def seconds_to_log_start(e: Evidence, margin: int, consumed: float) -> float | None:
    """Time until the log start has reached the group, at the rate that was measured or else the mean over the log."""
    moves = e.log_start_rate_per_second
    if moves is None and e.retention_seconds and e.log_start and e.high_watermark is not None:
        moves = (e.high_watermark - e.log_start) / e.retention_seconds
    return None if moves is None or moves <= consumed else max(0, margin) / (moves - consumed)


def is_near_edge(e: Evidence) -> bool:
    kept = e.retention_seconds
    return kept is not None and (e.lag_seconds or 0.0) >= SHARE_NEAR_EDGE * kept


def is_set_back(e: Evidence) -> bool:
    return e.rewound_seconds is not None and e.rewound_seconds < e.span_seconds


def is_at_edge(e: Evidence, lag: int, interval_seconds: float) -> bool:
    kept, age = e.retention_seconds, e.lag_seconds or 0.0
    return kept is not None and lag > 0 and age + interval_seconds >= kept


def by_age(e: Evidence, kept: float | None, overtaken: float | None, pull: Pull) -> float | None:
    """When unread records are as old as ``kept``: of those that are written, where retention overtakes the reader, or
    else, at today's rates, of those to come."""
    age, consumed, produced = e.lag_seconds or 0.0, e.consume_rate_per_second or 0.0, e.produce_rate_per_second or 0.0
    if e.steady_produce_rate_per_second is not None:
        produced = e.steady_produce_rate_per_second
    if kept is None or age >= kept or pull.stands:
        return seconds_to_deletion(age, kept, 1.0)
    if pull.behind and overtaken is not None:
        return overtaken
    if not (pull.grows or pull.near_edge) or produced <= 0:
        return None
    to_come = seconds_to_deletion(age, kept, min(1.0, max(0.0, 1 - consumed / produced)))
    # All that is written is read in time, where that is known, and what is not written yet is kept for so long.
    return max(to_come, kept) if to_come is not None and pull.behind and consumed > 0 else to_come


def deletion_of(e: Evidence, lag: int, reads_from: int, pull: Pull) -> Deletion:
    """When the ``lag`` unread records are deleted."""
    if lag == 0 or e.committed is None or e.log_start is None:
        return Deletion(None)
    consumed = 0.0 if pull.stands else e.consume_rate_per_second or 0.0
    margin = reads_from - e.log_start
    by_time = by_age(e, e.retention_seconds, e.overtaken_seconds, pull)
    ways = [by_time]
    if (pull.stands or pull.grows) and e.lag_seconds_is_lower_bound and e.retention_seconds is not None:
        ways.append(seconds_to_log_start(e, margin, consumed))
    if (pull.stands or pull.grows) and e.retention_is_by_size:
        ways.append(seconds_to_truncation(e, margin, e.produce_rate_per_second or 0.0, consumed))
    seconds = soonest(*ways)
    longest_kept = longest_kept_seconds(e.retention_seconds, e.segment_seconds)
    at_latest = by_age(e, longest_kept, e.overtaken_at_latest_seconds, pull)
    return Deletion(seconds, e.lag_seconds_is_lower_bound and bool(seconds) and seconds == by_time, at_latest)


def lost_by_now(e: Evidence, reads_from: int, log_start: int, *, goes_on: bool) -> int:
    """How many records are missing; where the loss ``goes_on`` and none is right now, how many were lost lately. Of
    what a client had deleted, those that were missing a minute before."""
    if not e.deleted_by_request:
        return max(0, log_start - reads_from) or (e.lost_lately if goes_on else 0)
    if e.earlier_log_start is None:
        return 0
    return max(0, min(log_start, e.earlier_log_start) - reads_from)


def lost_of_day(e: Evidence, missing: int = 0) -> Lost:
    """What was lost within a day, of which so much is ``missing`` now."""
    lost = NOTHING_LOST if e.deleted_by_request else e.lost_of_day
    return lost._replace(at_least=max(lost.at_least, missing), at_most=max(lost.at_most, missing))


def soonest(*times: float | None) -> float | None:
    """The smallest of the times that are not None (never)."""
    return min((t for t in times if t is not None), default=None)
