"""Which triple (partitions, nodes, threads per node) carries a workload, and what it is that binds.

Capacities are those of the moment when it matters: every thread that has messages is busy, ``spare_nodes`` are gone.
"""

from bisect import bisect_left
from dataclasses import dataclass, replace
from enum import StrEnum

from lagwise.domain.sizing.formulas import busiest_share, meets, nodes_for_rate, threads_for_share
from lagwise.domain.sizing.node_throughput import NodeThroughput, node_throughput
from lagwise.domain.sizing.workload import MAX_THREADS_PER_NODE, Concurrency, Ordering, Workload


class Binding(StrEnum):
    """What keeps the answer from being smaller, or from existing."""

    #: The cores: more threads on a node add little, more load needs more nodes.
    CPU = "cpu"
    #: Waiting: the cores idle although a node has as many threads as it may have.
    WAITING = "waiting"
    #: The time per message, of which it is not known how much is waiting: :attr:`Workload.by_members`.
    TIME = "time"
    #: The number of partitions: it limits how many threads or nodes have anything to do.
    PARTITIONS = "partitions"
    #: The hottest partition: it needs more than what may work on it.
    SKEW = "skew"
    #: The order that is asked for.
    ORDERING = "ordering"
    #: What the consumers wait for: it does no more for more threads (:mod:`lagwise.domain.sizing.downstream`).
    DOWNSTREAM = "downstream"
    #: Only the demand: one node, not even full, is enough.
    DEMAND = "demand"


@dataclass(frozen=True, slots=True)
class Triple:
    """An answer: so many nodes with so many threads each, on so many partitions."""

    partitions: int
    #: All nodes, the spare ones included.
    nodes: int
    spare_nodes: int
    threads_per_node: int
    #: Threads of all nodes that have nothing to do until a node fails.
    idle_threads: int
    #: What the nodes without the spare ones can do together, messages per second.
    capacity_per_second: float

    @property
    def working_nodes(self) -> int:
        """Nodes that must be there: all but the spare ones."""
        return self.nodes - self.spare_nodes


#: Where each thread is a consumer, more threads than the cores need can spread the partitions more evenly, which is
#: cheaper than another node. Up to twice as many: measured at more than that, contention began to cost throughput.
_STRETCH = 2


def node_at(workload: Workload, threads: int) -> NodeThroughput:
    """What one node of the workload does with this many threads."""
    return node_throughput(workload.cores, threads, workload.t1_seconds, workload.t2_seconds)


def threads_that_fill_a_node(workload: Workload) -> int | None:
    """Threads with which a node does the wanted share of C/T2; None if it may not have that many."""
    return threads_for_share(
        workload.cores,
        workload.t1_seconds,
        workload.t2_seconds,
        workload.share_of_ceiling,
        workload.max_threads_per_node,
    )


def thread_limit(workload: Workload) -> int:
    """Threads that a node is given where partitions do not limit it: those that fill it, or the most it may have."""
    return threads_that_fill_a_node(workload) or workload.max_threads_per_node


def capacity_per_second(workload: Workload, nodes: int, threads: int) -> float:
    """What ``nodes`` nodes with ``threads`` threads each can do before the busiest reader falls behind.

    A reader is whatever holds partitions: a thread where each is a consumer, a node where a pool works for it. The
    busiest reader gets :func:`~lagwise.domain.sizing.formulas.busiest_share` of the traffic, so the group as a whole
    can take that reader's own throughput over that share. Where order is kept, a partition's messages are one thread's
    work, whose throughput among ``threads`` busy threads is the node's over their number.
    """
    if workload.order is Ordering.GLOBAL:
        return node_at(workload, 1).rate_per_second
    node = node_at(workload, threads)
    if workload.concurrency is Concurrency.CONSUMER_PER_THREAD:
        return node.thread_rate_per_second / busiest_share(workload.partitions, nodes * threads, workload.hottest)
    of_the_node = node.rate_per_second / busiest_share(workload.partitions, nodes, workload.hottest)
    if workload.order is Ordering.NONE:
        return of_the_node
    return min(of_the_node, node.thread_rate_per_second / workload.hottest)


def largest_capacity_per_second(workload: Workload) -> float:
    """More than this no number of nodes can do with these partitions, this skew and this order."""
    threads = thread_limit(workload) if workload.order is Ordering.NONE else 1
    return capacity_per_second(workload, workload.partitions, threads)


def hottest_key_share(workload: Workload, threads: int) -> float:
    """The most that one key may have of the traffic where a pool keeps the order of keys, 0 … 1: its messages are one
    thread's work, which among ``threads`` busy ones does the node's rate over their number."""
    required = workload.required_rate_per_second
    rate = node_at(workload, threads).thread_rate_per_second
    return 1.0 if rate >= required else rate / required


