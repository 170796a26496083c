"""What the samples' rows say of topics and logs, for :mod:`lagwise.domain.evaluation`."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import NamedTuple

from lagwise.domain.ownership import Row
from lagwise.domain.time_lag import Log, WatermarkPoint, log_of

#: Seconds since some moment, of a time.
Clock = Callable[[datetime], float]


class Retention(NamedTuple):
    """For how many ``seconds`` a topic keeps records (None is forever, or not known), whether it limits their size, and
    for how many seconds at most a segment takes them (None is not known)."""

    seconds: float | None = None
    is_by_size: bool = False
    segment_seconds: float | None = None


def retention_of(topic: Row | None) -> Retention:
    """What a topic's settings say."""
    policy = ((topic or {}).get("cleanup_policy")) or "delete"
    if topic is None or "delete" not in policy:
        return Retention()
    by_time, by_size, segment = topic.get("retention_ms"), topic.get("retention_bytes"), topic.get("segment_ms")
    return Retention(
        by_time / 1000.0 if by_time is not None and by_time >= 0 else None,
        by_size is not None and by_size >= 0,
        # Compaction makes one segment of several, which holds more than segment.ms of records.
        segment / 1000.0 if segment is not None and "compact" not in policy else None,
    )


def logs_of(watermarks: Sequence[Row], clock: Clock) -> dict[tuple[str, int], Log]:
    """The history of each topic-partition's log, from all its watermarks that could be read."""
    points: dict[tuple[str, int], list[WatermarkPoint]] = {}
    for row in sorted(watermarks, key=sampled_at):
        if row["high_watermark"] is not None and row["log_start"] is not None:
            point = WatermarkPoint(
                clock(row["sampled_at"]), row["high_watermark"], row["log_start"], row.get("topic_id")
            )
            points.setdefault((row["topic"], row["partition"]), []).append(point)
    return {key: log_of(its_points) for key, its_points in points.items()}


def sampled_at(row: Row) -> datetime:
    """When the row was sampled."""
    at: datetime = row["sampled_at"]
    return at
