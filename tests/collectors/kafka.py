"""Doing things to a real broker, for the tests of the Kafka source."""

import queue
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from lagwise.config import Cluster, NameFilter
from lagwise.tables.schema import Table
from lagwise_collectors.protocol import Snapshot

#: A setting of a cluster that only librdkafka knows, and that changes nothing: our own requests are not used.
BY_LIBRDKAFKA = {"librdkafka": {"ssl.cipher.suites": "DEFAULT"}}


def eventually(condition: Callable[[], Any], seconds: float = 240.0) -> Any:
    """The first true value of the condition; fails after so many seconds. A condition that takes long is asked less
    often: what is awaited needs the CPU."""
    deadline = time.monotonic() + seconds
    while True:
        began = time.monotonic()
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {condition}"
        time.sleep(min(max(0.05, 3 * (time.monotonic() - began)), 1.0))


def rows(snapshot: Snapshot, table: Table) -> list[dict[str, Any]]:
    """The snapshot's rows of a table as dictionaries."""
    found: list[dict[str, Any]] = snapshot.rows(table).to_pylist()
    return found


class Lab:
    """A corner of a shared broker: every name starts with a prefix of its own."""

    def __init__(self, settings: dict[str, str]) -> None:
        self.settings = settings
        self.prefix = f"t{uuid.uuid4().hex[:8]}"
        self.admin = AdminClient(settings)

    def name(self, what: str) -> str:
        return f"{self.prefix}-{what}"

    def cluster(self, **changes: Any) -> Cluster:
        """The broker as a watched cluster, of which only this corner's groups are watched."""
        settings: dict[str, Any] = {
            "name": "lab",
            "bootstrap": self.settings["bootstrap.servers"],
            "groups": NameFilter(include=(f"{self.prefix}-.*",)),
            "timeout_seconds": 5.0,
        }
        return Cluster(**{**settings, **changes})

    def topic(self, what: str = "topic", partitions: int = 3, **config: str) -> str:
        name = self.name(what)
        new = NewTopic(name, partitions, 1, config=config)
        self.admin.create_topics([new])[name].result(20)
        eventually(lambda: name in self.admin.list_topics(timeout=5).topics)
        return name

    def delete_topic(self, name: str) -> None:
        self.admin.delete_topics([name])[name].result(20)
        eventually(lambda: name not in self.admin.list_topics(timeout=5).topics)

    def produce(self, topic: str, counts: dict[int, int]) -> None:
        producer = Producer(self.settings)
        for partition, count in counts.items():
            for number in range(count):
                producer.produce(topic, str(number).encode(), partition=partition)
        assert producer.flush(20) == 0

    def commit(self, group: str, topic: str, offsets: dict[int, int]) -> None:
        """Commit from outside the group protocol, as a tool that resets offsets does."""
        request = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, p, o) for p, o in offsets.items()])
        self.admin.alter_consumer_group_offsets([request], request_timeout=20)[group].result(20)

    def delete_group(self, group: str) -> None:
        self.admin.delete_consumer_groups([group])[group].result(20)

    @contextmanager
    def consumer(
        self, group: str, topic: str, *, revoke_when: threading.Event | None = None, **settings: Any
    ) -> Iterator["Member"]:
        """A member of the group that polls in a thread and commits only when the test says so.

        It gives up what is revoked from it at once, or only ``revoke_when`` the test lets it.
        """
        classic = {} if settings.get("group.protocol") == "consumer" else {"session.timeout.ms": 6000}
        member = Member(
            {
                **self.settings,
                "group.id": group,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                **classic,
                **settings,
            },
            topic,
            revoke_when,
        )
        member.thread.start()
        try:
            yield member
        finally:
            member.stop.set()
            if revoke_when is not None:
                revoke_when.set()
            member.thread.join()


class Member:
    """A consumer in a thread of its own, in which alone it is used: commits during a poll may never return."""

    def __init__(self, settings: dict[str, Any], topic: str, revoke_when: threading.Event | None) -> None:
        self._settings = settings
        self._topic = topic
        self._revoke_when = revoke_when
        self._commits: queue.Queue[tuple[list[TopicPartition], queue.Queue[Any]]] = queue.Queue()
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._run)

    def commit(self, offsets: list[TopicPartition]) -> None:
        """Commit, and return when it is done."""
        done: queue.Queue[Any] = queue.Queue()
        self._commits.put((offsets, done))
        done.get(timeout=30)

    def _run(self) -> None:
        consumer = Consumer(self._settings)
        if self._revoke_when is None:
            consumer.subscribe([self._topic])
        else:
            allowed = self._revoke_when
            consumer.subscribe([self._topic], on_revoke=lambda *_: allowed.wait(60))
        while not self.stop.is_set():
            consumer.poll(0.1)
            while not self._commits.empty():
                offsets, done = self._commits.get()
                done.put(consumer.commit(offsets=offsets, asynchronous=False))
        consumer.close()
