"""How old the oldest unread record is, told from the history of the high watermark.

Kafka has no request for the timestamp of the record at an offset, and reading the record itself costs a fetch per
partition, understates after compaction and blocks on open transactions. The history of the high watermark needs
neither: the record at offset *o* was written between the last sample whose high watermark was at most *o* and the
next one. Interpolated between those two, the age is right to within a sampling interval at any rate of the topic,
idle or bursty.
"""

from collections.abc import Sequence
from typing import NamedTuple


class WatermarkPoint(NamedTuple):
    """The high watermark at a time (seconds)."""

    at: float
    high_watermark: int


class Age(NamedTuple):
    """Age of a record in seconds; with ``is_lower_bound`` it was written before the history begins."""

    seconds: float
    is_lower_bound: bool


def monotonic_tail(points: Sequence[WatermarkPoint]) -> Sequence[WatermarkPoint]:
    """The part since the high watermark last went back: before that it was another log (re-created, truncated)."""
    start = 0
    for i in range(1, len(points)):
        if points[i].high_watermark < points[i - 1].high_watermark:
            start = i
    return points[start:]


def age_of(position: int, points: Sequence[WatermarkPoint], now: float) -> Age | None:
    """Age at ``now`` of the record at offset ``position``.

    ``points`` are in order of time with a high watermark that never goes back (:func:`monotonic_tail`). The age is 0
    where the high watermark has not passed the position, i.e. nothing is unread. None without any point.
    """
    if not points:
        return None
    if points[-1].high_watermark <= position:
        return Age(0.0, False)
    if points[0].high_watermark > position:
        return Age(max(0.0, now - points[0].at), True)
    before = max(i for i, p in enumerate(points) if p.high_watermark <= position)
    a, b = points[before], points[before + 1]
    share = (position - a.high_watermark) / (b.high_watermark - a.high_watermark)
    return Age(max(0.0, now - (a.at + share * (b.at - a.at))), False)
