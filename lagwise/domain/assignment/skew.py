"""How even an assignment is, by partitions and by traffic."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from lagwise.domain.assignment.java_order import partition_key, string_key
from lagwise.domain.assignment.model import Assignment, Partition

Rates = Mapping[Partition, float | None]


@dataclass(frozen=True, slots=True)
class Figures:
    """An assignment in numbers. What depends on a rate that is not known is None, as is a share of no traffic."""

    members: int
    idle_members: int
    #: Partitions of the member that has most.
    most_partitions: int
    #: That, over the mean of all members; 1 is even.
    skew_by_count: float | None
    #: Member id of the member that reads most, and its share of all traffic.
    busiest: str | None = None
    busiest_share: float | None = None
    #: Its rate over the mean of all members; 1 is even.
    skew_by_rate: float | None = None


def known_rates(partitions: Collection[Partition], rates: Rates) -> dict[Partition, float] | None:
    """The rates of these partitions, records per second; None where one is unknown. One unknown rate could be the
    largest, so nothing is said of shares then."""
    found = {}
    for partition in partitions:
        rate = rates.get(partition)
        if rate is None:
            return None
        found[partition] = max(0.0, rate)
    return found


def figures(assignment: Assignment, rates: Mapping[Partition, float] | None) -> Figures:
    """The figures of an assignment; ``rates`` are those of every partition of the group's topics, None is unknown."""
    counts = {member: len(owned) for member, owned in assignment.items()}
    owned = sum(counts.values())
    most = max(counts.values(), default=0)
    bare = Figures(
        members=len(counts),
        idle_members=sum(number == 0 for number in counts.values()),
        most_partitions=most,
        skew_by_count=most * len(counts) / owned if owned else None,
    )
    if rates is None or not counts:
        return bare
    # fsum: the same whatever the order of a set.
    loads = {member: math.fsum(rates[p] for p in mine) for member, mine in assignment.items()}
    carried, total = math.fsum(loads.values()), math.fsum(rates.values())
    if carried <= 0:
        return bare
    busiest = min(loads, key=lambda member: (-loads[member], string_key(member)))
    return replace(
        bare,
        busiest=busiest,
        busiest_share=loads[busiest] / total,
        skew_by_rate=loads[busiest] * len(loads) / carried,
    )


def hottest(rates: Mapping[Partition, float] | None) -> tuple[Partition, float] | None:
    """The partition with most traffic and its share of all; None where there is no traffic or a rate is unknown."""
    total = sum(rates.values()) if rates else 0.0
    if not rates or total <= 0:
        return None
    partition = min(rates, key=lambda p: (-rates[p], partition_key(p)))
    return partition, rates[partition] / total
