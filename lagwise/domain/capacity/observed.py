"""What consumers can do, estimated from the times in which they had a backlog; never from others.

Throughput is a censored observation of capacity: while records wait (:mod:`lagwise.domain.capacity.saturation`) it is
the capacity; else it is what arrived, and the capacity is at least that. So the estimate comes from saturated blocks
alone, and the best five minutes bound it from below, which can contradict an estimate and never make one.

Minutes that follow one another are alike, so the interval is that of the means of blocks, widened by the correlation
of successive blocks and by how stretches of time differ from one another. Times are seconds since some moment.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from lagwise.domain.capacity.block_statistics import (
    episodes_of,
    margin_of,
    newest_of,
    rate_of,
    scatter_of,
    seconds_of,
    whole_of,
)
from lagwise.domain.capacity.saturation import Block

#: Fewer blocks decide nothing.
LEAST_BLOCKS = 3
#: Less time in blocks decides nothing.
LEAST_SATURATED_SECONDS = 600.0
#: An estimate whose interval reaches farther than this share to either side decides nothing.
MOST_MARGIN = 0.15
#: Blocks that scatter by more than this (standard deviation over mean) are not of one capacity.
MOST_SCATTER = 0.35
#: From so many episodes on, how they differ from one another shows what the next may be like.
LEAST_EPISODES = 4
#: A lower bound this far above the interval contradicts it.
CONTRADICTION_SHARE = 0.1
#: Offsets go no further.
_MOST_RECORDS = 2.0**63


class Undecided(StrEnum):
    """Why there is no estimate."""

    NEVER_SATURATED = "never_saturated"
    #: Saturated, but not for long enough; so too after a change, of what came after it.
    TOO_LITTLE = "too_little"
    #: The interval is too wide.
    IMPRECISE = "imprecise"
    #: Throughput under backlog goes up and down as no one capacity does.
    UNSTEADY = "unsteady"
    #: More was done without a backlog than with one.
    EXCEEDED = "exceeded"
    #: Its consumers read other topics as well: what they do here is not all they can do.
    SHARED = "shared"


@dataclass(frozen=True, slots=True)
class Floor:
    """What was read per second over the five minutes from ``at`` on, whatever the backlog, by so many members (None is
    unknown)."""

    at: float
    rate_per_second: float
    members: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedCapacity:
    """What consumers were seen to be able to do; without ``rate_per_second`` it is undecided."""

    #: Records per second of all of them, with the ends of the 95 % interval.
    rate_per_second: float | None = None
    low: float | None = None
    high: float | None = None
    #: Why it is undecided; None where it is not.
    reason: Undecided | None = None
    #: What it rests on (where it is undecided: what there is): time under saturation, blocks of it, and how many
    #: stretches these make.
    saturated_seconds: float = 0.0
    blocks: int = 0
    episodes: int = 0
    #: The lower bound that times without a backlog give.
    at_least_per_second: float | None = None
    #: How many consumers this is for, each taken as one thread; None is not known.
    members: int | None = None
    #: Whether it was observed with other numbers of members, and taken as proportional.
    is_scaled: bool = False
    #: Start of the first block, and end of the last one.
    from_: float | None = None
    until: float | None = None
    #: When it became what it is, and what it was before.
    changed_at: float | None = None
    changed_from_per_second: float | None = None
    #: How much longer a backlog would have to be seen; 0 where it is decided.
    missing_seconds: float = 0.0

    @property
    def is_decided(self) -> bool:
        return self.rate_per_second is not None

    @property
    def seconds_per_message(self) -> float | None:
        """T1 + T2 of one thread; None where it is undecided, or the number of members unknown."""
        if self.rate_per_second is None or not self.members:
            return None
        return self.members / self.rate_per_second


def observed_capacity(
    blocks: Sequence[Block], floors: Sequence[Floor] = (), *, members: int | None = None, is_shared: bool = False
) -> ObservedCapacity:
    """The estimate for so many members (None or 0: as many as there were last), or why there is none.

    Blocks with as many members count; where they do not suffice, all are taken, in proportion to their members.
    Blocks and floors that cannot be (negative, zero, not a number) are left out.
    """
    sound = sorted((b for b in blocks if _is_sound(b)), key=lambda b: b.start)
    today = members if _is_many(members) else next((b.members for b in reversed(sound) if b.members), None)
    same = [b for b in sound if b.members == today]
    found, is_scaled = _estimate(same), False
    if found.reason in (Undecided.NEVER_SATURATED, Undecided.TOO_LITTLE) and len(same) < len(sound):
        others = [_scaled(b, today) for b in sound if b.members and today]
        found, is_scaled = _estimate(others), bool(others)
    # What was done before the capacity changed bounds what it was.
    valid = [f for f in floors if _is_positive(f.rate_per_second) and f.at >= (found.changed_at or -math.inf)]
    at_least = max((_bound(f, today) for f in valid), default=None)
    found = replace(found, at_least_per_second=at_least, members=today, is_scaled=is_scaled)
    if found.high is None:
        return found
    if is_shared:
        return _undecided(found, Undecided.SHARED)
    if at_least is not None and at_least > found.high * (1 + CONTRADICTION_SHARE):
        return _undecided(found, Undecided.EXCEEDED)
    return found


def _undecided(
    found: ObservedCapacity, reason: Undecided, missing_seconds: float = LEAST_SATURATED_SECONDS
) -> ObservedCapacity:
    return replace(found, rate_per_second=None, low=None, high=None, reason=reason, missing_seconds=missing_seconds)


def _estimate(blocks: Sequence[Block]) -> ObservedCapacity:
    """From blocks in order of time, all of as many members."""
    if not blocks:
        return _undecided(ObservedCapacity(), Undecided.NEVER_SATURATED)
    newest, before = newest_of(blocks)
    rate, seconds = rate_of(newest), seconds_of(newest)
    episodes = episodes_of(newest)
    seen = ObservedCapacity(
        saturated_seconds=seconds,
        blocks=len(newest),
        episodes=len(episodes),
        from_=newest[0].start,
        until=newest[-1].end,
        changed_at=newest[0].start if before else None,
        changed_from_per_second=rate_of(before) if before else None,
    )
    missing = max(0.0, LEAST_SATURATED_SECONDS - seconds, (LEAST_BLOCKS - len(newest)) * seconds / len(newest))
    if missing:
        return _undecided(seen, Undecided.TOO_LITTLE, missing)
    if scatter_of(newest) > MOST_SCATTER * rate:
        return _undecided(seen, Undecided.UNSTEADY)
    margin = margin_of(newest)
    if len(episodes) >= LEAST_EPISODES:
        margin = max(margin, margin_of([whole_of(e) for e in episodes]))
    if margin > MOST_MARGIN * rate:
        # The margin goes down with the square root of the time.
        return _undecided(seen, Undecided.IMPRECISE, seconds * ((margin / (MOST_MARGIN * rate)) ** 2 - 1))
    return replace(seen, rate_per_second=rate, low=rate - margin, high=rate + margin)


def _scaled(block: Block, members: int | None) -> Block:
    assert block.members
    assert members
    return Block(block.start, block.end, block.records * members / block.members, members)


def _bound(floor: Floor, members: int | None) -> float:
    """What a floor says of so many members: more of them do no less, fewer in proportion."""
    if not _is_many(floor.members) or members is None or floor.members is None:
        return floor.rate_per_second
    return floor.rate_per_second * min(1.0, members / floor.members)


def _is_sound(block: Block) -> bool:
    numbers = (block.start, block.end, block.records)
    if block.members is not None and not _is_many(block.members):
        return False
    return all(map(math.isfinite, numbers)) and block.end - block.start >= 1 and 0 < block.records <= _MOST_RECORDS


def _is_positive(number: float) -> bool:
    return math.isfinite(number) and number > 0


def _is_many(members: int | None) -> bool:
    return members is not None and members > 0
