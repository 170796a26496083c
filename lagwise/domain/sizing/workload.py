"""What sizing is asked: the workload, the nodes it runs on, and how much slack to keep."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from lagwise.domain.humanise import plural
from lagwise.domain.sizing.formulas import (
    DEFAULT_OUTAGE_CATCH_UP_SECONDS,
    catch_up_factor,
    demand_rate_per_second,
    required_rate_per_second,
)
from lagwise.domain.sizing.ranges import OutOfRange, check_cores, check_count, check_number, check_service_time

#: A topic with more partitions is not sized.
MAX_PARTITIONS = 100_000
MAX_THREADS_PER_NODE = 10_000
#: Threads on one node beyond which asynchronous I/O is the better answer: each costs a stack and scheduling.
DEFAULT_MAX_THREADS_PER_NODE = 1_000
#: As Flink's autoscaler: `job.autoscaler.utilization.target`.
DEFAULT_TARGET_UTILISATION = 0.7
#: As Flink's autoscaler: `job.autoscaler.catch-up.duration`.
DEFAULT_CATCH_UP_SECONDS = 1_800.0
#: Kafka's default `session.timeout.ms` (45 s), after which a crashed consumer's partitions are given to others, and
#: 15 s for the rebalance itself.
DEFAULT_RESTART_SECONDS = 60.0
_RATES = "a number from 0 to 1e12"
#: Share of the cores' ceiling C/T2 that a node is given threads for.
DEFAULT_SHARE_OF_CEILING = 0.95


class Unit(StrEnum):
    """What is sized."""

    NODE = "node"
    #: A consumer of a group.
    MEMBER = "member"
    #: A subtask of the vertex that bounds a Flink job: the job has a group, but its subtasks are no members of it.
    SUBTASK = "subtask"


class SizeBy(StrEnum):
    """What decides how much capacity is provided."""

    #: The least capacity that keeps the lag objective, where it is known; else the peak.
    OBJECTIVE = "objective"
    #: The highest minute.
    PEAK = "peak"


def nodes_and_threads(unit: Unit, nodes: int, threads_per_node: int | None) -> str:
    """``3 nodes of 12 threads``, ``4 members``."""
    of = f" of {plural(threads_per_node, 'thread')}" if threads_per_node and unit is Unit.NODE else ""
    return f"{plural(nodes, unit)}{of}"


class Concurrency(StrEnum):
    """How a node turns what it reads into work for its threads."""

    #: Every thread is a consumer of its own, as Kafka's client asks for: a thread works only if it holds a partition.
    CONSUMER_PER_THREAD = "consumer-per-thread"
    #: One consumer per node reads and hands the records to a pool of threads.
    POOL = "pool"


class Ordering(StrEnum):
    """Which messages must be handled one after the other."""

    #: All of them: one thread in the whole group (RocketMQ's global order).
    GLOBAL = "global"
    #: Those of one partition or queue: at most one thread each (Kafka's order, RocketMQ's partition order).
    PARTITION = "partition"
    #: None (RocketMQ's concurrent consumption; a pool that does not care).
    NONE = "none"


def order_kept(concurrency: Concurrency, ordering: Ordering | None) -> Ordering:
    """The order that is kept where ``ordering`` is asked for: None asks for nothing.

    A consumer per thread keeps a partition's order whether asked to or not. A pool keeps none unless asked to.
    """
    if ordering is Ordering.GLOBAL:
        return Ordering.GLOBAL
    if concurrency is Concurrency.CONSUMER_PER_THREAD:
        return Ordering.PARTITION
    return ordering or Ordering.NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One question to sizing. Times are seconds, rates messages per second; a bad value raises OutOfRange."""

    #: T1: time per message spent waiting for something outside.
    t1_seconds: float
    #: T2: time per message on the CPU.
    t2_seconds: float
    #: Cores of one node; a fraction is a container's CPU limit.
    cores: float
    #: The highest rate at which messages arrive.
    peak_rate_per_second: float
    #: Partitions (queues) of the topic.
    partitions: int
    #: The least capacity with which no message gets older than the lag objective
    #: (:mod:`lagwise.domain.sizing.objective`); None is not known.
    objective_rate_per_second: float | None = None
    #: That objective; None is not known.
    objective_seconds: float | None = None
    size_by: SizeBy = SizeBy.OBJECTIVE
    #: Share of the traffic in the hottest partition; None takes it as even, 1/partitions.
    hottest_share: float | None = None
    #: Messages that already wait and must be worked off as well.
    lag: float = 0.0
    #: How much of the capacity the demand may use.
    target_utilisation: float = DEFAULT_TARGET_UTILISATION
    #: Time in which the backlog of a restart, and ``lag``, must be gone.
    catch_up_seconds: float = DEFAULT_CATCH_UP_SECONDS
    #: How long nothing is read when consumers restart.
    restart_seconds: float = DEFAULT_RESTART_SECONDS
    #: An outage that must be caught up with as well: how long nothing is read; 0 asks for none.
    outage_seconds: float = 0.0
    #: Time in which the backlog of the outage must be gone.
    outage_catch_up_seconds: float = DEFAULT_OUTAGE_CATCH_UP_SECONDS
    #: Nodes that may fail at once without the rest falling behind.
    spare_nodes: int = 1
    #: Threads are given to a node until it does this share of C/T2.
    share_of_ceiling: float = DEFAULT_SHARE_OF_CEILING
    #: No node is given more threads than this.
    max_threads_per_node: int = DEFAULT_MAX_THREADS_PER_NODE
    concurrency: Concurrency = Concurrency.CONSUMER_PER_THREAD
    #: None is what the concurrency gives by itself: see :attr:`order`.
    ordering: Ordering | None = None
    #: What is sized. Of anything but nodes only the time per message as a whole is known, and stands as T1; each is
    #: taken as one thread, and nothing is said about cores. See :meth:`of_members`.
    unit: Unit = Unit.NODE

    @classmethod
    def of_members(cls, seconds_per_message: float, unit: Unit = Unit.MEMBER, **values: Any) -> "Workload":
        """The question where T1 and T2 are not known apart: how many members (or subtasks) that take so long for a
        message?"""
        whole: dict[str, Any] = {
            "t1_seconds": seconds_per_message,
            "t2_seconds": 0.0,
            "cores": 1.0,
            "max_threads_per_node": 1,
        }
        if unit is Unit.SUBTASK:
            whole["spare_nodes"] = 0  # all subtasks work; what stands by for a failure are free slots
        return cls(**values | whole, unit=unit)

    def __post_init__(self) -> None:
        if self.by_members and (self.t2_seconds > 0.0 or self.max_threads_per_node != 1):
            raise OutOfRange("unit", "node where T2 is known, or a node has several threads", self.unit)
        check_service_time(self.t1_seconds, self.t2_seconds)
        check_cores(self.cores)
        check_count("partitions", self.partitions, 1, MAX_PARTITIONS)
        self._check_hottest_share()
        self._check_rates()
        check_count("spare_nodes", self.spare_nodes, 0, 100)
        check_count("max_threads_per_node", self.max_threads_per_node, 1, MAX_THREADS_PER_NODE)
        check_number("share_of_ceiling", self.share_of_ceiling, 0.01, 0.999, "a number from 0.01 to 0.999")
        required_rate_per_second(self.demand_rate_per_second, self.target_utilisation)

    def _check_hottest_share(self) -> None:
        if self.hottest_share is None:
            return
        even = 1.0 / self.partitions
        allowed = f"from {even:.4g} ({even:.3%}), the even share of {self.partitions:,} partitions, to 1 (100%)"
        check_number("hottest_share", self.hottest_share, 0.0, 1.0, allowed)
        if self.hottest_share < even * 0.99:
            raise OutOfRange("hottest_share", allowed, self.hottest_share)

    def _check_rates(self) -> None:
        check_number("peak_rate_per_second", self.peak_rate_per_second, 0.0, 1e12, _RATES)
        if self.objective_rate_per_second is not None:
            check_number("objective_rate_per_second", self.objective_rate_per_second, 0.0, 1e12, _RATES)
        if self.objective_seconds is not None:
            allowed = "from 0 to 366 days (in seconds)"
            check_number("objective_seconds", self.objective_seconds, 0.0, 366 * 86_400.0, allowed)

    @property
    def is_by_objective(self) -> bool:
        """Whether the lag objective decides, not the peak."""
        return self.size_by is SizeBy.OBJECTIVE and self.objective_rate_per_second is not None

    @property
    def planned_rate_per_second(self) -> float:
        """What is provided for before slack: what the objective takes where it decides, else the peak."""
        if self.size_by is SizeBy.OBJECTIVE and self.objective_rate_per_second is not None:
            return self.objective_rate_per_second
        return self.peak_rate_per_second

    @property
    def hottest(self) -> float:
        """Share of the traffic in the hottest partition, 0 … 1."""
        even = 1.0 / self.partitions
        return even if self.hottest_share is None else max(even, self.hottest_share)

    @property
    def by_members(self) -> bool:
        """Whether members or subtasks are sized: it is not known which of them would share the cores of a node."""
        return self.unit is not Unit.NODE

    @property
    def order(self) -> Ordering:
        """The order that is kept: see :func:`order_kept`."""
        return order_kept(self.concurrency, self.ordering)

    @property
    def demand_rate_per_second(self) -> float:
        """What must be handled per second while catching up."""
        return demand_rate_per_second(
            self.planned_rate_per_second,
            lag=self.lag,
            catch_up_seconds=self.catch_up_seconds,
            restart_seconds=self.restart_seconds,
            outage_seconds=self.outage_seconds,
            outage_catch_up_seconds=self.outage_catch_up_seconds,
        )

    @property
    def catch_up_factor(self) -> float:
        """How many times the planned rate must be handled to catch up with a restart and an outage in time."""
        return catch_up_factor(
            catch_up_seconds=self.catch_up_seconds,
            restart_seconds=self.restart_seconds,
            outage_seconds=self.outage_seconds,
            outage_catch_up_seconds=self.outage_catch_up_seconds,
        )

    @property
    def outage_binds(self) -> bool:
        """Whether the outage asks for more than a restart does."""
        return self.outage_seconds / self.outage_catch_up_seconds > self.restart_seconds / self.catch_up_seconds

    @property
    def required_rate_per_second(self) -> float:
        """The capacity to provide, so that the demand uses only the target share of it."""
        return required_rate_per_second(self.demand_rate_per_second, self.target_utilisation)
