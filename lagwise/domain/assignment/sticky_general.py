"""The sticky assignors where members subscribe to different topics: improved step by step until it is balanced."""

from collections.abc import Mapping, Sequence

from lagwise.domain.assignment.java_order import JavaHashSet, partition_hash, partition_key, string_key
from lagwise.domain.assignment.model import Assignment, Member, NotDeterminedError, Partition, all_partitions
from lagwise.domain.assignment.previous_owners import NO_GENERATION, Claims, walked


def general(members: Sequence[Member], partition_counts: Mapping[str, int], claims: Claims) -> Assignment:
    """The assignment of members that subscribe to different topics.

    Raises NotDeterminedError where Kafka itself fails: it may want to give a partition back to an earlier owner that
    takes no part in the balancing.
    """
    return _Balancing(walked(members), partition_counts, claims).run()


class _Balancing:
    """One rebalance under way. ``given`` is what each member that takes part has so far."""

    def __init__(self, members: Sequence[Member], partition_counts: Mapping[str, int], claims: Claims) -> None:
        self.counts = partition_counts
        self.topics = {m.member_id: m.topics & partition_counts.keys() for m in members}
        self.most = {member: sum(partition_counts[t] for t in topics) for member, topics in self.topics.items()}
        self.subscribers = {t: [m.member_id for m in members if t in m.topics] for t in partition_counts}
        self.given = {member: set(owned) for member, owned in claims.owned.items()}
        self.earlier = _earlier_owners(members, claims.latest_generation)
        self.movements = _Movements()

    def run(self) -> Assignment:
        gave_up_unsubscribed = self._drop_unsubscribed()
        self.owner = {partition: member for member, owned in self.given.items() for partition in owned}
        starting_anew = not self.owner
        order = sorted(all_partitions(self.counts), key=lambda p: (len(self.subscribers[p[0]]), *partition_key(p)))
        unassigned = [partition for partition in order if partition not in self.owner]
        for partition in unassigned:
            self._hand_out(partition)
        movable = [partition for partition in order if len(self.subscribers[partition[0]]) >= 2]
        settled = {member: self.given.pop(member) for member in list(self.given) if not self._takes_part(member)}
        before = {member: set(owned) for member, owned in self.given.items()}
        if not gave_up_unsubscribed:
            new = set(unassigned)
            self._improve([partition for partition in movable if partition in new])
        improved = self._improve(movable)
        if improved and not starting_anew and _imbalance(self.given) >= _imbalance(before):
            self.given = before
        return {member: frozenset(owned) for member, owned in (self.given | settled).items()}

    def _drop_unsubscribed(self) -> bool:
        dropped = False
        for member, owned in self.given.items():
            strange = {partition for partition in owned if partition[0] not in self.topics[member]}
            owned -= strange
            dropped = dropped or bool(strange)
        return dropped

    def _least_loaded(self, topic: str) -> str:
        return min(
            (member for member in self.subscribers[topic] if member in self.given),
            key=lambda member: (len(self.given[member]), string_key(member)),
        )

    def _hand_out(self, partition: Partition) -> None:
        if self.subscribers[partition[0]]:
            member = self._least_loaded(partition[0])
            self.given[member].add(partition)
            self.owner[partition] = member

    def _takes_part(self, member: str) -> bool:
        """It could get more, or has something that another one could get."""
        return len(self.given[member]) < self.most[member] or any(
            len(self.subscribers[partition[0]]) >= 2 for partition in self.given[member]
        )

    def _improve(self, movable: Sequence[Partition]) -> bool:
        """Move partitions to members that have at least two fewer, until none can be."""
        improved = False
        while True:
            moved = False
            for partition in movable:
                if self._is_balanced():
                    break
                moved = self._move_to_better(partition) or moved
            if not moved:
                return improved
            improved = True

    def _move_to_better(self, partition: Partition) -> bool:
        size = len(self.given[self.owner[partition]])
        earlier = self.earlier.get(partition)
        if earlier is not None:
            if earlier not in self.given:
                raise NotDeterminedError(f"the earlier owner of {partition[0]}-{partition[1]} takes no part")
            if size > len(self.given[earlier]) + 1:
                self._move(partition, earlier)
                return True
        if any(size > len(self.given[other]) + 1 for other in self.subscribers[partition[0]]):
            self._move(partition, self._least_loaded(partition[0]))
            return True
        return False

    def _move(self, partition: Partition, to: str) -> None:
        moving = self.movements.better(partition, self.owner[partition], to)
        source = self.owner[moving]
        self.movements.note(moving, source, to)
        self.given[source].discard(moving)
        self.given[to].add(moving)
        self.owner[moving] = to

    def _is_balanced(self) -> bool:
        """No member that has less than it could could get a partition of one that has at least two more."""
        sizes = {member: len(owned) for member, owned in self.given.items()}
        if min(sizes.values()) >= max(sizes.values()) - 1:
            return True
        largest: dict[str, int] = {}
        for partition, owner in self.owner.items():
            if owner in sizes:
                largest[partition[0]] = max(largest.get(partition[0], 0), sizes[owner])
        return not any(
            sizes[member] + 1 < largest.get(topic, 0)
            for member in sizes
            if sizes[member] != self.most[member]
            for topic in self.topics[member]
        )


def _earlier_owners(members: Sequence[Member], latest_generation: int) -> dict[Partition, str]:
    """By partition the member of the newest generation before the latest that claims it."""
    found: dict[Partition, tuple[int, str]] = {}
    for member in members:
        generation = NO_GENERATION if member.generation is None else member.generation
        if generation >= latest_generation:
            continue
        for partition in member.owned:
            if partition not in found or generation > found[partition][0]:
                found[partition] = generation, member.member_id
    return {partition: member for partition, (_, member) in found.items()}


def _imbalance(given: Mapping[str, set[Partition]]) -> int:
    """Sum over all pairs of members of the difference of their counts."""
    sizes = sorted(len(owned) for owned in given.values())
    return sum((2 * position - len(sizes) + 1) * size for position, size in enumerate(sizes))


class _Movements:
    """What has been moved from whom to whom. Two partitions of a topic that would swap owners stay instead."""

    def __init__(self) -> None:
        self._route: dict[Partition, tuple[str, str]] = {}
        self._moved: dict[tuple[str, str, str], JavaHashSet[Partition]] = {}

    def better(self, partition: Partition, source: str, to: str) -> Partition:
        """The partition to move instead: one of the topic that came the other way, where there is one."""
        came_from, _ = self._route.get(partition, (source, to))
        back = self._moved.get((partition[0], to, came_from))
        return next(iter(back)) if back else partition

    def note(self, partition: Partition, source: str, to: str) -> None:
        """A partition goes from ``source`` to ``to``; of one that had moved before, only the whole way counts."""
        topic = partition[0]
        known = self._route.pop(partition, None)
        if known is not None:
            self._moved[topic, *known].remove(partition)
            if not self._moved[topic, *known]:
                del self._moved[topic, *known]
            source = known[0]
            if source == to:
                return
        self._route[partition] = source, to
        self._moved.setdefault((topic, source, to), JavaHashSet(partition_hash)).add(partition)
