"""Records of ``__consumer_offsets``: keys and values of every type and version that brokers write.

Each key begins with the record's type, each value with its version, both int16. Types, versions and layouts are those
of ``group-coordinator/src/main/resources/common/message/*.json`` in Kafka's sources, up to 4.3. Types 0 and 1 are
commits, 2 is a classic group, 3 to 8 and 16 are a KIP-848 group; share groups (10 to 15) and streams groups (17 to
23) are known and ignored. From 4.1 on brokers write no partition metadata (4) any more.
"""

import struct
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache

from lagwise.domain.vocabulary import OFFSETS_TOPIC as OFFSETS_TOPIC
from lagwise_collectors.offsets_topic.wire_types import ByteReader, MalformedRecordError


class UnknownVersionError(ValueError):
    """A record of a type, or in a version, that came after this was written."""


class RecordType(IntEnum):
    """Types of records that are read."""

    LEGACY_COMMIT = 0
    COMMIT = 1
    CLASSIC_GROUP = 2
    GROUP = 3
    PARTITIONS = 4
    MEMBER = 5
    TARGET = 6
    TARGET_MEMBER = 7
    CURRENT = 8


#: Known and not used here: share groups, regular expressions of KIP-848 subscriptions, streams groups.
IGNORED_TYPES = frozenset(range(10, 24))

#: From one generation to the next, most subscriptions and assignments stay the same.
_REMEMBERED = 16_384

_WITH_MEMBER = (RecordType.MEMBER, RecordType.TARGET_MEMBER, RecordType.CURRENT)
_TYPES = frozenset(RecordType)

OwnedPartitions = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class CommitKey:
    """The key of a commit."""

    group: str
    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class GroupKey:
    """The key of a group's record: the group and, for types 5, 7 and 8, the member."""

    type: RecordType
    group: str
    member: str | None = None


@dataclass(frozen=True, slots=True)
class CommitRecord:
    """A committed offset and when, in ms of the epoch. ``topic_id`` is None where the broker does not write it."""

    offset: int
    at_ms: int
    topic_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassicMember:
    """A member of a classic group. ``topics`` and ``owned`` are empty where it is no consumer (Kafka Connect)."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    poll_ms: int | None
    session_ms: int
    topics: tuple[str, ...]
    owned: OwnedPartitions


@dataclass(frozen=True, slots=True)
class ClassicGroup:
    """A classic group as of one generation."""

    protocol_type: str
    generation: int
    members: tuple[ClassicMember, ...]


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A member of a KIP-848 group. ``topics`` has a regular expression as one more entry, after a ``~``."""

    instance_id: str | None
    client_id: str
    host: str
    topics: tuple[str, ...]
    poll_ms: int | None


@dataclass(frozen=True, slots=True)
class CurrentAssignment:
    """What a member of a KIP-848 group owns now. Topics are ids."""

    epoch: int
    #: The member is in the state Stable.
    settled: bool
    owned: OwnedPartitions


def key_of(key: bytes) -> CommitKey | GroupKey | None:
    """The parsed key of a record; None for the types that are ignored.

    Raises UnknownVersionError for other types, MalformedRecordError for malformed keys.
    """
    data = ByteReader(key)
    number = data.int16()
    if number not in _TYPES:
        if number in IGNORED_TYPES:
            return None
        raise UnknownVersionError(f"record type {number}")
    kind = RecordType(number)
    group = data.string()
    if kind <= RecordType.COMMIT:
        return CommitKey(group, data.string(), data.int32())
    return GroupKey(kind, group, data.string() if kind in _WITH_MEMBER else None)


_HEAD = struct.Struct(">hqi")  # version, offset, leader epoch
_TIME = struct.Struct(">q")
_OLD_HEAD = struct.Struct(">hqh")  # version, offset, length of the metadata
_V3_HEAD = struct.Struct(">hqih")
_MAX_METADATA = 0x7F


def commit_of(value: bytes) -> tuple[int, int]:
    """Committed offset and commit time (ms) of a commit's value, versions 0 to 4: what nearly all records are about.

    Raises UnknownVersionError and MalformedRecordError.
    """
    try:
        version, offset, _ = _HEAD.unpack_from(value)
        if version == 4:
            size = value[14]  # of the metadata, plus 1
            if 0 < size <= _MAX_METADATA:
                return offset, _TIME.unpack_from(value, 14 + size)[0]
            commit = full_commit_of(value)
            return commit.offset, commit.at_ms
        if version == 3:
            size = _V3_HEAD.unpack_from(value)[3]
            at = _V3_HEAD.size + size
        elif 0 <= version <= 2:
            size = _OLD_HEAD.unpack_from(value)[2]
            at = _OLD_HEAD.size + size
        else:
            raise UnknownVersionError(f"commit, version {version}")
        if size < 0:
            raise MalformedRecordError(f"metadata of {size} bytes")
        return offset, _TIME.unpack_from(value, at)[0]
    except (struct.error, IndexError) as error:
        raise MalformedRecordError("a truncated commit") from error


