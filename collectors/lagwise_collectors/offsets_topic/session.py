"""One connection to ``__consumer_offsets``, until its first error.

Read-only: partitions are assigned, no group is joined, nothing is committed. Isolation is ``read_committed``: the
commits of a transaction count when it is committed, and never when it is aborted. While one is open, records behind it
wait.
"""

import logging
import threading
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition
from confluent_kafka.admin import ResourceType

from lagwise.config import Cluster
from lagwise.platform.log_events import LogEvent, event
from lagwise_collectors.kafka.requests.client import KafkaClient, LibrdkafkaLog, unsubscribed_settings
from lagwise_collectors.kafka.requests.errors import KafkaTrouble, kind_of
from lagwise_collectors.kafka.requests.topic_columns import KafkaTopic
from lagwise_collectors.kafka.requests.topics import describe_topics, read_configs
from lagwise_collectors.kafka.requests.watermarks import read_watermarks
from lagwise_collectors.offsets_topic import state_file
from lagwise_collectors.offsets_topic.ledger import Ledger
from lagwise_collectors.offsets_topic.records import OFFSETS_TOPIC
from lagwise_collectors.protocol import ErrorTally

_FETCH_BYTES = 8 * 1024**2
#: Records that may wait in librdkafka, in KiB: fetching is faster than decoding.
_QUEUE_KIB = 32 * 1024


#: librdkafka looks for the coordinator of the group that is never used: without the right to, nothing is lost.
IGNORED = (KafkaError.GROUP_AUTHORIZATION_FAILED,)


def offsets_consumer_settings(cluster: Cluster) -> dict[str, Any]:
    """librdkafka settings of the consumer. Raises ConfigError if a secret does not exist."""
    return {
        **unsubscribed_settings(cluster),
        "group.id": "lagwise-reader",
        "check.crcs": False,
        "max.partition.fetch.bytes": _FETCH_BYTES,
        "queued.max.messages.kbytes": _QUEUE_KIB,
    }


def try_reading(client: KafkaClient, cluster: Cluster) -> str:
    """Read one record, or find that there is none, for ``lagwise doctor``. Raises KafkaTrouble."""
    log_of_library = LibrdkafkaLog(client.clean).logger
    with closing(Consumer(offsets_consumer_settings(cluster), logger=log_of_library)) as consumer:
        consumer.assign([TopicPartition(OFFSETS_TOPIC, 0, OFFSET_BEGINNING)])
        deadline = time.monotonic() + client.timeout_seconds
        while time.monotonic() < deadline:
            message = consumer.poll(0.2)
            error = None if message is None else message.error()
            if message is None or (error is not None and error.code() in IGNORED):
                continue
            if error is None or error.code() == KafkaError._PARTITION_EOF:
                return "can be read"
            raise KafkaTrouble(kind_of(error), client.clean(error.str()))
        raise KafkaTrouble("timeout", f"no answer after {client.timeout_seconds:g} s")


log = logging.getLogger("lagwise.collectors.offsets_topic")

_BATCH = 5_000
_POLL_SECONDS = 0.1
_END_SECONDS = 1.0
#: How long a partition may be behind before it counts as behind: transactions take a while, and so do batches.
_PATIENCE_SECONDS = 30.0


class LostPositionError(Exception):
    """The records after the saved position have been deleted."""


@dataclass(slots=True)
class LedgerState:
    """The ledger, which survives a session."""

    ledger: Ledger
    #: The topic and the groups that it is about.
    identity: state_file.Identity
    #: Commits have been counted since the last call of :meth:`Ledger.take`.
    counting: bool


