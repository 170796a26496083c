"""What a message costs now: a probe's measurements since T1 or T2 last changed its level.

A mean over an hour lags behind: a downstream that has become four times slower shows in it little by little. A change
is found as one of throughput is, by the same statistics (:mod:`lagwise.domain.capacity.block_statistics`): two minutes
after it at the earliest.

Sizing is for the peak, so minutes with little work do not count where there were others: caches are cold then, and
batches small. Work is time spent on messages and not their number, which falls by itself when each takes longer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from lagwise.domain.capacity.block_statistics import newest_of, rate_of
from lagwise.domain.capacity.saturation import Block

#: A minute counts if at least this share of the time was spent on messages that was in a busy one …
LEAST_WORK = 0.25
#: … which has more than this share of all minutes.
BUSIER_THAN = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredMinute:
    """What the consumers of a group measured of the messages of one topic in a minute; times are means per message."""

    minute: datetime
    messages: int
    t1_seconds: float
    t2_seconds: float
    #: Why T1 is only an upper bound, in any of its measurements; None is no doubt.
    t1_doubt: str | None = None

    @property
    def work_seconds(self) -> float:
        """The time that was spent on its messages."""
        return self.messages * (self.t1_seconds + self.t2_seconds)


@dataclass(frozen=True, slots=True)
class LevelChange:
    """That T1, or T2, is another since ``at``, and what it was before, in seconds."""

    at: datetime
    before_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceLevel:
    """Means per message since the last change of either; None is no change."""

    t1_seconds: float
    t2_seconds: float
    messages: int
    t1_change: LevelChange | None = None
    t2_change: LevelChange | None = None
    #: Why T1 is only an upper bound; None is no doubt.
    t1_doubt: str | None = None


def newest_level(minutes: Sequence[MeasuredMinute]) -> ServiceLevel:
    """The level of the newest of these minutes, which are in order of time. A change of either starts a new level of
    both: their means are of the same messages."""
    telling = telling_of(minutes)
    since_t1, t1_change = _last_change([m.t1_seconds for m in telling], telling)
    since_t2, t2_change = _last_change([m.t2_seconds for m in telling], telling)
    level = telling[max(since_t1, since_t2) :]
    messages = sum(m.messages for m in level)
    return ServiceLevel(
        t1_seconds=sum(m.t1_seconds * m.messages for m in level) / messages,
        t2_seconds=sum(m.t2_seconds * m.messages for m in level) / messages,
        messages=messages,
        t1_change=t1_change,
        t2_change=t2_change,
        t1_doubt=max((m.t1_doubt for m in level if m.t1_doubt is not None), default=None),
    )


def telling_of(minutes: Sequence[MeasuredMinute]) -> list[MeasuredMinute]:
    """Those with enough work to tell what a message costs under load."""
    busy = sorted(minute.work_seconds for minute in minutes)[int(BUSIER_THAN * (len(minutes) - 1))]
    return [minute for minute in minutes if minute.work_seconds >= LEAST_WORK * busy]


def _last_change(means: Sequence[float], minutes: Sequence[MeasuredMinute]) -> tuple[int, LevelChange | None]:
    """The number of the first minute of the newest level of these means, and the change with which it began. A message
    counts as a second of a block."""
    blocks = [Block(0.0, m.messages, mean * m.messages) for mean, m in zip(means, minutes, strict=True)]
    newest, before = newest_of(blocks)
    since = len(blocks) - len(newest)
    return since, LevelChange(minutes[since].minute, rate_of(before)) if before else None
