"""What if, message by message: a small seeded simulation that checks the fluid one and the formulas.

Messages arrive at random (a Poisson process with the rate of the traffic) in a partition (by its share). A reader takes
them from its partitions by turns, each partition's in order. A thread first waits T1 for something outside and then
needs one of the node's cores for T2; threads get the cores in the order in which they ask. A node that goes away
finishes what it has in hand and takes nothing new.

It costs a few microseconds a message: for minutes of traffic, not for days.
"""

import heapq
import math
import random
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from itertools import accumulate, count
from statistics import fmean

from lagwise.domain.simulation.readers import Epoch, deal, epochs
from lagwise.domain.simulation.scenario import MAX_SECONDS, Scenario
from lagwise.domain.sizing.ranges import OutOfRange, check_count, check_number

#: More messages than this take minutes: ask the fluid model.
MAX_MESSAGES = 5_000_000
_MAX_STEPS = 1_000_000
#: Standard deviation over mean of the heavy-tailed times.
_HEAVY_VARIATION = 2.0


class Spread(StrEnum):
    """How the times of single messages lie around their mean."""

    CONSTANT = "constant"
    EXPONENTIAL = "exponential"
    #: Log-normal with a standard deviation of twice the mean: most are quick, some take very long.
    HEAVY = "heavy"

    def sampler(self, mean: float, chance: random.Random) -> Callable[[], float]:
        """A function that draws one time."""
        if mean == 0.0 or self is Spread.CONSTANT:
            return lambda: mean
        if self is Spread.EXPONENTIAL:
            return lambda: chance.expovariate(1.0 / mean)
        variance = math.log(1.0 + _HEAVY_VARIATION**2)
        return lambda: chance.lognormvariate(math.log(mean) - variance / 2, math.sqrt(variance))


@dataclass(frozen=True, slots=True)
class Seen:
    """The group at one time."""

    at_seconds: float
    #: Messages that arrived and are not handled, those in hand among them.
    lag: int
    #: Age of the oldest message that no thread has taken, seconds.
    lag_seconds: float


@dataclass(frozen=True, slots=True)
class SimulatedRun:
    """One run up to the end of the traffic."""

    seen: tuple[Seen, ...]
    #: Those that were unread at the start among them.
    arrived: int
    handled: int
    lag_left: int
    #: How long each message waited to be taken by a thread, in the order in which they were taken, seconds.
    waits_seconds: tuple[float, ...]

    @property
    def mean_wait_seconds(self) -> float:
        """Mean time until a thread took a message; 0 where none was taken."""
        return fmean(self.waits_seconds) if self.waits_seconds else 0.0


@dataclass(slots=True)
class _Reader:
    node: "_Node"
    threads: int
    #: Those of its partitions that have messages, by turns.
    turns: deque[int] = field(default_factory=deque)
    running: int = 0
    is_offered: bool = False


@dataclass(slots=True)
class _Node:
    #: Readers that have messages and a thread to spare.
    ready: deque[_Reader] = field(default_factory=deque)
    #: Readers whose thread waits for a core.
    for_core: deque[_Reader] = field(default_factory=deque)
    busy_threads: int = 0
    busy_cores: int = 0
    is_away: bool = False


def simulate_messages(
    scenario: Scenario,
    step_seconds: float,
    *,
    seed: int,
    waiting: Spread = Spread.EXPONENTIAL,
    computing: Spread = Spread.EXPONENTIAL,
) -> SimulatedRun:
    """One run, looked at every ``step_seconds`` and at the end; the same seed gives the same run.

    ``waiting`` and ``computing`` say how T1 and T2 vary. Cores must be whole here.
    """
    check_count("seed", seed, 0, 2**63)
    end = scenario.traffic.seconds
    check_number("step_seconds", step_seconds, end / _MAX_STEPS, MAX_SECONDS, "a millionth of the time or more")
    if scenario.cores != int(scenario.cores):
        raise OutOfRange("cores", "whole where messages are simulated one by one", scenario.cores)
    messages = scenario.lag + scenario.traffic.arrived_by(end)
    check_number("messages", messages, 0.0, MAX_MESSAGES, f"at most {MAX_MESSAGES:,} in the whole time")
    return _Simulation(scenario, random.Random(seed), waiting, computing).run(step_seconds)


