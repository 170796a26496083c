"""The definition of saturated minutes, row by row in plain Python.

The rules are those of :mod:`lagwise.domain.capacity.saturation`.
"""

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from lagwise.domain.capacity.saturation import (
    CADENCES_AT_WORK,
    CADENCES_OF_BACKLOG,
    LEAST_BACKLOG_SECONDS,
    LEAST_SECONDS_AT_WORK,
    LONGEST_TURN_SECONDS,
    SaturatedMinute,
    is_uneasy,
)
from lagwise.domain.verdicts.buckets import FIVE_MINUTES_SECONDS


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
    half = FIVE_MINUTES_SECONDS / 2
    peak = max((b.last_committed - b.first_committed) / max(half, b.last_at - b.first_at) for b in five_minutes)
    moves = sum(b.moves for b in five_minutes)
    lively = [b.backlog_seconds / b.moves for b in five_minutes if b.moves >= 2 and b.backlog_seconds > 0]
    hourly = sum(b.backlog_seconds for b in five_minutes) / moves if moves else None
    return Habit(max(0.0, peak), min(lively) if lively else hourly)


def saturated_minutes(
    minutes: Iterable[Bucket],
    habits: Mapping[int, Habit],
    *,
    members: Mapping[float, int] | None = None,
    unrest: Iterable[tuple[float, float]] = (),
    counts: Callable[[Bucket], bool] = lambda _: True,
    owner: Callable[[Bucket], Hashable | None] = lambda _: None,
) -> list[SaturatedMinute]:
    """The saturated minutes of one hour, from the minutes of all partitions that a group or a member reads of a topic.

    ``members`` is how many consumers had a part in it, by minute. ``unrest`` are the times in which rebalances took
    place: minutes that touch one, or the time after it, do not count. ``counts`` says of which partitions it is, where
    that changes; when the others moved is known as well. ``owner`` is who alone owned a partition in a minute.
    """
    by_minute: dict[float, list[tuple[Bucket, bool]]] = {}
    moved_at: dict[int, float] = {}
    in_order = sorted(minutes, key=lambda b: b.start)
    moves_last = {(b.partition, owner(b)): b.start for b in in_order if b.last_moved_at is not None}
    for start, of_minute in groupby(in_order, key=lambda b: b.start):
        buckets = list(of_minute)
        moved_at |= {b.partition: b.last_moved_at for b in buckets if b.last_moved_at is not None}
        for bucket in buckets:
            its = owner(bucket)
            elsewhere = max(
                (moved_at[b.partition] for b in buckets if b.partition in moved_at and owner(b) == its),
                default=None,
            )
            is_saturated = _is_saturated(
                bucket,
                habits.get(bucket.partition),
                moved_at.get(bucket.partition),
                None if its is None else elsewhere,
                moves_last.get((bucket.partition, its), -math.inf) > start,
            )
            if counts(bucket):
                by_minute.setdefault(start, []).append((bucket, is_saturated))
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


def _is_saturated(
    bucket: Bucket, habit: Habit | None, moved_at: float | None, owner_moved_at: float | None, moves_again: bool
) -> bool:
    if habit is None or habit.cadence_seconds is None:
        return False
    silence = math.inf if moved_at is None else bucket.last_at - moved_at
    longest = habit.longest_silence_seconds
    is_at_work = silence <= longest
    if owner_moved_at is not None and bucket.last_at - owner_moved_at <= longest:
        is_at_work |= silence <= LONGEST_TURN_SECONDS or moves_again
    return is_at_work and 0 < bucket.least_lag >= habit.needed_backlog
