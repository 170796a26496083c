"""Metadata and DescribeConfigs: topics with their partitions as columns, and settings of topics and brokers."""

import base64
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lagwise_collectors.kafka.requests.commit_columns import NONE
from lagwise_collectors.kafka.requests.errors import KafkaTrouble
from lagwise_collectors.kafka.requests.topic_columns import NODES, KafkaTopic
from lagwise_collectors.kafka.requests.topics import Configs
from lagwise_collectors.kafka_protocol.client import REFUSALS, Answer, ProtocolClient
from lagwise_collectors.kafka_protocol.columns import NumberLists
from lagwise_collectors.kafka_protocol.connection import trouble_of_code
from lagwise_collectors.kafka_protocol.schema import Row
from lagwise_collectors.kafka_protocol.topic_messages import DESCRIBE_CONFIGS
from lagwise_collectors.kafka_protocol.wire import MalformedAnswer
from lagwise_collectors.protocol import ErrorTally

#: Types of resources, as DescribeConfigs numbers them.
_TOPIC, _BROKER = 2, 4


def describe_topics(client: ProtocolClient, names: Iterable[str], errors: ErrorTally) -> dict[str, KafkaTopic]:
    """Every topic asked for, described or with its error (``unknown_topic`` where it does not exist any more).

    Raises KafkaTrouble, before anything is noted, where the broker does not go together with our requests.
    """
    wanted = sorted(names)
    if not wanted:
        return {}
    answers: Mapping[str, KafkaTopic | KafkaTrouble]
    try:
        answers = _topics(client.read_topics(wanted, client.deadline()))
    except KafkaTrouble as trouble:
        if trouble.kind in REFUSALS:
            raise
        answers = dict.fromkeys(wanted, trouble)
    topics = {}
    for name in wanted:
        answer = answers.get(name) or MalformedAnswer("the broker's answer leaves it out")
        if isinstance(answer, KafkaTrouble):
            errors.note(answer.kind, f"describing topic {name}: {answer}")
            answer = KafkaTopic(name, error=answer.kind)
        topics[name] = answer
    return topics


def topic_names(client: ProtocolClient) -> list[str]:
    """The names of all topics. Raises KafkaTrouble."""
    found = client.read_topics(None, client.deadline())
    return [name for name in found["name"] if name is not None]


def read_topic_configs(client: ProtocolClient, topics: Sequence[str], keys: Sequence[str]) -> dict[str, Configs]:
    """These settings of topics, by topic. Raises KafkaTrouble where the broker does not go together with our
    requests."""
    if not topics:
        return {}
    try:
        answer: Answer = client.ask_any(DESCRIBE_CONFIGS, _request(_TOPIC, topics, keys), client.deadline())
    except KafkaTrouble as trouble:
        answer = trouble
    return _configs(answer, topics)


def read_broker_configs(client: ProtocolClient, broker: int, keys: Sequence[str]) -> Configs:
    """These settings of a broker, which alone knows them. Raises as :func:`read_topic_configs` does."""
    name = str(broker)
    [answer] = client.ask_all(DESCRIBE_CONFIGS, [(broker, _request(_BROKER, [name], keys))], client.deadline())
    return _configs(answer, [name])[name]


def _request(kind: int, names: Sequence[str], keys: Sequence[str]) -> dict[str, Any]:
    resources = [{"resource_type": kind, "resource_name": name, "configuration_keys": list(keys)} for name in names]
    return {"resources": resources, "include_synonyms": False, "include_documentation": False}


def _configs(answer: Answer, names: Sequence[str]) -> dict[str, Configs]:
    if isinstance(answer, KafkaTrouble):
        if answer.kind in REFUSALS:
            raise answer
        return dict.fromkeys(names, answer)
    found: dict[str, Configs] = {}
    for one in answer["results"]:
        if one["error_code"]:
            found[one["resource_name"]] = trouble_of_code(one["error_code"], one["error_message"], "DescribeConfigs")
        else:
            found[one["resource_name"]] = {entry["name"]: entry["value"] for entry in one["configs"]}
    missing = MalformedAnswer("the broker's answer leaves it out")
    return {name: found.get(name, missing) for name in names}


def _topics(found: Row) -> dict[str, KafkaTopic | KafkaTrouble]:
    """Topics by name, their partitions in ascending order; Kafka sends them in any order."""
    columns, counts = found["partitions"], found["rows"]
    partition = columns["partition_index"]
    if (partition < 0).any():
        raise MalformedAnswer("a partition with a negative number")
    order = np.lexsort((partition, np.repeat(np.arange(len(counts)), counts)))
    partition, leader = partition[order], np.maximum(columns["leader_id"][order], NONE)
    replicas, isr = (_lists(columns[name], order) for name in ("replica_nodes", "isr_nodes"))
    ids = found["topic_id"] or [None] * len(counts)
    topics: dict[str, KafkaTopic | KafkaTrouble] = {}
    end = 0
    for name, topic_id, error, count in zip(found["name"], ids, found["error_code"], counts, strict=True):
        start, end = end, end + count
        if name is None:
            continue
        topics[name] = (
            trouble_of_code(error, None, "Metadata")
            if error
            else KafkaTopic(
                name,
                _printed(topic_id),
                partition[start:end],
                leader[start:end],
                replicas.slice(start, count),
                isr.slice(start, count),
            )
        )
    return topics


def _lists(lists: NumberLists, order: NDArray[np.int64]) -> pa.ListArray:
    offsets = np.concatenate([np.zeros(1, np.int32), np.cumsum(lists.counts, dtype=np.int32)])
    values = pa.array(lists.values, NODES.value_type)
    return pa.ListArray.from_arrays(pa.array(offsets), values, type=NODES).take(pa.array(order))


def _printed(topic_id: bytes | None) -> str | None:
    """A topic id as Kafka's own tools print it: Base64 in its URL-safe alphabet. None: the broker is too old for it."""
    return base64.urlsafe_b64encode(topic_id).decode().rstrip("=") if topic_id is not None and any(topic_id) else None
