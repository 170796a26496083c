"""Metadata and DescribeConfigs through librdkafka, where our own requests are of no use."""

from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from typing import Any

import numpy as np
import pyarrow as pa
from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import ConfigEntry, ConfigResource, ResourceType

from lagwise_collectors.kafka.requests.client import KafkaClient
from lagwise_collectors.kafka.requests.commit_columns import NONE
from lagwise_collectors.kafka.requests.errors import KafkaTrouble, trouble_of
from lagwise_collectors.kafka.requests.topic_columns import NODES, KafkaTopic
from lagwise_collectors.protocol import ErrorTally

#: Settings by name, or the trouble that kept them from being read.
Configs = Mapping[str, str | None] | KafkaTrouble


def describe_topics(client: KafkaClient, names: Iterable[str], errors: ErrorTally) -> dict[str, KafkaTopic]:
    """Every topic asked for, described or with its error (``unknown_topic`` where it does not exist any more)."""
    wanted = sorted(names)
    if not wanted:
        return {}
    futures: Mapping[str, Future[Any]] = client.admin.describe_topics(
        TopicCollection(wanted), request_timeout=client.timeout_seconds
    )
    topics = {}
    for name, future in futures.items():
        try:
            topics[name] = _topic(name, client.wait(future))
        except KafkaTrouble as trouble:
            errors.note(trouble.kind, f"describing topic {name}: {trouble}")
            topics[name] = KafkaTopic(name, error=trouble.kind)
    return topics


def topic_names(client: KafkaClient) -> list[str]:
    """The names of all topics. Raises KafkaTrouble."""
    try:
        return list(client.admin.list_topics(timeout=client.timeout_seconds).topics)
    except KafkaException as error:
        raise client.explained(trouble_of(error)) from None


def racks(client: KafkaClient) -> dict[int, str | None]:
    """The rack of every broker that is in the cluster, by node id; None where it has none. Raises KafkaTrouble."""
    described: Any = client.wait(client.admin.describe_cluster(request_timeout=client.timeout_seconds))
    return {node.id: node.rack or None for node in described.nodes}


def read_configs(client: KafkaClient, kind: ResourceType, names: Iterable[str]) -> dict[str, Configs]:
    """Settings by resource."""
    resources = [ConfigResource(kind, name) for name in names]
    if not resources:
        return {}
    answers: dict[str, Configs] = {}
    futures = client.admin.describe_configs(resources, request_timeout=client.timeout_seconds)
    for resource, future in futures.items():
        try:
            entries: Mapping[str, ConfigEntry] = client.wait(future)
            answers[resource.name] = {name: entry.value for name, entry in entries.items()}
        except KafkaTrouble as trouble:
            answers[resource.name] = trouble
    return answers


def _topic(name: str, described: Any) -> KafkaTopic:
    partitions = sorted(described.partitions, key=lambda one: one.id)
    leaders = [NONE if one.leader is None else max(NONE, one.leader.id) for one in partitions]
    return KafkaTopic(
        name,
        # As Kafka's own tools print it: Base64 in its URL-safe alphabet.
        str(described.topic_id).replace("+", "-").replace("/", "_"),
        np.array([one.id for one in partitions], np.int32),
        np.array(leaders, np.int32),
        pa.array([[node.id for node in one.replicas] for one in partitions], NODES),
        pa.array([[node.id for node in one.isr] for one in partitions], NODES),
    )
