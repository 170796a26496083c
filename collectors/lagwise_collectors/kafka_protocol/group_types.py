"""Groups that librdkafka does not describe, each by the request for its type, and what a share group has read."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

from lagwise.domain.vocabulary import CONNECT, OTHER_PROTOCOL, SHARE, STREAMS, GroupState
from lagwise_collectors.kafka.requests.commit_columns import NONE, CommitBlock, CommitColumns
from lagwise_collectors.kafka.requests.errors import KafkaTrouble
from lagwise_collectors.kafka.requests.group_members import KafkaGroup, KafkaMember, TopicPartitions, owners
from lagwise_collectors.kafka_protocol.client import ProtocolClient
from lagwise_collectors.kafka_protocol.connection import trouble_of_code
from lagwise_collectors.kafka_protocol.group_messages import (
    DESCRIBE_GROUPS,
    DESCRIBE_SHARE_GROUP_OFFSETS,
    SHARE_GROUP_DESCRIBE,
    STREAMS_GROUP_DESCRIBE,
)
from lagwise_collectors.kafka_protocol.schema import Api, Row
from lagwise_collectors.protocol import ErrorTally

#: Groups in a request: thousands of members each would still fit into an answer.
GROUPS_PER_REQUEST = 200
#: The offset of a share-partition from which nobody has read yet.
_UNINITIALIZED = -1


@dataclass(frozen=True, slots=True)
class _Type:
    api: Api
    #: Name of the field with the groups' names.
    names: str
    #: Name of the field with the assignor; None: there is none.
    assignor: str | None
    #: What each member owns, of a group and the partition counts of its topics.
    owned: Callable[[Row, Row, Mapping[str, int]], TopicPartitions]


def _share_owned(_group: Row, member: Row, _counts: Mapping[str, int]) -> TopicPartitions:
    return {one["topic_name"]: sorted(one["partitions"]) for one in member["assignment"]["topic_partitions"]}


def _streams_owned(group: Row, member: Row, counts: Mapping[str, int]) -> TopicPartitions:
    """A task is a partition of each source topic of its subtopology, as far as that topic has so many."""
    sources = {one["subtopology_id"]: _sources(one) for one in _subtopologies(group)}
    owned: TopicPartitions = {}
    for task in member["assignment"]["active_tasks"]:
        for topic in sources.get(task["subtopology_id"], ()):
            there = [number for number in task["partitions"] if number < counts.get(topic, number + 1)]
            owned.setdefault(topic, []).extend(there)
    return {topic: sorted(set(partitions)) for topic, partitions in owned.items()}


def _nothing_owned(_group: Row, _member: Row, _counts: Mapping[str, int]) -> TopicPartitions:
    return {}


_TYPES = {
    SHARE: _Type(SHARE_GROUP_DESCRIBE, "group_ids", "assignor_name", _share_owned),
    STREAMS: _Type(STREAMS_GROUP_DESCRIBE, "group_ids", None, _streams_owned),
    CONNECT: _Type(DESCRIBE_GROUPS, "groups", "protocol_data", _nothing_owned),
    OTHER_PROTOCOL: _Type(DESCRIBE_GROUPS, "groups", "protocol_data", _nothing_owned),
}


def describe_by_type(client: ProtocolClient, types: Mapping[str, str | None], errors: ErrorTally) -> list[KafkaGroup]:
    """Every group of that name, described or with its error; one of a type that nobody here knows has an error too.

    A group that was deleted since it was listed is left out.
    """
    groups: list[KafkaGroup] = []
    deadline = client.deadline()  # of all of it: a broker that hangs costs the timeout once
    for kind, names in _names_by_type(types).items():
        if kind in _TYPES:
            groups += _described(client, kind, names, errors, deadline)
        else:
            groups += unreadable(names, kind, KafkaTrouble("not_supported", f"groups of type {kind}"), errors)
    return groups


def unreadable(names: Iterable[str], kind: str | None, trouble: KafkaTrouble, errors: ErrorTally) -> list[KafkaGroup]:
    """These groups, of which only the names and the type are known."""
    groups = [KafkaGroup(name, type=kind, error=trouble.kind) for name in names]
    for group in groups:
        errors.note(trouble.kind, f"describing group {group.name}: {trouble}")
    return groups


def add_share_offsets(
    client: ProtocolClient,
    groups: Sequence[KafkaGroup],
    commits: CommitColumns,
    errors: ErrorTally,
    clock: Callable[[], datetime],
) -> None:
    """Append what share groups have read, as their commits: the start offset of each share-partition (KIP-932).

    Everything before it is done with. Some records after it may be as well; the broker does not say which. A group that
    cannot be read gets an ``error``.
    """
    by_name = {group.name: group for group in groups}
    answers = client.ask_coordinators(
        DESCRIBE_SHARE_GROUP_OFFSETS,
        list(by_name),
        lambda names: {"groups": [{"group_id": name, "topics": None} for name in names]},
        lambda answer: answer["groups"],
        client.deadline(),
    )
    for name, (_, answer) in answers.items():
        if isinstance(answer, KafkaTrouble):
            if answer.kind != "group_gone":
                by_name[name].error = answer.kind
                errors.note(answer.kind, f"start offsets of group {name}: {answer}")
            continue
        commits.read_at = max(commits.read_at or clock(), clock())
        commits.add_group(name, owners(by_name[name].members), _share_block(name, answer["topics"], errors))


def _share_block(group: str, topics: Sequence[Row], errors: ErrorTally) -> CommitBlock:
    partitions, committed, epochs = [], [], []
    for topic in topics:
        for one in topic["partitions"]:
            is_read = not one["error_code"] and one["start_offset"] != _UNINITIALIZED
            if one["error_code"]:
                what = f"start offset of group {group} on {topic['topic_name']}[{one['partition_index']}]"
                trouble = trouble_of_code(one["error_code"], one["error_message"], what)
                errors.note(trouble.kind, str(trouble))
            partitions.append(one["partition_index"])
            committed.append(one["start_offset"] if is_read else NONE)
            epochs.append(one["leader_epoch"] if is_read else NONE)
    return CommitBlock(
        group,
        topics=[topic["topic_name"] for topic in topics],
        rows=[len(topic["partitions"]) for topic in topics],
        partition=np.array(partitions, np.int32),
        committed=np.array(committed, np.int64),
        leader_epoch=np.array(epochs, np.int32),
    )


def _described(
    client: ProtocolClient, kind: str, names: list[str], errors: ErrorTally, deadline: float
) -> list[KafkaGroup]:
    type_ = _TYPES[kind]
    answers = client.ask_coordinators(
        type_.api,
        names,
        lambda some: {type_.names: some, "include_authorized_operations": False},
        lambda answer: answer["groups"],
        deadline,
        most=GROUPS_PER_REQUEST,
    )
    described: dict[str, tuple[int, Row]] = {}
    groups: list[KafkaGroup] = []
    for name, (node, answer) in answers.items():
        if not isinstance(answer, KafkaTrouble):
            described[name] = node, answer
        elif answer.kind != "group_gone":
            groups += unreadable([name], kind, answer, errors)
    counts = _partition_counts(client, [row for _, row in described.values()], errors, deadline)
    for name, (node, row) in described.items():
        group = KafkaGroup(
            name,
            state=row["group_state"] or GroupState.UNKNOWN,
            type=kind,
            assignor=(row[type_.assignor] or None) if type_.assignor else None,
            coordinator=node,
            members=[member_of(one, type_.owned(row, one, counts)) for one in row["members"]],
        )
        if group.state != GroupState.DEAD:
            groups.append(group)
    return groups


def member_of(row: Row, owned: TopicPartitions) -> KafkaMember:
    """A member as its group's description has it, and the partitions that are its own."""
    return KafkaMember(
        member_id=row["member_id"],
        client_id=row["client_id"],
        host=row["client_host"].removeprefix("/"),
        static_instance_id=row.get("instance_id") or row.get("group_instance_id"),
        assignment={topic: partitions for topic, partitions in owned.items() if partitions},
    )


