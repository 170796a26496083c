"""When records that nobody has read will be deleted, and when committed offsets will expire.

Kafka deletes a log by whole segments, and RocketMQ by whole files: the log start does not move, it jumps. A limit of
size lets it jump once as many records have been written as the next segment holds, so its next jumps are told from
what was written, and not from how fast it moved: over an hour that is too fast right after a jump, and nothing, which
would be "never", where jumps are rarer than that.
"""

from collections.abc import Iterable
from itertools import pairwise
from math import floor
from typing import NamedTuple

#: How often a broker looks for segments to delete, by default (``log.retention.check.interval.ms``).
CHECK_SECONDS = 300.0
#: Of a jump, such a share is no more than the rounding of floating-point numbers.
ROUNDING = 1e-9


class Jumps(NamedTuple):
    """How a log start jumps: by how many ``records`` at a time, and where the log ended before it last did."""

    records: int
    high_watermark: int


def jumps_of(ends: Iterable[tuple[int, int]]) -> Jumps | None:
    """The jumps seen in a log's history, from pairs of log start and high watermark at the ends of its buckets, in any
    order; None where there are none.

    Their usual size is the median: one DeleteRecords, or a limit that was lowered, is not what segments hold. When the
    last one came is known to within a bucket; the earliest moment counts.
    """
    seen = list(ends)
    levels = sorted({log_start for log_start, _ in seen})
    if len(levels) < 2:
        return None
    sizes = sorted(b - a for a, b in pairwise(levels))
    before_last = max(high for log_start, high in seen if log_start == levels[-2])
    return Jumps(sizes[(len(sizes) - 1) // 2], before_last)


def seconds_to_deletion(
    lag_seconds: float,
    retention_seconds: float | None,
    age_growth: float,
) -> float | None:
    """Time until the oldest unread record is older than the topic keeps records; None is never.

    ``age_growth`` is how fast the oldest unread record gets older: 1 for a group that reads nothing, 1 − consumed /
    produced for one that reads too slowly, 0 for one that keeps pace. Kafka deletes whole segments, whose newest
    record must be past the retention, so this is the earliest moment: nobody but the broker knows where its segments
    end. The latest is :func:`longest_kept_seconds`.
    """
    if retention_seconds is None:
        return None
    if lag_seconds >= retention_seconds:
        return 0.0
    if age_growth <= 0:
        return None
    return (retention_seconds - lag_seconds) / age_growth


def longest_kept_seconds(retention_seconds: float | None, segment_seconds: float | None) -> float | None:
    """How old an unread record gets at the most before it is gone by age; None is for ever, or not known.

    A segment is deleted when its newest record is older than the retention, the active one too. It takes no record
    that is ``segment_seconds`` (``segment.ms``) younger than its first, which is no younger than the unread one: so
    that much later, and a round of the broker's check, the unread record is gone.
    """
    if retention_seconds is None or segment_seconds is None:
        return None
    return retention_seconds + segment_seconds + CHECK_SECONDS


def seconds_to_truncation(
    margin_records: int,
    jump_records: int,
    written_since_jump: int,
    *,
    produce_rate_per_second: float,
    consume_rate_per_second: float,
) -> float | None:
    """Time until the log start jumps past the group, at today's rates; None is never.

    Works for a limit of size without knowing a byte: in the steady state each segment that is written takes another
    one away. ``margin_records`` is how far the group is ahead of the log start. It loses records by the first jump that
    takes the log start beyond where it will have got by then. A jump that is overdue comes at any moment, and is the
    larger for it.
    """
    written, read = produce_rate_per_second, consume_rate_per_second
    if read >= written:
        return None
    share_read = read / written
    size = max(jump_records, written_since_jump)
    # Jump k comes k · size − written_since_jump records from now; in the meantime share_read of them are read.
    number = floor((margin_records - share_read * written_since_jump) / (size * (1 - share_read)) + ROUNDING) + 1
    return (max(1, number) * size - written_since_jump) / written


def log_start_rate(
    measured_per_second: float | None, log_records: int, log_start: int, retention_seconds: float | None
) -> float | None:
    """Records per second by which a limit of time moves the log start on; None where nothing tells.

    What was measured, or else the mean over the log: once its start has moved at all (beyond 0), what it holds is what
    was written within the retention.
    """
    if measured_per_second is not None or not retention_seconds or log_start == 0:
        return measured_per_second
    return log_records / retention_seconds


def seconds_to_log_start(
    margin_records: int, log_start_rate_per_second: float | None, consume_rate_per_second: float
) -> float | None:
    """Time until the log start has reached the group, ``margin_records`` ahead of it, at these rates; None is never, or
    not known. It needs no record's age, which nobody knows of records that are older than the history."""
    if log_start_rate_per_second is None or log_start_rate_per_second <= consume_rate_per_second:
        return None
    return max(0, margin_records) / (log_start_rate_per_second - consume_rate_per_second)


def soonest(*times: float | None) -> float | None:
    """The smallest of the times that are not None (never)."""
    known = [t for t in times if t is not None]
    return min(known) if known else None
