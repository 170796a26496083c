"""DescribeTopicPartitions and DescribeConfigs: the watched topics, their partitions and their retention."""

from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from confluent_kafka import TopicCollection
from confluent_kafka.admin import ConfigEntry, ConfigResource, ResourceType

from lagwise_collectors.kafka.requests.client import KafkaClient
from lagwise_collectors.kafka.requests.errors import KafkaTrouble
from lagwise_collectors.protocol import ErrorTally
from lagwise_collectors.sample_builder import DueTopicRows, SideTopicName

#: Configurations of every topic are read again within about this time.
CONFIG_REFRESH_SECONDS = 300.0

#: Column of ``raw/topics`` by Kafka's name of the setting.
CONFIG_COLUMNS = {
    "retention.ms": "retention_ms",
    "retention.bytes": "retention_bytes",
    "segment.ms": "segment_ms",
    "segment.bytes": "segment_bytes",
    "cleanup.policy": "cleanup_policy",
    "min.insync.replicas": "min_isr",
}
_TEXT_COLUMNS = frozenset({"cleanup_policy"})


@dataclass(frozen=True, slots=True)
class KafkaPartition:
    """One partition: ``leader`` is None while it has none."""

    number: int
    leader: int | None
    replicas: list[int]
    isr: list[int]


@dataclass(frozen=True, slots=True)
class KafkaTopic:
    """One topic as described; with an ``error`` only the name is known."""

    name: str
    topic_id: str | None = None
    partitions: tuple[KafkaPartition, ...] = ()
    error: str | None = None

    @property
    def replication_factor(self) -> int:
        return max((len(p.replicas) for p in self.partitions), default=0)


def ask_topics(client: KafkaClient, names: Iterable[str]) -> Mapping[str, "Future[Any]"]:
    """Ask for descriptions, to be waited for by :func:`described_topics`."""
    wanted = sorted(names)
    if not wanted:
        return {}
    futures: Mapping[str, Future[Any]] = client.admin.describe_topics(
        TopicCollection(wanted), request_timeout=client.timeout_seconds
    )
    return futures


def described_topics(
    client: KafkaClient, asked: Mapping[str, "Future[Any]"], errors: ErrorTally
) -> dict[str, KafkaTopic]:
    """Every topic asked for, described or with its error (``unknown_topic`` where it does not exist any more)."""
    topics = {}
    for name, future in asked.items():
        try:
            described = client.wait(future)
        except KafkaTrouble as trouble:
            errors.note(trouble.kind, f"describing topic {name}: {trouble}")
            topics[name] = KafkaTopic(name, error=trouble.kind)
            continue
        partitions = tuple(
            KafkaPartition(
                p.id,
                p.leader.id if p.leader is not None and p.leader.id >= 0 else None,
                [node.id for node in p.replicas],
                [node.id for node in p.isr],
            )
            for p in described.partitions
        )
        topics[name] = KafkaTopic(name, _topic_id(described.topic_id), partitions)
    return topics


class TopicConfigs:
    """Topic settings: those of all topics at first, then of a share of them in each sample."""

    def __init__(self, client: KafkaClient, interval_seconds: float) -> None:
        self._client = client
        self._rounds = max(1, round(CONFIG_REFRESH_SECONDS / interval_seconds))
        self._samples = 0
        self._settings: dict[str, dict[str, Any]] = {}
        self._unreadable: dict[str, KafkaTrouble] = {}
        self._rows = DueTopicRows()

    def rows(
        self, topics: Mapping[str, KafkaTopic], sides: Mapping[str, SideTopicName], at: datetime, errors: ErrorTally
    ) -> list[Mapping[str, Any]]:
        """Rows of ``raw/topics`` that are due (without sample, cluster and time); ``sides`` are those of the topics
        that belong to another one."""
        present = {name: topic for name, topic in topics.items() if topic.error is None}
        for known in (self._settings, self._unreadable):
            for name in [name for name in known if name not in topics]:
                del known[name]
        self._rows.forget_all_but(topics)
        self._read(self._due(list(present)))
        for name, trouble in self._unreadable.items():
            errors.note(f"config_{trouble.kind}", f"configuration of topic {name}: {trouble}")
        rows = [
            {
                "topic": name,
                "topic_id": topic.topic_id,
                "partitions": len(topic.partitions),
                "replication_factor": topic.replication_factor,
                **dict.fromkeys(CONFIG_COLUMNS.values()),
                **self._settings.get(name, {}),
            }
            for name, topic in present.items()
        ]
        return self._rows.due(rows, sides, at)

    def min_isr(self, name: str) -> int | None:
        """``min.insync.replicas`` of a topic as last read; None is not known."""
        found: int | None = self._settings.get(name, {}).get("min_isr")
        return found

    def _due(self, names: list[str]) -> list[str]:
        step = self._samples % self._rounds
        self._samples += 1
        unseen = [name for name in names if name not in self._settings and name not in self._unreadable]
        seen = sorted(name for name in names if name in self._settings or name in self._unreadable)
        return unseen + [name for i, name in enumerate(seen) if i % self._rounds == step]

    def _read(self, names: list[str]) -> None:
        for name, answer in read_configs(self._client, ResourceType.TOPIC, names).items():
            if isinstance(answer, KafkaTrouble):
                self._settings.pop(name, None)
                self._unreadable[name] = answer
            else:
                self._unreadable.pop(name, None)
                self._settings[name] = {
                    column: _value(column, answer.get(key)) for key, column in CONFIG_COLUMNS.items()
                }


def read_offsets_retention(client: KafkaClient, broker: int) -> float | KafkaTrouble:
    """The broker's ``offsets.retention.minutes`` in seconds, or why it cannot be read."""
    answer = read_configs(client, ResourceType.BROKER, [str(broker)])[str(broker)]
    if isinstance(answer, KafkaTrouble):
        return answer
    minutes = answer.get("offsets.retention.minutes")
    return KafkaTrouble("not_supported", "the broker does not report it") if minutes is None else float(minutes) * 60


def read_configs(
    client: KafkaClient, kind: ResourceType, names: Iterable[str]
) -> dict[str, dict[str, str | None] | KafkaTrouble]:
    """Settings by resource, or the trouble that kept one from being read."""
    resources = [ConfigResource(kind, name) for name in names]
    if not resources:
        return {}
    answers: dict[str, dict[str, str | None] | KafkaTrouble] = {}
    futures = client.admin.describe_configs(resources, request_timeout=client.timeout_seconds)
    for resource, future in futures.items():
        try:
            entries: Mapping[str, ConfigEntry] = client.wait(future)
            answers[resource.name] = {name: entry.value for name, entry in entries.items()}
        except KafkaTrouble as trouble:
            answers[resource.name] = trouble
    return answers


def _topic_id(uuid: Any) -> str:
    """A topic id as Kafka's own tools print it: Base64 in its URL-safe alphabet."""
    return str(uuid).replace("+", "-").replace("/", "_")


def _value(column: str, text: str | None) -> str | int | None:
    if text is None or column in _TEXT_COLUMNS:
        return text
    return int(text)
