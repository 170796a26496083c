"""Groups of every type, on a real broker: none is absent, and what is known of them is what Kafka's own tools say."""

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, ShareConsumer, TopicPartition
from confluent_kafka.admin import AclOperation, ResourceType

from lagwise.tables.raw import COMMITS, GROUPS, MEMBERS
from lagwise_collectors.kafka.access import check_access
from lagwise_collectors.kafka.requests.errors import KafkaTrouble
from lagwise_collectors.kafka.source import KafkaSource
from lagwise_collectors.kafka_protocol.client import ProtocolClient
from lagwise_collectors.kafka_protocol.group_listing import list_every_group
from lagwise_collectors.protocol import ErrorTally, Snapshot
from lagwise_sandbox.broker import KafkaBroker
from tests.collectors.kafka import Lab, eventually, rows
from tests.collectors.kafka_members import (
    ALTER_SHARE_GROUP_OFFSETS,
    ask,
    classic_member,
    join_as_streams,
)
from tests.collectors.test_kafka_trouble import grant, grant_nothing
from tests.sandbox.kafka_tools import listed_groups, share_group_offsets

pytestmark = pytest.mark.broker


@pytest.fixture
def lab(broker: KafkaBroker) -> Lab:
    return Lab(broker.client_settings())


@pytest.fixture
def source(lab: Lab) -> Iterator[KafkaSource]:
    with closing(KafkaSource(lab.cluster())) as made:
        yield made


@contextmanager
def share_member(lab: Lab, group: str, topic: str) -> Iterator[None]:
    """A real share consumer that takes and acknowledges whatever comes."""
    stop = threading.Event()

    def run() -> None:
        consumer = ShareConsumer({**lab.settings, "group.id": group, "log_level": 2})
        consumer.subscribe([topic])
        while not stop.is_set():
            consumer.poll(0.1)
        consumer.close()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def set_start_offset(lab: Lab, group: str, topic: str, offsets: dict[int, int]) -> None:
    partitions = [{"partition_index": number, "start_offset": offset} for number, offset in offsets.items()]
    value = {"group_id": group, "topics": [{"topic_name": topic, "partitions": partitions}]}
    assert ask(lab.cluster(), ALTER_SHARE_GROUP_OFFSETS, value)["error_code"] == 0


def types_of(snapshot: Snapshot) -> dict[str, str]:
    return {row["group"]: row["type"] for row in rows(snapshot, GROUPS)}


def listed_by_both(lab: Lab) -> dict[str, tuple[str, str]] | None:
    """All groups of the broker by Kafka's own tool; None if we do not list the same ones.

    What other tests left on the broker is in both, and may go while the tool, which takes seconds, is at work.
    """
    of_tool = listed_groups(lab.settings["bootstrap.servers"])
    with closing(ProtocolClient(lab.cluster())) as client:
        listing = list_every_group(client, lambda _name: True, ErrorTally())
    return of_tool if listing.types.keys() == of_tool.keys() else None


def test_every_group_that_kafkas_tool_lists_is_listed_and_sampled(lab: Lab, source: KafkaSource) -> None:
    topic, cluster = lab.topic(), lab.cluster()
    lab.commit(lab.name("simple group"), topic, {0: 0})
    with (
        lab.consumer(lab.name("classic"), topic),
        lab.consumer(lab.name("consumer"), topic, **{"group.protocol": "consumer"}),
        share_member(lab, lab.name("share"), topic),
        classic_member(cluster, lab.name("workers"), "connect"),
        classic_member(cluster, lab.name("election"), "sr"),
        join_as_streams(cluster, lab.name("streams"), [topic]),
    ):
        expected = {
            "simple group": ("Classic", ""),
            "classic": ("Classic", "consumer"),
            "consumer": ("Consumer", "consumer"),
            "share": ("Share", "share"),
            "workers": ("Classic", "connect"),
            "election": ("Classic", "sr"),
            "streams": ("Streams", "streams"),
        }
        eventually(lambda: types_of(source.collect()).keys() == {lab.name(kind) for kind in expected})
        of_tool = eventually(lambda: listed_by_both(lab))
        snapshot = source.collect()
        checks = {check.name: check for check in check_access(cluster)}
    assert {name: of_tool[lab.name(name)] for name in expected} == expected
    words = {"simple group": "simple", "workers": "connect", "election": "other"}
    assert types_of(snapshot) == {lab.name(name): words.get(name, name) for name in expected}
    assert {row["error"] for row in rows(snapshot, GROUPS)} == {None}
    assert snapshot.errors == {}
    assert {row["group"] for row in rows(snapshot, MEMBERS)} == {
        lab.name(name) for name in expected if name != "simple group"
    }
    said = checks["list groups"].detail
    assert said.endswith(", 7 of them watched")
    assert all(f" {word}" in said for word in ("classic", "consumer", "connect", "other", "share", "simple", "streams"))
    assert all(check.ok for check in checks.values())