def find_triple(workload: Workload) -> Triple | None:
    """The answer with the fewest nodes; None if there is none.

    With several nodes, each gets the threads that give the most, but rather so few that none idles, and rather no more
    than :func:`thread_limit`; a single node that is not even full gets the fewest that are enough.
    """
    required = workload.required_rate_per_second
    if not meets(largest_capacity_per_second(workload), required):
        return None
    if workload.order is Ordering.GLOBAL:
        return _triple(workload, 1, 1)
    limit = thread_limit(workload)
    # More nodes never do less: the search may halve its range.
    nodes = 1 + bisect_left(
        range(1, workload.partitions + 1), True, key=lambda n: bool(_enough(workload, n, limit, required))
    )
    enough = _enough(workload, nodes, limit, required)
    if nodes == 1:
        return _triple(workload, 1, min(enough))
    triples = [_triple(workload, nodes, threads) for threads in enough]
    return max(
        triples,
        key=lambda t: (t.idle_threads == 0, t.threads_per_node <= limit, t.capacity_per_second, -t.threads_per_node),
    )


def _enough(workload: Workload, nodes: int, limit: int, required: float) -> list[int]:
    """Thread counts worth considering with which ``nodes`` nodes reach the required rate."""
    if workload.order is not Ordering.NONE:
        if workload.concurrency is Concurrency.CONSUMER_PER_THREAD:
            limit = min(_STRETCH * limit, workload.max_threads_per_node)
        useful = min(limit, -(-workload.partitions // nodes))
        return [t for t in range(1, useful + 1) if meets(capacity_per_second(workload, nodes, t), required)]
    if not meets(capacity_per_second(workload, nodes, limit), required):
        return []
    if nodes > 1:
        return [limit]
    fewest = 1 + bisect_left(
        range(1, limit + 1), True, key=lambda t: meets(capacity_per_second(workload, 1, t), required)
    )
    return [fewest]


def _triple(workload: Workload, working_nodes: int, threads: int) -> Triple:
    nodes = working_nodes + workload.spare_nodes
    match workload.order:
        case Ordering.GLOBAL:
            idle = nodes * threads - 1
        case Ordering.PARTITION:
            idle = max(0, nodes * threads - workload.partitions)
        case Ordering.NONE:
            idle = max(0, nodes - workload.partitions) * threads
    return Triple(
        workload.partitions,
        nodes,
        workload.spare_nodes,
        threads,
        idle,
        capacity_per_second(workload, working_nodes, threads),
    )


def nodes_by_cpu(workload: Workload) -> int:
    """Nodes it would take if partitions, skew and order set no limit."""
    full = node_at(workload, thread_limit(workload)).rate_per_second
    return nodes_for_rate(workload.required_rate_per_second, full)


def without_thread_limit(workload: Workload) -> Workload:
    """The same workload with as many threads on a node as any may have."""
    return replace(workload, max_threads_per_node=MAX_THREADS_PER_NODE)


def what_binds(workload: Workload, triple: Triple | None) -> Binding:
    """What keeps the answer from being smaller or, where there is none, from existing.

    Where the cores alone set the number of nodes, it is what a growing load would meet first: the cores of these nodes,
    or the most that the partitions allow with any number of nodes.
    """
    if workload.order is Ordering.GLOBAL:
        return Binding.ORDERING if triple is None else Binding.DEMAND
    limit = thread_limit(workload)
    if triple is None or triple.working_nodes > nodes_by_cpu(workload):
        even = find_triple(replace(workload, hottest_share=None))
        spread_helps = even is not None and (triple is None or even.working_nodes < triple.working_nodes)
        return Binding.SKEW if spread_helps else Binding.PARTITIONS
    if triple.working_nodes == 1 and triple.threads_per_node < limit:
        return Binding.DEMAND
    node = node_at(workload, limit).rate_per_second
    of_the_nodes = triple.working_nodes * node
    if largest_capacity_per_second(workload) < of_the_nodes:
        even_most = largest_capacity_per_second(replace(workload, hottest_share=None))
        return Binding.SKEW if even_most >= of_the_nodes else Binding.PARTITIONS
    if workload.by_members:
        return Binding.DEMAND if triple.working_nodes == 1 else Binding.TIME
    return Binding.WAITING if threads_that_fill_a_node(workload) is None else Binding.CPU


def largest_planned_rate_per_second(workload: Workload, triple: Triple) -> float:
    """The highest planned rate that the triple carries under the same rules, messages per second."""
    demand = triple.capacity_per_second * workload.target_utilisation - workload.lag / workload.catch_up_seconds
    return max(0.0, demand / workload.catch_up_factor)
