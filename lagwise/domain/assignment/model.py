"""A group as an assignor sees it: members, what they subscribe to, what they own."""

from collections.abc import Mapping
from dataclasses import dataclass

#: Topic and number.
Partition = tuple[str, int]
#: What each member owns, by member id.
Assignment = Mapping[str, frozenset[Partition]]


@dataclass(frozen=True, slots=True)
class Member:
    """A member at the moment of a rebalance.

    Without a rack: brokers do not report the racks of a group's members, and where no member gives one Kafka's
    assignors ignore racks (KIP-881).
    """

    member_id: str
    topics: frozenset[str]
    owned: frozenset[Partition] = frozenset()
    #: ``group.instance.id`` (KIP-345), None of a dynamic member.
    static_instance_id: str | None = None
    #: The generation in which it was given what it owns; None is before its first.
    generation: int | None = None


@dataclass(frozen=True, slots=True)
class AssignorResult:
    """What an assignor gives."""

    assignment: Assignment
    #: How many rebalances it takes: 2 where partitions are given up in one and handed on in the next.
    rebalances: int = 1


class NotDeterminedError(Exception):
    """What Kafka would give follows from something that cannot be known, or Kafka itself would fail."""


def owners(assignment: Assignment) -> dict[Partition, str]:
    """Member id by partition."""
    return {partition: member for member, owned in assignment.items() for partition in owned}


def all_partitions(partition_counts: Mapping[str, int]) -> list[Partition]:
    """Every partition of the topics, in no order that means anything."""
    return [(topic, number) for topic, count in partition_counts.items() for number in range(count)]
