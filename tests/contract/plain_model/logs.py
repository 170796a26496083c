"""The history of a topic-partition's log: how old its records are, how fast is written, and how its start moves."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import NamedTuple

from lagwise.domain.verdicts.buckets import MINUTE_SECONDS
from lagwise.domain.verdicts.evidence import SHARE_OF_LIMIT
from lagwise.domain.verdicts.windows import DAY_SECONDS, LOOKBACK_SECONDS, WINDOWS_SECONDS
from tests.contract.plain_model.history import Clock, Pace, bucket_of, in_window
from tests.contract.plain_model.records import Jumps, Row


class WatermarkPoint(NamedTuple):
    """The ends of a log at a time, and which topic it was, where known."""

    at: float
    high_watermark: int
    log_start: int
    topic_id: str | None


class Age(NamedTuple):
    """Age of a record in seconds; with ``is_lower_bound`` it was written before the history begins."""

    seconds: float
    is_lower_bound: bool


class Unread(NamedTuple):
    """An offset, and how old its record is."""

    offset: int
    age_seconds: float


class Retention(NamedTuple):
    """For how long a topic keeps records, whether it limits their size, and for how long at most a segment takes
    them."""

    seconds: float | None = None
    is_by_size: bool = False
    segment_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Log:
    """A log as it is now: the points since it last became another one, and when its topic was last re-created."""

    points: Sequence[WatermarkPoint] = ()
    recreated_at: float | None = None


def logs_of(watermarks: Sequence[Row], clock: Clock) -> dict[tuple[str, int], Log]:
    """The history of each topic-partition's log, from all its watermarks that could be read."""
    points: dict[tuple[str, int], list[WatermarkPoint]] = {}
    for row in sorted(watermarks, key=lambda row: row["sampled_at"]):
        if row["high_watermark"] is not None and row["log_start"] is not None:
            point = WatermarkPoint(
                clock(row["sampled_at"]), row["high_watermark"], row["log_start"], row.get("topic_id")
            )
            points.setdefault((row["topic"], row["partition"]), []).append(point)
    return {key: log_of(its_points) for key, its_points in points.items()}


def log_of(points: Sequence[WatermarkPoint]) -> Log:
    """The part since the high watermark last went back or the topic id changed."""
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
    """Age of the record at an offset, 0 where nothing is unread; None without any point."""
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


def unread_of(position: int, age: Age, log: Log, now: float) -> list[Unread]:
    """What is known of the ages of all that is unread: at ``position``, and wherever a later sample saw the end."""
    beyond = [Unread(p.high_watermark, max(0.0, now - p.at)) for p in log.points if p.high_watermark > position]
    return [Unread(position, age.seconds), *beyond]


def produce_rate_of(log: Log, as_of: float, window_seconds: float) -> float | None:
    points = [p for p in log.points if in_window(bucket_of(p.at, as_of), as_of, window_seconds)]
    span = points[-1].at - points[0].at if points else 0.0
    return (points[-1].high_watermark - points[0].high_watermark) / span if span > 0 else None


def log_start_rate_of(log: Log, as_of: float) -> float | None:
    """None unless the log start moved on in each part of the longest window, before and within the shorter ones."""
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
    """The rate of the log over the window of the trend; over a day, what was read and what the lag grew by."""
    if pace.window_seconds < DAY_SECONDS:
        return produce_rate_of(log, now, pace.window_seconds)
    if pace.trend is None or pace.consume_rate_per_second is None:
        return produce_rate_of(log, now, WINDOWS_SECONDS[-1])
    return max(0.0, pace.consume_rate_per_second + pace.trend.slope)


def steady_rate_per_second(produced: float | None, pace: Pace, log: Log, now: float) -> float | None:
    of_hour = produce_rate_of(log, now, WINDOWS_SECONDS[-1]) if pace.window_seconds < DAY_SECONDS else None
    return produced if produced is None or of_hour is None else min(produced, of_hour)


def jumps_of(log: Log, as_of: float) -> Jumps | None:
    """The jumps seen at the first and at the last sample of each bucket. Their usual size is the median."""
    buckets = [list(its) for _, its in groupby(log.points, key=lambda p: bucket_of(p.at, as_of))]
    ends = [p for its in buckets for p in (its[0], its[-1])]
    levels = sorted({p.log_start for p in ends})
    if len(levels) < 2:
        return None
    sizes = sorted(b - a for a, b in pairwise(levels))
    return Jumps(sizes[(len(sizes) - 1) // 2], max(p.high_watermark for p in ends if p.log_start == levels[-2]))


def retention_of(topic: Row | None) -> Retention:
    """What a topic's settings say. Compaction makes one segment of several."""
    policy = ((topic or {}).get("cleanup_policy")) or "delete"
    if topic is None or "delete" not in policy:
        return Retention()
    by_time, by_size, segment = topic.get("retention_ms"), topic.get("retention_bytes"), topic.get("segment_ms")
    return Retention(
        by_time / 1000.0 if by_time is not None and by_time >= 0 else None,
        by_size is not None and by_size >= 0,
        segment / 1000.0 if segment is not None and "compact" not in policy else None,
    )


def is_deleted_by_request(topic: Row | None, log: Log, now: float) -> bool:
    """Whether a client had the log's oldest records deleted: no limit that is known can have."""
    limits = retention_of(topic)
    if topic is None or topic.get("retention_ms") is None or limits.is_by_size or not log.points:
        return False
    if limits.seconds is None:
        return True
    age = age_of(log.points[-1].log_start - 1, log, now)
    limit = min(SHARE_OF_LIMIT * limits.seconds, LOOKBACK_SECONDS)
    return age is not None and not age.is_lower_bound and age.seconds < limit


def earlier_log_start(log: Log, now: float) -> int | None:
    """Where the log began at the last sample of an earlier minute."""
    minute = now - now % MINUTE_SECONDS
    return next((p.log_start for p in reversed(log.points) if p.at < minute), None)
