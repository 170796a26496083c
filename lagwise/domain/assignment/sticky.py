"""The sticky assignors: evenly by count first, and as much as possible stays where it is.

Own code after the behaviour of ``AbstractStickyAssignor`` in Kafka's Java clients 4.x (KIP-54, KIP-429, KIP-792); tests
compare it with ``StickyAssignor`` and ``CooperativeStickyAssignor`` case by case. librdkafka's ``cooperative-sticky``
is another program with the same aims: as even, but not always with the same owners.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace

from lagwise.domain.assignment.java_order import partition_key, string_key
from lagwise.domain.assignment.model import (
    Assignment,
    AssignorResult,
    Member,
    NotDeterminedError,
    Partition,
    all_partitions,
    owners,
)
from lagwise.domain.assignment.previous_owners import Claims, claims_of
from lagwise.domain.assignment.sticky_general import general

#: After so many rebalances in a row a cooperative group has long come to rest.
_MOST_REBALANCES = 20


def sticky_assignment(members: Sequence[Member], partition_counts: Mapping[str, int]) -> AssignorResult:
    """What ``sticky`` gives. Raises NotDeterminedError where Kafka's own result cannot be determined or would be wrong.

    A member without a generation brings nothing: a member reports what it owned together with the generation.
    """
    known = [m if m.generation is not None else replace(m, owned=frozenset()) for m in members]
    assignment, _ = _balanced(known, _existing(known, partition_counts))
    return AssignorResult(assignment)


def cooperative_sticky_assignment(members: Sequence[Member], partition_counts: Mapping[str, int]) -> AssignorResult:
    """What ``cooperative-sticky`` gives once the group has come to rest.

    A partition that changes its owner is only taken away in the first rebalance; the members that gave some up join
    again, and the next one hands it out (KIP-429). Raises NotDeterminedError as ``sticky_assignment``.
    """
    counts = _existing(members, partition_counts)
    current = list(members)
    for rebalance in range(1, _MOST_REBALANCES + 1):
        assignment, in_transfer = _balanced(current, counts)
        if not in_transfer:
            return AssignorResult(assignment, rebalance)
        generation = max(m.generation or 0 for m in current) + 1
        current = [
            replace(m, owned=assignment[m.member_id] - in_transfer.get(m.member_id, set()), generation=generation)
            for m in current
        ]
    raise NotDeterminedError("the group does not come to rest")


def _existing(members: Sequence[Member], partition_counts: Mapping[str, int]) -> dict[str, int]:
    """The topics that have partitions. Kafka's bookkeeping goes wrong where a member owns one that does not exist."""
    for member in members:
        for topic, number in member.owned:
            if 0 < partition_counts.get(topic, 0) <= number:
                raise NotDeterminedError(f"{topic}-{number} is owned and does not exist")
    subscribed = {topic for member in members for topic in member.topics}
    return {topic: count for topic, count in partition_counts.items() if count > 0 and topic in subscribed}


def _balanced(
    members: Sequence[Member], partition_counts: Mapping[str, int]
) -> tuple[Assignment, dict[str, set[Partition]]]:
    """The balanced assignment, and by new owner the partitions that somebody else still has to give up for it."""
    claims = claims_of(members, partition_counts.keys())
    if not claims.equal_subscriptions:
        given = general(members, partition_counts, claims)
        return given, _changing_hands(members, given)
    return _equally(claims, partition_counts)


def _changing_hands(members: Sequence[Member], given: Assignment) -> dict[str, set[Partition]]:
    lost = {partition for member in members for partition in member.owned - given[member.member_id]}
    return {m.member_id: new for m in members if (new := set((given[m.member_id] - m.owned) & lost))}


def _equally(claims: Claims, partition_counts: Mapping[str, int]) -> tuple[Assignment, dict[str, set[Partition]]]:
    """All subscribe to the same: each member gets the low quota of partitions, and as many as needed one more."""
    everything = sorted(all_partitions(partition_counts), key=partition_key)
    low, members_with_more = divmod(len(everything), max(len(claims.owned), 1))
    kept: dict[str, list[Partition]] = {}
    given_up: dict[Partition, str] = {}
    below: list[str] = []
    at_low: list[str] = []
    for member, claimed in claims.owned.items():
        mine = sorted(claimed - claims.contested, key=lambda p: (p[1], string_key(p[0])))
        quota = low
        if len(mine) < low:
            below.append(member)
        elif len(mine) > low and members_with_more:
            quota = low + 1
            members_with_more -= 1
        else:
            at_low.append(member)
        kept[member] = mine[:quota]
        given_up.update(dict.fromkeys(mine[quota:], member))
    taken = {partition for mine in kept.values() for partition in mine}
    in_turn = deque(sorted(below, key=string_key))
    next_at_low = deque(sorted(at_low, key=string_key))
    in_transfer: dict[str, set[Partition]] = {}
    for partition in everything:
        if partition in taken:
            continue
        member = in_turn.popleft() if in_turn else next_at_low.popleft()
        kept[member].append(partition)
        if len(kept[member]) < low:
            in_turn.append(member)
        elif len(kept[member]) == low:
            next_at_low.append(member)
        if partition in claims.contested or given_up.get(partition, member) != member:
            in_transfer.setdefault(member, set()).add(partition)
    return {member: frozenset(partitions) for member, partitions in kept.items()}, in_transfer


def moved(members: Sequence[Member], assignment: Assignment) -> int:
    """Partitions that a member owns now and would lose to another one."""
    after = owners(assignment)
    before = {partition: member.member_id for member in members for partition in member.owned}
    return sum(after.get(partition, owner) != owner for partition, owner in before.items())
