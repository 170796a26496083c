"""DescribeGroups and ConsumerGroupDescribe: groups of the classic protocol and of KIP-848's, and names that only
commit."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from lagwise.domain.vocabulary import SIMPLE, GroupState
from lagwise_collectors.kafka.requests.errors import KafkaTrouble
from lagwise_collectors.kafka.requests.group_members import KafkaGroup, TopicPartitions
from lagwise_collectors.kafka_protocol.client import REFUSALS, Answer, ProtocolClient
from lagwise_collectors.kafka_protocol.group_messages import CONSUMER_GROUP_DESCRIBE, DESCRIBE_GROUPS
from lagwise_collectors.kafka_protocol.group_types import GROUPS_PER_REQUEST, member_of, unreadable
from lagwise_collectors.kafka_protocol.schema import INT16, INT32, STRING, Api, ArrayOf, Field, Row, rows_of, struct_of
from lagwise_collectors.kafka_protocol.wire import Reader
from lagwise_collectors.protocol import ErrorTally

#: ``ConsumerProtocolAssignment.json`` in Kafka's sources, behind its version. What the assignor adds after it is not
#: read, nor what a later version may.
_ASSIGNMENT = struct_of(
    Field("version", INT16),
    Field("assigned_partitions", rows_of(Field("topic", STRING), Field("partitions", ArrayOf(INT32)))),
)


@dataclass(frozen=True, slots=True)
class _Protocol:
    """How groups of one protocol are described."""

    type: str
    api: Api
    #: Names of the fields with the groups' names and with the assignor.
    names: str
    assignor: str
    #: What a member owns. Raises MalformedAnswer.
    owned: Callable[[Row], TopicPartitions]

    def request(self, groups: list[str]) -> Row:
        return {self.names: groups, "include_authorized_operations": False}


def _classic_owned(member: Row) -> TopicPartitions:
    if not member["member_assignment"]:  # it took no part in the last assignment
        return {}
    found = _ASSIGNMENT.read(Reader(member["member_assignment"]), 0, is_flexible=False)
    assert found is not None
    return _by_topic((one["topic"], one["partitions"]) for one in found["assigned_partitions"])


def _consumer_owned(member: Row) -> TopicPartitions:
    return _by_topic((one["topic_name"], one["partitions"]) for one in member["assignment"]["topic_partitions"])


_CLASSIC = _Protocol("classic", DESCRIBE_GROUPS, "groups", "protocol_data", _classic_owned)
_CONSUMER = _Protocol("consumer", CONSUMER_GROUP_DESCRIBE, "group_ids", "assignor_name", _consumer_owned)


def describe_consumer_groups(
    client: ProtocolClient, types: Mapping[str, str | None], errors: ErrorTally
) -> list[KafkaGroup]:
    """Every group of that name, described or with its error. A group that was deleted since it was listed is left out.

    Raises KafkaTrouble, before anything is noted, where the brokers do not go together with our requests.
    """
    groups: list[KafkaGroup] = []
    failed: dict[str, KafkaTrouble] = {}
    for name, (protocol, node, answer) in _answers(client, types).items():
        if isinstance(answer, KafkaTrouble):
            if answer.kind in REFUSALS:
                raise answer
            if answer.kind != "group_gone":
                failed[name] = answer
            continue
        try:
            group = _described(name, protocol, node, answer, types[name])
        except KafkaTrouble as trouble:  # an assignment that makes no sense: librdkafka would make no more of it
            failed[name] = trouble
            continue
        if group.state != GroupState.DEAD:
            groups.append(group)
    return groups + [one for name, why in failed.items() for one in unreadable([name], types[name], why, errors)]


def _answers(client: ProtocolClient, types: Mapping[str, str | None]) -> dict[str, tuple[_Protocol, int, Answer]]:
    """Of each group: how it was described, by which broker, and what that said."""
    deadline = client.deadline()
    asked = {name: _CONSUMER if kind == _CONSUMER.type else _CLASSIC for name, kind in types.items()}
    found: dict[str, tuple[_Protocol, int, Answer]] = {}
    for _ in range(2):
        for protocol in (_CLASSIC, _CONSUMER):
            names = [name for name, its in asked.items() if its is protocol]
            answers = client.ask_coordinators(
                protocol.api,
                names,
                protocol.request,
                lambda answer: answer["groups"],
                deadline,
                most=GROUPS_PER_REQUEST,
            )
            found |= {name: (protocol, node, answer) for name, (node, answer) in answers.items()}
        # Gone for the one request, a group may have changed to the protocol of the other one since it was listed.
        asked = {
            name: other
            for name in asked
            if _is_gone(found[name][2])
            and client.speaks((other := _CONSUMER if found[name][0] is _CLASSIC else _CLASSIC).api, deadline)
        }
    return found


def _is_gone(answer: Answer) -> bool:
    if isinstance(answer, KafkaTrouble):
        return answer.kind == "group_gone"
    return bool(answer["group_state"] == GroupState.DEAD)


def _described(name: str, protocol: _Protocol, node: int, row: Row, listed_type: str | None) -> KafkaGroup:
    members = [member_of(one, protocol.owned(one)) for one in row["members"]]
    return KafkaGroup(
        name,
        state=row["group_state"] or GroupState.UNKNOWN,
        # Only the listing shows whether a group has no group protocol (commits by assign()) or the classic one.
        type=SIMPLE if listed_type == SIMPLE and not members else protocol.type,
        assignor=row[protocol.assignor] or None,
        coordinator=node,
        members=members,
    )


def _by_topic(pairs: Iterable[tuple[str, list[int]]]) -> TopicPartitions:
    by_topic: TopicPartitions = {}
    for topic, partitions in pairs:
        by_topic.setdefault(topic, []).extend(partitions)
    return {topic: sorted(partitions) for topic, partitions in by_topic.items()}
