"""The demo's producers: a steady stream to every topic, and the records that are there before the first read."""

import threading
import time
from contextlib import closing

from confluent_kafka import KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from lagwise_sandbox import clients
from lagwise_sandbox.scenarios import TOPIC, TOPICS, DemoScenario, DemoTopic

_TICK_SECONDS = 0.1
#: Small batches: a consumer is always handed whole ones, and the one that catches up must do so evenly.
_PRELOAD_BATCH = 40
_FLUSH_SECONDS = 60.0
#: After a break longer than this (a suspended machine) the stream goes on from now and does not make up for it.
_LONGEST_CATCH_UP_SECONDS = 5.0


def preload(bootstrap: str, errors: clients.ClientErrors) -> None:
    """Create the topics and write their first records. Does nothing to a topic that has records."""
    admin = AdminClient(clients.common_settings(bootstrap, "shop-setup", errors))
    clients.create_topics(admin, TOPICS)
    written = clients.records_written(admin, TOPICS)
    due = [topic for topic in TOPICS if topic.preloaded and written[topic.name] == 0]
    producer = Producer(
        {
            **clients.common_settings(bootstrap, "shop-importer", errors),
            "linger.ms": 5,
            "batch.num.messages": _PRELOAD_BATCH,
        }
    )
    for topic in due:
        for number in range(topic.preloaded):
            _produce(producer, topic, number)
    producer.flush(_FLUSH_SECONDS)


def commit_left_topic(bootstrap: str, scenario: DemoScenario, errors: clients.ClientErrors) -> None:
    """Commit half of the topic that the group reads no more, as if it had moved away in the middle of it."""
    if scenario.left_topic is None:
        return
    topic = TOPIC[scenario.left_topic]
    half = topic.preloaded // topic.partitions // 2
    client_id = f"{scenario.group}-0"
    with closing(clients.consumer(bootstrap, scenario.group, client_id, errors, enable_auto_commit=False)) as mover:
        try:
            offsets = [TopicPartition(topic.name, p, half) for p in range(topic.partitions)]
            mover.commit(offsets=offsets, asynchronous=False)
        except KafkaException as error:
            # A group that already has members (the workload was started again) has left its commit here before.
            errors.count(client_id, error)


def start_producing(bootstrap: str, stop: threading.Event, errors: clients.ClientErrors) -> threading.Thread:
    """Write to every topic at its rate until ``stop`` is set, in a thread."""
    thread = threading.Thread(target=_produce_steadily, args=(bootstrap, stop, errors), name="storefront", daemon=True)
    thread.start()
    return thread


def _produce_steadily(bootstrap: str, stop: threading.Event, errors: clients.ClientErrors) -> None:
    producer = clients.producer(bootstrap, "storefront", errors)
    written = {topic: 0 for topic in TOPICS if topic.rate_per_second > 0}
    started = last = time.monotonic()
    while not stop.wait(_TICK_SECONDS):
        now = time.monotonic()
        started += max(0.0, now - last - _LONGEST_CATCH_UP_SECONDS)
        last = now
        for topic, count in written.items():
            due = int(topic.rate_per_second * (now - started))
            for number in range(count, due):
                _produce(producer, topic, topic.preloaded + number)
            written[topic] = due
        producer.poll(0)
        errors.log_counts()
    producer.flush(1)


def _produce(producer: Producer, topic: DemoTopic, number: int) -> None:
    """Write one record, to the partitions in turn. Where the broker is away and the buffer full, the record is lost."""
    value = clients.record(topic.name, number)
    while True:
        try:
            producer.produce(topic.name, value, partition=number % topic.partitions)
            return
        except BufferError:
            if producer.poll(1) == 0:
                return
