"""Kafka's own command-line tool as the reference."""

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from lagwise.platform.errors import LagwiseError
from lagwise_sandbox.broker import KafkaBroker
from tests.sandbox.consumer_groups_tool import DescribedPartition, describe, parse

# As kafka-consumer-groups 4.3.0 printed it, with a group whose name holds spaces.
OUTPUT = """
Consumer group 'late night shift' has no active members.

GROUP            TOPIC       PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG             CONSUMER-ID     HOST            CLIENT-ID
late night shift orders.v1   0          12              15              3               -               -               -
late night shift orders.v1   1          -               7               -               -               -               -

GROUP           TOPIC           PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG             CONSUMER-ID              HOST            CLIENT-ID
billing         orders          2          41231           41249           18              billing-1-0d4c7f1e-8b    /127.0.0.1      billing-1
"""  # noqa: E501  (a program's output)


def test_rows_are_read_and_remarks_are_not() -> None:
    assert parse(OUTPUT) == [
        DescribedPartition("late night shift", "orders.v1", 0, 12, 15, 3),
        DescribedPartition("late night shift", "orders.v1", 1, None, 7, None),
        DescribedPartition("billing", "orders", 2, 41231, 41249, 18),
    ]


@pytest.mark.broker
def test_the_kafka_tool_agrees_with_the_true_state_of_a_group(broker: KafkaBroker) -> None:
    settings = broker.client_settings()
    admin = AdminClient(settings)
    admin.create_topics([NewTopic("parity", 2, 1)])["parity"].result(20)
    producer = Producer(settings)
    for number in range(10):
        producer.produce("parity", b"x", partition=number % 2)
    assert producer.flush(20) == 0
    consumer = Consumer({**settings, "group.id": "parity group", "enable.auto.commit": False})
    try:
        consumer.commit(offsets=[TopicPartition("parity", 0, 2), TopicPartition("parity", 1, 5)], asynchronous=False)
    finally:
        consumer.close()
    rows = sorted(describe(broker.bootstrap, "parity group"), key=lambda row: row.partition)
    assert rows == [
        DescribedPartition("parity group", "parity", 0, 2, 5, 3),
        DescribedPartition("parity group", "parity", 1, 5, 5, 0),
    ]


@pytest.mark.broker
def test_a_group_that_does_not_exist_is_an_error_and_not_an_empty_answer(broker: KafkaBroker) -> None:
    with pytest.raises(LagwiseError, match="not found"):
        describe(broker.bootstrap, "nobody")
