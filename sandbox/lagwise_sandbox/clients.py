"""Kafka clients of the sandbox: small, quiet, and idempotent where they prepare something."""

import logging
import threading
import time
from collections import Counter
from collections.abc import Iterable
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from lagwise.platform.errors import ClusterError
from lagwise_sandbox.scenarios import DemoTopic

log = logging.getLogger("lagwise.sandbox")

SESSION_TIMEOUT_MS = 6000
_REQUEST_SECONDS = 20.0
_PREPARE_SECONDS = 60.0


class ClientErrors:
    """Counts the errors of all clients, and logs one line per kind and interval."""

    def __init__(self, interval_seconds: float = 30.0) -> None:
        self._interval_seconds = interval_seconds
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._examples: dict[str, str] = {}
        self._logged_at = time.monotonic() - interval_seconds

    def count(self, client: str, error: object) -> None:
        """Count one error of one client."""
        kafka_error = error.args[0] if isinstance(error, KafkaException) and error.args else error
        kind = kafka_error.name() if isinstance(kafka_error, KafkaError) else type(error).__name__
        with self._lock:
            self._counts[kind] += 1
            self._examples.setdefault(kind, f"{client}: {kafka_error}")

    def log_counts(self, *, now: bool = False) -> None:
        """Log the counts since the last call, if the interval is over or ``now`` is set."""
        with self._lock:
            if not self._counts or (not now and time.monotonic() - self._logged_at < self._interval_seconds):
                return
            counts, examples = dict(self._counts), dict(self._examples)
            self._counts.clear()
            self._examples.clear()
            self._logged_at = time.monotonic()
        for kind, count in sorted(counts.items()):
            log.warning("%s ×%d, for example %s", kind, count, examples[kind])


def producer(bootstrap: str, client_id: str, errors: ClientErrors) -> Producer:
    """A producer that gathers for a quarter of a second, so that the load costs few requests."""
    return Producer(
        {
            **common_settings(bootstrap, client_id, errors),
            "linger.ms": 250,
            "queue.buffering.max.kbytes": 32 * 1024,
            "message.timeout.ms": 30_000,
        }
    )


def consumer(bootstrap: str, group: str, client_id: str, errors: ClientErrors, **settings: Any) -> Consumer:
    """A member of a group that starts at the beginning and commits what it was given every second.

    ``settings`` are further librdkafka settings, underscores for dots; they win. None takes a setting away.
    """
    merged = {
        **common_settings(bootstrap, client_id, errors),
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": True,
        "auto.commit.interval.ms": 1000,
        "session.timeout.ms": SESSION_TIMEOUT_MS,
        "heartbeat.interval.ms": 1000,
        "max.poll.interval.ms": 60_000,
        "queued.max.messages.kbytes": 8 * 1024,
        **{key.replace("_", "."): value for key, value in settings.items()},
    }
    return Consumer({key: value for key, value in merged.items() if value is not None})


def create_topics(admin: AdminClient, topics: Iterable[DemoTopic]) -> None:
    """Create the topics that do not exist yet. Raises ClusterError."""
    wanted = list(topics)
    created = admin.create_topics([NewTopic(t.name, t.partitions, 1, config=_topic_settings(t)) for t in wanted])
    for name, future in created.items():
        try:
            future.result(_REQUEST_SECONDS)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise ClusterError(f"the sandbox cannot create the topic {name}: {error.args[0].str()}") from error


def records_written(admin: AdminClient, topics: Iterable[DemoTopic]) -> dict[str, int]:
    """How many records were ever written to each topic. Waits until every partition has its leader.

    Raises ClusterError where one has none after a minute.
    """
    latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # the package types only part of itself
    asked = {TopicPartition(t.name, p): latest for t in topics for p in range(t.partitions)}
    deadline = time.monotonic() + _PREPARE_SECONDS
    while True:
        try:
            written: Counter[str] = Counter()
            for partition, future in admin.list_offsets(asked).items():
                written[partition.topic] += future.result(_REQUEST_SECONDS).offset
            return dict(written)
        except KafkaException as error:
            # A new topic's leader is elected, and known to the client, some time after the topic was created.
            if time.monotonic() > deadline:
                raise ClusterError(f"the sandbox's topics are not ready: {error.args[0].str()}") from error
            time.sleep(0.1)


def record(topic: str, number: int) -> bytes:
    """A small record, as such a shop might write it."""
    # By hand: the demo writes hundreds of thousands of them before anything can be shown.
    return f'{{"id": "{topic}-{number}", "customer": {number % 4999}, "amount_cents": {100 + number % 9900}}}'.encode()


def _topic_settings(topic: DemoTopic) -> dict[str, str]:
    settings = {}
    if topic.retention_seconds is not None:
        settings["retention.ms"] = str(int(topic.retention_seconds * 1000))
    if topic.segment_seconds is not None:
        # Only whole segments are deleted, so small ones are what makes retention exact.
        settings["segment.ms"] = str(int(topic.segment_seconds * 1000))
    return settings


def common_settings(bootstrap: str, client_id: str, errors: ClientErrors) -> dict[str, Any]:
    return {
        "bootstrap.servers": bootstrap,
        "client.id": client_id,
        "log_level": 0,  # what matters comes through error_cb, counted
        "error_cb": lambda error: errors.count(client_id, error),
        "statistics.interval.ms": 0,
        "topic.metadata.refresh.interval.ms": 60_000,
        "reconnect.backoff.ms": 500,
        "reconnect.backoff.max.ms": 5000,
        "receive.message.max.bytes": 100_000_000,
        "enable.metrics.push": False,
    }
