"""Who owned what before a rebalance, as the sticky assignors take it from what the members say."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from lagwise.domain.assignment.java_order import JavaHashSet, string_hash, string_key
from lagwise.domain.assignment.model import Member, Partition

#: The generation of a member that names none.
NO_GENERATION = -1


@dataclass(frozen=True, slots=True)
class Claims:
    """What each member may keep, members in the order in which Java walks over them."""

    owned: dict[str, set[Partition]]
    #: Partitions that two members of one generation claim.
    contested: frozenset[Partition]
    latest_generation: int
    equal_subscriptions: bool


def walked(members: Iterable[Member]) -> list[Member]:
    """The members in the order of a Java ``HashMap`` by member id.

    Within a bucket that order is the one in which the members joined. It is not known outside the group: it is
    taken to be by member id.
    """
    by_id = {member.member_id: member for member in members}
    return [by_id[member_id] for member_id in JavaHashSet(string_hash, sorted(by_id, key=string_key))]


def claims_of(members: Iterable[Member], topics: Collection[str]) -> Claims:
    """What the members claim of these topics. Of two that claim a partition the newer generation has it; of equal
    generations neither, and whoever came later is asked about it from then on."""
    owned: dict[str, set[Partition]] = {}
    generations: dict[str, int] = {}
    claimant: dict[Partition, str] = {}
    contested: set[Partition] = set()
    subscription: frozenset[str] = frozenset()
    equal = True
    for member in walked(members):
        # An empty subscription is equal to whatever comes after it: so Kafka has it.
        equal = equal and (not subscription or subscription == member.topics)
        subscription = subscription or member.topics
        generation = NO_GENERATION if member.generation is None else member.generation
        generations[member.member_id] = generation
        mine = owned[member.member_id] = set()
        for partition in member.owned:
            if partition[0] not in topics:
                continue
            other = claimant.get(partition)
            if other is not None and generation < generations[other]:
                continue
            claimant[partition] = member.member_id
            if other is not None:
                owned[other].discard(partition)
            if other is not None and generation == generations[other]:
                contested.add(partition)
            else:
                mine.add(partition)
    latest = max(generations.values(), default=NO_GENERATION)
    return Claims(owned, frozenset(contested), max(latest, NO_GENERATION), equal)
