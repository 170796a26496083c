"""What a sample reports of the cluster itself: brokers, racks, replicas, the offsets topic, the controller's clock."""

import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import asdict
from datetime import datetime
from typing import Any, NamedTuple

from confluent_kafka.admin import ResourceType

from lagwise.domain.cluster_findings import BROKER, CONTROLLER
from lagwise.domain.replicas import Replicas, ReplicaTally
from lagwise.domain.vocabulary import OFFSETS_TOPIC
from lagwise_collectors.kafka.requests.client import KafkaClient
from lagwise_collectors.kafka.requests.errors import KafkaTrouble
from lagwise_collectors.kafka.requests.topics import (
    CONFIG_REFRESH_SECONDS,
    KafkaTopic,
    ask_topics,
    described_topics,
    read_configs,
)
from lagwise_collectors.kafka_protocol.client import ProtocolClient
from lagwise_collectors.kafka_protocol.controller_clock import ControllerClock, read_controller_clock
from lagwise_collectors.protocol import ErrorTally

#: Errors of a topic that say something of the topic or of our rights. After any other its replicas are unknown.
_ABSENT = frozenset({"unknown_topic", "topic_not_authorized"})


class AskedFacts(NamedTuple):
    """Requests that are under way."""

    brokers: "Future[Any]"
    offsets_topic: Mapping[str, "Future[Any]"]


class ClusterFacts:
    """Columns of ``samples`` about one cluster. Whatever cannot be read is null, and no error: ``lagwise doctor`` says
    which right is missing."""

    def __init__(self, client: KafkaClient, clock: Callable[[], datetime]) -> None:
        self._client = client
        self._clock = clock
        self._offsets_min_isr: int | None = None
        self._controller: ControllerClock | None = None
        self._read_at = -CONFIG_REFRESH_SECONDS

    def ask(self) -> AskedFacts:
        """Ask for what each sample needs; the brokers answer while other things are read."""
        asked = self._client.admin.describe_cluster(request_timeout=self._client.timeout_seconds)
        return AskedFacts(asked, ask_topics(self._client, [OFFSETS_TOPIC]))

    def columns(
        self,
        asked: AskedFacts,
        topics: Iterable[KafkaTopic],
        min_isr_of: Callable[[str], int | None],
        protocol: ProtocolClient | None,
    ) -> dict[str, Any]:
        """The columns. ``topics`` are the watched ones, ``min_isr_of`` their min.insync.replicas where known."""
        offsets = described_topics(self._client, asked.offsets_topic, ErrorTally())[OFFSETS_TOPIC]
        try:
            nodes = {node.id: node.rack or None for node in self._client.wait(asked.brokers).nodes}
        except KafkaTrouble:
            return {}
        self._refresh(offsets, protocol)
        return {
            "brokers": self._broker_rows(nodes),
            "replicas": self._replicas(offsets, list(topics), min_isr_of, nodes),
            "offsets_topic_replicas": min((len(one.replicas) for one in offsets.partitions), default=None),
            "offsets_topic_min_isr": self._offsets_min_isr,
        }

    def _broker_rows(self, racks: Mapping[int, str | None]) -> list[dict[str, Any]]:
        rows: dict[int, dict[str, Any]] = {
            node: {"name": str(node), "role": BROKER, "rack": rack} for node, rack in sorted(racks.items())
        }
        if self._controller is not None:
            node, ahead = self._controller
            rows.setdefault(node, {"name": str(node), "role": CONTROLLER, "rack": None})["clock_ahead_seconds"] = ahead
        return list(rows.values())

    def _replicas(
        self,
        offsets: KafkaTopic,
        topics: list[KafkaTopic],
        min_isr_of: Callable[[str], int | None],
        racks: Mapping[int, str | None],
    ) -> list[dict[str, Any]] | None:
        readable = [topic for topic in topics if topic.error is None]
        if offsets.error not in {None, *_ABSENT} or (
            not readable and any(topic.error not in _ABSENT for topic in topics)
        ):
            return None
        watched, of_offsets = ReplicaTally(racks), ReplicaTally(racks)
        for topic in readable:
            if topic.name != OFFSETS_TOPIC:
                watched.add(topic.name, _replicas_of(topic), min_isr_of(topic.name))
        of_offsets.add(OFFSETS_TOPIC, _replicas_of(offsets), self._offsets_min_isr)
        return [
            {"topic": topic, **asdict(trouble)}
            for topic, tally in ((OFFSETS_TOPIC, of_offsets), (None, watched))
            for trouble in tally.troubles()
        ]

    def _refresh(self, offsets: KafkaTopic, protocol: ProtocolClient | None) -> None:
        """Read anew what seldom changes."""
        now = time.monotonic()
        if now - self._read_at < CONFIG_REFRESH_SECONDS:
            return
        self._read_at = now
        self._controller = None if protocol is None else read_controller_clock(protocol, self._clock)
        if offsets.error is None:
            settings = read_configs(self._client, ResourceType.TOPIC, [OFFSETS_TOPIC])[OFFSETS_TOPIC]
            least = None if isinstance(settings, KafkaTrouble) else settings.get("min.insync.replicas")
            self._offsets_min_isr = None if least is None else int(least)


def _replicas_of(topic: KafkaTopic) -> Iterable[Replicas]:
    return (Replicas(one.number, one.leader, one.replicas, one.isr) for one in topic.partitions)