class OffsetsTopicSession:
    """Reads the topic. Raises KafkaTrouble or ConfigError where it cannot be read at all.

    ``state`` is that of an earlier session of this process, ``state_path`` the state file of an earlier process (None:
    read from the beginning). Neither is used for another topic or other groups than its own.
    """

    def __init__(self, cluster: Cluster, state: LedgerState | None, state_path: Path | None) -> None:
        self._cluster = cluster
        self._client = KafkaClient(cluster)
        topic = self._described()
        self.state = self._initial_state(topic, state, state_path)
        starts, ends = self._marks(topic)
        ledger = self.state.ledger
        for partition, end in ends.items():
            if partition not in ledger.positions and starts[partition] < end:
                ledger.priming.add(partition)
        self._read_settings(ledger, topic)
        #: By partition: the offset that is to be read next, and since when.
        self._goals = {partition: (end, time.monotonic()) for partition, end in ends.items()}
        self._reached: set[int] = set()
        self._at_end: dict[int, int] = {}
        self._newest: dict[int, int] = {}
        self._ends_read_at = 0.0
        self._down = False
        self._library_log = LibrdkafkaLog(self._client.clean)
        self._consumer = self._assigned(ends)

    def read(self, stop: threading.Event, lock: threading.Lock) -> None:
        """Read until ``stop`` is set. Raises KafkaTrouble and LostPositionError."""
        while not stop.is_set():
            batch = self._consumer.consume(_BATCH, _POLL_SECONDS)
            if batch:
                with lock:
                    self._feed(batch)
            if time.monotonic() - self._ends_read_at >= _END_SECONDS:
                self._read_ends()
            if self._down:
                raise KafkaTrouble("unreachable", "no broker can be reached")
            for facility, (count, last) in self._library_log.take().items():
                log.debug("%s: librdkafka %s, %d times: %s", self._cluster.name, facility, count, last)

    def records_left(self) -> int:
        """Records left to read up to now (roughly: gaps count); 0 while it keeps up.

        Call it regularly: a partition is behind that does not reach within half a minute what was the end then.
        """
        now, records_left = time.monotonic(), 0
        for partition, (goal, since) in self._goals.items():
            read = max(self.state.ledger.positions.get(partition, 0), self._at_end.get(partition, 0))
            if read >= goal:
                self._reached.add(partition)
                self._goals[partition] = (max(goal, self._newest.get(partition, 0)), now)
            elif partition not in self._reached or now - since > _PATIENCE_SECONDS:
                records_left += goal - read
        return records_left

    def close(self) -> None:
        """Close the connection."""
        self._consumer.close()

    def _feed(self, batch: list[Any]) -> None:
        ledger = self.state.ledger
        records = [message for message in batch if message.error() is None]
        ledger.feed(records)
        for message in batch if len(records) < len(batch) else ():
            error = message.error()
            if error is None or error.code() in IGNORED:
                continue
            if error.code() == KafkaError._PARTITION_EOF:
                self._at_end[message.partition()] = message.offset()
            elif error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
                raise LostPositionError(self._client.clean(error.str()))
            else:
                raise KafkaTrouble(kind_of(error), self._client.clean(error.str()))
        for partition in list(ledger.priming):
            read = max(ledger.positions.get(partition, 0), self._at_end.get(partition, 0))
            if read >= self._goals[partition][0]:
                ledger.primed(partition)

    def _read_ends(self) -> None:
        """Remember the newest high watermarks that fetching has shown.

        Never call it from another thread. A thread in consume() waits for a lock of the library while it holds Python's
        interpreter lock, and the other one waits for that: a deadlock, seen with confluent-kafka 2.16.1.
        """
        self._ends_read_at = time.monotonic()
        for partition in self._goals:
            marks = self._consumer.get_watermark_offsets(TopicPartition(OFFSETS_TOPIC, partition), cached=True)
            if marks is not None:
                self._newest[partition] = marks[1]

    def _described(self) -> KafkaTopic:
        errors = ErrorTally()
        topic = describe_topics(self._client, [OFFSETS_TOPIC], errors)[OFFSETS_TOPIC]
        if topic.error is not None:
            raise KafkaTrouble(topic.error, errors.example(topic.error))
        return topic

    def _marks(self, topic: KafkaTopic) -> tuple[dict[int, int], dict[int, int]]:
        """Log start and last stable offset of each partition."""
        errors = ErrorTally()
        marks = read_watermarks(self._client, {OFFSETS_TOPIC: topic}, {}, errors)
        if errors:
            kind = next(iter(errors.counts))
            raise KafkaTrouble(kind, errors.example(kind))
        partitions = marks.partition.tolist()
        starts, ends = (np.maximum(column, 0).tolist() for column in (marks.log_start, marks.last_stable))
        return dict(zip(partitions, starts, strict=True)), dict(zip(partitions, ends, strict=True))

    def _initial_state(self, topic: KafkaTopic, state: LedgerState | None, state_path: Path | None) -> LedgerState:
        selection = self._cluster.groups
        identity: dict[str, Any] = {
            "topic_id": topic.topic_id,
            "partitions": topic.partitions,
            "include": list(selection.include),
            "exclude": list(selection.exclude),
        }
        if state is not None and state.identity == identity:
            return state
        if state_path is not None:
            ledger = Ledger(selection.selects)
            try:
                if state_file.restore(state_path, ledger, identity):
                    return LedgerState(ledger, identity, counting=True)
            except state_file.UnusableStateError as error:
                log.warning(
                    "%s: %s is read from the beginning, %s: %s",
                    self._cluster.name,
                    OFFSETS_TOPIC,
                    state_path,
                    error,
                    extra=event(LogEvent.OFFSETS_TOPIC_READ_AGAIN, cluster=self._cluster.name),
                )
        return LedgerState(Ledger(selection.selects), identity, counting=False)

    def _read_settings(self, ledger: Ledger, topic: KafkaTopic) -> None:
        """Read the broker settings that no record has. Without the right to read them they stay unknown."""
        if not topic.leaders:
            return
        leader = str(min(topic.leaders))
        answer = read_configs(self._client, ResourceType.BROKER, [leader])[leader]
        if isinstance(answer, KafkaTrouble):
            return
        minutes, session_ms = answer.get("offsets.retention.minutes"), answer.get("group.consumer.session.timeout.ms")
        ledger.retention_ms = None if minutes is None else int(minutes) * 60_000
        ledger.groups.session_ms = None if session_ms is None else int(session_ms)
        ledger.groups.heartbeat_ms = int(answer.get("group.consumer.heartbeat.interval.ms") or 0)

    def _assigned(self, ends: dict[int, int]) -> Consumer:
        consumer = Consumer(
            {**offsets_consumer_settings(self._cluster), "error_cb": self._on_error}, logger=self._library_log.logger
        )
        positions = self.state.ledger.positions
        consumer.assign([TopicPartition(OFFSETS_TOPIC, p, positions.get(p, OFFSET_BEGINNING)) for p in sorted(ends)])
        return consumer

    def _on_error(self, error: KafkaError) -> None:
        # Called from consume(). A single broker may fail: the library finds new leaders.
        if error.code() == KafkaError._ALL_BROKERS_DOWN:
            self._down = True
