"""When records that nobody has read will be deleted.

A limit of size lets the log start jump once as many records have been written as the next segment holds, so its next
jumps are told from what was written, and not from how fast it moved: over an hour that is too fast right after a jump,
and nothing, which would be "never", where jumps are rarer than that.

Below that is the race between a reader and retention: both go through the same records, in the same order. The record
at an offset is read once all before it are, and is deleted when it is as old as is kept. How old each unread record is,
the history of the high watermark tells. So no rate at which records are written has to be taken to go on: a burst that
was written within a minute is deleted within a minute, too, however well the reader keeps pace by then, and its lag may
shrink all the while.
"""

import numpy as np

from lagwise.domain.verdicts.columns import MICROS, NULL, Array, Columns, Ranges, as_floats
from lagwise.domain.verdicts.logs import Jumps, SeenLogs

#: How often a broker looks for segments to delete, by default (``log.retention.check.interval.ms``).
CHECK_SECONDS = 300.0
#: Of a jump, such a share is no more than the rounding of floating-point numbers.
ROUNDING = 1e-9


def limits_of(topics: Columns) -> dict[str, Array]:
    """What topics' settings say, from retention_ms, retention_bytes, segment_ms, and whether the cleanup policy
    ``deletes`` and ``compacts``.

    ``retention_seconds`` (NaN is for ever, or not known), ``retention_is_known``, ``retention_is_by_size``, and
    ``segment_seconds``: for how long at most a segment takes records (NaN is not known). Compaction makes one segment
    of several, which holds more than segment.ms of records.
    """
    deletes, by_time = topics["deletes"], topics["retention_ms"]
    segment = np.where(topics["compacts"], NULL, topics["segment_ms"])
    return {
        "retention_seconds": np.where(deletes & (by_time >= 0), by_time / 1000.0, np.nan),
        "retention_is_known": by_time != NULL,
        "retention_is_by_size": deletes & (topics["retention_bytes"] >= 0),
        "segment_seconds": np.where(deletes & (segment != NULL), segment / 1000.0, np.nan),
    }


def longest_kept_seconds(limits: Columns) -> Array:
    """How old an unread record gets at the most before it is gone by age; NaN is for ever, or not known.

    A segment is deleted when its newest record is older than the retention, the active one too. It takes no record
    that is ``segment.ms`` younger than its first, which is no younger than the unread one: so that much later, and a
    round of the broker's check, the unread record is gone.
    """
    return limits["retention_seconds"] + limits["segment_seconds"] + CHECK_SECONDS


def rate_while_behind(consume_rate_per_second: Array, span_seconds: Array, age_seconds: Array) -> Array:
    """How fast a group reads at most while it has something to read, from its mean rate over so many seconds: before
    the oldest unread record was written, there may have been nothing. It is taken to have read it all since then. NaN
    where nothing is read, or nothing unread."""
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = consume_rate_per_second * np.maximum(1.0, span_seconds / age_seconds)
    return np.where((consume_rate_per_second > 0) & (age_seconds > 0), rate, np.nan)


def seconds_to_overtaking(
    log: SeenLogs, position: Array, place: Array, age_seconds: Array, reads_per_second: Array, kept_seconds: Array
) -> Array:
    """Time until a record is as old as is kept that is not read by then, at this rate; NaN is never, or not known. Only
    what is written already counts, so it is never more than that. Of an age that was reached already nothing is told.

    Between two known ages, records are taken to have been written at one rate. ``place`` is that of the position: the
    first point at which the log had passed it.
    """
    at, high = log.logs.points["at"], log.logs.points["high_watermark"]
    made = np.full(len(position), np.nan)
    after = Ranges(place, log.points.stop)
    # Only where the last record might be read too late if it were as old as the first, are those between looked at.
    read_all = (after.last(high) - position) / np.where(reads_per_second > 0, reads_per_second, np.nan)
    cases = np.flatnonzero(~after.is_empty & (age_seconds + read_all > kept_seconds) & (age_seconds <= kept_seconds))
    if not len(cases):
        return made
    position, kept, reads, now = position[cases], kept_seconds[cases], reads_per_second[cases], log.as_of[cases]

    def age_at(row: Array, case: Array) -> Array:
        return np.maximum((now[case] - at[row]) / MICROS, 0.0)

    part = Ranges(after.start[cases], after.stop[cases])
    number, row = part.rows()
    is_late = age_at(row, number) + (high[row] - position[number]) / reads[number] > kept[number]
    numbers, firsts = np.unique(number[is_late], return_index=True)
    late = row[is_late][firsts]
    is_next = late == part.start[numbers]
    offsets = np.where(is_next, position[numbers], high[late - 1]), high[late]
    ages = np.where(is_next, age_seconds[cases][numbers], age_at(late - 1, numbers)), age_at(late, numbers)
    read_at = [age + (offset - position[numbers]) / reads[numbers] for age, offset in zip(ages, offsets, strict=True)]
    share = (kept[numbers] - read_at[0]) / (read_at[1] - read_at[0])
    made[cases[numbers]] = kept[numbers] - ages[0] - share * (ages[1] - ages[0])
    return made


def seconds_to_truncation(
    margin: Array, jumps: Jumps, high_watermark: Array, produced: Array, consumed: Array
) -> Array:
    """Time until the log start jumps past the group, at today's rates; NaN is never.

    Works for a limit of size without knowing a byte: in the steady state each segment that is written takes another
    one away. ``margin`` is how many records the group is ahead of the log start. It loses records by the first jump
    that takes the log start beyond where it will have got by then. A jump that is overdue comes at any moment, and is
    the larger for it.
    """
    jump = as_floats(jumps.records)
    since = np.maximum(high_watermark - as_floats(jumps.high_watermark), 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        share_read = consumed / produced
        size = np.maximum(jump, since)
        # Jump k comes k · size − since records from now; in the meantime share_read of them are read.
        number = np.floor((margin - share_read * since) / (size * (1 - share_read)) + ROUNDING) + 1
        seconds = (np.maximum(1.0, number) * size - since) / produced
    return np.where(consumed < produced, seconds, np.nan)


def seconds_to_log_start(
    margin: Array, limits: Columns, log_start_rate: Array, ends: Columns, consumed: Array
) -> Array:
    """Time until the log start has reached the group, ``margin`` records ahead of it, at these rates; NaN is never, or
    not known. It needs no record's age, which nobody knows of records that are older than the history.

    The log start moves at the rate that was measured, or else at the mean over the log: once its start has moved at all
    (beyond 0), what it holds is what was written within the retention.
    """
    held = np.where(ends["log_start"] > 0, ends["high_watermark"] - ends["log_start"], np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        approach = np.where(np.isnan(log_start_rate), held / limits["retention_seconds"], log_start_rate) - consumed
        seconds = np.maximum(margin, 0) / approach
    return np.where(approach > 0, seconds, np.nan)
