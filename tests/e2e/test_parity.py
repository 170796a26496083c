"""What the product says about a live broker against what Kafka's own tool says, partition by partition."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from lagwise_sandbox.broker import KafkaBroker
from tests.collectors.kafka import Lab, eventually
from tests.sandbox.consumer_groups_tool import describe

pytestmark = [pytest.mark.e2e, pytest.mark.broker, pytest.mark.spark]


def lagwise(*arguments: str, settings: Path) -> Any:
    """What a command of the product prints as JSON."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("LAGWISE_")}
    done = subprocess.run(
        [sys.executable, "-m", "lagwise", "--config", str(settings), *arguments, "--json"],
        capture_output=True,
        text=True,
        timeout=280,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.timeout(600)
def test_lag_equals_that_of_kafkas_own_tool(broker: KafkaBroker, tmp_path: Path) -> None:
    lab = Lab(broker.client_settings())
    orders, payments = lab.topic("orders", 6), lab.topic("payments", 3)
    lab.produce(orders, {p: 50 + 7 * p for p in range(6)})
    lab.produce(payments, dict.fromkeys(range(3), 30))
    offline, live, modern = lab.name("offline"), lab.name("live"), lab.name("modern")
    lab.commit(offline, orders, {p: 10 * p for p in range(6)})
    lab.commit(offline, payments, {0: 30, 2: 0})
    members = [
        _member(broker, live, [orders], {}),
        _member(broker, modern, [payments], {"group.protocol": "consumer"}),
    ]
    try:
        for consumer, topic in zip(members, (orders, payments), strict=True):
            # What is committed stays put from here on, so that both sides read the same.
            consumer.commit(offsets=[TopicPartition(topic, p, 5 + p) for p in range(2)], asynchronous=False)
        settings = tmp_path / "lagwise.yaml"
        settings.write_text(
            json.dumps(
                {
                    "data": str(tmp_path / "data"),
                    "clusters": [
                        {
                            "name": "lab",
                            "bootstrap": broker.bootstrap,
                            "groups": {"include": [f"{lab.prefix}-.*"]},
                        }
                    ],
                }
            )
        )
        collected = lagwise("collect", "--once", settings=settings)
        assert [run["errors"] for run in collected["runs"]] == [{}]
        analysed = lagwise("analyze", "--once", settings=settings)
        assert analysed["groups"] == 3
        compared = 0
        described = describe(broker.bootstrap, offline, live, modern)
        for group in (offline, live, modern):
            theirs = {(r.topic, r.partition): r for r in described if r.group == group}
            ours = {(r["topic"], r["partition"]): r for r in lagwise("lag", group, settings=settings)["partitions"]}
            assert ours.keys() == theirs.keys()
            for key, row in ours.items():
                reference = theirs[key]
                assert row["committed"] == reference.current_offset, (group, key)
                assert row["high_watermark"] == reference.log_end_offset, (group, key)
                assert row["lag"] == reference.lag, (group, key)
                if row["committed"] is None:
                    assert (row["status"], row["reason"]) == ("unknown", "no_commit"), (group, key)
                compared += 1
        assert compared == 6 + 2 + 6 + 3
    finally:
        for consumer in members:
            consumer.close()


def _member(broker: KafkaBroker, group: str, topics: list[str], extra: dict[str, str]) -> Consumer:
    """A consumer that owns all partitions of its topics and commits nothing by itself."""
    consumer = Consumer(
        {**broker.client_settings(), "group.id": group, "enable.auto.commit": False, "log_level": 0, **extra}
    )
    consumer.subscribe(topics)

    def owns() -> bool:
        consumer.poll(0.1)
        return bool(consumer.assignment())

    eventually(owns)
    return consumer