def test_a_share_groups_start_offsets_are_what_it_has_committed(lab: Lab, source: KafkaSource) -> None:
    topic, group = lab.topic(partitions=2), lab.name("share")
    lab.produce(topic, {0: 9, 1: 4})
    with share_member(lab, group, topic):
        joined = eventually(
            lambda: (s := source.collect()) and [bool(r["owner"]) for r in rows(s, COMMITS)] == [True, True] and s
        )
    assert {row["owner"] for row in rows(joined, COMMITS)} == {row["member_id"] for row in rows(joined, MEMBERS)}
    set_start_offset(lab, group, topic, {0: 3})
    snapshot = source.collect()
    seen = {(row["topic"], row["partition"]): row["committed"] for row in rows(snapshot, COMMITS)}
    of_tool = share_group_offsets(lab.settings["bootstrap.servers"], group)
    assert of_tool == {(topic, 0): (3, 6), (topic, 1): (None, None)}
    assert seen == {pair: start for pair, (start, _) in of_tool.items()}
    assert snapshot.header["group_partitions"] == 1
    [row] = rows(snapshot, GROUPS)
    assert (row["state"], row["member_count"], row["error"]) == ("Empty", 0, None)


def test_a_streams_groups_tasks_are_the_partitions_that_it_owns(lab: Lab, source: KafkaSource) -> None:
    """A task has a part of each source topic, as far as there is one."""
    wide, narrow = lab.topic("wide", partitions=3), lab.topic("narrow", partitions=1)
    group = lab.name("streams")
    with join_as_streams(lab.cluster(), group, [wide, narrow]) as member:
        snapshot = eventually(lambda: (s := source.collect()) and rows(s, COMMITS) and s)
    owned = {(wide, 0), (wide, 1), (wide, 2), (narrow, 0)}
    assert {(row["topic"], row["partition"]): row["owner"] for row in rows(snapshot, COMMITS)} == dict.fromkeys(
        owned, member.id
    )
    assert types_of(snapshot) == {group: "streams"}


def test_a_streams_group_whose_topic_is_missing_says_so(lab: Lab, source: KafkaSource) -> None:
    with join_as_streams(lab.cluster(), lab.name("streams"), [lab.name("nowhere")]):
        [row] = rows(source.collect(), GROUPS)
    assert (row["state"], row["error"]) == ("NotReady", None)


def test_an_application_that_changes_its_protocol_is_in_every_sample(lab: Lab, source: KafkaSource) -> None:
    topic, group = lab.topic(), lab.name("app")
    lab.produce(topic, {0: 8})
    with lab.consumer(group, topic) as member:
        eventually(lambda: [r["state"] for r in rows(source.collect(), GROUPS)] == ["Stable"])
        member.commit([TopicPartition(topic, 0, 5)])
    seen = []
    for _ in range(3):
        seen.append(source.collect())
    with join_as_streams(lab.cluster(), group, [topic]):
        for _ in range(3):
            seen.append(source.collect())
    assert [types_of(snapshot)[group] for snapshot in seen] == ["classic"] * 3 + ["streams"] * 3
    committed = [[row["committed"] for row in rows(s, COMMITS) if row["partition"] == 0] for s in seen]
    assert committed == [[5]] * 6


def test_groups_seen_before_are_unreadable_and_not_gone_where_our_requests_fail(
    secured_broker: KafkaBroker, tmp_path: Path
) -> None:
    """A password that was rotated too early: librdkafka keeps its connection, ours is refused."""
    lab, password = Lab(secured_broker.client_settings()), tmp_path / "password"
    login = {name: value for name, value in lab.settings.items() if name != "bootstrap.servers"}
    cluster = lab.cluster(librdkafka={**login, "sasl.password": f"${{file:{password}}}"})
    topic, group = lab.topic(), lab.name("workers")
    lab.commit(lab.name("simple"), topic, {0: 0})
    password.write_text(login["sasl.password"])
    with classic_member(cluster, group, "connect"), closing(KafkaSource(cluster)) as source:
        assert types_of(source.collect()) == {group: "connect", lab.name("simple"): "simple"}
        password.write_text("rotated")
        assert source._session is not None
        source._session.own.close()  # as after the broker has closed the connection
        refused = source.collect()
        password.unlink()
        without = source.collect()
        password.write_text(login["sasl.password"])
        back = source.collect()
    assert types_of(refused) == types_of(without) == types_of(back)
    assert refused.unreadable_groups == without.unreadable_groups == {group}
    assert back.unreadable_groups == set()
    assert (refused.errors.keys(), without.errors.keys()) == ({"authentication_failed"}, {"setting_refused"})
    assert back.errors == {}


