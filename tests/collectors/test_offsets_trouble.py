"""Trouble with ``__consumer_offsets`` on real brokers: it costs exact events for a while, and nothing else."""

import contextlib
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AclOperation, ResourceType

from lagwise.config import Cluster, Config
from lagwise.tables.raw import COMMITS, EVENTS, SAMPLES
from lagwise.tables.store import Lake
from lagwise_collectors.reader_process.isolated_source import IsolatedTail
from lagwise_collectors.run import check_access
from lagwise_sandbox.broker import KafkaBroker
from tests.collectors.kafka import Lab, eventually
from tests.collectors.test_kafka_trouble import grant, grant_nothing, reading
from tests.collectors.test_run import Running

pytestmark = pytest.mark.broker


@contextlib.contextmanager
def following(cluster: Cluster, state: Path) -> Iterator[IsolatedTail]:
    tail = IsolatedTail(cluster, state)
    try:
        yield tail
    finally:
        tail.close()


def live(tail: IsolatedTail) -> bool:
    return tail.take({})[1].is_caught_up


def rewinds(tail: IsolatedTail, group: str) -> list[tuple[str, str]]:
    """Rewinds of the group that the tail reports now, once there are some."""

    def reported() -> list[tuple[str, str]]:
        snapshot, _, _ = tail.take({})
        rows = [] if snapshot is None else snapshot.rows(EVENTS).to_pylist()
        tail.acknowledge()
        return [(r["before"], r["after"]) for r in rows if r["group"] == group and r["kind"] == "commit_rewound"]

    found: list[tuple[str, str]] = eventually(reported)
    return found


def test_without_the_right_to_read_it_is_off_and_says_what_is_missing(
    secured_broker: KafkaBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = secured_broker.client_settings("monitor")
    monkeypatch.setenv("LAB_MONITOR", settings["sasl.password"])
    lab = Lab(secured_broker.client_settings())
    lab.commit(lab.name("g"), lab.topic(), {0: 9})
    cluster = lab.cluster(
        offsets_topic=True,
        librdkafka={
            **{k: v for k, v in settings.items() if k != "bootstrap.servers"},
            "sasl.password": "${env:LAB_MONITOR}",
        },
    )
    with following(cluster, tmp_path / "kept.state") as tail, reading(cluster) as source:

        def refused() -> str | None:
            _, state, errors = tail.take({})
            assert not state.is_caught_up
            return errors.example("offsets_topic_not_authorized") if errors else None

        assert "grant it Read on the topic __consumer_offsets" in eventually(refused)
        assert source.collect().errors == {}
        check = next(c for c in check_access(cluster) if c.name == "__consumer_offsets")
        assert (check.ok, check.required, check.privilege) == (False, False, "Read on Topic __consumer_offsets")
        grant(lab, (ResourceType.TOPIC, "__consumer_offsets", AclOperation.READ))
        eventually(lambda: live(tail))
        check = next(c for c in check_access(cluster) if c.name == "__consumer_offsets")
        grant_nothing(lab)
        assert (check.ok, check.detail) == (True, "can be read")


def test_a_broker_that_dies_loses_no_event_and_invents_none(broker: KafkaBroker, tmp_path: Path) -> None:
    del broker  # what it skips for is skipped here too
    with KafkaBroker(data=tmp_path / "broker") as own:
        lab = Lab(own.client_settings())
        topic, group = lab.topic(), lab.name("g")
        lab.commit(group, topic, {0: 9})
        cluster = lab.cluster(offsets_topic=True, timeout_seconds=2.0)
        with following(cluster, tmp_path / "kept.state") as tail:
            eventually(lambda: live(tail))
            lab.commit(group, topic, {0: 5})
            assert rewinds(tail, group) == [("9", "5")]
            own.kill()
            eventually(lambda: not live(tail))
            own.start()
            eventually(lambda: live(tail))
            Lab(own.client_settings()).commit(group, topic, {0: 3})
            assert rewinds(tail, group) == [("5", "3")]


def test_a_restart_resumes_and_a_damaged_state_starts_over(
    broker: KafkaBroker, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    lab = Lab(broker.client_settings())
    topic, group = lab.topic(), lab.name("g")
    lab.commit(group, topic, {0: 9})
    cluster, state = lab.cluster(offsets_topic=True), tmp_path / "kept.state"
    with following(cluster, state) as tail:
        eventually(lambda: live(tail))
        lab.commit(group, topic, {0: 5})
        assert rewinds(tail, group) == [("9", "5")]
    lab.commit(group, topic, {0: 2})  # nobody is there to see it
    with following(cluster, state) as tail:
        assert rewinds(tail, group) == [("5", "2")]
    state.write_bytes(state.read_bytes()[:-7])
    with following(cluster, state) as tail:
        eventually(lambda: live(tail))
        lab.commit(group, topic, {0: 1})
        assert rewinds(tail, group) == [("2", "1")]  # … and not those from before once more
    assert any("is read from the beginning" in r.getMessage() and "damaged" in r.getMessage() for r in caplog.records)


@pytest.mark.process
def test_the_collector_brings_it_all_into_the_lake(broker: KafkaBroker, tmp_path: Path) -> None:
    lab = Lab(broker.client_settings())
    topic, group = lab.topic(), lab.name("g")
    lab.produce(topic, {0: 50})
    lab.commit(group, topic, {0: 9, 1: 0})
    config = Config(data=str(tmp_path / "data"), clusters=(lab.cluster(offsets_topic=True, interval_seconds=1),))
    lake = Lake(config.lake_uri)

    def counted() -> list[dict[str, object]]:
        return [row for row in lake.read(COMMITS).to_pylist() if row["commits_since"] is not None]

    with Running(config):
        eventually(counted)
        lab.commit(group, topic, {0: 5})
        eventually(lambda: any(row["commits_since"] == 1 for row in counted()))
        with lab.consumer(group, topic, **{"client.id": "a"}):
            eventually(lambda: any(row["kind"] == "rebalance" for row in lake.read(EVENTS).to_pylist()))
    events = lake.read(EVENTS).to_pylist()
    [rewind] = [row for row in events if row["kind"] == "commit_rewound"]
    assert (rewind["before"], rewind["after"], rewind["source"]) == ("9", "5", "offsets_topic")
    assert {row["source"] for row in events if row["kind"] == "rebalance"} == {"offsets_topic"}
    assert all(row["errors"] == [] for row in lake.read(SAMPLES).to_pylist())
    assert all(row["committed_at"] is not None for row in counted())
    assert (config.state / "offsets-topic" / "cluster-lab.state").exists()
