"""Trouble on the other side, made on real brokers: each costs only itself, and is reported in one clear line."""

import contextlib
import json
import logging
import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psutil
import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from lagwise.config import Cluster
from lagwise.tables.raw import COMMITS, GROUPS, TOPICS, WATERMARKS
from lagwise_collectors.kafka.requests import committed_offsets
from lagwise_collectors.kafka.source import KafkaSource
from lagwise_collectors.kafka_in_process import KafkaInProcess
from lagwise_collectors.protocol import Check, Snapshot
from lagwise_collectors.reader_process.isolated_source import IsolatedSource
from lagwise_collectors.run import check_access
from lagwise_collectors.sample_diff.compare_samples import PreviousSample, compare_samples
from lagwise_sandbox.broker import KafkaBroker
from tests.collectors.kafka import Lab, eventually, rows
from tests.stopped import go_on, stop

pytestmark = pytest.mark.broker

_PASSWORD = "not-the-right-one-8471"


@contextlib.contextmanager
def reading(cluster: Cluster) -> Iterator[IsolatedSource]:
    source = IsolatedSource(cluster)
    try:
        yield source
    finally:
        source.close()


def one_sample(cluster: Cluster) -> Snapshot:
    with reading(cluster) as source:
        return source.collect()


def sole_error(snapshot: Snapshot) -> tuple[str, str]:
    """Kind and example of the one error of a sample in which nothing could be read."""
    header = snapshot.header
    assert (header["groups"], header["group_partitions"], header["partitions"]) == (0, 0, 0)
    assert (header["commits_read_at"], header["watermarks_read_at"]) == (None, None)
    assert list(snapshot.tables) == ["samples"]
    [error] = header["errors"]
    return error["kind"], error["example"]


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class TestNoConnection:
    def test_nothing_listens_there(self) -> None:
        cluster = Cluster(bootstrap=f"127.0.0.1:{closed_port()}", timeout_seconds=20)
        began = time.monotonic()
        kind, example = sole_error(one_sample(cluster))
        assert (kind, "Connection refused" in example) == ("unreachable", True)
        assert time.monotonic() - began < 15  # the whole timeout is not waited for
        [check] = check_access(cluster)
        assert (check.name, check.ok) == ("connect", False)
        assert check.advice is not None
        assert "bootstrap" in check.advice

    def test_the_host_does_not_exist(self) -> None:
        kind, example = sole_error(one_sample(Cluster(bootstrap="no-such-host.invalid:9092")))
        assert (kind, "no-such-host.invalid" in example) == ("host_not_found", True)

    def test_tls_towards_a_broker_without(self, broker: KafkaBroker) -> None:
        cluster = Cluster(bootstrap=broker.bootstrap, librdkafka={"security.protocol": "SSL"})
        kind, example = sole_error(one_sample(cluster))
        assert kind in ("unreachable", "tls_failed")
        assert "SSL_HANDSHAKE" in example

    def test_a_setting_that_librdkafka_does_not_know(self, broker: KafkaBroker) -> None:
        cluster = Cluster(bootstrap=broker.bootstrap, librdkafka={"sasl.foo": "bar"})
        assert sole_error(one_sample(cluster)) == ("setting_refused", 'No such configuration property: "sasl.foo"')

    def test_a_secret_that_does_not_exist(self, broker: KafkaBroker) -> None:
        cluster = Cluster(bootstrap=broker.bootstrap, librdkafka={"sasl.password": "${env:LAB_NO_SUCH_SECRET}"})
        kind, example = sole_error(one_sample(cluster))
        assert kind == "setting_refused"
        assert "LAB_NO_SUCH_SECRET" in example
        [check] = check_access(cluster)
        assert not check.ok
        assert "LAB_NO_SUCH_SECRET" in check.detail

    def test_a_refused_sign_in_never_shows_the_secret(
        self, secured_broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        monkeypatch.setenv("LAB_PASSWORD", _PASSWORD)
        settings = {**secured_broker.client_settings("monitor"), "sasl.password": "${env:LAB_PASSWORD}"}
        cluster = Cluster(bootstrap=settings.pop("bootstrap.servers"), librdkafka=settings, timeout_seconds=20)
        snapshot = one_sample(cluster)
        kind, example = sole_error(snapshot)
        assert kind == "authentication_failed"
        assert "failed" in example.lower()
        [check] = check_access(cluster)
        assert check.advice is not None
        assert "authentication failed" in check.advice
        assert any("librdkafka" in record.getMessage() for record in caplog.records)
        for said in (json.dumps(snapshot.header, default=str), repr(check), caplog.text):
            assert _PASSWORD not in said


class TestPrivileges:
    """What the account ``monitor`` sees with what it is granted: the least that works is in the docs of ``doctor``."""

    @pytest.fixture
    def lab(self, secured_broker: KafkaBroker) -> Iterator[Lab]:
        lab = Lab(secured_broker.client_settings("admin"))
        yield lab
        grant_nothing(lab)

    @pytest.fixture
    def cluster(self, lab: Lab, secured_broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch) -> Cluster:
        settings = secured_broker.client_settings("monitor")
        settings.pop("bootstrap.servers")
        monkeypatch.setenv("LAB_PASSWORD", settings["sasl.password"])
        return lab.cluster(librdkafka={**settings, "sasl.password": "${env:LAB_PASSWORD}"})

    def test_without_any_no_group_is_visible_and_doctor_says_so(self, lab: Lab, cluster: Cluster) -> None:
        lab.commit(lab.name("reader"), lab.topic(), {0: 0})
        assert rows(one_sample(cluster), GROUPS) == []
        checks = {check.name: check for check in check_access(cluster)}
        assert checks["connect"].ok
        assert "no group is visible" in checks["list groups"].detail
        assert not checks["broker settings"].ok
        assert checks["broker settings"].privilege == "DescribeConfigs on Cluster"
        assert not checks["replicas of offsets"].ok
        assert checks["replicas of offsets"].privilege == "Describe and DescribeConfigs on Topic __consumer_offsets"

    def test_one_group_that_may_not_be_described_costs_only_itself(self, lab: Lab, cluster: Cluster) -> None:
        topic = lab.topic()
        for group in ("mine", "theirs"):
            lab.commit(lab.name(group), topic, {0: 3})
        grant(lab, (ResourceType.BROKER, "kafka-cluster", AclOperation.DESCRIBE))
        grant(lab, (ResourceType.GROUP, lab.name("mine"), AclOperation.DESCRIBE))
        grant(lab, (ResourceType.TOPIC, lab.prefix, AclOperation.DESCRIBE))
        snapshot = eventually(lambda: (s := one_sample(cluster)) and rows(s, WATERMARKS) and s)
        errors = {row["group"]: row["error"] for row in rows(snapshot, GROUPS)}
        assert errors == {lab.name("mine"): None, lab.name("theirs"): "group_not_authorized"}
        assert {row["group"] for row in rows(snapshot, COMMITS)} == {lab.name("mine")}
        assert snapshot.header["groups"] == 1
        assert snapshot.errors["group_not_authorized"] == 1
        [failed] = [check for check in check_access(cluster) if not check.ok and check.required]
        assert (failed.name, failed.privilege) == ("describe groups", "Describe on Group")

    def test_where_records_may_not_be_read_nothing_is_looked_up_and_it_is_said_once(
        self, lab: Lab, cluster: Cluster, caplog: pytest.LogCaptureFixture
    ) -> None:
        topic = lab.topic(partitions=1)
        lab.produce(topic, {0: 5})
        lab.commit(lab.name("reader"), topic, {0: 4})
        grant(lab, (ResourceType.GROUP, lab.prefix, AclOperation.DESCRIBE))
        grant(lab, (ResourceType.TOPIC, lab.prefix, AclOperation.DESCRIBE))

        def looked_up(source: KafkaSource) -> list[int | None]:
            return [row["next_record"] for row in rows(source.collect(), COMMITS)]

        def check() -> Check:
            return next(check for check in check_access(cluster) if check.name == "next records")

        with caplog.at_level(logging.INFO):
            source = KafkaSource(cluster)
            eventually(lambda: looked_up(source))
            assert [looked_up(source) for _ in range(4)] == [[None]] * 4
        assert [r.getMessage() for r in caplog.records if "may not read" in r.getMessage()] == [
            f"lab: the account may not read {topic}, so commit markers of transactions on it count as lag. Grant it "
            "Read, or set skip_control_records to false"
        ]
        assert (check().ok, check().required, check().privilege) == (False, False, "Read on Topic")
        grant(lab, (ResourceType.TOPIC, lab.prefix, AclOperation.READ))
        assert eventually(lambda: check().ok)
        source.close()
        eventually(lambda: looked_up(source) == [4])
        source.close()

    def test_a_topic_that_may_not_be_described_costs_only_itself(self, lab: Lab, cluster: Cluster) -> None:
        mine, theirs, group = lab.topic("mine"), lab.topic("theirs"), lab.name("reader")
        lab.produce(mine, {0: 5})
        grant(lab, (ResourceType.GROUP, lab.prefix, AclOperation.DESCRIBE))
        grant(lab, (ResourceType.TOPIC, mine, AclOperation.DESCRIBE))
        with lab.consumer(group, mine), lab.consumer(lab.name("other"), theirs):
            snapshot = eventually(
                lambda: (s := one_sample(cluster)) and {r["topic"] for r in rows(s, WATERMARKS)} == {mine, theirs} and s
            )
        seen = {(row["topic"], row["partition"]): row for row in rows(snapshot, WATERMARKS)}
        assert (seen[mine, 0]["high_watermark"], seen[mine, 0]["error"]) == (5, None)
        assert {seen[theirs, p]["error"] for p in range(3)} == {"topic_not_authorized"}
        assert {seen[theirs, p]["high_watermark"] for p in range(3)} == {None}
        assert snapshot.errors["topic_not_authorized"] >= 1
        # Settings need a further privilege; without it the topic is reported with what is known.
        [row] = rows(snapshot, TOPICS)
        assert (row["topic"], row["partitions"], row["retention_ms"]) == (mine, 3, None)
        assert snapshot.errors["config_topic_not_authorized"] == 1
        assert snapshot.header["offsets_retention_seconds"] is None
        # Whether committed offsets are at risk is not judged, and that is no error of the sample.
        assert (snapshot.header["offsets_topic_replicas"], snapshot.header["replicas"]) == (None, [])

    @pytest.mark.parametrize("big", [1000, 1], ids=["asked as a whole", "asked in slices"])
    def test_commits_on_a_topic_that_may_not_be_described_any_more_are_hidden_and_not_gone(
        self, lab: Lab, cluster: Cluster, monkeypatch: pytest.MonkeyPatch, big: int
    ) -> None:
        """Kafka leaves them out as if they had never been, or gives each an error where they are asked for by name."""
        monkeypatch.setattr(committed_offsets, "BIG_GROUP", big)
        mine, theirs, group = lab.topic("mine"), lab.topic("theirs"), lab.name("reader")
        describe = AclOperation.DESCRIBE
        grant(lab, (ResourceType.GROUP, lab.prefix, describe))
        for topic in (mine, theirs):
            lab.commit(group, topic, {0: 3, 1: 4})
            lab.commit(lab.name("other"), topic, {0: 5})
            grant(lab, (ResourceType.TOPIC, topic, describe))
        source = KafkaSource(cluster)
        before = eventually(lambda: (s := source.collect()) and len(rows(s, COMMITS)) == 6 and s)
        forbidden = AclBindingFilter(
            ResourceType.TOPIC,
            theirs,
            ResourcePatternType.PREFIXED,
            "User:monitor",
            None,
            AclOperation.ANY,
            AclPermissionType.ANY,
        )
        lab.admin.delete_acls([forbidden])[forbidden].result(20)

        def hidden(snapshot: Snapshot) -> set[tuple[str, int]]:
            return {(r["group"], r["partition"]) for r in rows(snapshot, COMMITS) if r["committed"] is None}

        after = eventually(lambda: (s := source.collect()) and hidden(s) and s)
        lab.delete_group(lab.name("other"))
        for snapshot in (after, source.collect(), source.collect()):
            known = {
                (r["topic"], r["partition"]): r["committed"] for r in rows(snapshot, COMMITS) if r["group"] == group
            }
            assert known == {(mine, 0): 3, (mine, 1): 4, (theirs, 0): None, (theirs, 1): None}
            ends = {r["partition"]: r["error"] for r in rows(snapshot, WATERMARKS) if r["topic"] == theirs}
            assert {ends[0], ends[1]} == {"topic_not_authorized"}
            assert snapshot.errors["topic_not_authorized"] >= 1
        assert hidden(after) == {(group, 0), (group, 1), (lab.name("other"), 0)}
        assert hidden(snapshot) == {(group, 0), (group, 1)}  # the other one is gone, and with it what it had
        known_before = compare_samples(PreviousSample(), before).latest
        assert compare_samples(known_before, after).rows.num_rows == 0  # no event says that offsets are gone
        grant(lab, (ResourceType.TOPIC, theirs, describe))
        eventually(lambda: (s := source.collect()) and not hidden(s) and len(rows(s, COMMITS)) == 4)

    def test_the_privileges_that_doctor_names_are_enough(self, lab: Lab, cluster: Cluster) -> None:
        topic, group = lab.topic(**{"retention.ms": "77000"}), lab.name("reader")
        lab.commit(group, topic, {0: 0})
        for kind, name, operation in (
            (ResourceType.GROUP, lab.prefix, AclOperation.DESCRIBE),
            (ResourceType.TOPIC, lab.prefix, AclOperation.DESCRIBE),
            (ResourceType.TOPIC, lab.prefix, AclOperation.DESCRIBE_CONFIGS),
            (ResourceType.BROKER, "kafka-cluster", AclOperation.DESCRIBE_CONFIGS),
            (ResourceType.TOPIC, "__consumer_offsets", AclOperation.DESCRIBE),
            (ResourceType.TOPIC, "__consumer_offsets", AclOperation.DESCRIBE_CONFIGS),
        ):
            grant(lab, (kind, name, operation))
        checks = eventually(lambda: (c := check_access(cluster)) and all(check.ok for check in c) and c)
        assert [check.name for check in checks] == [
            "connect",
            "list groups",
            "describe groups",
            "committed offsets",
            "describe topics",
            "watermarks",
            "topic settings",
            "broker settings",
            "replicas of offsets",
        ]
        snapshot = one_sample(cluster)
        assert snapshot.errors == {}
        assert rows(snapshot, TOPICS)[0]["retention_ms"] == 77000
        assert snapshot.header["offsets_retention_seconds"] == 7 * 24 * 3600
        assert (snapshot.header["offsets_topic_replicas"], snapshot.header["offsets_topic_min_isr"]) == (1, 1)


class TestBrokerGone:
    @pytest.fixture
    def own(self, broker: KafkaBroker, tmp_path: Path) -> Iterator[KafkaBroker]:
        """A broker of the test's own (the shared one is asked for, so that what it skips for is skipped here too)."""
        with KafkaBroker(data=tmp_path / "broker") as running:
            yield running

    @pytest.mark.parametrize("kind", [IsolatedSource, KafkaInProcess])
    def test_a_broker_that_dies_and_comes_back(
        self, own: KafkaBroker, kind: type[IsolatedSource | KafkaInProcess]
    ) -> None:
        """librdkafka may end its process at this (which is why it has one); the samples go on."""
        lab = Lab(own.client_settings())
        topic, group = lab.topic(), lab.name("reader")
        lab.produce(topic, {0: 9})
        lab.commit(group, topic, {0: 4})
        cluster = lab.cluster(timeout_seconds=2.0)
        lab.admin = None  # type: ignore[assignment]  # a client of ours must not live through the restart either

        def committed(snapshot: Snapshot) -> list[int]:
            return [row["committed"] for row in rows(snapshot, COMMITS)]

        with closing(kind(cluster)) as source:
            assert committed(source.collect()) == [4]
            for _ in range(2):
                own.kill()
                down = source.collect()
                assert down.header["groups"] == 0
                assert set(down.errors) <= {"unreachable", "timeout", "reader_crashed"}
                own.start()
                back = eventually(lambda: (s := source.collect()) and s.header["partitions"] == 3 and s)
                assert committed(back) == [4]
                assert rows(back, WATERMARKS)[0]["high_watermark"] == 9

    @pytest.mark.parametrize("kind", [IsolatedSource, KafkaInProcess])
    def test_a_broker_that_hangs_costs_the_timeout_and_no_more(
        self, own: KafkaBroker, kind: type[IsolatedSource | KafkaInProcess]
    ) -> None:
        lab = Lab(own.client_settings())
        lab.commit(lab.name("reader"), lab.topic(), {0: 4})
        cluster = lab.cluster(timeout_seconds=1.0)
        with closing(kind(cluster)) as source:
            assert source.collect().header["groups"] == 1
            assert own.pid is not None
            assert Path(psutil.Process(own.pid).exe()).name == "java", "the broker itself, nothing that started it"
            stop(own.pid)
            try:
                began = time.monotonic()
                hung = source.collect()
                assert time.monotonic() - began < 20
            finally:
                go_on(own.pid)
            assert hung.header["groups"] == 0
            assert set(hung.errors) <= {"timeout", "unreachable", "reader_crashed"}
            eventually(lambda: source.collect().header["groups"] == 1)

    def test_partitions_without_a_leader_cost_only_themselves(self, broker: KafkaBroker, tmp_path: Path) -> None:
        """A broker of three disks, of which one is torn out: what lay there has no leader any more."""
        disks = [tmp_path / "broker" / name for name in ("logs", "second", "third")]
        extra = {
            "log.dirs": ",".join(map(str, disks)),
            "metadata.log.dir": str(disks[0]),
            "offsets.topic.num.partitions": 1,
        }
        with KafkaBroker(data=tmp_path / "broker", extra=extra) as own:
            lab = Lab(own.client_settings())
            topic, group = lab.topic(partitions=8), lab.name("reader")
            lab.produce(topic, {p: p + 1 for p in range(8)})
            lab.commit(group, topic, dict.fromkeys(range(8), 1))
            # The disks with the metadata and with the group's commits stay.
            lost = next(disk for disk in disks[1:] if not list(disk.glob("__consumer_offsets-*")))
            torn = {int(path.name.rsplit("-", 1)[1]) for path in lost.glob(f"{topic}-*")}
            assert 0 < len(torn) < 8
            with reading(lab.cluster()) as source:
                assert source.collect().errors == {}
                shutil.rmtree(lost)
                snapshot = eventually(lambda: (s := source.collect()) and s.errors and s)
                snapshot = eventually(lambda: (s := source.collect()) and s.errors.get("leader_not_available") and s)
            seen = {row["partition"]: row for row in rows(snapshot, WATERMARKS)}
            assert {p for p, row in seen.items() if row["error"]} == torn
            assert {seen[p]["error"] for p in torn} == {"leader_not_available"}
            assert {seen[p]["leader"] for p in torn} == {None}
            assert {p: seen[p]["high_watermark"] for p in seen if p not in torn} == {
                p: p + 1 for p in range(8) if p not in torn
            }
            assert snapshot.header["group_partitions"] == 8
            assert snapshot.header["wall_seconds"] < 5  # nobody waited for a leader


def grant_nothing(lab: Lab) -> None:
    """Take from the account ``monitor`` whatever it was granted."""
    whatever = AclBindingFilter(
        ResourceType.ANY,
        None,
        ResourcePatternType.ANY,
        "User:monitor",
        None,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    lab.admin.delete_acls([whatever])[whatever].result(20)


def grant(lab: Lab, right: tuple[ResourceType, str, AclOperation]) -> None:
    """Grant it to the account ``monitor``."""
    kind, name, operation = right
    pattern = ResourcePatternType.LITERAL if kind is ResourceType.BROKER else ResourcePatternType.PREFIXED
    binding = AclBinding(kind, name, pattern, "User:monitor", "*", operation, AclPermissionType.ALLOW)
    lab.admin.create_acls([binding])[binding].result(20)
