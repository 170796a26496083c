"""Samples of one group-partition, for the tests of its history."""

from lagwise.domain.history import Observation

INTERVAL = 15.0
GAP = 120.0


def seen(
    *rows: tuple[float, int | None, int | None], log_start: int = 0, topic: str | None = None
) -> list[Observation]:
    """Samples from (time, committed, high watermark)."""
    return [Observation(at, committed, log_start, high, topic_id=topic) for at, committed, high in rows]


def steady(until: float, *, start: float = 0.0, written: float = 10.0, read: float = 10.0) -> list[Observation]:
    """A sample every 15 s of a partition to which so many records per second are written, and as many read; a backlog
    of 1,000 to begin with."""
    samples = int((until - start) / INTERVAL) + 1
    times = [start + INTERVAL * n for n in range(samples)]
    return seen(*[(t, int(read * (t - start)), 1000 + int(written * (t - start))) for t in times])
