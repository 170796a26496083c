"""ListGroups and DescribeGroups / ConsumerGroupDescribe: the groups, their state and their members."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from confluent_kafka import ConsumerGroupState, ConsumerGroupType
from confluent_kafka.admin import ConsumerGroupDescription, MemberDescription

from lagwise.domain.vocabulary import SIMPLE, GroupState
from lagwise_collectors.kafka.requests.client import KafkaClient
from lagwise_collectors.kafka.requests.errors import KafkaTrouble, kind_of, trouble_of
from lagwise_collectors.protocol import ErrorTally

TopicPartitions = dict[str, list[int]]

_STATES: dict[Any, GroupState] = {
    ConsumerGroupState.STABLE: GroupState.STABLE,
    ConsumerGroupState.EMPTY: GroupState.EMPTY,
    ConsumerGroupState.DEAD: GroupState.DEAD,
    ConsumerGroupState.PREPARING_REBALANCING: GroupState.PREPARING_REBALANCE,
    ConsumerGroupState.COMPLETING_REBALANCING: GroupState.COMPLETING_REBALANCE,
}


@dataclass(frozen=True, slots=True)
class KafkaMember:
    """One member; ``assignment`` is partitions by topic."""

    member_id: str
    client_id: str
    host: str | None
    static_instance_id: str | None
    assignment: TopicPartitions


@dataclass(slots=True)
class KafkaGroup:
    """One group as described; with an ``error`` only the name is known."""

    name: str
    state: str | None = None
    type: str | None = None
    assignor: str | None = None
    coordinator: int | None = None
    members: list[KafkaMember] = field(default_factory=list)
    error: str | None = None
    #: The source of its external offsets (:mod:`lagwise_collectors.external_offsets`); None: they are Kafka's own.
    source: str | None = None
    #: When its job completed its last checkpoint, or started.
    checkpointed_at: datetime | None = None
    checkpoint_interval_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class GroupListing:
    """The watched groups."""

    #: Types by name.
    types: Mapping[str, str | None]
    #: All brokers have answered.
    complete: bool
    #: How many groups of each type there are, watched or not.
    seen: Mapping[str | None, int] = field(default_factory=dict)


def list_groups(client: KafkaClient, selects: Callable[[str], bool], errors: ErrorTally) -> GroupListing:
    """The watched groups that librdkafka lists: consumer groups, and those that are only a name for commits.

    Raises KafkaTrouble if no broker answered; some that did not are counted.
    """
    found = client.wait(client.admin.list_consumer_groups(request_timeout=client.timeout_seconds))
    failures = [trouble_of(e) if isinstance(e, Exception) else KafkaTrouble(kind_of(e), e.str()) for e in found.errors]
    every = {
        listed.group_id: SIMPLE if listed.is_simple_consumer_group else _type(getattr(listed, "type", None))
        for listed in found.valid
    }
    types = {name: kind for name, kind in every.items() if selects(name)}
    if failures and not found.valid:
        raise client.explained(failures[0])
    for failure in failures:
        errors.note(failure.kind, f"listing groups: {client.clean(str(failure))}")
    return GroupListing(types, complete=not failures, seen=Counter(every.values()))


def describe_groups(client: KafkaClient, types: Mapping[str, str | None], errors: ErrorTally) -> list[KafkaGroup]:
    """Every group of that name, described or with its error.

    A group that was deleted since it was listed is left out. One whose coordinator cannot be asked costs only itself.
    """
    if not types:
        return []
    futures: Mapping[str, Future[ConsumerGroupDescription]] = client.admin.describe_consumer_groups(
        list(types), request_timeout=client.timeout_seconds
    )
    groups = []
    for name, future in futures.items():
        try:
            group = _described(client.wait(future), types[name])
        except KafkaTrouble as trouble:
            if trouble.kind == "group_gone":
                continue
            errors.note(trouble.kind, f"describing group {name}: {trouble}")
            group = KafkaGroup(name, type=types[name], error=trouble.kind)
        if group.state is not GroupState.DEAD:
            groups.append(group)
    return groups


def _described(description: ConsumerGroupDescription, listed_type: str | None) -> KafkaGroup:
    members = [_member(m) for m in description.members]
    described_type = _type(getattr(description, "type", None))
    return KafkaGroup(
        name=description.group_id,
        state=_state(description, described_type or listed_type),
        # Only the listing shows whether a group has no group protocol (commits by assign()) or the classic one.
        type=SIMPLE if listed_type == SIMPLE and not members else described_type or listed_type,
        assignor=description.partition_assignor or None,
        coordinator=description.coordinator.id if description.coordinator is not None else None,
        members=members,
    )


def _state(description: ConsumerGroupDescription, kind: str | None) -> GroupState:
    """The state in Kafka's word.

    librdkafka 2.16 does not know KIP-848's ``Assigning`` and ``Reconciling`` and calls both unknown. KIP-848 defines
    them: reconciling is when some member does not own its target yet, otherwise the target is still being assigned.
    """
    state = _STATES.get(description.state, GroupState.UNKNOWN)
    if state is GroupState.UNKNOWN and kind == "consumer" and description.members:
        behind = any(_partitions(m.assignment) != _partitions(m.target_assignment) for m in description.members)
        return GroupState.RECONCILING if behind else GroupState.ASSIGNING
    return state


def _member(member: MemberDescription) -> KafkaMember:
    return KafkaMember(
        member_id=member.member_id,
        client_id=member.client_id,
        host=member.host.removeprefix("/"),
        static_instance_id=member.group_instance_id or None,
        assignment=_partitions(member.assignment),
    )


def _partitions(assignment: Any) -> TopicPartitions:
    by_topic: TopicPartitions = {}
    for tp in assignment.topic_partitions if assignment is not None else ():
        by_topic.setdefault(tp.topic, []).append(tp.partition)
    for partitions in by_topic.values():
        partitions.sort()
    return by_topic


def _type(kind: ConsumerGroupType | None) -> str | None:
    return {ConsumerGroupType.CLASSIC: "classic", ConsumerGroupType.CONSUMER: "consumer"}.get(kind) if kind else None


def owners(members: Iterable[KafkaMember]) -> dict[str, dict[int, str]]:
    """Member id by topic and partition."""
    owned: dict[str, dict[int, str]] = {}
    for member in members:
        for topic, partitions in member.assignment.items():
            owned.setdefault(topic, {}).update(dict.fromkeys(partitions, member.member_id))
    return owned


def topics_of(groups: Sequence[KafkaGroup]) -> set[str]:
    """Topics that members of these groups own."""
    return {topic for group in groups for member in group.members for topic in member.assignment}
