"""How fast a node handles its partitions' messages: threads and cores shared among those that have something to read.

Max-min fair, as taking turns is: who needs less than an equal share gets what it needs, the others share what is left
equally. The node as a whole does what the machine-repairman model says of so many busy threads; a reader that keeps up
keeps its thread busy for the part of the time that its messages take.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from lagwise.domain.sizing.node_throughput import NodeThroughput, node_throughput

_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class NodeKind:
    """What all nodes have in common."""

    cores: float
    threads: int
    t1_seconds: float
    t2_seconds: float

    def with_busy(self, threads: int) -> NodeThroughput:
        """What a node does with so many busy threads."""
        return node_throughput(self.cores, threads, self.t1_seconds, self.t2_seconds)


#: (messages per second that are asked for, by how many); infinite where there is a backlog.
Demands = Sequence[tuple[float, int]]


def fair_level(demands: Demands, total: float) -> float:
    """The rate up to which each is served, so that all together get ``total``; infinite if none needs more."""
    left, claimants = total, sum(count for _, count in demands)
    for demand, count in sorted(demands):
        if demand * claimants > left * (1.0 + _ROUNDING):
            return left / claimants
        left -= demand * count
        claimants -= count
    return math.inf


def pool_level(node: NodeKind, demand: float) -> float:
    """As :func:`reader_level` for one reader for which all of the node's threads work."""
    full = node.with_busy(node.threads).rate_per_second
    return math.inf if demand <= full * (1.0 + _ROUNDING) else full


def reader_level(node: NodeKind, demands: Demands) -> float:
    """The rate up to which each reader is served, one thread each at most; infinite if all get what they ask for.

    The more threads are busy, the slower is each. So many are taken to be busy as it takes, in whole threads, to handle
    what the readers take at that speed: each its demand, or all that one thread can do.
    """
    readers = sum(count for _, count in demands)
    most = min(node.threads, readers)

    def taken(level: float) -> float:
        return sum(count * min(demand, level) for demand, count in demands)

    def enough(threads: int) -> bool:
        busy = node.with_busy(threads)
        return taken(busy.thread_rate_per_second) <= busy.rate_per_second * (1.0 + _ROUNDING)

    busy = node.with_busy(1 + bisect_left(range(1, most), True, key=enough))
    level = min(busy.thread_rate_per_second, fair_level(demands, busy.rate_per_second))
    return level if any(demand > level * (1.0 + _ROUNDING) for demand, _ in demands) else math.inf
