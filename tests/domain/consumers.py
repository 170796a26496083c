"""A simulated group on a topic, whose capacity is known, and what Lagwise would store of it."""

import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from lagwise.domain.capacity.observed import Floor
from lagwise.domain.capacity.saturation import Block, blocks_of
from tests.domain.saturated_minutes import Bucket, Habit, habit_of, saturated_minutes

HOUR = 3600.0
GAP_SECONDS = 120.0


def daily(mean: float, swing: float = 0.4) -> Callable[[float], float]:
    """Arrivals per second at a time, with a maximum in the sixth hour."""
    return lambda t: mean * (1 + swing * math.sin(2 * math.pi * t / 86_400.0))


@dataclass(kw_only=True)
class World:
    """Members that each do ``capacity`` records per second (times ``pace`` of the time), in order of their partitions,
    a batch at a time, and commit every so many seconds. Nobody reads during an outage."""

    arrivals: Callable[[float], float]
    capacity: float
    members: int = 2
    partitions: int = 4
    shares: Sequence[float] | None = None
    commit_every: float = 5.0
    batch: int = 500
    noise: float = 0.1
    delay_seconds: float = 0.0
    pace: Callable[[float], float] = lambda _: 1.0
    outages: Sequence[tuple[float, float]] = ()
    hours: float = 4.0
    interval: float = 15.0
    seed: int = 1
    #: (time, committed, lag) by partition, as sampled
    samples: dict[int, list[tuple[float, int, int]]] = field(init=False)

    def __post_init__(self) -> None:
        rng = random.Random(self.seed)
        shares = self.shares or [1 / self.partitions] * self.partitions
        ends = [0.0] * self.partitions
        position = [0.0] * self.partitions
        committed = [0] * self.partitions
        arrived: list[list[float]] = [[] for _ in range(self.partitions)]
        phases = [rng.uniform(0, self.commit_every) for _ in range(self.members)]
        turn = [rng.randrange(self.partitions) for _ in range(self.members)]
        left = [0.0] * self.members
        self.samples = {p: [] for p in range(self.partitions)}
        drift = 0.0
        delay = int(self.delay_seconds)
        owned = [range(m, self.partitions, self.members) for m in range(self.members)]
        for t in range(int(self.hours * HOUR)):
            arriving = self.arrivals(t)
            for p, share in enumerate(shares):
                mean = arriving * share
                ends[p] += max(0.0, rng.gauss(mean, math.sqrt(mean)))
                if delay:
                    arrived[p].append(ends[p])
            is_down = any(a <= t < b for a, b in self.outages)
            # Work is now slower and now faster for a while: what follows one another is alike.
            drift = 0.98 * drift + 0.2 * self.noise * rng.gauss(0, 1)
            budget_of_each = self.capacity * self.pace(t) * math.exp(drift - self.noise**2 / 2)
            for m, own in enumerate(owned):
                if is_down:
                    continue
                budget = budget_of_each
                empty = 0
                while budget > 0 and empty <= len(own):
                    p = own[turn[m] % len(own)]
                    ready = arrived[p][max(0, t - delay)] if delay else ends[p]
                    if ready > position[p]:
                        some = min(budget, ready - position[p], left[m] or self.batch)
                        position[p] += some
                        budget -= some
                        left[m] = max(0.0, (left[m] or self.batch) - some)
                        empty = 0
                    else:
                        empty += 1
                    if budget > 0:
                        # The batch is done, or there is no more of it.
                        left[m] = 0.0
                        turn[m] += 1
                if (t + phases[m]) % self.commit_every < 1:
                    for p in own:
                        committed[p] = int(position[p])
            if t % self.interval == 0:
                for p in range(self.partitions):
                    self.samples[p].append((float(t), committed[p], int(ends[p]) - committed[p]))

    @property
    def truth(self) -> float:
        """What the whole group can do per second."""
        return self.capacity * self.members

    def buckets(self, seconds: float) -> dict[int, list[Bucket]]:
        """Rows of `minutes` (60 s) or `five_minutes` (300 s) by partition."""
        return {p: list(_buckets(p, samples, seconds)) for p, samples in self.samples.items()}

    def blocks(self, partitions: Sequence[int] | None = None, members: int | None = None) -> list[Block]:
        """Blocks of all hours, of all partitions or of some."""
        wanted = range(self.partitions) if partitions is None else partitions
        count = self.members if members is None else members
        minutes, coarse = self.buckets(60.0), self.buckets(300.0)
        found = []
        for hour in range(math.ceil(self.hours)):
            start, end = hour * HOUR, (hour + 1) * HOUR
            of_hour = [b for p in wanted for b in minutes[p] if start <= b.start < end]
            habits: dict[int, Habit] = {}
            for p in wanted:
                habits[p] = habit_of([b for b in coarse[p] if start <= b.start < end])
            here = {b.start: count for b in of_hour}
            unrest = [(b - self.interval, b) for _, b in self.outages]
            minutes_of_hour = saturated_minutes(
                of_hour, habits, members=here, unrest=unrest, owner=lambda b: b.partition % self.members
            )
            found += blocks_of(minutes_of_hour)
        return found

    def floors(self) -> list[Floor]:
        """What was read in each five minutes."""
        per_start: dict[float, float] = {}
        for rows in self.buckets(300.0).values():
            for b in rows:
                rate = (b.last_committed - b.first_committed) / (300.0 + max(self.commit_every, self.interval))
                per_start[b.start] = per_start.get(b.start, 0.0) + rate
        return [Floor(at, rate, self.members) for at, rate in per_start.items()]


def _buckets(partition: int, samples: Sequence[tuple[float, int, int]], seconds: float) -> Iterator[Bucket]:
    stepped = [((-math.inf, 0, 0), samples[0]), *pairwise(samples)]
    by_start: dict[float, list[tuple[tuple[float, int, int], tuple[float, int, int]]]] = {}
    for before, now in stepped:
        by_start.setdefault(now[0] - now[0] % seconds, []).append((before, now))
    for start, steps in by_start.items():
        lags = [float(now[2]) for _, now in steps]
        moved = [now[0] for before, now in steps if before[0] > -math.inf and now[1] != before[1]]
        yield Bucket(
            partition=partition,
            start=start,
            samples=len(steps),
            first_at=steps[0][1][0],
            last_at=steps[-1][1][0],
            first_committed=steps[0][1][1],
            last_committed=steps[-1][1][1],
            last_lag=steps[-1][1][2],
            sum_lag=sum(lags),
            sum_lag_lag=sum(lag * lag for lag in lags),
            moves=len(moved),
            last_moved_at=moved[-1] if moved else None,
            backlog_seconds=sum(now[0] - before[0] for before, now in steps if before[2] and now[0] - before[0] < 121),
        )
