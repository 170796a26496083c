"""What the samples of a cluster mean for its records and committed offsets."""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lagwise.domain.cluster_findings import ClusterFinding, ClusterFindingKind, cluster_findings
from lagwise.domain.replicas import Replicas, ReplicaState, ReplicaTally

NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)


def kafka_sample(**columns: Any) -> dict[str, Any]:
    """The row of a healthy Kafka cluster with three brokers."""
    return {
        "system": "kafka",
        "finished_at": NOW,
        "errors": [],
        "brokers": [broker(str(number)) for number in (1, 2, 3)],
        "replicas": [],
        "offsets_topic_replicas": 3,
        "offsets_retention_seconds": 7 * 86400.0,
        **columns,
    }


def rocketmq_sample(**columns: Any) -> dict[str, Any]:
    """The row of a healthy RocketMQ cluster with one broker."""
    return kafka_sample(system="rocketmq", replicas=None, offsets_topic_replicas=None, brokers=[broker("a")]) | columns


def broker(name: str, *, role: str = "broker", clock_ahead: float | None = None, gone: float | None = None) -> Any:
    gone_at = None if gone is None else NOW - timedelta(seconds=gone)
    return {"name": name, "role": role, "clock_ahead_seconds": clock_ahead, "gone_at": gone_at}


def trouble(state: str, partitions: int = 1, *, topic: str | None = None, missing: str = "") -> Mapping[str, Any]:
    return {"topic": topic, "state": state, "partitions": partitions, "named": "orders-3", "missing": missing}


def error(kind: str, example: str, count: int = 1) -> Mapping[str, Any]:
    return {"kind": kind, "count": count, "example": example}


def only(sample: Mapping[str, Any]) -> ClusterFinding:
    found = cluster_findings(sample)
    assert found is not None
    (finding,) = found
    return finding


OFFSETS = "__consumer_offsets"


class TestReplicas:
    @pytest.mark.parametrize(
        ("leader", "replicas", "in_sync", "min_isr", "state", "why"),
        [
            (1, [1, 2, 3], [1, 2, 3], 2, None, "all are there"),
            (1, [1, 2, 3], [3, 1, 2], None, None, "what is required is not known, and all are there"),
            (None, [1, 2, 3], [2], 2, "no_leader", "that is worse than too few in sync"),
            (1, [1, 2, 3], [1], 2, "under_min_isr", "one of two that are required"),
            (1, [1, 2, 3], [1, 2], 2, "under_replicated", "enough, but fewer than there should be"),
            (1, [1, 2, 3], [1], 1, "last_replica", "enough, but the last one"),
            (1, [1, 2, 3], [1], None, "last_replica", "the last one, whatever is required"),
            (1, [1], [1], 2, "min_isr_too_high", "one replica can never be two, and is all that there is"),
            (1, [1, 2], [1], 3, "under_min_isr", "three can never be, but two are required"),
            (1, [1, 2], [1, 2], 3, "min_isr_too_high", "both are there"),
            (1, [1], [1], 1, None, "one replica is all that was asked for"),
        ],
    )
    def test_a_partition_counts_for_the_worst_that_applies(
        self, leader: int | None, replicas: list[int], in_sync: list[int], min_isr: int | None, state: str, why: str
    ) -> None:
        tally = ReplicaTally(dict.fromkeys((1, 2, 3)))
        tally.add("orders", [Replicas(0, leader, replicas, in_sync)], min_isr)
        assert [found.state for found in tally.troubles()] == ([] if state is None else [ReplicaState(state)]), why

    def test_partitions_are_counted_and_the_first_are_named(self) -> None:
        tally = ReplicaTally({1: None})
        tally.add("orders", [Replicas(n, None if n < 5 else 1, [1, 2, 7], [1]) for n in range(6)], 1)
        assert list(map(asdict, tally.troubles())) == [
            {
                "state": "no_leader",
                "partitions": 5,
                "named": "orders-0, orders-1, orders-2 and 2 more",
                "missing": "2, 7",
            },
            {"state": "last_replica", "partitions": 1, "named": "orders-5", "missing": "2, 7"},
        ]

    @pytest.mark.parametrize(
        ("racks", "replicas", "is_found", "why"),
        [
            ({1: "a", 2: "a", 3: "b"}, [1, 2], True, "both in a, though there is b"),
            ({1: "a", 2: "a", 3: "b"}, [1, 3], False, "in both racks"),
            ({1: "a", 2: "a", 3: "a"}, [1, 2], False, "there is no other rack"),
            ({1: "a", 2: "a", 3: "b"}, [1], False, "one replica is in one rack anyhow"),
            ({1: None, 2: None, 3: "b"}, [1, 2], False, "where they are is not known"),
        ],
    )
    def test_one_rack(self, racks: dict[int, str | None], replicas: list[int], is_found: bool, why: str) -> None:
        tally = ReplicaTally(racks)
        tally.add("orders", [Replicas(0, replicas[0], replicas, replicas)], 1)
        assert [found.state for found in tally.troubles()] == [ReplicaState.ONE_RACK] * is_found, why


