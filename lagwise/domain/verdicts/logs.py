"""The history of logs: how old the record at an offset is, how fast is written, how the log start moves.

Kafka has no request for the timestamp of the record at an offset, and reading the record itself costs a fetch per
partition, understates after compaction and blocks on open transactions. The history of the high watermark needs
neither: the record at offset *o* was written between the last sample whose high watermark was at most *o* and the next
one. Interpolated between those two, the age is right to within a sampling interval at any rate of the topic, idle or
bursty.

A log that goes back (it was truncated), or whose topic is re-created, is another log from then on. Between two such
resets a log only grows.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from lagwise.domain.verdicts.buckets import FIVE_MINUTES, MINUTE
from lagwise.domain.verdicts.changes import coarse_until
from lagwise.domain.verdicts.columns import (
    NULL,
    Array,
    Columns,
    Ranges,
    before,
    is_first,
    last_index,
    picked,
    ranges_of,
    ratio,
    runs,
    seconds_between,
    start_of,
    taken,
)
from lagwise.domain.verdicts.samples import is_other_topic
from lagwise.domain.verdicts.windows import DAY, HOUR_WINDOW, WINDOWS_SECONDS, first_bucket


@dataclass(frozen=True)
class Logs:
    """Histories of topic-partitions, in order of log and time.

    Attributes:
        points: log, at, high_watermark: samples, as many as there are.
        ends: log, minute, and first_ and last_ at, high_watermark, log_start of each bucket.
        resets: log, at, is_recreation: when the log became another one, and whether another topic's.
    """

    points: Columns
    ends: Columns
    resets: Columns


def logs_of_samples(watermarks: Columns) -> Logs:
    """The history from readable watermarks in order of log and time: log, at, topic_id, log_start, high_watermark."""
    first = is_first(watermarks["log"])
    is_recreated = is_other_topic(watermarks["topic_id"], first)
    high = watermarks["high_watermark"]
    is_reset = is_recreated | (~first & (before(high) > high))
    points = {name: watermarks[name] for name in ("log", "at", "high_watermark")}
    ends = {"log": watermarks["log"], "minute": start_of(MINUTE, watermarks["at"])}
    for which in ("first", "last"):
        ends |= {f"{which}_{name}": watermarks[name] for name in ("at", "high_watermark", "log_start")}
    resets = {"log": watermarks["log"], "at": watermarks["at"], "is_recreation": is_recreated}
    return Logs(points, ends, taken(resets, is_reset))


class Jumps(NamedTuple):
    """How a log start jumps: by how many ``records`` at a time, and where the log ended before it last did; both null
    where it was never seen to."""

    records: Array
    high_watermark: Array


@dataclass(frozen=True)
class SeenLogs:
    """The logs of some cases, each as it was seen at its moment: since it last became another one."""

    logs: Logs
    as_of: Array
    points: Ranges
    ends: Ranges
    #: When the topic was last seen to be another one of the same name; null where it never was.
    recreated_at: Array
    #: Whether it ever became another log.
    was_reset: Array

    @property
    def has_history(self) -> Array:
        """Whether there is any point."""
        return ~self.points.is_empty

    def place_of(self, position: Array) -> Array:
        """The first point at which the log had passed an offset: the end of the points where it has not."""
        return self.points.bisect_right(self.logs.points["high_watermark"], position)

    def age_of(self, position: Array, place: Array) -> tuple[Array, Array]:
        """Age in seconds of the record at an offset, whose :meth:`place_of` this is, and whether that is only a lower
        bound, because it was written before the history begins. The age is 0 where the log has not passed the offset:
        nothing is unread. Null without any point."""
        at, high = self.logs.points["at"], self.logs.points["high_watermark"]
        has_after = place < self.points.stop
        has_before = place > self.points.start
        is_between = has_after & has_before
        b_at, b = picked(at, place, has_after), picked(high, place, has_after)
        a_at, a = picked(at, place - 1, is_between), picked(high, place - 1, is_between)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(is_between, (position - a) / (b - a), 0.0)
        exact = seconds_between(a_at, self.as_of) - share * seconds_between(a_at, b_at)
        age = np.where(is_between, exact, seconds_between(b_at, self.as_of))
        age = np.where(has_after, np.maximum(age, 0.0), 0.0)
        return np.where(self.has_history, age, np.nan), has_after & ~has_before & self.has_history

    def produce_rates(self) -> list[Array]:
        """Records written per second over each of the windows, from the log's own samples: they are there whether or
        not a group's commits could be read. Null where they are fewer than two."""
        points = self.logs.points
        rates = []
        for seconds in WINDOWS_SECONDS:
            part = self.points.since(self.points.bisect_left(points["at"], first_bucket(seconds, self.as_of)))
            span = seconds_between(part.first(points["at"]), part.last(points["at"]))
            written = part.last(points["high_watermark"], 0) - part.first(points["high_watermark"], 0)
            rates.append(ratio(written, span))
        return rates

    def log_start_rate(self) -> Array:
        """Records per second by which the log start moved on over the longest window. Null unless it did so in each
        part of it, before and within the shorter ones: it moves by jumps, and one of them says nothing about the
        next."""
        ends = self.logs.ends
        parts = [
            self.ends.since(self.ends.bisect_left(ends["minute"], first_bucket(seconds, self.as_of)))
            for seconds in reversed(WINDOWS_SECONDS)
        ]
        marks = [*(part.first(ends["first_log_start"]) for part in parts), parts[-1].last(ends["last_log_start"])]
        has_moved = ~parts[-1].is_empty & np.all([one < later for one, later in pairwise(marks)], axis=0)
        span = seconds_between(parts[0].first(ends["first_at"]), parts[-1].last(ends["last_at"]))
        return np.where(has_moved, ratio(marks[-1] - marks[0], span), np.nan)

    @property
    def log_start(self) -> Array:
        """Where the log began at its last sample; null without any."""
        return self.ends.last(self.logs.ends["last_log_start"])

    def earlier_log_start(self) -> Array:
        """Where the log began at the last sample of an earlier minute; null where there is none."""
        stop = self.ends.bisect_left(self.logs.ends["minute"], start_of(MINUTE, self.as_of))
        return Ranges(self.ends.start, stop).last(self.logs.ends["last_log_start"])

    def deleted_seconds(self) -> Array:
        """Age of the newest record that is deleted; null where it is older than the history, or there is none."""
        newest = self.log_start - 1
        age, is_lower_bound = self.age_of(newest, self.place_of(newest))
        return np.where(is_lower_bound, np.nan, age)

    def jumps(self, wanted: Array) -> Jumps:
        """The jumps of the log start, of those cases that are ``wanted``.

        Kafka deletes a log by whole segments, and RocketMQ by whole files: the log start does not move, it jumps. Their
        usual size is the median: one DeleteRecords, or a limit that was lowered, is not what segments hold. When the
        last one came is known to within a bucket; the earliest moment counts.
        """
        cases = np.flatnonzero(wanted & ~self.ends.is_empty)
        records, high_before = (np.full(len(wanted), NULL) for _ in range(2))
        part, row = Ranges(self.ends.start[cases], self.ends.stop[cases]).rows()
        case = cases[part]
        levels, highs, owner = self.bucket_ends(case, row)
        order = np.lexsort((highs, levels, owner))
        levels, highs, owner = levels[order], highs[order], owner[order]
        # One row per level, with the highest high watermark that was seen at it.
        lasts = np.flatnonzero(np.append(is_first(owner, levels)[1:], True)) if len(owner) else owner
        levels, highs, owner = levels[lasts], highs[lasts], owner[lasts]
        of_case = ranges_of(cases, owner)
        has_jumped = of_case.sizes > 1
        high_before[cases] = picked(highs, of_case.stop - 2, has_jumped)
        sizes = (levels - before(levels))[~is_first(owner)] if len(owner) else levels
        its_owner = owner[~is_first(owner)] if len(owner) else owner
        order = np.lexsort((sizes, its_owner))
        sizes, of_case = sizes[order], ranges_of(cases, its_owner[order])
        records[cases] = picked(sizes, of_case.start + (of_case.sizes - 1) // 2, of_case.sizes > 0)
        return Jumps(records, high_before)

    def bucket_ends(self, case: Array, row: Array) -> tuple[Array, Array, Array]:
        """Log start and high watermark at the first and at the last sample of each bucket, as seen at the moment of
        the case, and the case."""
        ends = taken(self.logs.ends, row)
        is_coarse = ends["minute"] < coarse_until(self.as_of[case])
        bucket = np.where(is_coarse, start_of(FIVE_MINUTES, ends["minute"]), ends["minute"])
        begins = is_first(case, bucket)
        stops = np.append(begins[1:], True) if len(begins) else begins
        return (
            np.concatenate([ends["first_log_start"][begins], ends["last_log_start"][stops]]),
            np.concatenate([ends["first_high_watermark"][begins], ends["last_high_watermark"][stops]]),
            np.concatenate([case[begins], case[stops]]),
        )


def seen_logs(logs: Logs, log: Array, as_of: Array) -> SeenLogs:
    """The logs of cases, each at its moment."""
    of_log = ranges_of(log, logs.resets["log"])
    seen = Ranges(of_log.start, of_log.bisect_right(logs.resets["at"], as_of))
    reset_at = seen.last(logs.resets["at"])
    index = last_index(logs.resets["is_recreation"])
    last = picked(index, seen.stop - 1, ~seen.is_empty, -1)

    def since_reset(rows: Columns, first_at: str, last_at: str) -> Ranges:
        its = ranges_of(log, rows["log"])
        stop = its.bisect_right(rows[last_at], as_of)
        return Ranges(Ranges(its.start, stop).bisect_left(rows[first_at], reset_at), stop)

    return SeenLogs(
        logs=logs,
        as_of=as_of,
        points=since_reset(logs.points, "at", "at"),
        ends=since_reset(logs.ends, "first_at", "last_at"),
        recreated_at=picked(logs.resets["at"], last, last >= seen.start),
        was_reset=reset_at != NULL,
    )


def written_per_second(log: SeenLogs, pace: Columns) -> tuple[Array, Array]:
    """Records written per second over the window of the trend, and at which rate what is written may be taken to go
    on: that, or the rate of an hour where it is lower, because what comes in bursts does so now and then.

    The watermarks of a day are not kept together: on it, what was read and what the lag grew by is what was produced.
    """
    rates = log.produce_rates()
    window, is_day = pace["window"], pace["window"] == DAY
    of_day = np.maximum(0.0, pace["consume_rate_per_second"] + pace["slope"])
    measured = np.choose(np.minimum(window, HOUR_WINDOW), rates)
    produced = np.where(is_day & ~np.isnan(of_day), of_day, measured)
    of_hour = np.where(is_day, np.nan, rates[HOUR_WINDOW])
    return produced, np.where(np.isnan(produced), np.nan, np.fmin(produced, of_hour))


@dataclass(frozen=True)
class LogBuckets:
    """Minutes, or longer stretches, of logs: what is kept of a history.

    Attributes:
        rows: log, minute, first_ and last_ at, high_watermark, log_start, reset_at, recreated_at. What came before the
            last reset of the bucket is another log, and left out.
        points: the points of each bucket, among those of the history.
    """

    rows: Columns
    points: Ranges


def log_buckets(logs: Logs, length: int) -> LogBuckets:
    """A history in buckets of this length (microseconds), each since its last reset."""
    ends, resets = logs.ends, logs.resets
    start = start_of(length, ends["minute"])
    bucket = runs(ends["log"], start)
    log, begin = bucket.first(ends["log"]), bucket.first(start)
    of_log = ranges_of(log, resets["log"])
    within = Ranges(of_log.bisect_left(resets["at"], begin), of_log.bisect_left(resets["at"], begin + length))
    reset_at = within.last(resets["at"])
    recreated = np.where(resets["is_recreation"], resets["at"], NULL)
    kept = Ranges(bucket.bisect_left(ends["last_at"], reset_at), bucket.stop)
    of_points = ranges_of(log, logs.points["log"])
    points = Ranges(
        of_points.bisect_left(logs.points["at"], np.maximum(begin, reset_at)),
        of_points.bisect_left(logs.points["at"], begin + length),
    )
    names = ("at", "high_watermark", "log_start")
    return LogBuckets(
        {
            "log": log,
            "minute": begin,
            **{f"first_{name}": kept.first(ends[f"first_{name}"]) for name in names},
            **{f"last_{name}": kept.last(ends[f"last_{name}"]) for name in names},
            "reset_at": reset_at,
            "recreated_at": within.max(recreated),
        },
        points,
    )
