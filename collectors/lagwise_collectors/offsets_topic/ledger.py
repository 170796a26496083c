"""The state of all groups as the records tell it, and what happened since it was last asked for.

Pure: records in, events out. What belongs to one group lies in one partition of ``__consumer_offsets``, so the outcome
does not depend on how the partitions' records interleave, nor on how they are cut into batches.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from lagwise.domain.vocabulary import EventKind, EventSource, GroupState
from lagwise_collectors.differences.events import Event
from lagwise_collectors.offsets_topic import classic
from lagwise_collectors.offsets_topic.classic import ClassicView
from lagwise_collectors.offsets_topic.consumer import ConsumerGroup
from lagwise_collectors.offsets_topic.happenings import Rebalance, moment, rebalance_event
from lagwise_collectors.offsets_topic.membership import Members
from lagwise_collectors.offsets_topic.pairs import Moved, Pair, commit_events
from lagwise_collectors.offsets_topic.primitives import GarbageError
from lagwise_collectors.offsets_topic.records import (
    CommitKey,
    GroupKey,
    Type,
    UnknownVersionError,
    classic_group_of,
    commit_of,
    current_of,
    epoch_of,
    full_commit_of,
    key_of,
    member_of,
    target_of,
    topics_of,
)
from lagwise_collectors.protocol import ErrorTally

#: Records of one decision of a coordinator are written together.
_TOGETHER_MS = 1_000
EXPIRED, DELETED = "expired", "deleted"
#: What happened is asked for every few seconds; if it is not, it must not take all memory.
_MOST_HELD = 200_000
_DROPPED = ("events_dropped", "too many things happened at once to tell each")


class Record(Protocol):
    """A record as confluent_kafka has it."""

    def key(self) -> bytes | None: ...
    def value(self) -> bytes | None: ...
    def partition(self) -> int: ...
    def offset(self) -> int: ...
    def timestamp(self) -> tuple[int, int]: ...


@dataclass(slots=True)
class Group:
    """What is known of one group: of its members in one of two ways (neither: it is only a name for commits), and of
    its commits by partition."""

    classic: ClassicView | None = None
    consumer: ConsumerGroup | None = None
    pairs: dict[tuple[str, int], Pair] = field(default_factory=dict)

    @property
    def members(self) -> Members:
        if self.consumer is not None:
            return self.consumer.told
        return self.classic.members if self.classic is not None else {}


@dataclass(frozen=True, slots=True)
class _Ended:
    """A group whose tombstone was read: when, and what it was."""

    at_ms: int
    group: Group
    state: GroupState


@dataclass(frozen=True, slots=True)
class Taken:
    """What happened since the last time: events in order of time, pairs that were committed on, and errors."""

    events: list[Event]
    committed: list[Pair]
    errors: ErrorTally


class Ledger:
    """Everything the records have told. ``positions`` is the next offset to read of each partition.

    Of partitions in ``priming`` records are taken in without a word. ``retention_ms`` is the broker's
    ``offsets.retention.minutes``, ``session_ms`` its session timeout for KIP-848 groups, where known.
    """

    def __init__(self, selects: Callable[[str], bool]) -> None:
        self.positions: dict[int, int] = {}
        self.priming: set[int] = set()
        self.pairs: dict[bytes, Pair] = {}
        self.groups: dict[str, Group] = {}
        self.topics: dict[str, str] = {}
        self.retention_ms: int | None = None
        self.session_ms: int | None = None
        self.records = 0
        self._selects = selects
        self._ignored: set[bytes] = set()
        self._rebalances: list[Rebalance] = []
        self._moved: list[Moved] = []
        self._ended: dict[str, _Ended] = {}
        self._gone: list[Event] = []
        self._touched: list[Pair] = []
        self._errors = ErrorTally()
        #: Groups with a KIP-848 record read in silence: the partition, and when their newest epoch began.
        self._silent: dict[str, tuple[int, int]] = {}

    def feed(self, records: Iterable[Record]) -> None:
        """Take in records, in the order of their offsets in each partition. What cannot be read is counted."""
        pairs, positions, ignored = self.pairs, self.positions, self._ignored
        priming = self.priming
        for record in records:
            positions[record.partition()] = record.offset() + 1
            self.records += 1
            key = record.key()
            try:
                pair = pairs.get(key)  # type: ignore[arg-type]  # a record without a key finds nothing
                if pair is None:
                    if key not in ignored:
                        self._unusual(record, key)
                    continue
                value = record.value()
                if value is None:
                    self._forget(pair, key, record)  # type: ignore[arg-type]  # it has found a pair
                    continue
                offset, at_ms = commit_of(value)
            except GarbageError as error:
                self._errors.note("offsets_topic_garbage", f"{_where(record)}: {error}")
                continue
            except UnknownVersionError as error:
                self._errors.note("offsets_topic_unknown_version", f"{_where(record)}: {error}")
                continue
            if record.partition() not in priming:
                if offset < pair.offset:
                    self._move(Moved(pair.group, pair.topic, pair.partition, at_ms, pair.offset, offset))
                if not pair.commits:
                    self._touched.append(pair)
                pair.commits += 1
            pair.committed(offset, at_ms)

    def primed(self, partition: int) -> None:
        """Everything that was there at the start has been read: from now on things happen."""
        self.priming.discard(partition)
        for name in [name for name, (where, _) in self._silent.items() if where == partition]:
            _, at_ms = self._silent.pop(name)
            group = self.groups.get(name)
            if group is not None and group.consumer is not None:
                group.consumer.settle(at_ms)

    def take(self) -> Taken:
        """What happened since the last time this was asked. To be asked when no batch is half read."""
        events = [rebalance_event(happened, self.topics) for happened in self._rebalances]
        moved = [m for m in self._moved if m.after is not None or not self._explained(m)]
        events += commit_events(moved)
        events += [self._group_gone(name, ended) for name, ended in self._ended.items()]
        events += self._gone
        touched = [pair for pair in self._touched if pair.commits]
        taken = Taken(sorted(events, key=lambda event: event.at), touched, self._errors)
        self._rebalances, self._moved, self._gone, self._touched = [], [], [], []
        self._ended, self._errors = {}, ErrorTally()
        return taken

    def _unusual(self, record: Record, key: bytes | None) -> None:
        """Everything but another commit on a known pair."""
        if key is None:
            raise GarbageError("no key")
        about = key_of(key)
        if about is None or not self._selects(about.group):
            self._ignored.add(key)
        elif isinstance(about, CommitKey):
            value = record.value()
            if value is not None:  # else the tombstone of what was never seen
                self._first_commit(about, key, value, quiet=record.partition() in self.priming)
        else:
            at_ms, quiet = max(0, record.timestamp()[1]), record.partition() in self.priming
            if quiet and about.type is Type.GROUP:
                self._silent[about.group] = (record.partition(), at_ms)
            self._of_group(about, record.value(), at_ms, quiet=quiet)

    def _first_commit(self, about: CommitKey, key: bytes, value: bytes, *, quiet: bool) -> None:
        commit = full_commit_of(value)
        if commit.topic_id is not None:
            self.topics[commit.topic_id] = about.topic
        pair = Pair(about.group, about.topic, about.partition, commit.offset, commit.at_ms)
        self.add(key, pair)
        if not quiet:
            pair.commits = 1
            self._touched.append(pair)

    def add(self, key: bytes, pair: Pair) -> None:
        """A pair that was not known."""
        self.pairs[key] = pair
        self.groups.setdefault(pair.group, Group()).pairs[pair.topic, pair.partition] = pair

    def _forget(self, pair: Pair, key: bytes, record: Record) -> None:
        """The tombstone of a pair's commits."""
        del self.pairs[key]
        pair.commits = 0
        group = self.groups[pair.group]
        group.pairs.pop((pair.topic, pair.partition), None)
        at_ms = max(0, record.timestamp()[1])
        if record.partition() not in self.priming:
            why = self._why(pair, group, at_ms)
            self._move(Moved(pair.group, pair.topic, pair.partition, at_ms, pair.offset, None, why))
        if not group.pairs and group.classic is None and group.consumer is None:
            del self.groups[pair.group]
            if record.partition() not in self.priming and pair.group not in self._ended:
                self._ended[pair.group] = _Ended(at_ms, group, GroupState.EMPTY)

    def _move(self, moved: Moved) -> None:
        if len(self._moved) < _MOST_HELD:
            self._moved.append(moved)
        else:
            self._errors.note(*_DROPPED)

    def _why(self, pair: Pair, group: Group, at_ms: int) -> str | None:
        """Offsets expire when the retention is over and no member subscribes to the topic; else they were deleted."""
        if self.retention_ms is None:
            return None
        if at_ms - pair.at_ms < self.retention_ms:
            return DELETED
        return DELETED if any(pair.topic in member.topics for member in group.members.values()) else EXPIRED

    def _explained(self, moved: Moved) -> bool:
        """Offsets that are gone because their whole group is."""
        ended = self._ended.get(moved.group)
        return ended is not None and (abs(ended.at_ms - moved.at_ms) <= _TOGETHER_MS or not ended.group.pairs)

    def _group_gone(self, name: str, ended: _Ended) -> Event:
        lost = [m for m in self._moved if m.group == name and m.after is None]
        causes = sorted({m.why for m in lost if m.why is not None})
        return Event(
            EventKind.GROUP_GONE,
            moment(ended.at_ms),
            name,
            before=ended.state,
            cause=" and ".join(causes) or None,
            source=EventSource.OFFSETS_TOPIC,
        )

    def _of_group(self, about: GroupKey, value: bytes | None, at_ms: int, *, quiet: bool) -> None:
        if about.type is Type.CLASSIC_GROUP:
            happened = self._of_classic(about.group, value, at_ms, quiet=quiet)
        else:
            happened = self._of_consumer(about, value, at_ms, quiet=quiet)
        for rebalance in () if quiet else happened:
            if len(self._rebalances) < _MOST_HELD:
                self._rebalances.append(rebalance)
            else:
                self._errors.note(*_DROPPED)

    def _of_classic(self, name: str, value: bytes | None, at_ms: int, *, quiet: bool) -> list[Rebalance]:
        if value is None:
            group = self.groups.get(name)
            if group is not None and group.classic is not None:
                self._end(name, group, at_ms, quiet=quiet)
                group.classic = None
            return []
        record = classic_group_of(value)
        converted = self._converted(name, at_ms)
        group = self.groups.setdefault(name, Group())
        before = group.classic
        if converted is not None and converted.consumer is not None:
            was = converted.consumer
            members = _renamed(was.told, self.topics)
            before = ClassicView(was.told_epoch or was.epoch, was.agreed_ms, members, {})
        now = classic.view_of(record, at_ms, before)
        happened = classic.rebalance(name, before, now, group.pairs.get)
        group.classic, group.consumer = now, None
        return [] if happened is None else [happened]

    def _of_consumer(self, about: GroupKey, value: bytes | None, at_ms: int, *, quiet: bool) -> list[Rebalance]:
        name = about.group
        if value is None:
            group = self.groups.get(name)
            if group is not None and group.consumer is not None:
                self._tombstone(about, name, group, group.consumer, at_ms, quiet=quiet)
            return []
        if about.type is Type.PARTITIONS:
            self.topics.update(topics_of(value))
            return []
        read = _READ[about.type](value)  # before anything is changed: it may be garbage
        converted = self._converted(name, at_ms)
        group = self.groups.setdefault(name, Group())
        consumer = group.consumer
        if consumer is None:
            consumer = group.consumer = ConsumerGroup()
            was = group.classic or (converted.classic if converted is not None else None)
            if was is not None:
                ids = {topic: topic_id for topic_id, topic in self.topics.items()}
                consumer.told, consumer.told_epoch = _renamed(was.members, ids), was.generation
                consumer.agreed_ms = was.at_ms
            group.classic = None
        consumer.session_ms = self.session_ms

        def commits(pair: tuple[str, int]) -> Pair | None:
            return group.pairs.get((self.topics.get(pair[0], pair[0]), pair[1]))

        member = about.member or ""
        found: Rebalance | None = None
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
        self, about: GroupKey, name: str, group: Group, consumer: ConsumerGroup, at_ms: int, *, quiet: bool
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

    def _end(self, name: str, group: Group, at_ms: int, *, quiet: bool) -> None:
        """The tombstone of a group; :meth:`_converted` may take it back."""
        state = GroupState.STABLE if group.members else GroupState.EMPTY
        if not quiet:
            self._ended[name] = _Ended(at_ms, replace(group), state)
        if not group.pairs:
            del self.groups[name]

    def _converted(self, name: str, at_ms: int) -> Group | None:
        """What the group was in the other protocol, if its tombstone belongs to this conversion."""
        ended = self._ended.get(name)
        if ended is None:
            return None
        if at_ms - ended.at_ms > _TOGETHER_MS:  # it is gone, and another of the same name has come
            self._gone.append(self._group_gone(name, self._ended.pop(name)))
            return None
        return self._ended.pop(name).group


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


def _where(record: Record) -> str:
    return f"partition {record.partition()}, offset {record.offset()}"
