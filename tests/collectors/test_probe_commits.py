"""A measured consumer on a real broker: its measurement comes back with its offset, and becomes a row."""

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Message, TopicPartition

from lagwise.probe import Probe
from lagwise.tables.raw import COMMITS
from lagwise_collectors.kafka.source import KafkaSource
from lagwise_collectors.probe_service_times import new_measurements
from lagwise_sandbox.broker import KafkaBroker
from tests.collectors.kafka import Lab, eventually, rows

pytestmark = pytest.mark.broker


@pytest.fixture
def lab(broker: KafkaBroker) -> Lab:
    return Lab(broker.client_settings())


@pytest.fixture
def source(lab: Lab) -> Iterator[KafkaSource]:
    made = KafkaSource(lab.cluster())
    yield made
    made.close()


@pytest.fixture
def probe() -> Probe:
    return Probe(period_seconds=0)


def reading(lab: Lab, group: str, topic: str, **settings: object) -> Consumer:
    consumer = Consumer(
        {
            **lab.settings,
            "group.id": group,
            "client.id": "billing",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **settings,
        }
    )
    consumer.subscribe([topic])
    return consumer


def next_of(consumer: Consumer) -> Message:
    message = eventually(lambda: consumer.poll(0.2))
    assert message.error() is None
    return message


def test_a_handled_message_s_commit_reports_its_cost(lab: Lab, source: KafkaSource, probe: Probe) -> None:
    topic, group = lab.topic(partitions=1), lab.name("reader")
    lab.produce(topic, {0: 3})
    handle = probe.handler(lambda message: message.value())
    consumer = reading(lab, group, topic)
    message = next_of(consumer)
    handle(message)
    [committed] = probe.commit(consumer, message, asynchronous=False)
    assert (committed.error, committed.offset) == (None, 1)
    snapshot = source.collect()
    [commit] = rows(snapshot, COMMITS)
    assert (commit["committed"], commit["metadata"]) == (1, probe.metadata())
    assert commit["leader_epoch"] == message.leader_epoch()
    [row] = new_measurements(None, snapshot).rows.to_pylist()
    assert (row["group"], row["topic"], row["partition"], row["source"]) == (group, topic, 0, "probe")
    assert (row["client_id"], row["messages"], row["threads"]) == ("billing", 1, 1)
    assert row["host"] and row["member_id"]
    consumer.close()


def test_stored_offsets_take_the_text_along(lab: Lab, source: KafkaSource, probe: Probe) -> None:
    topic, group = lab.topic(partitions=1), lab.name("reader")
    lab.produce(topic, {0: 3})
    consumer = reading(
        lab,
        group,
        topic,
        **{"enable.auto.commit": True, "enable.auto.offset.store": False, "auto.commit.interval.ms": 200},
    )
    message = next_of(consumer)
    probe.handler(lambda message: message.value())(message)
    probe.store_offsets(consumer, message)
    consumer.close()  # commits what is stored
    [commit] = rows(source.collect(), COMMITS)
    assert (commit["committed"], commit["metadata"]) == (1, probe.metadata())


def test_offsets_of_a_batch_from_many_partitions(lab: Lab, source: KafkaSource, probe: Probe) -> None:
    topic, group = lab.topic(partitions=3), lab.name("reader")
    lab.produce(topic, {0: 2, 1: 2, 2: 2})
    consumer = reading(lab, group, topic)
    batch: list[Message] = []
    eventually(lambda: batch.extend(consumer.consume(6, 0.2)) or len(batch) == 6)
    probe.batch_handler(lambda messages: [message.value() for message in messages])(batch)
    ends = [TopicPartition(topic, partition, 2) for partition in range(3)]
    ends[1] = TopicPartition(topic, 1, 2, metadata="of somebody else")
    probe.commit(consumer, offsets=ends, asynchronous=False)
    consumer.close()
    snapshot = source.collect()
    reported = {row["partition"]: row["metadata"] for row in rows(snapshot, COMMITS)}
    assert reported == {0: probe.metadata(), 1: "of somebody else", 2: probe.metadata()}
    [row] = new_measurements(None, snapshot).rows.to_pylist()
    assert (row["partition"], row["messages"]) == (0, 6)


def test_the_longest_text_is_far_from_the_brokers_limit(lab: Lab, source: KafkaSource) -> None:
    topic, group = lab.topic(partitions=1), lab.name("reader")
    lab.produce(topic, {0: 1})
    text = "lw1 t1=86400 t2=86400 tq=86400 n=100000000000 c=100000 s=1e+08 at=253402300799 tl=86400 x=" + "y" * 32
    probe = Probe()
    probe._text = text
    consumer = reading(lab, group, topic)
    probe.commit(consumer, next_of(consumer), asynchronous=False)
    consumer.close()
    [row] = new_measurements(None, source.collect()).rows.to_pylist()
    assert row["t1_seconds"] == 86_400
