"""What if: lag over time as a fluid, exact for traffic that is constant in steps, a day in milliseconds.

Messages are a fluid that flows into the partitions at the rate of the traffic and out of them as fast as their readers
are (:mod:`lagwise.domain.simulation.fair_share`). Between two changes (of the rate, of who reads, of a partition that
has been read up) all rates are constant and lag is a straight line, so it is followed from change to change, not in
steps of time. A fluid lacks the few messages in hand, and the short queues that chance makes below capacity; the tests
check it against a simulation that handles messages one by one.

Fluid limits: B. Gross et al., *Fundamentals of Queueing Theory*, "Fluid approximations". At rate r an outage of d
seconds leaves r·d messages, and with capacity c they are gone r·d/(c − r) seconds later.
"""

import math
from dataclasses import dataclass

from lagwise.domain.simulation.fair_share import NodeKind, fair_level, pool_level, reader_level
from lagwise.domain.simulation.readers import Epoch, deal, epochs
from lagwise.domain.simulation.scenario import MAX_SECONDS, Scenario
from lagwise.domain.sizing.ranges import check_number
from lagwise.domain.sizing.workload import Ordering

_ROUNDING = 1e-9
_MAX_MOMENTS = 1_000_000


@dataclass(frozen=True, slots=True)
class SimulatedMoment:
    """The group at one time."""

    at_seconds: float
    #: Unread messages of all partitions.
    lag: float
    #: Age of the oldest unread message of any partition, seconds.
    lag_seconds: float
    #: Unread messages of the partition that has most.
    worst_partition_lag: float
    arriving_per_second: float
    handled_per_second: float


@dataclass(frozen=True, slots=True)
class SimulatedOutcome:
    """What came of a scenario."""

    moments: tuple[SimulatedMoment, ...]
    #: The peaks are those within the time of the traffic.
    peak_lag: float
    peak_lag_at_seconds: float
    #: At the moments and at every change; between them it may have been higher by less than a step.
    peak_lag_seconds: float
    #: From the peak until nothing is unread; 0 where there was no lag. After the end of the traffic its last rate is
    #: taken to go on. None is never.
    drain_seconds: float | None
    #: Messages within the time of the traffic; ``arrived`` holds those that were unread at the start.
    arrived: float
    handled: float
    lag_left: float


@dataclass(slots=True)
class _Queue:
    """Partitions of one reader that are alike, and of all readers like it."""

    share: float
    #: How many of them one reader has.
    count: int
    lag: float
    members: list[int]
    #: What is read of one of them, messages per second.
    served: float = 0.0


@dataclass(slots=True)
class _Reader:
    queues: list[_Queue]
    #: How many readers of a node are like this.
    count: int
    #: Share of the traffic that each of them has.
    share: float


@dataclass(slots=True)
class _Node:
    readers: list[_Reader]
    #: How many nodes are like this.
    count: int
    away: bool


def simulate(scenario: Scenario, step_seconds: float) -> SimulatedOutcome:
    """Lag over time, a moment every ``step_seconds`` and one at the end."""
    end = scenario.traffic.seconds
    lowest = end / _MAX_MOMENTS
    check_number("step_seconds", step_seconds, lowest, MAX_SECONDS, f"from {lowest:.3g} (a millionth of the time) on")
    return _Run(scenario).run(step_seconds)


