"""A finding on a cluster reaches who asked for it: real broker, collector, lake, alerts and receiver."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lagwise.config import Config
from lagwise_alerts.run import alert_once
from lagwise_collectors.run import collect_once
from tests.alerts.receiver import Receiver
from tests.collectors.kafka import Lab

if TYPE_CHECKING:
    from lagwise_sandbox.broker import KafkaBroker

pytestmark = [pytest.mark.broker, pytest.mark.process]

#: What a single broker can show, and at once.
RULES = """
version: 1
rules:
  - {name: at_risk, severity: page, keep_firing_for: 0s, when: {cluster_findings: [min_isr_too_high]}}
"""


def test_it_is_reported_until_the_topic_has_been_mended(broker: "KafkaBroker", tmp_path: Path) -> None:
    from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

    lab = Lab(broker.client_settings())
    topic = lab.topic(partitions=1, **{"min.insync.replicas": "2"})
    lab.commit(lab.name("reader"), topic, {0: 0})
    rules = tmp_path / "rules.yaml"
    rules.write_text(RULES, encoding="utf-8")
    with Receiver() as receiver:
        config = Config(
            data=str(tmp_path),
            clusters=(lab.cluster(),),
            alerts={"rules_file": rules, "channels": [{"name": "ops", "url": receiver.url}]},
        )

        def look() -> list[tuple[str, str, str | None]]:
            (cost,) = collect_once(config)
            assert not cost.errors
            alert_once(config)
            return [(got.document["event"], got.document["kind"], got.document["status"]) for got in receiver.got]

        firing = ("firing", "min_isr_too_high", "degraded")
        assert look() == [firing]
        assert receiver.got[0].document["sentence"] == (
            f"1 partition has fewer replicas than min.insync.replicas ({topic}-0). Kafka 3.7 and newer "
            "accepts writes with fewer copies than that; older brokers reject producers with acks=all. Add replicas "
            "with kafka-reassign-partitions, or lower min.insync.replicas."
        )
        one = ConfigEntry("min.insync.replicas", "1", incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[one])
        lab.admin.incremental_alter_configs([resource])[resource].result(20)
        assert look() == [firing, ("resolved", "min_isr_too_high", "healthy")]
