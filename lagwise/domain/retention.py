"""When records that nobody has read will be deleted, and when committed offsets will expire."""


def seconds_to_deletion(
    lag_seconds: float,
    retention_seconds: float | None,
    age_growth: float,
) -> float | None:
    """Time until the oldest unread record is older than the topic keeps records; None is never.

    ``age_growth`` is how fast the oldest unread record gets older: 1 for a group that reads nothing, 1 − consumed /
    produced for one that reads too slowly, 0 for one that keeps pace. Kafka deletes whole segments, whose newest
    record must be past the retention, so the true moment is somewhat later: the answer errs on the early side.
    """
    if retention_seconds is None:
        return None
    if lag_seconds >= retention_seconds:
        return 0.0
    if age_growth <= 0:
        return None
    return (retention_seconds - lag_seconds) / age_growth


def seconds_to_truncation(
    margin_records: int, log_start_rate_per_second: float, consume_rate_per_second: float
) -> float | None:
    """Time until the log start passes the group, at today's rates; None is never.

    Works for retention by size without knowing a byte: the log start moves as fast as segments are deleted.
    ``margin_records`` is how far the group is ahead of the log start.
    """
    closing = log_start_rate_per_second - consume_rate_per_second
    if closing <= 0:
        return None
    return max(0, margin_records) / closing


def soonest(*times: float | None) -> float | None:
    """The smallest of the times that are not None (never)."""
    known = [t for t in times if t is not None]
    return min(known) if known else None
