"""What a what-if simulation is asked: the traffic, the partitions, who reads them how, and what goes wrong when.

Times are seconds from the start of the simulation, rates messages per second. A bad value raises
:class:`~lagwise.domain.sizing.ranges.OutOfRange`, a ValueError that names the argument and its range.
"""

from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

from lagwise.domain.sizing.ranges import (
    OutOfRange,
    check_cores,
    check_count,
    check_number,
    check_service_time,
    check_threads,
)
from lagwise.domain.sizing.workload import DEFAULT_RESTART_SECONDS, Concurrency, Ordering, order_kept

#: The longest time that is simulated: a year.
MAX_SECONDS = 366 * 86_400.0
MAX_STEPS_OF_TRAFFIC = 100_000
MAX_PARTITIONS = 10_000
MAX_NODES = 1_000
_MAX_RATE = 1e12
#: Shares that were rounded for show still add up to one.
_SHARES_ROUNDING = 1e-3


@dataclass(frozen=True, slots=True)
class Traffic:
    """The rate at which messages arrive in all partitions together: constant from one step to the next."""

    #: (from when on, messages per second), the first from 0 on, in order of time.
    steps: tuple[tuple[float, float], ...]
    #: The end, later than the last step.
    seconds: float
    _starts: tuple[float, ...] = field(init=False, repr=False, compare=False)
    #: Messages that have arrived when a step begins.
    _arrived: tuple[float, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_number("seconds", self.seconds, 1e-6, MAX_SECONDS, "above 0 and up to 366 days (in seconds)")
        allowed = f"1 to {MAX_STEPS_OF_TRAFFIC:,} pairs (seconds, rate), the first at 0, each later than the one before"
        if not 1 <= len(self.steps) <= MAX_STEPS_OF_TRAFFIC:
            raise OutOfRange("steps", allowed, self.steps[:3])
        for start, rate in self.steps:
            check_number("steps", start, 0.0, MAX_SECONDS, allowed)
            check_number("steps", rate, 0.0, _MAX_RATE, "rates from 0 to 1e12")
        starts = tuple(start for start, _ in self.steps)
        if starts[0] != 0.0 or any(later <= start for start, later in pairwise(starts)):
            raise OutOfRange("steps", allowed, starts[:10])
        if starts[-1] >= self.seconds:
            raise OutOfRange("seconds", f"later than the last step, which begins at {starts[-1]:g}", self.seconds)
        within = (r * (later - s) for (s, r), later in zip(self.steps, starts[1:], strict=False))
        object.__setattr__(self, "_starts", starts)
        object.__setattr__(self, "_arrived", tuple(accumulate(within, initial=0.0)))

    @classmethod
    def constant(cls, rate_per_second: float, seconds: float) -> "Traffic":
        """The same rate all the time."""
        return cls(((0.0, rate_per_second),), seconds)

    def rate_at(self, at_seconds: float) -> float:
        """Messages per second at a time; after the end as in the last step."""
        return self.steps[bisect_right(self._starts, at_seconds) - 1][1]

    def arrived_by(self, at_seconds: float) -> float:
        """Messages that have arrived by a time."""
        step = bisect_right(self._starts, at_seconds) - 1
        start, rate = self.steps[step]
        return self._arrived[step] + rate * (at_seconds - start)

    def when_arrived(self, messages: float) -> float:
        """When the message after so many arrived: later than any stretch of time in which none did."""
        step = max(0, bisect_right(self._arrived, messages) - 1)
        start, rate = self.steps[step]
        return start + max(0.0, messages - self._arrived[step]) / rate if rate else start


#: What is asked where nothing else is: an hour without a reader.
DEFAULT_OUTAGE_SECONDS = 3_600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Interruption:
    """Nodes that read nothing for a while."""

    at_seconds: float
    #: How long each of them is away.
    seconds: float
    #: How many are away together, at worst those that read the hottest partitions; None is all.
    nodes: int | None = None
    #: One node after the other, each for ``seconds``: a rolling deploy. Then ``nodes`` must be None.
    rolling: bool = False
    #: When the others are given an absent node's partitions: at once (0) where it leaves the group as it stops, after
    #: the session timeout and the rebalance where it crashes, never (None) where it is a static member soon back.
    reassigned_after_seconds: float | None = DEFAULT_RESTART_SECONDS

    def __post_init__(self) -> None:
        check_number("at_seconds", self.at_seconds, 0.0, MAX_SECONDS, "from 0 to 366 days (in seconds)")
        check_number("seconds", self.seconds, 0.0, MAX_SECONDS, "from 0 to 366 days (in seconds)")
        if self.nodes is not None:
            check_count("nodes", self.nodes, 1, MAX_NODES)
            if self.rolling:
                raise OutOfRange("nodes", "None in a rolling deploy, which takes all nodes in turn", self.nodes)
        if self.reassigned_after_seconds is not None:
            after = self.reassigned_after_seconds
            check_number("reassigned_after_seconds", after, 0.0, MAX_SECONDS, "None, or from 0 to 366 days")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One question: this traffic, on these partitions, read so, with this interruption."""

    traffic: Traffic
    #: T1 and T2, means: time per message spent waiting for something outside, and on the CPU.
    t1_seconds: float
    t2_seconds: float
    #: Cores of one node.
    cores: float
    nodes: int
    threads_per_node: int
    partitions: int
    #: Share of the traffic in the hottest partition, the rest even; None is all even.
    hottest_share: float | None = None
    #: Each partition's share of the traffic, in place of ``hottest_share``; they add up to 1.
    shares: tuple[float, ...] | None = None
    #: Messages that are unread at the start, spread as the traffic is. Their age counts from the start.
    lag: float = 0.0
    concurrency: Concurrency = Concurrency.CONSUMER_PER_THREAD
    ordering: Ordering | None = None
    interruption: Interruption | None = None

    def __post_init__(self) -> None:
        check_service_time(self.t1_seconds, self.t2_seconds)
        check_cores(self.cores)
        check_count("nodes", self.nodes, 1, MAX_NODES)
        check_threads("threads_per_node", self.threads_per_node)
        check_count("partitions", self.partitions, 1, MAX_PARTITIONS)
        check_number("lag", self.lag, 0.0, 1e15, "a number from 0 to 1e15")
        even = 1.0 / self.partitions
        if self.hottest_share is not None:
            allowed = f"from {even:.4g}, the even share of {self.partitions:,} partitions, to 1"
            check_number("hottest_share", self.hottest_share, even * 0.99, 1.0, allowed)
        if self.shares is not None:
            self._check_shares(self.shares)
        if self.interruption is not None and (self.interruption.nodes or 0) > self.nodes:
            raise OutOfRange("nodes", f"at most the {self.nodes} nodes there are", self.interruption.nodes)

    def _check_shares(self, shares: tuple[float, ...]) -> None:
        if self.hottest_share is not None:
            raise OutOfRange("shares", "None where hottest_share is given", shares[:3])
        allowed = f"{self.partitions:,} numbers from 0 to 1, one for each partition, that add up to 1"
        for share in shares:
            check_number("shares", share, 0.0, 1.0, allowed)
        if len(shares) != self.partitions or abs(sum(shares) - 1.0) > _SHARES_ROUNDING:
            raise OutOfRange("shares", allowed, shares[:3])

    @property
    def order(self) -> Ordering:
        """The order that is kept, as in :class:`~lagwise.domain.sizing.workload.Workload`."""
        return order_kept(self.concurrency, self.ordering)

    @property
    def falling_shares(self) -> tuple[float, ...]:
        """Each partition's share of the traffic, the hottest first; they add up to 1."""
        if self.shares is not None:
            total = sum(self.shares)
            return tuple(share / total for share in sorted(self.shares, reverse=True))
        even = 1.0 / self.partitions
        hottest = even if self.hottest_share is None else max(even, self.hottest_share)
        rest = (1.0 - hottest) / (self.partitions - 1) if self.partitions > 1 else 0.0
        return (hottest if self.partitions > 1 else 1.0, *([rest] * (self.partitions - 1)))