class _Run:
    """One run; its state is the lag of every partition, alike ones together."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario, self.traffic = scenario, scenario.traffic
        threads = 1 if scenario.order is Ordering.GLOBAL else scenario.threads_per_node
        self.kind = NodeKind(scenario.cores, threads, scenario.t1_seconds, scenario.t2_seconds)
        self.pooled = scenario.order is Ordering.NONE
        self.epochs = {epoch.start_seconds: epoch for epoch in epochs(scenario)}
        self.shares = scenario.falling_shares
        self.nodes = self._dealt(self.epochs[0.0], [scenario.lag * share for share in self.shares])
        self.peak = (0.0, 0.0)  # lag, when
        self.peak_lag_seconds = 0.0
        self.drained_at: float | None = 0.0
        #: Messages per second that come, and that are read.
        self.rate = self.handled_rate = 0.0
        self.handled = 0.0
        #: The queues with a backlog or one about to begin, the rate at which messages come into each, and how many
        #: there are of it. All others are read as fast as they are written.
        self.active: list[tuple[_Queue, float, int]] = []
        #: Below this nothing is unread but rounding errors.
        self.nothing = _ROUNDING * (scenario.lag + self.traffic.arrived_by(self.traffic.seconds)) + 1e-300

    def run(self, step_seconds: float) -> SimulatedOutcome:
        """From the start to the end of the traffic, then on until all is read or never will be."""
        moments: list[SimulatedMoment] = []
        end, now = self.traffic.seconds, 0.0
        changes = {start for start, _ in self.traffic.steps} | self.epochs.keys()
        wanted = [i * step_seconds for i in range(math.ceil(end / step_seconds * (1.0 - _ROUNDING)))] + [end]
        is_wanted = set(wanted)
        for until in sorted({at for at in changes if at <= end} | is_wanted):
            now = self._advance(now, until)
            if until in changes:
                self._change(until)
            moment = self._moment(until)
            self._note(moment)
            if until in is_wanted:
                moments.append(moment)
        left, handled = moments[-1].lag, self.handled
        for until in (*sorted(at for at in changes if at > end), math.inf):
            now = self._advance(now, until)
            if until in changes:
                self._change(until)
        peak_lag, peak_at = self.peak
        arrived = self.scenario.lag + self.traffic.arrived_by(end)
        drain = None if self.drained_at is None else max(0.0, self.drained_at - peak_at)
        return SimulatedOutcome(
            moments=tuple(moments),
            peak_lag=peak_lag,
            peak_lag_at_seconds=peak_at,
            peak_lag_seconds=self.peak_lag_seconds,
            drain_seconds=drain,
            arrived=arrived,
            handled=handled,
            lag_left=left,
        )

    def _advance(self, now: float, until: float) -> float:
        """Let time pass up to ``until``, from one emptied partition to the next; if infinite, up to the last."""
        while now < until:
            empty_in = min((_empty_in(queue, rate) for queue, rate, _ in self.active), default=math.inf)
            passed = min(until - now, empty_in)
            if passed == math.inf:
                return now
            for queue, rate, _ in self.active:
                gone = _empty_in(queue, rate) <= passed * (1.0 + _ROUNDING)
                queue.lag = 0.0 if gone else max(0.0, queue.lag + (rate - queue.served) * passed)
            self.handled += self.handled_rate * passed
            now = until if passed == until - now else now + passed
            if empty_in <= passed * (1.0 + _ROUNDING):
                self._share(now)
                self._note(self._moment(now))
        return now

    def _change(self, now: float) -> None:
        epoch = self.epochs.get(now)
        if epoch is not None and now > 0.0:
            lags = [0.0] * self.scenario.partitions
            for queue, _, _ in self.active:
                for partition in queue.members:
                    lags[partition] = queue.lag
            self.nodes = self._dealt(epoch, lags)
        self._share(now)

    def _dealt(self, epoch: Epoch, lags: list[float]) -> list[_Node]:
        """The partitions dealt to their readers, what is alike counted once."""
        alike: dict[tuple[bool, tuple[object, ...]], tuple[int, list[list[tuple[int, ...]]]]] = {}
        by_node: dict[int, dict[tuple[object, ...], list[tuple[int, ...]]]] = {}
        for reader in deal(self.scenario, epoch.nodes):
            # Sorted, so that the partitions of equal readers line up.
            ordered = tuple(sorted(reader.partitions, key=lambda p: (-self.shares[p], lags[p])))
            key = tuple((self.shares[p], lags[p]) for p in ordered)
            by_node.setdefault(reader.node, {}).setdefault(key, []).append(ordered)
        for node, readers in by_node.items():
            kinds = sorted(readers.items())
            same = (node in epoch.away, tuple((key, len(held)) for key, held in kinds))
            count, held_by_kind = alike.get(same, (0, [[] for _ in kinds]))
            for held, (_, more) in zip(held_by_kind, kinds, strict=True):
                held.extend(more)
            alike[same] = (count + 1, held_by_kind)
        return [
            _Node([self._reader(held, lags, len(held) // count) for held in held_by_kind], count, away)
            for (away, _), (count, held_by_kind) in alike.items()
        ]

    def _reader(self, held: list[tuple[int, ...]], lags: list[float], count: int) -> _Reader:
        """``count`` readers of each node that is alike; ``held`` are their partitions, in the same order for each."""
        queues: dict[tuple[float, float], _Queue] = {}
        for place, first in enumerate(held[0]):
            share, lag = self.shares[first], lags[first]
            queue = queues.setdefault((share, lag), _Queue(share, 0, lag, []))
            queue.count += 1
            queue.members.extend(partitions[place] for partitions in held)
        return _Reader(list(queues.values()), count, sum(queue.share * queue.count for queue in queues.values()))

    def _share(self, now: float) -> None:
        """Set what is read of every partition from now on."""
        self.rate, self.active = self.traffic.rate_at(now), []
        for node in self.nodes:
            demands = [(_demand(reader, self.rate), reader.count) for reader in node.readers]
            level = 0.0 if node.away else self._level(demands)
            for reader, (demand, _) in zip(node.readers, demands, strict=True):
                if demand > level:
                    self._share_reader(reader, level, node.count * reader.count)
        behind = sum(times * (rate - queue.served) for queue, rate, times in self.active)
        self.handled_rate = max(0.0, self.rate - behind)

    def _level(self, demands: list[tuple[float, int]]) -> float:
        return pool_level(self.kind, demands[0][0]) if self.pooled else reader_level(self.kind, demands)

    def _share_reader(self, reader: _Reader, total: float, times: int) -> None:
        asked = [(math.inf if q.lag > 0.0 else self.rate * q.share, q.count) for q in reader.queues]
        fair = fair_level(asked, total)
        for queue, (most, _) in zip(reader.queues, asked, strict=True):
            if most > fair:
                queue.served = fair
                self.active.append((queue, self.rate * queue.share, times * queue.count))

    def _moment(self, now: float) -> SimulatedMoment:
        lag = worst = oldest = 0.0
        for queue, _, times in self.active:
            lag += times * queue.lag
            worst = max(worst, queue.lag)
            if queue.lag > 0.0:
                oldest = max(oldest, now - self._oldest_unread(queue, now))
        return SimulatedMoment(now, lag, oldest, worst, self.rate, self.handled_rate)

    def _oldest_unread(self, queue: _Queue, now: float) -> float:
        """When the oldest unread message came; those unread at the start count from there."""
        read = self.traffic.arrived_by(now) - queue.lag / queue.share
        return self.traffic.when_arrived(read) if read > 0.0 else 0.0

    def _note(self, moment: SimulatedMoment) -> None:
        """Keep the peak within the time of the traffic, and when everything was read after it."""
        is_within = moment.at_seconds <= self.traffic.seconds
        if is_within:
            self.peak_lag_seconds = max(self.peak_lag_seconds, moment.lag_seconds)
        if is_within and moment.lag > self.peak[0] * (1.0 + _ROUNDING) + self.nothing:
            self.peak, self.drained_at = (moment.lag, moment.at_seconds), None
        elif self.drained_at is None and moment.lag <= self.nothing:
            self.drained_at = moment.at_seconds


def _empty_in(queue: _Queue, rate: float) -> float:
    falls = queue.served - rate
    return queue.lag / falls if falls > 0.0 else math.inf


def _demand(reader: _Reader, rate: float) -> float:
    if any(queue.lag > 0.0 for queue in reader.queues):
        return math.inf
    return rate * reader.share