def full_commit_of(value: bytes) -> CommitRecord:
    """The same with the topic's id, where the value has one (a tagged field of version 4)."""
    data = ByteReader(value)
    version = data.int16()
    if version != 4:
        return CommitRecord(*commit_of(value))
    data.flexible = True
    offset, _leader_epoch = data.int64(), data.int32()
    data.string()  # metadata
    at_ms = data.int64()
    tags = data.tags()
    return CommitRecord(offset, at_ms, ByteReader(tags[0]).uuid() if 0 in tags else None)


def classic_group_of(value: bytes) -> ClassicGroup:
    """A classic group, versions 0 to 4. Raises UnknownVersionError and MalformedRecordError."""
    data = ByteReader(value)
    version = data.int16()
    if not 0 <= version <= 4:
        raise UnknownVersionError(f"classic group, version {version}")
    data.flexible = version >= 4
    protocol_type, generation = data.string(), data.int32()
    data.nullable_string()  # the assignor
    data.nullable_string()  # the leader
    if version >= 2:
        data.int64()  # since when it is in its state: here always the last phase of the rebalance

    def member() -> ClassicMember:
        member_id = data.string()
        instance_id = data.nullable_string() if version >= 3 else None
        client_id, host = data.string(), data.string()
        poll_ms = data.int32() if version >= 1 else None
        session_ms = data.int32()
        subscription, assignment = data.blob(), data.blob()
        if data.flexible:
            data.tags()
        consumer = protocol_type == "consumer"
        topics = _subscribed(subscription) if consumer else ()
        owned = _owned(assignment) if consumer else ()
        return ClassicMember(
            member_id=member_id,
            instance_id=instance_id,
            client_id=client_id,
            host=host,
            poll_ms=poll_ms,
            session_ms=session_ms,
            topics=topics,
            owned=owned,
        )

    return ClassicGroup(protocol_type, generation, tuple(data.array(member)))


@lru_cache(_REMEMBERED)
def _subscribed(subscription: bytes) -> tuple[str, ...]:
    """Topics of a ConsumerProtocolSubscription; later versions only add fields behind them."""
    if not subscription:
        return ()
    data = ByteReader(subscription)
    data.int16()
    return tuple(sorted(data.array(data.string)))


@lru_cache(_REMEMBERED)
def _owned(assignment: bytes) -> OwnedPartitions:
    """Partitions of a ConsumerProtocolAssignment."""
    if not assignment:  # a member that took no part in the last assignment
        return ()
    data = ByteReader(assignment)
    data.int16()
    return _flat(data.array(lambda: (data.string(), data.int32s())))


def epoch_of(value: bytes) -> int:
    """The epoch of a KIP-848 group (type 3), or of its target assignment (type 6)."""
    data = _version_0(value)
    epoch = data.int32()
    data.tags()
    return epoch


def topics_of(value: bytes) -> dict[str, str]:
    """Topic names by id, out of the partition metadata (type 4) of Kafka before 4.1."""
    data = _version_0(value)

    def topic() -> tuple[str, str]:
        pair = data.uuid(), data.string()
        data.int32()
        data.array(lambda: (data.int32(), data.array(data.string), data.tags()))
        data.tags()
        return pair

    return dict(data.array(topic))


def member_of(value: bytes) -> GroupMember:
    """A member of a KIP-848 group (type 5)."""
    data = _version_0(value)
    instance_id = data.nullable_string()
    data.nullable_string()  # rack
    client_id, host = data.string(), data.string()
    topics = data.array(data.string)
    pattern = data.nullable_string()
    poll_ms = data.int32()
    data.nullable_string()  # assignor
    data.tags()
    subscribed = tuple(sorted(topics)) + ((f"~{pattern}",) if pattern else ())
    return GroupMember(instance_id, client_id, host, subscribed, poll_ms if poll_ms >= 0 else None)


def target_of(value: bytes) -> OwnedPartitions:
    """The target assignment of a member of a KIP-848 group (type 7)."""
    data = _version_0(value)
    owned = _by_id(data)
    data.tags()
    return owned


#: ``MemberState.STABLE`` of Kafka's coordinator.
_STABLE = 0


def current_of(value: bytes) -> CurrentAssignment:
    """What a member of a KIP-848 group owns (type 8), including what it must still revoke."""
    data = _version_0(value)
    epoch, _previous_epoch, state = data.int32(), data.int32(), data.int8()
    owned, revoking = _by_id(data), _by_id(data)
    data.tags()
    return CurrentAssignment(epoch, state == _STABLE, tuple(sorted({*owned, *revoking})))


def _version_0(value: bytes) -> ByteReader:
    data = ByteReader(value, flexible=True)
    version = data.int16()
    if version != 0:
        raise UnknownVersionError(f"KIP-848 group, version {version}")
    return data


def _by_id(data: ByteReader) -> OwnedPartitions:
    def topic() -> tuple[str, tuple[int, ...]]:
        found = data.uuid(), data.int32s()
        data.tags()
        return found

    return _flat(data.array(topic))


def _flat(topics: list[tuple[str, tuple[int, ...]]]) -> OwnedPartitions:
    return tuple(sorted((topic, partition) for topic, partitions in topics for partition in partitions))
