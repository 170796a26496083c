"""When consumers were at the limit of what they can do, told from committed offsets and lag alone.

A consumer that keeps up does as much as arrives: its throughput says what is demanded, not what it can do. Only while
records wait for it all the time does its throughput show its capacity (Flink's autoscaler, which calls that the
observed true processing rate, goes by the same). This module finds those stretches of time and cuts them into blocks
of whole commit cadences; :mod:`lagwise.domain.capacity.observed` makes an estimate of them. It is the definition of
what Spark computes (``lagwise_spark.transforms.saturation``).

That something is unread does not mean that there is a backlog: a commit that comes every minute leaves up to a minute
of records that are read already, and a pipeline always has some on their way. So a backlog must be worth a time at the
partition's own best pace, and more than two of its cadences.

Times are seconds since some moment, rates records per second.
"""

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from lagwise.domain.history import COARSE_SECONDS, MINUTE_SECONDS

#: A backlog must be worth so many seconds at the partition's best pace …
LEAST_BACKLOG_SECONDS = 30.0
#: … and so many cadences: the one whose records are read but not committed, and another.
CADENCES_OF_BACKLOG = 2.0
#: As for the status `stalled`: a partition is at work if it moved within three cadences, and at least a minute.
CADENCES_AT_WORK = 3.0
LEAST_SECONDS_AT_WORK = 60.0
#: A block of throughput is so long and holds so many cadences: the ends of a block are known to a cadence.
BLOCK_SECONDS = 100.0
CADENCES_PER_BLOCK = 6.0
#: A backlog that stays level is no proof: records may be held back on purpose (a retry topic), or be long on their way.
#: Over a stretch it must grow or shrink by this share of what was read, and by what is read in so many seconds.
LEVEL_SHARE = 0.02
LEVEL_SECONDS = 15.0
#: Around a rebalance nobody reads for some time, and those who come are still warming up.
UNREST_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Bucket:
    """What `minutes` (or `five_minutes`) holds of a group-partition; ``start`` is its column ``minute``."""

    partition: int
    start: float
    samples: int
    first_at: float
    last_at: float
    first_committed: int
    last_committed: int
    last_lag: int
    sum_lag: float
    sum_lag_lag: float
    moves: int
    last_moved_at: float | None
    backlog_seconds: float
    went_back: bool = False

    @property
    def least_lag(self) -> float:
        """No sample of the bucket had less lag than this. The smallest of n numbers is at least their mean less √(n−1)
        standard deviations (Samuelson's inequality); both are there to be had, the smallest itself is not."""
        mean = self.sum_lag / self.samples
        variance = max(0.0, self.sum_lag_lag / self.samples - mean * mean)
        return mean - math.sqrt((self.samples - 1) * variance)

    @property
    def is_read(self) -> bool:
        """Whether there was anything to read."""
        return self.moves > 0 or self.sum_lag > 0


@dataclass(frozen=True, slots=True)
class Habit:
    """How a group-partition was read within an hour: its best pace over five minutes, and how often it committed (None
    where it never did)."""

    peak_rate_per_second: float
    cadence_seconds: float | None

    @property
    def needed_backlog(self) -> float:
        """Records that must be unread to be a backlog."""
        cadence = self.cadence_seconds or 0.0
        return self.peak_rate_per_second * max(LEAST_BACKLOG_SECONDS, CADENCES_OF_BACKLOG * cadence)

    @property
    def longest_silence_seconds(self) -> float:
        """A partition that moved within this time is at work."""
        return max(LEAST_SECONDS_AT_WORK, CADENCES_AT_WORK * (self.cadence_seconds or 0.0))


def habit_of(five_minutes: Sequence[Bucket]) -> Habit:
    """The habit that the five minutes of an hour show.

    The cadence is that of the liveliest five minutes, so that a standstill does not lengthen it; who commits too rarely
    for that is judged by the whole hour. Cadences shorter than the sampling interval look as long as that.
    """
    half = COARSE_SECONDS / 2
    peak = max((b.last_committed - b.first_committed) / max(half, b.last_at - b.first_at) for b in five_minutes)
    moves = sum(b.moves for b in five_minutes)
    lively = [b.backlog_seconds / b.moves for b in five_minutes if b.moves >= 2 and b.backlog_seconds > 0]
    hourly = sum(b.backlog_seconds for b in five_minutes) / moves if moves else None
    return Habit(max(0.0, peak), min(lively) if lively else hourly)


@dataclass(frozen=True, slots=True)
class SaturatedMinute:
    """A minute throughout which every partition being read had a backlog and was at work.

    ``moved_at`` is when ``committed``, the sum over the partitions, became what it is (None where nothing was committed
    in this minute). ``partitions`` is anything that is the same for the same partitions.
    """

    start: float
    moved_at: float | None
    committed: int
    lag: int
    cadence_seconds: float
    members: int | None
    partitions: Hashable


@dataclass(frozen=True, slots=True)
class Block:
    """Throughput over whole cadences under saturation, by so many members (None is unknown)."""

    start: float
    end: float
    records: float
    members: int | None = None


def saturated_minutes(
    minutes: Iterable[Bucket],
    habits: Mapping[int, Habit],
    *,
    members: Mapping[float, int] | None = None,
    unrest: Iterable[tuple[float, float]] = (),
) -> list[SaturatedMinute]:
    """The saturated minutes of one hour, from the minutes of all partitions that a group or a member reads of a topic.

    ``members`` is how many consumers had a part in it, by minute. ``unrest`` are the times in which rebalances took
    place: minutes that touch one, or the time after it, do not count.
    """
    by_minute: dict[float, list[tuple[Bucket, bool]]] = {}
    moved_at: dict[int, float] = {}
    for bucket in sorted(minutes, key=lambda b: b.start):
        if bucket.last_moved_at is not None:
            moved_at[bucket.partition] = bucket.last_moved_at
        is_saturated = _is_saturated(bucket, habits.get(bucket.partition), moved_at.get(bucket.partition))
        by_minute.setdefault(bucket.start, []).append((bucket, is_saturated))
    uneasy = list(unrest)
    found = []
    for start, all_of_it in by_minute.items():
        read = [bucket for bucket, _ in all_of_it if bucket.is_read]
        if not read or not all(is_saturated for bucket, is_saturated in all_of_it if bucket.is_read):
            continue
        if any(bucket.went_back for bucket, _ in all_of_it) or is_uneasy(start, uneasy):
            continue
        found.append(
            SaturatedMinute(
                start=start,
                moved_at=max((b.last_moved_at for b in read if b.last_moved_at is not None), default=None),
                committed=sum(bucket.last_committed for bucket, _ in all_of_it),
                lag=sum(bucket.last_lag for bucket in read),
                cadence_seconds=max(habits[bucket.partition].cadence_seconds or 0.0 for bucket in read),
                members=(members or {}).get(start),
                partitions=frozenset(bucket.partition for bucket, _ in all_of_it),
            )
        )
    return found


def is_uneasy(minute: float, unrest: Iterable[tuple[float, float]]) -> bool:
    """Whether the minute that starts then touches one of these times, or the time after it."""
    return any(start - MINUTE_SECONDS < minute < end + UNREST_SECONDS for start, end in unrest)


def _is_saturated(bucket: Bucket, habit: Habit | None, moved_at: float | None) -> bool:
    if habit is None or habit.cadence_seconds is None or moved_at is None:
        return False
    is_at_work = bucket.last_at - moved_at <= habit.longest_silence_seconds
    return is_at_work and 0 < bucket.least_lag >= habit.needed_backlog


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
