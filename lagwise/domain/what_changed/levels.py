"""Changes of the level of a rate, and of the time per message as one.

They are judged by the same statistics as throughput (:mod:`lagwise.domain.capacity.block_statistics`), in steps of some
seconds and not of minutes: a change shows after two of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise

from lagwise.domain.capacity.block_statistics import levels_of, rate_of
from lagwise.domain.capacity.saturation import Block
from lagwise.domain.capacity.service_level import LEAST_WORK

#: A quantity has risen, or fallen, that is so many times what it was. Noise moves means of seconds by less, and less
#: would hardly make a group fall behind.
RISEN, FALLEN = 1.25, 0.8
#: A rise is over when the quantity is no more than so many times what it was before.
OVER = 1.15


@dataclass(frozen=True, slots=True)
class Level:
    """That a quantity has had another level since ``at``: what it was before, and what it has been since."""

    at: datetime
    before: float
    now: float

    @property
    def factor(self) -> float:
        """How many times what it was before; infinite if that was nothing."""
        return self.now / self.before if self.before else float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkStep:
    """What a group's consumers measured in some seconds, over all members.

    Times are means per message; ``t2_seconds`` is None where T1 holds the whole time per message.
    """

    start: datetime
    messages: int
    t1_seconds: float
    t2_seconds: float | None
    #: Part of the threads' time that was spent on messages, 0 to 1; None is not known.
    busy_share: float | None = None


def level_since(blocks: Sequence[Block], since: datetime, *, falls: bool = False) -> Level | None:
    """The first rise (or fall) of a rate at or after ``since``, if it still holds; ``now`` is the mean since then."""
    levels = levels_of(blocks) if blocks else []
    for number in range(1, len(levels)):
        before, after = rate_of(levels[number - 1]), [block for level in levels[number:] for block in level]
        level = Level(_at(levels[number][0].start), before, rate_of(levels[number]))
        newest = rate_of(levels[-1])
        changed = level.factor <= FALLEN if falls else level.factor >= RISEN
        holds = newest <= before / OVER if falls else newest >= before * OVER
        if level.at >= since and changed and holds:
            return Level(level.at, before, rate_of(after))
    return None


def levels_between(blocks: Sequence[Block]) -> list[Level]:
    """Every rise and every fall of a rate, in order of time."""
    levels = levels_of(blocks) if blocks else []
    found = [Level(_at(after[0].start), rate_of(before), rate_of(after)) for before, after in pairwise(levels)]
    return [level for level in found if not FALLEN < level.factor < RISEN]


def with_enough_work(steps: Sequence[WorkStep]) -> list[WorkStep]:
    """Steps with enough work: a mean of few messages scatters. What is spent on messages counts, not their number."""
    spent = [step.messages * (step.t1_seconds + (step.t2_seconds or 0.0)) for step in steps]
    middle = sorted(spent)[len(spent) // 2] if spent else 0.0
    return [step for step, its in zip(steps, spent, strict=True) if its > 0 and its >= LEAST_WORK * middle]


def per_message(steps: Sequence[WorkStep], means: Sequence[float]) -> list[Block]:
    """Means of steps as blocks: their length is messages, and they begin where the step does."""
    begins = [step.start.timestamp() for step in steps]
    return [
        Block(begin, begin + step.messages, mean * step.messages)
        for step, begin, mean in zip(steps, begins, means, strict=True)
    ]


def _at(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