def test_a_connection_that_the_broker_closed_meanwhile_is_no_trouble(lab: Lab) -> None:
    with closing(ProtocolClient(lab.cluster())) as client:
        for _ in range(2):
            errors = ErrorTally()
            list_every_group(client, lambda _name: True, errors)
            assert not errors
            for connection in client._connections.values():
                connection._socket.shutdown(socket.SHUT_RDWR)


def test_what_only_librdkafka_can_is_left_to_it_and_doctor_says_what_that_costs(lab: Lab) -> None:
    """Consumer groups are watched as ever; a setting that only librdkafka knows stands for Kerberos."""
    topic = lab.topic()
    lab.commit(lab.name("simple"), topic, {0: 2})
    cluster = lab.cluster(librdkafka={"ssl.cipher.suites": "DEFAULT"})
    with pytest.raises(KafkaTrouble, match=r"ssl\.cipher\.suites") as refused:
        ProtocolClient(cluster)
    assert refused.value.kind == "not_supported"
    with classic_member(lab.cluster(), lab.name("workers"), "connect"), closing(KafkaSource(cluster)) as source:
        snapshot = source.collect()
        checks = {check.name: check for check in check_access(cluster)}
    assert types_of(snapshot) == {lab.name("simple"): "simple"}
    assert snapshot.errors == {}
    check = checks["groups of every type"]
    assert (check.ok, check.required) == (False, False)
    assert "ssl.cipher.suites" in check.detail


def test_commits_of_a_streams_group_are_read_as_any(lab: Lab, source: KafkaSource) -> None:
    topic, group = lab.topic(partitions=1), lab.name("streams")
    lab.produce(topic, {0: 4})
    consumer = Consumer({**lab.settings, "group.id": group})
    consumer.commit(offsets=[TopicPartition(topic, 0, 3)], asynchronous=False)
    consumer.close()
    with join_as_streams(lab.cluster(), group, [topic]) as member:
        snapshot = eventually(lambda: (s := source.collect()) and rows(s, COMMITS)[0]["owner"] and s)
    [row] = rows(snapshot, COMMITS)
    assert (row["topic"], row["committed"], row["owner"]) == (topic, 3, member.id)


def test_the_rights_that_doctor_names_are_enough_for_every_type(
    secured_broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = Lab(secured_broker.client_settings())
    monkeypatch.setenv("LAB_ADMIN_PASSWORD", lab.settings["sasl.password"])
    monitor = secured_broker.client_settings("monitor")
    monkeypatch.setenv("LAB_PASSWORD", monitor.pop("sasl.password"))
    monitor.pop("bootstrap.servers")
    login = {name: value for name, value in lab.settings.items() if name != "bootstrap.servers"}
    admin = lab.cluster(librdkafka={**login, "sasl.password": "${env:LAB_ADMIN_PASSWORD}"})
    cluster = lab.cluster(librdkafka={**monitor, "sasl.password": "${env:LAB_PASSWORD}"})
    topic, names = lab.topic(), {lab.name(kind) for kind in ("share", "streams", "workers")}
    try:
        grant(lab, (ResourceType.GROUP, lab.prefix, AclOperation.DESCRIBE))
        with (
            share_member(lab, lab.name("share"), topic),
            classic_member(admin, lab.name("workers"), "connect"),
            join_as_streams(admin, lab.name("streams"), [topic]),
            closing(KafkaSource(cluster)) as source,
        ):
            of_topics = {lab.name("share"), lab.name("streams")}
            hidden = eventually(lambda: (s := source.collect()) and s.unreadable_groups == of_topics and s)
            grant(lab, (ResourceType.TOPIC, lab.prefix, AclOperation.DESCRIBE))
            seen = eventually(lambda: (s := source.collect()) and not s.unreadable_groups and s)
            checks = {check.name: check for check in check_access(cluster)}
    finally:
        grant_nothing(lab)
    assert types_of(hidden).keys() == types_of(seen).keys() == names
    assert hidden.errors.keys() >= {"topic_not_authorized"}
    assert (checks["list groups"].ok, checks["describe groups"].ok, checks["committed offsets"].ok) == (True,) * 3
    assert "groups of every type" not in checks
