"""What consumers can do, estimated from the times in which they had a backlog; never from others.

Throughput is a censored observation of capacity: while records wait (:mod:`lagwise.domain.capacity.saturation`) it is
the capacity; else it is what arrived, and the capacity is at least that. So the estimate comes from saturated blocks
alone, and the best five minutes beside them bound it from below, which can contradict an estimate and never make one.

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

#: Fewer blocks, or less time in them, decide nothing.
LEAST_BLOCKS = 3
LEAST_SATURATED_SECONDS = 600.0
#: Nor does an estimate whose interval reaches farther than this share to either side …
MOST_MARGIN = 0.15
#: … nor blocks that scatter by this much (standard deviation over mean): that is not one capacity.
MOST_SCATTER = 0.35
#: From so many episodes on, how they differ from one another tells what the next may be like.
TELLING_EPISODES = 4
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
    """What consumers were seen to be able to do; without ``rate_per_second`` it is undecided, for this ``reason``.

    ``low`` and ``high`` are the ends of the 95 % interval. ``saturated_seconds``, ``blocks`` and ``episodes`` are what
    it rests on (where it is undecided: what there is). ``at_least_per_second`` is the lower bound that times without a
    backlog give. ``members`` is how many consumers this is for; ``is_scaled`` where it was observed with other numbers
    of them and taken as proportional. ``seconds_per_message`` is the time per message of one thread, T1 + T2.
    ``changed_at`` is when it became what it is, ``changed_from_per_second`` what it was before.
    """

    rate_per_second: float | None = None
    low: float | None = None
    high: float | None = None
    reason: Undecided | None = None
    saturated_seconds: float = 0.0
    blocks: int = 0
    episodes: int = 0
    at_least_per_second: float | None = None
    members: int | None = None
    threads: float | None = None
    is_scaled: bool = False
    from_: float | None = None
    until: float | None = None
    changed_at: float | None = None
    changed_from_per_second: float | None = None
    missing_seconds: float = 0.0

    @property
    def is_decided(self) -> bool:
        return self.rate_per_second is not None

    @property
    def seconds_per_message(self) -> float | None:
        """T1 + T2 of one thread; None where it is undecided, or the number of threads unknown."""
        if self.rate_per_second is None or not self.threads:
            return None
        return self.threads / self.rate_per_second


def observed_capacity(
    blocks: Sequence[Block],
    floors: Sequence[Floor] = (),
    *,
    members: int | None = None,
    threads_per_member: float = 1.0,
    is_shared: bool = False,
) -> ObservedCapacity:
    """The estimate for so many members (None or 0: as many as there were last), or why there is none.

    Blocks with as many members tell of it; where they do not suffice, all are taken, in proportion to their members.
    Blocks and floors that cannot be (negative, zero, not a number) are left out.
    """
    sound = sorted((b for b in blocks if _is_sound(b)), key=lambda b: b.start)
    today = members if _is_many(members) else next((b.members for b in reversed(sound) if b.members), None)
    threads = today * threads_per_member if today and _is_positive(threads_per_member) else None
    same = [b for b in sound if b.members == today]
    found, is_scaled = _estimate(same), False
    if found.reason in (Undecided.NEVER_SATURATED, Undecided.TOO_LITTLE) and len(same) < len(sound):
        others = [_scaled(b, today) for b in sound if b.members and today]
        found, is_scaled = _estimate(others), bool(others)
    # What was done before the capacity changed bounds what it was.
    valid = [f for f in floors if _is_positive(f.rate_per_second) and f.at >= (found.changed_at or -math.inf)]
    at_least = max((_bound(f, today) for f in valid), default=None)
    reason = found.reason
    if reason is None:
        assert found.high is not None
        if is_shared:
            reason = Undecided.SHARED
        elif at_least is not None and at_least > found.high * (1 + CONTRADICTION_SHARE):
            reason = Undecided.EXCEEDED
    decided = reason is None
    return ObservedCapacity(
        rate_per_second=found.rate if decided else None,
        low=found.low if decided else None,
        high=found.high if decided else None,
        reason=reason,
        saturated_seconds=found.seconds,
        blocks=found.blocks,
        episodes=found.episodes,
        at_least_per_second=at_least,
        members=today,
        threads=threads,
        is_scaled=is_scaled,
        from_=found.from_,
        until=found.until,
        changed_at=found.changed_at,
        changed_from_per_second=found.changed_from,
        missing_seconds=0.0 if decided else found.missing_seconds,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Estimate:
    rate: float = 0.0
    low: float | None = None
    high: float | None = None
    reason: Undecided | None = None
    seconds: float = 0.0
    blocks: int = 0
    episodes: int = 0
    from_: float | None = None
    until: float | None = None
    changed_at: float | None = None
    changed_from: float | None = None
    missing_seconds: float = LEAST_SATURATED_SECONDS


def _estimate(blocks: Sequence[Block]) -> _Estimate:
    """From blocks in order of time, all of as many members."""
    if not blocks:
        return _Estimate(reason=Undecided.NEVER_SATURATED)
    newest, before = newest_of(blocks)
    rate, seconds = rate_of(newest), seconds_of(newest)
    episodes = episodes_of(newest)
    seen = _Estimate(
        seconds=seconds,
        blocks=len(newest),
        episodes=len(episodes),
        from_=newest[0].start,
        until=newest[-1].end,
        changed_at=newest[0].start if before else None,
        changed_from=rate_of(before) if before else None,
    )
    missing = max(0.0, LEAST_SATURATED_SECONDS - seconds, (LEAST_BLOCKS - len(newest)) * seconds / len(newest))
    if missing:
        return replace(seen, reason=Undecided.TOO_LITTLE, missing_seconds=missing)
    if scatter_of(newest) > MOST_SCATTER * rate:
        return replace(seen, reason=Undecided.UNSTEADY)
    margin = margin_of(newest)
    if len(episodes) >= TELLING_EPISODES:
        margin = max(margin, margin_of([whole_of(e) for e in episodes]))
    if margin > MOST_MARGIN * rate:
        # The margin goes down with the square root of the time.
        more = seconds * ((margin / (MOST_MARGIN * rate)) ** 2 - 1)
        return replace(seen, reason=Undecided.IMPRECISE, missing_seconds=more)
    return replace(seen, rate=rate, low=rate - margin, high=rate + margin)


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
