"""All groups as their records tell, in whichever protocol each of them is."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from lagwise.domain.vocabulary import GroupState
from lagwise_collectors.offsets_topic import classic_protocol
from lagwise_collectors.offsets_topic.classic_protocol import ClassicView
from lagwise_collectors.offsets_topic.commit_history import CommitHistory
from lagwise_collectors.offsets_topic.consumer_protocol import ConsumerGroup
from lagwise_collectors.offsets_topic.rebalance_cause import Members
from lagwise_collectors.offsets_topic.rebalance_events import TrackedRebalance
from lagwise_collectors.offsets_topic.records import (
    GroupKey,
    Type,
    classic_group_of,
    current_of,
    epoch_of,
    member_of,
    target_of,
    topics_of,
)

#: Records of one decision of a coordinator are written together.
TOGETHER_MS = 1_000


@dataclass(slots=True)
class TrackedGroup:
    """What is known of one group: of its members in one of two ways (neither: it is only a name for commits), and of
    its commits by partition."""

    classic: ClassicView | None = None
    consumer: ConsumerGroup | None = None
    pairs: dict[tuple[str, int], CommitHistory] = field(default_factory=dict)

    @property
    def members(self) -> Members:
        if self.consumer is not None:
            return self.consumer.told
        return self.classic.members if self.classic is not None else {}


@dataclass(frozen=True, slots=True)
class Ended:
    """A group that is gone: since when, and what it was."""

    at_ms: int
    group: TrackedGroup
    state: GroupState


class TrackedGroups:
    """The groups by ``by_name``, and topic names by id (``topics``), as far as records told them.

    ``ended`` are groups whose tombstone was read, until somebody takes them. ``session_ms`` and ``heartbeat_ms``
    are the broker's session timeout and heartbeat interval for KIP-848 groups, where known.
    """

    def __init__(self) -> None:
        self.by_name: dict[str, TrackedGroup] = {}
        self.topics: dict[str, str] = {}
        self.session_ms: int | None = None
        self.heartbeat_ms = 0
        self.ended: dict[str, list[Ended]] = {}
        #: Groups of which KIP-848 records were read in silence: the partition, and when their newest epoch began.
        self._silent: dict[str, tuple[int, int]] = {}

    def of(self, name: str) -> TrackedGroup:
        """The group of this name, which may be new."""
        return self.by_name.setdefault(name, TrackedGroup())

    def end(self, name: str, group: TrackedGroup, at_ms: int) -> None:
        """Note that a group is gone."""
        state = GroupState.STABLE if group.members else GroupState.EMPTY
        self.ended.setdefault(name, []).append(Ended(at_ms, replace(group), state))

    def settle(self, partition: int) -> None:
        """The silence of a partition is over."""
        for name in [name for name, (where, _) in self._silent.items() if where == partition]:
            _, at_ms = self._silent.pop(name)
            group = self.by_name.get(name)
            if group is not None and group.consumer is not None:
                group.consumer.settle(at_ms)

    def take_in(
        self, about: GroupKey, value: bytes | None, at_ms: int, *, partition: int, quiet: bool
    ) -> list[TrackedRebalance]:
        """What a record tells. Raises GarbageError and UnknownVersionError, and then nothing has changed."""
        if about.type is Type.CLASSIC_GROUP:
            happened = self._of_classic(about.group, value, at_ms, quiet=quiet)
        else:
            if quiet and about.type is Type.GROUP:
                self._silent[about.group] = (partition, at_ms)
            happened = self._of_consumer(about, value, at_ms, quiet=quiet)
        return [] if quiet else happened

    def _of_classic(self, name: str, value: bytes | None, at_ms: int, *, quiet: bool) -> list[TrackedRebalance]:
        if value is None:
            group = self.by_name.get(name)
            if group is not None and group.classic is not None:
                self._end(name, group, at_ms, quiet=quiet)
                group.classic = None
            return []
        record = classic_group_of(value)
        converted = self._converted(name, at_ms)
        group = self.of(name)
        before = group.classic
        if converted is not None and converted.consumer is not None:
            was = converted.consumer
            members = _renamed(was.told, self.topics)
            before = ClassicView(was.told_epoch or was.epoch, was.agreed_ms, members, {})
        now = classic_protocol.view_of(record, at_ms, before)
        happened = classic_protocol.rebalance(name, before, now, group.pairs.get)
        group.classic, group.consumer = now, None
        return [] if happened is None else [happened]

    def _of_consumer(self, about: GroupKey, value: bytes | None, at_ms: int, *, quiet: bool) -> list[TrackedRebalance]:
        name = about.group
        if value is None:
            group = self.by_name.get(name)
            if group is not None and group.consumer is not None:
                self._tombstone(about, name, group, group.consumer, at_ms, quiet=quiet)
            return []
        if about.type is Type.PARTITIONS:
            self.topics.update(topics_of(value))
            return []
        read = _READ[about.type](value)  # before anything is changed: it may be garbage
        converted = self._converted(name, at_ms)
        group = self.of(name)
        consumer = group.consumer
        if consumer is None:
            consumer = group.consumer = ConsumerGroup()
            was = group.classic or (converted.classic if converted is not None else None)
            if was is not None:
                ids = {topic: topic_id for topic_id, topic in self.topics.items()}
                consumer.told, consumer.told_epoch = _renamed(was.members, ids), was.generation
                consumer.agreed_ms = was.at_ms
            group.classic = None
        consumer.session_ms, consumer.heartbeat_ms = self.session_ms, self.heartbeat_ms

        def commits(pair: tuple[str, int]) -> CommitHistory | None:
            return group.pairs.get((self.topics.get(pair[0], pair[0]), pair[1]))

        member = about.member or ""
        found: TrackedRebalance | None = None
        match about.type:
            case Type.MEMBER:
                found = consumer.put_member(name, member, read, at_ms)
            case Type.GROUP if quiet:
                consumer.epoch = read
            case Type.GROUP:
                found = consumer.begin(name, read, at_ms, commits)
            case Type.TARGET:
                consumer.target_epoch = read
            case Type.TARGET_MEMBER:
                consumer.targets[member] = read
            case Type.CURRENT:
                consumer.current[member] = read
        over = consumer.end(name, at_ms, commits)
        return [happened for happened in (found, over) if happened is not None]

    def _tombstone(
        self, about: GroupKey, name: str, group: TrackedGroup, consumer: ConsumerGroup, at_ms: int, *, quiet: bool
    ) -> None:
        member = about.member or ""
        match about.type:
            case Type.MEMBER:
                consumer.members.pop(member, None)
            case Type.TARGET_MEMBER:
                consumer.targets.pop(member, None)
            case Type.CURRENT:
                consumer.current.pop(member, None)
            case Type.GROUP:
                self._end(name, group, at_ms, quiet=quiet)
                group.consumer = None

    def _end(self, name: str, group: TrackedGroup, at_ms: int, *, quiet: bool) -> None:
        """The tombstone of a group; :meth:`_converted` may take it back."""
        if not quiet:
            self.end(name, group, at_ms)
        if not group.pairs:
            del self.by_name[name]

    def _converted(self, name: str, at_ms: int) -> TrackedGroup | None:
        """What the group was in the other protocol, if its tombstone belongs to this conversion."""
        ended = self.ended.get(name)
        if not ended or at_ms - ended[-1].at_ms > TOGETHER_MS:
            return None
        group = ended.pop().group
        if not ended:
            del self.ended[name]
        return group


_READ: Mapping[Type, Callable[[bytes], Any]] = {
    Type.MEMBER: member_of,
    Type.GROUP: epoch_of,
    Type.TARGET: epoch_of,
    Type.TARGET_MEMBER: target_of,
    Type.CURRENT: current_of,
}


def _renamed(members: Members, names: Mapping[str, str]) -> Members:
    return {
        key: replace(member, owned=tuple(sorted((names.get(topic, topic), p) for topic, p in member.owned)))
        for key, member in members.items()
    }