def _partition_counts(
    client: ProtocolClient, groups: Sequence[Row], errors: ErrorTally, deadline: float
) -> dict[str, int]:
    """Partition counts of topics that share a subtopology: the one with fewer partitions has no part in each task."""
    parts = [one for group in groups for one in _subtopologies(group) if len(_sources(one)) > 1]
    topics = sorted({topic for part in parts for topic in _sources(part)})
    if not topics:
        return {}
    try:
        found = client.read_topics(topics, deadline)
    except KafkaTrouble as trouble:
        errors.note(trouble.kind, f"partitions of the topics of streams groups: {trouble}")
        return dict.fromkeys(topics, 0)
    described = zip(found["name"], found["rows"], found["error_code"], strict=True)
    return {name: partitions for name, partitions, error in described if not error}


def _subtopologies(group: Row) -> list[Row]:
    topology: Row | None = group.get("topology")
    return (topology or {}).get("subtopologies") or []


def _sources(subtopology: Row) -> list[str]:
    return [*subtopology["source_topics"], *(one["name"] for one in subtopology["repartition_source_topics"])]


def _names_by_type(types: Mapping[str, Any]) -> dict[str, list[str]]:
    names: dict[str, list[str]] = {}
    for name, kind in types.items():
        names.setdefault(str(kind), []).append(name)
    return names
