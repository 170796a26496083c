"""How old the oldest unread record is, told from the history of the high watermark.

Kafka has no request for the timestamp of the record at an offset, and reading the record itself costs a fetch per
partition, understates after compaction and blocks on open transactions. The history of the high watermark needs
neither: the record at offset *o* was written between the last sample whose high watermark was at most *o* and the
next one. Interpolated between those two, the age is right to within a sampling interval at any rate of the topic,
idle or bursty.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import NamedTuple

from lagwise.domain.history import DAY_SECONDS, WINDOWS_SECONDS, Pace, bucket_of, in_window


class WatermarkPoint(NamedTuple):
    """The ends of a log at a time (seconds), and which topic it was, where known."""

    at: float
    high_watermark: int
    log_start: int = 0
    topic_id: str | None = None


class Age(NamedTuple):
    """Age of a record in seconds; with ``is_lower_bound`` it was written before the history begins."""

    seconds: float
    is_lower_bound: bool


@dataclass(frozen=True, slots=True)
class Log:
    """The history of a topic-partition as it is now: the points since it last became another log.

    ``recreated_at`` is when it was last seen to be another topic of the same name.
    """

    points: Sequence[WatermarkPoint]
    recreated_at: float | None = None


def log_of(points: Sequence[WatermarkPoint]) -> Log:
    """The part since the high watermark last went back or the topic id changed: before that it was another log
    (truncated, or re-created). Points in order of time."""
    start = 0
    recreated_at: float | None = None
    topic_id: str | None = None
    for i, (before, now) in enumerate(pairwise(points), 1):
        topic_id = before.topic_id or topic_id
        if topic_id is not None and now.topic_id is not None and now.topic_id != topic_id:
            start, recreated_at = i, now.at
        elif now.high_watermark < before.high_watermark:
            start = i
    return Log(points[start:], recreated_at)


def age_of(position: int, log: Log, now: float) -> Age | None:
    """Age at ``now`` of the record at offset ``position``.

    The age is 0 where the high watermark has not passed the position, i.e. nothing is unread. None without any point.
    """
    points = log.points
    if not points:
        return None
    if points[-1].high_watermark <= position:
        return Age(0.0, False)
    if points[0].high_watermark > position:
        return Age(max(0.0, now - points[0].at), True)
    before = max(i for i, p in enumerate(points) if p.high_watermark <= position)
    a, b = points[before], points[before + 1]
    share = (position - a.high_watermark) / (b.high_watermark - a.high_watermark)
    return Age(max(0.0, now - a.at - share * (b.at - a.at)), False)


def produce_rate_of(log: Log, as_of: float, window_seconds: float) -> float | None:
    """Records written per second over the window that ends at ``as_of``, from the log's own samples: they are there
    whether or not the group's commits could be read. None where they are fewer than two."""
    points = [p for p in log.points if in_window(bucket_of(p.at, as_of), as_of, window_seconds)]
    span = points[-1].at - points[0].at if points else 0.0
    return (points[-1].high_watermark - points[0].high_watermark) / span if span > 0 else None


def log_start_rate_of(log: Log, as_of: float) -> float | None:
    """Records per second by which the log start moved on over the longest window. None unless it did so in each part
    of it, before and within the shorter ones: it moves by jumps, and one of them says nothing about the next."""
    within = [
        [p for p in log.points if in_window(bucket_of(p.at, as_of), as_of, window)]
        for window in reversed(WINDOWS_SECONDS)
    ]
    if not within[-1]:
        return None
    marks = [*(points[0] for points in within), within[-1][-1]]
    if any(a.log_start >= b.log_start for a, b in pairwise(marks)):
        return None
    return (marks[-1].log_start - marks[0].log_start) / (marks[-1].at - marks[0].at)


def produced_per_second(pace: Pace, log: Log, now: float) -> float | None:
    """The rate of the log over the window of the trend. The watermarks of a day are not kept together: on it, what was
    read and what the lag grew by is what was produced."""
    if pace.window_seconds < DAY_SECONDS:
        return produce_rate_of(log, now, pace.window_seconds)
    if pace.trend is None or pace.consume_rate_per_second is None:
        return produce_rate_of(log, now, WINDOWS_SECONDS[-1])
    return max(0.0, pace.consume_rate_per_second + pace.trend.slope)


def steady_rate_per_second(produced: float | None, pace: Pace, log: Log, now: float) -> float | None:
    """At which rate what is written may be taken to go on: that of the window, ``produced``, or that of an hour where
    it is lower, because what comes in bursts does so now and then."""
    of_hour = produce_rate_of(log, now, WINDOWS_SECONDS[-1]) if pace.window_seconds < DAY_SECONDS else None
    return produced if produced is None or of_hour is None else min(produced, of_hour)


def ends_of(log: Log, as_of: float) -> list[tuple[int, int]]:
    """Log start and high watermark at the first and at the last sample of each bucket: what buckets keep of them."""
    buckets = [list(its) for _, its in groupby(log.points, key=lambda p: bucket_of(p.at, as_of))]
    return [(p.log_start, p.high_watermark) for its in buckets for p in (its[0], its[-1])]