class _Simulation:
    def __init__(self, scenario: Scenario, chance: random.Random, waiting: Spread, computing: Spread) -> None:
        self.scenario, self.chance = scenario, chance
        self.waits = waiting.sampler(scenario.t1_seconds, chance)
        self.computes = computing.sampler(scenario.t2_seconds, chance)
        self.cores, self.threads = int(scenario.cores), scenario.threads_per_node
        #: Arrival times of the messages that no thread has taken.
        self.queues: list[deque[float]] = [deque() for _ in range(scenario.partitions)]
        self.nodes = [_Node() for _ in range(scenario.nodes)]
        self.reader_of: dict[int, _Reader] = {}
        #: What is to happen: (when, in which order, what).
        self.ahead: list[tuple[float, int, Callable[[float], None]]] = []
        self.order = count()
        self.arrived = self.handled = 0
        self.waited: list[float] = []
        self.seen: list[Seen] = []

    def run(self, step_seconds: float) -> SimulatedRun:
        """From the start to the end of the traffic."""
        end = self.scenario.traffic.seconds
        for partition, share in enumerate(self.scenario.falling_shares):
            self.queues[partition].extend([0.0] * round(self.scenario.lag * share))
            self.arrived += len(self.queues[partition])
        for epoch in epochs(self.scenario):
            if epoch.start_seconds < end:
                self._at(epoch.start_seconds, partial(self._deal, epoch))
        for i in range(math.ceil(end / step_seconds)):
            self._at(i * step_seconds, self._look)
        arrivals = self._arrivals()
        arrival = next(arrivals, None)
        while True:
            next_event = self.ahead[0][0] if self.ahead else math.inf
            if arrival is not None and arrival[0] < min(next_event, end):
                self._arrive(*arrival)
                arrival = next(arrivals, None)
            elif next_event < end:
                at, _, happens = heapq.heappop(self.ahead)
                happens(at)
            else:
                break
        self._look(end)
        return SimulatedRun(
            tuple(self.seen), self.arrived, self.handled, self.arrived - self.handled, tuple(self.waited)
        )

    def _at(self, when: float, happens: Callable[[float], None]) -> None:
        heapq.heappush(self.ahead, (when, next(self.order), happens))

    def _arrivals(self) -> Iterator[tuple[float, int]]:
        """(when, partition) in order of time."""
        traffic = self.scenario.traffic
        shares = self.scenario.falling_shares
        partitions, sums = range(len(shares)), list(accumulate(shares))
        ends = [start for start, _ in traffic.steps[1:]] + [traffic.seconds]
        for (start, rate), end in zip(traffic.steps, ends, strict=True):
            at = start
            while rate > 0.0:
                at += self.chance.expovariate(rate)
                if at >= end:
                    break
                yield at, self.chance.choices(partitions, cum_weights=sums)[0]

    def _arrive(self, now: float, partition: int) -> None:
        self.arrived += 1
        queue = self.queues[partition]
        queue.append(now)
        reader = self.reader_of[partition]
        if len(queue) == 1:
            reader.turns.append(partition)
        self._offer(reader, now)

    def _deal(self, epoch: Epoch, now: float) -> None:
        """Give the partitions to readers. What a thread has in hand it finishes, whoever reads the partition then."""
        for reader in self.reader_of.values():
            reader.turns.clear()
        for number, node in enumerate(self.nodes):
            node.ready.clear()
            node.is_away = number in epoch.away or number >= epoch.nodes
        for dealt in deal(self.scenario, epoch.nodes):
            reader = _Reader(self.nodes[dealt.node], dealt.threads)
            for partition in dealt.partitions:
                self.reader_of[partition] = reader
                if self.queues[partition]:
                    reader.turns.append(partition)
            self._offer(reader, now)

    def _offer(self, reader: _Reader, now: float) -> None:
        """Let the reader take messages, as soon as its node has a thread for it."""
        node = reader.node
        if not reader.is_offered and reader.turns and reader.running < reader.threads:
            reader.is_offered = True
            node.ready.append(reader)
        while node.ready and node.busy_threads < self.threads and not node.is_away:
            self._take(node.ready.popleft(), now)

    def _take(self, reader: _Reader, now: float) -> None:
        """A thread takes the reader's next message, and then waits for what is outside."""
        partition = reader.turns.popleft()
        queue = self.queues[partition]
        self.waited.append(now - queue.popleft())
        if queue:
            reader.turns.append(partition)
        reader.running += 1
        reader.node.busy_threads += 1
        reader.is_offered = bool(reader.turns) and reader.running < reader.threads
        if reader.is_offered:
            reader.node.ready.append(reader)
        self._at(now + self.waits(), partial(self._want_core, reader))

    def _want_core(self, reader: _Reader, now: float) -> None:
        node = reader.node
        if node.busy_cores == self.cores:
            node.for_core.append(reader)
        else:
            node.busy_cores += 1
            self._at(now + self.computes(), partial(self._done, reader))

    def _done(self, reader: _Reader, now: float) -> None:
        """A message is handled: its core goes to the next that waits, its thread to the next message."""
        node = reader.node
        self.handled += 1
        if node.for_core:
            self._at(now + self.computes(), partial(self._done, node.for_core.popleft()))
        else:
            node.busy_cores -= 1
        reader.running -= 1
        node.busy_threads -= 1
        self._offer(reader, now)

    def _look(self, now: float) -> None:
        oldest = min((queue[0] for queue in self.queues if queue), default=now)
        self.seen.append(Seen(now, self.arrived - self.handled, now - oldest))