class TestKafka:
    def test_nothing_is_found_on_a_healthy_cluster(self) -> None:
        assert cluster_findings(kafka_sample()) == []

    def test_it_is_unknown_while_replicas_could_not_be_read(self) -> None:
        assert cluster_findings(kafka_sample(replicas=None)) is None
        assert cluster_findings(kafka_sample(system="flink", replicas=None)) is None

    @pytest.mark.parametrize(
        ("state", "of_topics", "of_offsets"),
        [
            ("no_leader", "no_leader", "offsets_at_risk"),
            ("under_min_isr", "under_min_isr", "offsets_at_risk"),
            ("min_isr_too_high", "min_isr_too_high", "min_isr_too_high"),
            ("last_replica", "under_replicated", "offsets_at_risk"),
            ("under_replicated", "under_replicated", "under_replicated"),
            ("one_rack", "one_rack", "one_rack"),
        ],
    )
    def test_the_offsets_topic_weighs_more(self, state: str, of_topics: str, of_offsets: str) -> None:
        assert only(kafka_sample(replicas=[trouble(state)])).kind == of_topics
        assert only(kafka_sample(replicas=[trouble(state, topic=OFFSETS)])).kind == of_offsets

    def test_partitions_without_a_leader(self) -> None:
        found = only(kafka_sample(replicas=[trouble("no_leader", 2, missing="2, 3")]))
        assert found.sentence == "2 partitions have no leader (orders-3). Nobody can read or write there."
        assert found.remedy == "Brokers 2, 3 are not in the cluster: start them."

    def test_an_offsets_topic_whose_groups_cannot_commit(self) -> None:
        found = only(kafka_sample(replicas=[trouble("under_min_isr", topic=OFFSETS)]))
        assert found.sentence == (
            "1 partition of __consumer_offsets has fewer in-sync replicas than min.insync.replicas (orders-3). The "
            "groups whose offsets are there cannot commit: after a restart they read again."
        )
        assert found.remedy.startswith("The brokers of their replicas are in the cluster")

    def test_one_replica_of_the_offsets_topic(self) -> None:
        found = only(kafka_sample(offsets_topic_replicas=1))
        assert found.kind is ClusterFindingKind.OFFSETS_UNREPLICATED
        assert found.remedy == "Raise its replication factor to 3 with kafka-reassign-partitions."
        alone = only(kafka_sample(offsets_topic_replicas=1, brokers=[broker("1"), broker("9", role="controller")]))
        assert alone.remedy == "Add brokers first. Raise its replication factor to 3 with kafka-reassign-partitions."

    def test_offsets_that_are_kept_for_less_than_usual(self) -> None:
        found = only(kafka_sample(offsets_retention_seconds=86400.0))
        assert found.kind is ClusterFindingKind.OFFSETS_RETENTION
        assert "down for 1 d are deleted" in found.sentence
        assert cluster_findings(kafka_sample(offsets_retention_seconds=None)) == [], "not known is not short"

    def test_the_most_urgent_comes_first(self) -> None:
        troubles = [trouble("under_replicated"), trouble("no_leader"), trouble("last_replica", topic=OFFSETS)]
        found = cluster_findings(kafka_sample(replicas=troubles, offsets_topic_replicas=1)) or []
        assert [one.kind.value for one in found] == [
            "offsets_at_risk",
            "no_leader",
            "under_replicated",
            "offsets_unreplicated",
        ]


class TestClocks:
    @pytest.mark.parametrize("ahead", [None, 0.0, 9.9, -9.9])
    def test_clocks_that_agree(self, ahead: float | None) -> None:
        assert cluster_findings(kafka_sample(brokers=[broker("1", clock_ahead=ahead)])) == []

    @pytest.mark.parametrize(
        ("name", "role", "ahead", "said"),
        [
            ("1", "broker", 10.0, "The clock of broker 1 is 10 s ahead of that of the collector"),
            ("3000", "controller", -90.0, "The clock of controller 3000 is 1 min 30 s behind that of the collector"),
        ],
    )
    def test_a_clock_that_differs(self, name: str, role: str, ahead: float, said: str) -> None:
        found = only(kafka_sample(brokers=[broker(name, role=role, clock_ahead=ahead)]))
        assert found.kind is ClusterFindingKind.CLOCK_DIFFERS
        assert found.sentence.startswith(said)


class TestRocketmq:
    def test_nothing_is_found_on_a_healthy_cluster(self) -> None:
        assert cluster_findings(rocketmq_sample()) == []

    @pytest.mark.parametrize("kind", ["disk_full", "disk_too_full", "disk_filling", "no_master"])
    def test_what_samples_report_among_their_errors(self, kind: str) -> None:
        found = only(rocketmq_sample(errors=[error(kind, "broker-a: it is so"), error("timeout", "no answer")]))
        assert (found.kind, found.sentence) == (ClusterFindingKind(kind), "Broker broker-a: it is so.")

    def test_hidden_details_are_no_finding(self) -> None:
        """Of readers who may not see all groups of the cluster."""
        hidden = {"kind": "disk_full", "count": None, "example": None}
        assert cluster_findings(rocketmq_sample(errors=[hidden])) == []

    @pytest.mark.parametrize(("count", "more"), [(2, " So does 1 more broker."), (3, " So do 2 more brokers.")])
    def test_several_brokers(self, count: int, more: str) -> None:
        found = only(rocketmq_sample(errors=[error("disk_full", "broker-a: its disk is 91% full", count)]))
        assert found.sentence == f"Broker broker-a: its disk is 91% full.{more}"

    def test_a_broker_that_is_gone_until_it_was_removed(self) -> None:
        gone = only(rocketmq_sample(brokers=[broker("a"), broker("b", gone=95.0)]))
        assert gone.kind is ClusterFindingKind.BROKER_GONE
        assert gone.sentence.startswith("Broker b has been gone for 1 min 35 s: the name servers no longer list it")
        assert cluster_findings(rocketmq_sample(brokers=[broker("a"), broker("b", gone=86400.0)])) == []
