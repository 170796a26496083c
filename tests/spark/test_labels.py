"""What RocketMQ calls the partitions that sentences name: the driver's part of a round, which needs no JVM."""

from dataclasses import replace

import pytest

from lagwise.tables.raw import WATERMARKS
from lagwise.tables.store import Lake
from lagwise_spark.jobs.read import labels
from tests.spark.test_findings import NOW, watermark
from tests.spark.test_rebalance_stats import append, news

WORST = [("shop", "orders", 10_003), ("shop", "gone", 0), ("another", "orders", 0)]


@pytest.fixture
def lake(lake: Lake) -> Lake:
    queue = watermark("orders", 10, partition=10_003) | {"label": "broker-b q3"}
    before = queue | {"sample_id": "s0", "label": "what it was called before"}
    append(lake, WATERMARKS, queue, before, watermark("orders", 10) | {"label": "broker-a q0"})
    return lake


def test_queues_of_the_latest_sample_that_are_named(lake: Lake) -> None:
    its = [replace(n, system="rocketmq") for n in news(NOW)]
    assert labels(lake, its, WORST) == {("shop", "orders", 10_003): "broker-b q3"}
    assert labels(lake, its, []) == {}


def test_partitions_of_kafka_are_called_by_their_numbers(lake: Lake) -> None:
    assert labels(lake, news(NOW), WORST) == {}
