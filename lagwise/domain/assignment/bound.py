"""How even an assignment can be at all: bin packing with as many bins as members, the fullest as light as can be.

A partition is read by one member, so it cannot be split. To find the lightest fullest bin is NP-hard (scheduling on
identical machines, P‖Cmax); what is calculated is a bound from below that holds for every assignment, and an
assignment near it. What lies between the two is the proven gap.
"""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate

from lagwise.domain.assignment.java_order import partition_key
from lagwise.domain.assignment.model import Assignment, Partition

#: Sums of the same rates in another order differ in their last digits.
_ROUNDING = 1 + 1e-9


class BoundCause(StrEnum):
    """Why no assignment can do better."""

    #: One partition alone is as much.
    HOTTEST_PARTITION = "hottest_partition"
    #: It is the mean over all members.
    EVEN_SHARE = "even_share"
    #: There are more partitions than members, so some member reads two (or three, …) of the larger ones.
    TOGETHER = "together"


@dataclass(frozen=True, slots=True)
class Bound:
    """No assignment to so many members brings the busiest one below ``rate``."""

    rate: float
    cause: BoundCause


def lower_bound(rates: Sequence[float], members: int) -> Bound:
    """The largest of three bounds: the hottest partition, the mean, and the pigeonhole's.

    Pigeonhole: of the k·m + 1 largest rates some of the m members gets k + 1, and so at least the k + 1 smallest of
    them. For k = 1 that is the sum of the m-th and the next (Dell'Amico and Martello, "Optimal scheduling of tasks on
    identical parallel processors", 1995). Raises ValueError without members or rates.
    """
    if members < 1 or not rates:
        raise ValueError("a bound needs members and rates")
    falling = sorted(rates, reverse=True)
    sums = [0.0, *accumulate(falling)]
    bounds = [Bound(falling[0], BoundCause.HOTTEST_PARTITION), Bound(sums[-1] / members, BoundCause.EVEN_SHARE)]
    for k in range(1, (len(falling) - 1) // members + 1):
        last = k * members + 1
        bounds.append(Bound(sums[last] - sums[last - k - 1], BoundCause.TOGETHER))
    best = max(bound.rate for bound in bounds)
    return next(bound for bound in bounds if bound.rate * _ROUNDING >= best)


def spread_evenly(rates: Mapping[Partition, float], members: Sequence[str]) -> Assignment:
    """Longest processing time first: each partition, hottest first, to the member that has least so far.

    Its busiest member has at most 4/3 − 1/(3m) of the least possible (Graham, "Bounds on multiprocessing timing
    anomalies", 1969), and mostly far less: compare it with ``lower_bound``. Kafka has no such assignor; it needs rates.
    """
    given: dict[str, set[Partition]] = {member: set() for member in members}
    least = [(0.0, position, member) for position, member in enumerate(sorted(members))]
    for partition in sorted(rates, key=lambda p: (-rates[p], partition_key(p))):
        rate, position, member = least[0]
        heapq.heapreplace(least, (rate + rates[partition], position, member))
        given[member].add(partition)
    return {member: frozenset(partitions) for member, partitions in given.items()}


def useful_members(rates: Sequence[float]) -> int:
    """So many members can be no busier than the hottest partition alone makes one, so that further members do not help.

    Found by trying (longest processing time first, by bisection); a smaller number may do as well. Without traffic
    one is enough.
    """
    falling = sorted(rates, reverse=True)
    if not falling or falling[0] <= 0:
        return 1
    low, high = 1, len(falling)
    while low < high:
        middle = (low + high) // 2
        if _busiest(falling, middle) <= falling[0] * _ROUNDING:
            high = middle
        else:
            low = middle + 1
    return high


def _busiest(falling: Sequence[float], members: int) -> float:
    loads = [0.0] * members
    for rate in falling:
        heapq.heapreplace(loads, loads[0] + rate)
    return max(loads)
