"""The assignors by the name that Kafka gives them, and the two that look at nothing but who is there: ``range`` and
``roundrobin``.

Own code after the behaviour of ``RangeAssignor`` and ``RoundRobinAssignor`` in Kafka's Java clients 4.x; tests compare
it with them case by case.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import cycle

from lagwise.domain.assignment.java_order import string_key
from lagwise.domain.assignment.model import AssignorResult, Member, Partition
from lagwise.domain.assignment.sticky import cooperative_sticky_assignment, sticky_assignment

Assignor = Callable[[Sequence[Member], Mapping[str, int]], AssignorResult]


def in_order(members: Sequence[Member]) -> list[Member]:
    """Static members by instance id, then dynamic members by member id.

    librdkafka sorts alike while all members are static or all are dynamic; in a mixed group it compares the member ids
    of a static and a dynamic member, which need not even be an order, so a mixed group's ``range`` and ``roundrobin``
    can differ between the two.
    """
    return sorted(
        members,
        key=lambda m: (
            (1, string_key(m.member_id)) if m.static_instance_id is None else (0, string_key(m.static_instance_id))
        ),
    )


def range_assignment(members: Sequence[Member], partition_counts: Mapping[str, int]) -> AssignorResult:
    """Each topic for itself: its partitions in a row, cut into one piece a subscriber; the first get one more.

    Without racks nothing else is done (KIP-881). Topics with as many partitions and the same subscribers are
    co-partitioned by that alone: partition 3 of the one and of the other have the same owner.
    """
    given: dict[str, set[Partition]] = {member.member_id: set() for member in members}
    ordered = in_order(members)
    for topic, count in partition_counts.items():
        subscribers = [member for member in ordered if topic in member.topics]
        if not subscribers:
            continue
        each, more = divmod(count, len(subscribers))
        start = 0
        for position, member in enumerate(subscribers):
            end = start + each + (position < more)
            given[member.member_id].update((topic, number) for number in range(start, end))
            start = end
    return AssignorResult({member: frozenset(partitions) for member, partitions in given.items()})


def round_robin_assignment(members: Sequence[Member], partition_counts: Mapping[str, int]) -> AssignorResult:
    """All partitions by topic and number, dealt out in turn to those who subscribe to the topic."""
    given: dict[str, set[Partition]] = {member.member_id: set() for member in members}
    subscribed = {topic for member in members for topic in member.topics}
    turns = cycle(in_order(members))
    for topic in sorted(subscribed & partition_counts.keys(), key=string_key):
        for number in range(partition_counts[topic]):
            member = next(turn for turn in turns if topic in turn.topics)
            given[member.member_id].add((topic, number))
    return AssignorResult({member: frozenset(partitions) for member, partitions in given.items()})


#: Those of Kafka's consumers; as ``partition.assignment.strategy`` and the group's description name them.
ASSIGNORS: dict[str, Assignor] = {
    "range": range_assignment,
    "roundrobin": round_robin_assignment,
    "sticky": sticky_assignment,
    "cooperative-sticky": cooperative_sticky_assignment,
}
