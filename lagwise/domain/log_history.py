"""What the samples' rows say of topics and logs, for :mod:`lagwise.domain.evaluation`."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import NamedTuple

from lagwise.domain.history import LOOKBACK_SECONDS, MINUTE_SECONDS
from lagwise.domain.ownership import Row
from lagwise.domain.time_lag import Log, WatermarkPoint, age_of, log_of

#: What is younger than this share of a limit the limit has not deleted: ages are told from samples, the limit goes by
#: timestamps that clients may have set a little earlier.
SHARE_OF_LIMIT = 0.5

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


def is_deleted_by_request(topic: Row | None, log: Log, now: float) -> bool:
    """Whether a client had the log's oldest records deleted: no limit that is known can have, because the newest of
    them was too young, or because there is none. By how much a limit of size was exceeded nobody knows; nor does
    anybody know the age of what was there before the look-back."""
    limits = retention_of(topic)
    if topic is None or topic.get("retention_ms") is None or limits.is_by_size or not log.points:
        return False
    if limits.seconds is None:
        return True
    age = age_of(log.points[-1].log_start - 1, log, now)
    limit = min(SHARE_OF_LIMIT * limits.seconds, LOOKBACK_SECONDS)
    return age is not None and not age.is_lower_bound and age.seconds < limit


def earlier_log_start(log: Log, now: float) -> int | None:
    """Where the log began at the last sample of an earlier minute; None where there is none."""
    minute = now - now % MINUTE_SECONDS
    return next((p.log_start for p in reversed(log.points) if p.at < minute), None)


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
