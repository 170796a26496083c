"""All groups by their records, each in its protocol: classic or KIP-848."""

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
    RecordType,
    classic_group_of,
    current_of,
    epoch_of,
    member_of,
    target_of,
    topics_of,
)

#: Records that a coordinator writes for one decision are at most this far apart.
TOGETHER_MS = 1_000


@dataclass(slots=True)
class TrackedGroup:
    """One group. With neither protocol it only has commits."""

    #: Its members in the classic protocol.
    classic: ClassicView | None = None
    #: Its members in the KIP-848 protocol.
    consumer: ConsumerGroup | None = None
    #: Its commits by topic and partition.
    pairs: dict[tuple[str, int], CommitHistory] = field(default_factory=dict)

    @property
    def members(self) -> Members:
        if self.consumer is not None:
            return self.consumer.reported
        return self.classic.members if self.classic is not None else {}


@dataclass(frozen=True, slots=True)
class EndedGroup:
    """A group that is gone."""

    #: When its tombstone was written, ms since 1970.
    at_ms: int
    #: The group and its state until then.
    group: TrackedGroup
    state: GroupState


class TrackedGroups:
    """All groups."""

    def __init__(self) -> None:
        self.by_name: dict[str, TrackedGroup] = {}
        #: Topic names by id, as far as they are known.
        self.topics: dict[str, str] = {}
        #: The broker's session timeout and heartbeat interval for KIP-848 groups, where known.
        self.session_ms: int | None = None
        self.heartbeat_ms = 0
        #: Groups whose tombstone was read, until they are taken.
        self.ended: dict[str, list[EndedGroup]] = {}
        #: Groups whose KIP-848 records were read without events: the partition, and when their newest epoch began.
        self._silent: dict[str, tuple[int, int]] = {}

    def of(self, name: str) -> TrackedGroup:
        """The group of this name, which may be new."""
        return self.by_name.setdefault(name, TrackedGroup())

    def end(self, name: str, group: TrackedGroup, at_ms: int) -> None:
        """Record that a group is gone."""
        state = GroupState.STABLE if group.members else GroupState.EMPTY
        self.ended.setdefault(name, []).append(EndedGroup(at_ms, replace(group), state))

    def settle(self, partition: int) -> None:
        """From now on records of this partition report events."""
        for name in [name for name, (where, _) in self._silent.items() if where == partition]:
            _, at_ms = self._silent.pop(name)
            group = self.by_name.get(name)
            if group is not None and group.consumer is not None:
                group.consumer.settle(at_ms)

    def feed(
        self, key: GroupKey, value: bytes | None, at_ms: int, *, partition: int, quiet: bool
    ) -> list[TrackedRebalance]:
        """Process a record; returns the rebalances that it reports, none where ``quiet``.

        Raises MalformedRecordError and UnknownVersionError, and then nothing has changed.
        """
        if key.type is RecordType.CLASSIC_GROUP:
            rebalances = self._feed_classic(key.group, value, at_ms, quiet=quiet)
        else:
            if quiet and key.type is RecordType.GROUP:
                self._silent[key.group] = (partition, at_ms)
            rebalances = self._feed_consumer(key, value, at_ms, quiet=quiet)
        return [] if quiet else rebalances

    def _feed_classic(self, name: str, value: bytes | None, at_ms: int, *, quiet: bool) -> list[TrackedRebalance]:
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
            previous = converted.consumer
            members = _renamed(previous.reported, self.topics)
            before = ClassicView(previous.reported_epoch or previous.epoch, previous.agreed_ms, members, {})
        now = classic_protocol.view_of(record, at_ms, before)
        rebalance = classic_protocol.rebalance(name, before, now, group.pairs.get)
        group.classic, group.consumer = now, None
        return [] if rebalance is None else [rebalance]

    def _feed_consumer(self, key: GroupKey, value: bytes | None, at_ms: int, *, quiet: bool) -> list[TrackedRebalance]:
        name = key.group
        if value is None:
            group = self.by_name.get(name)
            if group is not None and group.consumer is not None:
                self._tombstone(key, name, group, group.consumer, at_ms, quiet=quiet)
            return []
        if key.type is RecordType.PARTITIONS:
            self.topics.update(topics_of(value))
            return []
        read = _READ[key.type](value)  # before anything is changed: it may be malformed
        converted = self._converted(name, at_ms)
        group = self.of(name)
        consumer = group.consumer
        if consumer is None:
            consumer = group.consumer = ConsumerGroup()
            previous = group.classic or (converted.classic if converted is not None else None)
            if previous is not None:
                ids = {topic: topic_id for topic_id, topic in self.topics.items()}
                consumer.reported, consumer.reported_epoch = _renamed(previous.members, ids), previous.generation
                consumer.agreed_ms = previous.at_ms
            group.classic = None
        consumer.session_ms, consumer.heartbeat_ms = self.session_ms, self.heartbeat_ms

        def commits(pair: tuple[str, int]) -> CommitHistory | None:
            return group.pairs.get((self.topics.get(pair[0], pair[0]), pair[1]))

        member = key.member or ""
        overtaken: TrackedRebalance | None = None
        match key.type:
            case RecordType.MEMBER:
                overtaken = consumer.put_member(name, member, read, at_ms)
            case RecordType.GROUP if quiet:
                consumer.epoch = read
            case RecordType.GROUP:
                overtaken = consumer.begin(name, read, at_ms, commits)
            case RecordType.TARGET:
                consumer.target_epoch = read
            case RecordType.TARGET_MEMBER:
                consumer.targets[member] = read
            case RecordType.CURRENT:
                consumer.current[member] = read
        ended = consumer.end(name, at_ms, commits)
        return [rebalance for rebalance in (overtaken, ended) if rebalance is not None]

    def _tombstone(
        self, key: GroupKey, name: str, group: TrackedGroup, consumer: ConsumerGroup, at_ms: int, *, quiet: bool
    ) -> None:
        member = key.member or ""
        match key.type:
            case RecordType.MEMBER:
                consumer.members.pop(member, None)
            case RecordType.TARGET_MEMBER:
                consumer.targets.pop(member, None)
            case RecordType.CURRENT:
                consumer.current.pop(member, None)
            case RecordType.GROUP:
                self._end(name, group, at_ms, quiet=quiet)
                group.consumer = None

    def _end(self, name: str, group: TrackedGroup, at_ms: int, *, quiet: bool) -> None:
        """Process the tombstone of a group; :meth:`_converted` may undo it."""
        if not quiet:
            self.end(name, group, at_ms)
        if not group.pairs:
            del self.by_name[name]

    def _converted(self, name: str, at_ms: int) -> TrackedGroup | None:
        """The group in its other protocol, if its tombstone belongs to this conversion."""
        ended = self.ended.get(name)
        if not ended or at_ms - ended[-1].at_ms > TOGETHER_MS:
            return None
        group = ended.pop().group
        if not ended:
            del self.ended[name]
        return group


_READ: Mapping[RecordType, Callable[[bytes], Any]] = {
    RecordType.MEMBER: member_of,
    RecordType.GROUP: epoch_of,
    RecordType.TARGET: epoch_of,
    RecordType.TARGET_MEMBER: target_of,
    RecordType.CURRENT: current_of,
}


def _renamed(members: Members, names: Mapping[str, str]) -> Members:
    return {
        key: replace(member, owned=tuple(sorted((names.get(topic, topic), p) for topic, p in member.owned)))
        for key, member in members.items()
    }
