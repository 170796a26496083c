"""ListOffsets: log start, high watermark and last stable offset of the watched partitions."""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, IsolationLevel, KafkaError, TopicPartition

from lagwise_collectors.kafka.requests.client import KafkaClient
from lagwise_collectors.kafka.requests.errors import KafkaTrouble, kind_of
from lagwise_collectors.kafka.requests.topics import KafkaPartition, KafkaTopic
from lagwise_collectors.protocol import ErrorTally

#: Partitions in one call: the cost of a call grows worse than linearly.
CHUNK = 250

_ALL = IsolationLevel.READ_UNCOMMITTED.value
_STABLE = IsolationLevel.READ_COMMITTED.value


@dataclass(slots=True)
class WatermarkColumns:
    """Columns of ``raw/watermarks``, and when the last answer came."""

    topic: list[str] = field(default_factory=list)
    #: Kafka's id of the topic; None: the topic could not be described.
    topic_id: list[str | None] = field(default_factory=list)
    partition: list[int] = field(default_factory=list)
    #: Offset of the oldest record that is kept; None: not read.
    log_start: list[int | None] = field(default_factory=list)
    #: Offset of the next record to be written; None: not read.
    high_watermark: list[int | None] = field(default_factory=list)
    #: End of the log for consumers with ``read_committed``: open transactions hold it back. None: not read.
    last_stable: list[int | None] = field(default_factory=list)
    #: Node id of the leader; None: there is none, or the topic could not be described.
    leader: list[int | None] = field(default_factory=list)
    #: Node ids of all replicas; None: the topic could not be described.
    replicas: list[list[int] | None] = field(default_factory=list)
    #: Node ids of the in-sync replicas; None: the topic could not be described.
    isr: list[list[int] | None] = field(default_factory=list)
    #: Kind of the error that made the offsets unreadable; None: no error.
    error: list[str | None] = field(default_factory=list)
    #: When the last answer came; None: none came.
    read_at: datetime | None = None

    def add(self, topic: KafkaTopic, partition: KafkaPartition | None, number: int, error: str | None) -> int:
        """Append a row without offsets; returns its position."""
        self.topic.append(topic.name)
        self.topic_id.append(topic.topic_id)
        self.partition.append(number)
        self.leader.append(partition.leader if partition else None)
        self.replicas.append(partition.replicas if partition else None)
        self.isr.append(partition.isr if partition else None)
        self.error.append(error)
        for column in (self.log_start, self.high_watermark, self.last_stable):
            column.append(None)
        return len(self.topic) - 1


def read_watermarks(
    client: KafkaClient,
    topics: Mapping[str, KafkaTopic],
    partitions_wanted: Mapping[str, Iterable[int]],
    errors: ErrorTally,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> WatermarkColumns:
    """A row for every partition of the topics.

    A topic that could not be described has rows for the ``partitions_wanted`` of it, with the topic's error. A
    partition without a leader is not asked for: the request would wait for one until it times out. Each leader's
    partitions are asked for by themselves, so that a broker that does not answer costs only its own.
    """
    marks = WatermarkColumns()
    by_leader: dict[int, list[tuple[str, int]]] = {}
    position: dict[tuple[str, int], int] = {}
    for name in sorted(topics):
        topic = topics[name]
        if topic.error is not None:
            for number in sorted(partitions_wanted.get(name, ())):
                marks.add(topic, None, number, topic.error)
        for partition in topic.partitions:
            if partition.leader is None:
                errors.note("leader_not_available", f"watermarks of {name}[{partition.number}]: it has no leader")
                marks.add(topic, partition, partition.number, "leader_not_available")
                continue
            position[name, partition.number] = marks.add(topic, partition, partition.number, None)
            by_leader.setdefault(partition.leader, []).append((name, partition.number))
    answered_at: list[datetime] = []

    def answered(future: "Future[Any]") -> None:
        if future.exception() is None:
            answered_at.append(clock())

    asked: list[tuple[list[int | None], list[tuple[str, int]], Future[Any]]] = []
    for column, offset, isolation in (
        (marks.log_start, OFFSET_BEGINNING, _ALL),
        (marks.high_watermark, OFFSET_END, _ALL),
        (marks.last_stable, OFFSET_END, _STABLE),
    ):
        for pairs in by_leader.values():
            for chunk in (pairs[i : i + CHUNK] for i in range(0, len(pairs), CHUNK)):
                specs = [TopicPartition(topic, number, offset) for topic, number in chunk]
                future = client.request("list_offsets", specs, isolation_level_value=isolation)
                future.add_done_callback(answered)
                asked.append((column, chunk, future))
    for column, chunk, future in asked:
        try:
            _fill(column, client.wait(future), position, marks.error, errors)
        except KafkaTrouble as trouble:
            errors.note(trouble.kind, f"watermarks of {chunk[0][0]}[{chunk[0][1]}] and others: {trouble}", len(chunk))
            for pair in chunk:
                marks.error[position[pair]] = trouble.kind
    marks.read_at = max(answered_at, default=None)
    return marks


def _fill(
    column: list[int | None],
    answer: Mapping[TopicPartition, Any],
    position: Mapping[tuple[str, int], int],
    error: list[str | None],
    errors: ErrorTally,
) -> None:
    for tp, found in answer.items():
        row = position[tp.topic, tp.partition]
        if isinstance(found, KafkaError):
            error[row] = kind_of(found)
            errors.note(kind_of(found), f"watermarks of {tp.topic}[{tp.partition}]: {found.str()}")
        elif found.offset >= 0:
            column[row] = found.offset
