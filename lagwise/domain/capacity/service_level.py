"""What a message costs now: a probe's measurements since T1 or T2 last changed its level.

A mean over an hour lags behind: a downstream that has become four times slower shows in it little by little. A change
is told as one of throughput is, by the same statistics (:mod:`lagwise.domain.capacity.block_statistics`), from the
third minute on.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from lagwise.domain.capacity.block_statistics import newest_of
from lagwise.domain.capacity.saturation import Block


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredMinute:
    """What the consumers of a group measured of the messages of one topic in a minute; times are means per message."""

    minute: datetime
    messages: int
    t1_seconds: float
    t2_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceLevel:
    """Means per message since the last change."""

    t1_seconds: float
    t2_seconds: float
    messages: int
    #: The first minute of this level, and what T1 and T2 were before; None where there was no change.
    changed_at: datetime | None = None
    t1_before_seconds: float | None = None
    t2_before_seconds: float | None = None


def newest_level(minutes: Sequence[MeasuredMinute]) -> ServiceLevel:
    """The level that the last of these minutes, in order of time, belong to. What changed, T1 or T2, is not asked:
    where one does, the other's mean is of the same messages."""
    since = max(_since([m.t1_seconds for m in minutes], minutes), _since([m.t2_seconds for m in minutes], minutes))
    t1, t2, messages = _means(minutes[since:])
    if since == 0:
        return ServiceLevel(t1_seconds=t1, t2_seconds=t2, messages=messages)
    t1_before, t2_before, _ = _means(minutes[:since])
    return ServiceLevel(
        t1_seconds=t1,
        t2_seconds=t2,
        messages=messages,
        changed_at=minutes[since].minute,
        t1_before_seconds=t1_before,
        t2_before_seconds=t2_before,
    )


def _since(means: Sequence[float], minutes: Sequence[MeasuredMinute]) -> int:
    """The number of the first minute of the newest level of these means. A message counts as a second of a block."""
    blocks = [Block(0.0, m.messages, mean * m.messages) for mean, m in zip(means, minutes, strict=True)]
    return len(blocks) - len(newest_of(blocks)[0])


def _means(minutes: Sequence[MeasuredMinute]) -> tuple[float, float, int]:
    messages = sum(m.messages for m in minutes)
    t1, t2 = (sum(getattr(m, name) * m.messages for m in minutes) / messages for name in ("t1_seconds", "t2_seconds"))
    return t1, t2, messages
