"""When consumers were at the limit of what they can do, from committed offsets and lag alone.

A consumer that keeps up processes what arrives: its throughput shows the demand, not its capacity. Only while records
wait for it all the time does its throughput show its capacity. (Flink's autoscaler measures the same, as the observed
true processing rate.) This module cuts those stretches of time into blocks of whole commit cadences.
:mod:`lagwise.domain.capacity.saturated_minutes` finds their minutes; :mod:`lagwise.domain.capacity.observed` makes an
estimate of the blocks.

That something is unread does not mean that there is a backlog: a commit that comes every minute leaves up to a minute
of records that are read already, and a pipeline always has some on their way. So a backlog must be worth a time at the
partition's own best pace, and more than two of its cadences.

Times are seconds since some moment, rates records per second.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from lagwise.domain.verdicts.buckets import MINUTE_SECONDS

#: A backlog must be worth so many seconds at the partition's best pace.
LEAST_BACKLOG_SECONDS = 30.0
#: A backlog must be worth so many cadences, too: the one whose records are read but not committed, and another.
CADENCES_OF_BACKLOG = 2.0
#: As for the status `stalled`: a partition is at work if it moved within three cadences, and at least a minute.
CADENCES_AT_WORK = 3.0
LEAST_SECONDS_AT_WORK = 60.0
#: Or if its owner was, on another partition, and comes back: clients work through what they fetched of one partition
#: before they turn to the next. It is taken to come back for so long. Away for longer, this partition may be stuck,
#: unless it moves again in the same hour.
LONGEST_TURN_SECONDS = 600.0
#: A block of throughput is so long and holds so many cadences: the ends of a block are known to a cadence.
BLOCK_SECONDS = 100.0
CADENCES_PER_BLOCK = 6.0
#: A backlog that stays level is no proof: records may be held back on purpose (a retry topic), or be long on their way.
#: Over a stretch it must grow or shrink by this share of what was read, and by what is read in so many seconds.
LEVEL_SHARE = 0.02
LEVEL_SECONDS = 15.0
#: Around a rebalance nothing is read for some time, and members that join are still warming up.
UNREST_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class SaturatedMinute:
    """A minute throughout which every partition being read had a backlog and was at work, or waited for its turn."""

    start: float
    #: When ``committed`` became what it is; None where nothing was committed in this minute.
    moved_at: float | None
    #: Sum of the committed offsets of the partitions.
    committed: int
    #: Sum of the lag of the partitions that are read.
    lag: int
    #: The longest commit cadence of these.
    cadence_seconds: float
    #: Consumers that had a part in it; None is unknown.
    members: int | None
    #: Anything that is the same for the same partitions.
    partitions: Hashable


@dataclass(frozen=True, slots=True)
class Block:
    """Throughput over whole cadences under saturation, by so many members (None is unknown)."""

    start: float
    end: float
    records: float
    members: int | None = None


def is_uneasy(minute: float, unrest: Iterable[tuple[float, float]]) -> bool:
    """Whether the minute that starts then touches one of these times, or the time after it."""
    return any(start - MINUTE_SECONDS < minute < end + UNREST_SECONDS for start, end in unrest)


def blocks_of(minutes: Iterable[SaturatedMinute]) -> list[Block]:
    """Blocks from the saturated minutes of an hour, which come in any order.

    A stretch is successive minutes of the same partitions and as many members. What it holds lies between two
    movements of the committed offsets, so that its first and its last minute count only as far as they are whole
    cadences.
    """
    blocks: list[Block] = []
    stretch: list[SaturatedMinute] = []
    for minute in sorted(minutes, key=lambda m: m.start):
        if stretch and not _continues(stretch[-1], minute):
            blocks += _blocks_of_stretch(stretch)
            stretch = []
        stretch.append(minute)
    return blocks + _blocks_of_stretch(stretch)


def _continues(before: SaturatedMinute, after: SaturatedMinute) -> bool:
    is_next = after.start - before.start <= MINUTE_SECONDS
    same = (before.members, before.partitions) == (after.members, after.partitions)
    return is_next and same and after.committed >= before.committed


def _blocks_of_stretch(stretch: Sequence[SaturatedMinute]) -> list[Block]:
    points = [(m.moved_at, m) for m in stretch if m.moved_at is not None]
    if len(points) < 2:
        return []
    cadence = max(m.cadence_seconds for m in stretch)
    (began, first), (ended, last) = points[0], points[-1]
    length = max(BLOCK_SECONDS, CADENCES_PER_BLOCK * cadence)
    if ended - began < length or _is_level(first, last, ended - began, cadence):
        return []
    cuts = [points[0]]
    for at, minute in points[1:]:
        if at - cuts[-1][0] >= length:
            cuts.append((at, minute))
    cuts[-1] = points[-1]  # what is left over belongs to the last block
    return [
        Block(a, b, float(later.committed - earlier.committed), later.members)
        for (a, earlier), (b, later) in pairwise(cuts)
    ]


def _is_level(first: SaturatedMinute, last: SaturatedMinute, seconds: float, cadence: float) -> bool:
    read = last.committed - first.committed
    least = read * max(LEVEL_SHARE, max(LEVEL_SECONDS, cadence) / seconds)
    return abs(last.lag - first.lag) < least
