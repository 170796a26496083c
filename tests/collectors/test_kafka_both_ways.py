"""A sample by our own requests is the one that librdkafka reads, row by row, on a real broker."""

import dataclasses
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Any

import numpy as np
import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AclOperation, ResourceType

from lagwise.config import Cluster
from lagwise.tables.raw import COMMITS, GROUPS, MEMBERS, SAMPLES, TOPICS, WATERMARKS
from lagwise_collectors.kafka.access import check_access
from lagwise_collectors.kafka.group_reader import GroupReader
from lagwise_collectors.kafka.own_path import OwnPath, Part
from lagwise_collectors.kafka.requests.client import KafkaClient
from lagwise_collectors.kafka.requests.commit_columns import CommitColumns
from lagwise_collectors.kafka.requests.group_members import KafkaGroup
from lagwise_collectors.kafka.source import KafkaSource
from lagwise_collectors.kafka.topic_reader import TopicReader
from lagwise_collectors.kafka_protocol import client as protocol_client
from lagwise_collectors.kafka_protocol import committed_offsets, consumer_groups, topics, watermarks
from lagwise_collectors.kafka_protocol.client import ProtocolClient
from lagwise_collectors.kafka_protocol.group_messages import DESCRIBE_GROUPS
from lagwise_collectors.kafka_protocol.offset_messages import OFFSET_FETCH
from lagwise_collectors.protocol import ErrorTally, Snapshot
from lagwise_sandbox.broker import KafkaBroker
from tests.collectors.kafka import BY_LIBRDKAFKA, Lab, eventually, rows
from tests.collectors.test_kafka_trouble import grant, grant_nothing

pytestmark = pytest.mark.broker

#: More than librdkafka's path reads at once, and than the own one turns into rows at once.
_MANY = 1_100


@pytest.fixture
def lab(broker: KafkaBroker) -> Lab:
    return Lab(broker.client_settings())


def commit_with_metadata(lab: Lab, group: str, offsets: list[TopicPartition]) -> None:
    request = ConsumerGroupTopicPartitions(group, offsets)
    lab.admin.alter_consumer_group_offsets([request], request_timeout=20)[group].result(20)


def facts(snapshot: Snapshot) -> list[tuple[Any, ...]]:
    """Rows of commits, without the next record, which is looked up later and depends on the samples before."""
    columns = ("group", "topic", "partition", "committed", "leader_epoch", "metadata", "owner")
    return sorted((tuple(row[name] for name in columns) for row in rows(snapshot, COMMITS)), key=repr)


def others(snapshot: Snapshot) -> dict[str, Any]:
    """All that a sample says of groups, members and topics, but for its id and its times."""
    tables = {
        table.name: sorted(
            (
                {name: value for name, value in row.items() if name not in ("sample_id", table.clock)}
                for row in rows(snapshot, table)
            ),
            key=repr,
        )
        for table in (GROUPS, MEMBERS, WATERMARKS, TOPICS)
    }
    counts = ("groups", "group_partitions", "partitions", "offsets_retention_seconds")
    return {**tables, SAMPLES.name: {name: snapshot.header[name] for name in counts}}


@contextmanager
def both_ways(lab: Lab) -> Iterator[tuple[KafkaSource, KafkaSource]]:
    with closing(KafkaSource(lab.cluster())) as own, closing(KafkaSource(lab.cluster(**BY_LIBRDKAFKA))) as librdkafkas:
        yield own, librdkafkas


def read_itself(source: KafkaSource) -> set[Part]:
    """What the last sample has read by our own requests."""
    assert source._session is not None
    return {part for part in Part if source._session.own.reads(part)}


def has_started_librdkafka(source: KafkaSource) -> bool:
    assert source._session is not None
    return source._session.client._admin is not None


def test_both_ways_give_the_same_rows(lab: Lab) -> None:
    wide, other, gone, unread = lab.topic("wide", _MANY), lab.topic("other"), lab.topic("gone"), lab.topic("unread")
    # Metadata of no, of one and of many lengths; the longest needs two bytes for its length.
    texts = {"plain": "", "alike": "t=1234567890", "mixed": None}
    for what, text in texts.items():
        offsets = [
            TopicPartition(wide, p, p * 7, metadata="é" * (p % 100) if text is None else text, leader_epoch=p % 3)
            for p in range(_MANY)
        ]
        commit_with_metadata(lab, lab.name(what), offsets)
    lab.commit(lab.name("plain"), other, {0: 5, 2: 2**40})
    lab.commit(lab.name("plain"), gone, {0: 1})
    lab.commit(lab.name("only-gone"), gone, {0: 1})
    lab.delete_topic(gone)
    lab.produce(other, {0: 9, 1: 9})
    lab.admin.delete_records([TopicPartition(other, 1, 4)])[TopicPartition(other, 1)].result(20)
    with ExitStack() as stack:
        classic = stack.enter_context(lab.consumer(lab.name("classic"), other))
        kip848 = stack.enter_context(lab.consumer(lab.name("kip848"), other, **{"group.protocol": "consumer"}))
        static = {"group.instance.id": "the-only-one", "client.id": "äpfel"}
        stack.enter_context(lab.consumer(lab.name("no-commits"), unread, **static))
        own, librdkafkas = stack.enter_context(both_ways(lab))

        def settled() -> Snapshot | None:
            found = own.collect()
            members = {row["group"]: row["state"] for row in rows(found, GROUPS) if row["member_count"]}
            return found if len(members) == 3 and set(members.values()) == {"Stable"} else None

        eventually(settled)
        eventually(lambda: len({owner for *_, owner in facts(own.collect())} - {None}) == 3)
        for member in (classic, kip848):
            member.commit([TopicPartition(other, 1, 3, metadata="by a member", leader_epoch=0)])
        # The offset of an open transaction is not committed yet, and does not hide the one before it.
        lab.commit(lab.name("transactional"), other, {0: 2})
        producer = Producer({**lab.settings, "transactional.id": lab.name("tx")})
        producer.init_transactions(20)
        producer.begin_transaction()
        producer.produce(other, b"unfinished", partition=2)
        producer.flush(20)
        reader = Consumer({**lab.settings, "group.id": lab.name("transactional")})
        producer.send_offsets_to_transaction([TopicPartition(other, 0, 8)], reader.consumer_group_metadata(), 20)
        try:
            own.close()  # as at the start: a topic's row is written once
            # Librdkafka's way reads big groups in slices from the second sample on.
            samples = [(own.collect(), librdkafkas.collect()) for _ in range(2)]
        finally:
            producer.abort_transaction(20)
            reader.close()
        assert (read_itself(own), read_itself(librdkafkas)) == (set(Part), set())
        assert (has_started_librdkafka(own), has_started_librdkafka(librdkafkas)) == (False, True)
    for ours, theirs in samples:
        assert ours.errors == theirs.errors == {}
        assert facts(ours) == facts(theirs)
        assert others(ours) == others(theirs)
    first = samples[0][0]
    marks = {
        row["partition"]: (row["log_start"], row["high_watermark"], row["last_stable"])
        for row in rows(first, WATERMARKS)
        if row["topic"] == other
    }
    assert marks == {0: (0, 9, 9), 1: (4, 9, 9), 2: (0, 1, 0)}
    assert {row["type"] for row in rows(first, GROUPS)} == {"classic", "consumer", "simple"}
    assert {row["static_instance_id"] for row in rows(first, MEMBERS)} == {None, "the-only-one"}
    assert {row["topic"] for row in rows(first, TOPICS)} == {wide, other, unread}
    found = {row[:3]: row[3:] for row in facts(samples[0][0])}
    by_group = {name.removeprefix(f"{lab.prefix}-"): 0 for name, *_ in found}
    for name, *_ in found:
        by_group[name.removeprefix(f"{lab.prefix}-")] += 1
    assert by_group == {
        "plain": _MANY + 2, "alike": _MANY, "mixed": _MANY, "classic": 3, "kip848": 3, "no-commits": 3,
        "transactional": 1,
    }  # fmt: skip
    assert found[lab.name("plain"), other, 2][:1] == (2**40,)
    assert found[lab.name("alike"), wide, 5] == (35, 2, "t=1234567890", None)
    assert found[lab.name("mixed"), wide, 199] == (1393, 1, "é" * 99, None)
    assert found[lab.name("transactional"), other, 0][0] == 2
    assert found[lab.name("classic"), other, 1][0] == found[lab.name("kip848"), other, 1][0] == 3
    assert found[lab.name("no-commits"), unread, 0][0] is None
    assert None not in {found[lab.name(group), other, 0][-1] for group in ("classic", "kip848")}


@pytest.mark.parametrize("version", [2, 5, 7, 8])
def test_every_version_reads_the_same_offsets(lab: Lab, version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those before version 8 have one group in a request: more requests than may be under way at once."""
    topic, other = lab.topic(), lab.topic("other", 1)
    for number in range(12):
        lab.commit(lab.name(f"g{number}"), topic, {0: number, 2: 9})
        lab.commit(lab.name(f"g{number}"), other, {0: 4})
    older = dataclasses.replace(OFFSET_FETCH, highest=version)
    monkeypatch.setattr(committed_offsets, "OFFSET_FETCH", older)
    with both_ways(lab) as (own, librdkafkas):
        ours, theirs = own.collect(), librdkafkas.collect()
        assert read_itself(own) == set(Part)
    assert ours.errors == theirs.errors == {}
    assert facts(ours) == facts(theirs)
    assert len(facts(ours)) == 36


@pytest.mark.parametrize("step", [0, 1, 2])
def test_older_versions_read_the_same_of_groups_and_topics(
    lab: Lab, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oldest version of each request that this broker still speaks, the last one before compact lengths, and the
    one after it."""
    topic = lab.topic(**{"retention.ms": "77000"})
    lab.produce(topic, {0: 3})
    lab.commit(lab.name("simple"), topic, {0: 1})
    for module, name in ((protocol_client, "METADATA"), (watermarks, "LIST_OFFSETS"), (topics, "DESCRIBE_CONFIGS")):
        api = getattr(module, name)
        version = (api.lowest, api.flexible_since - 1, api.flexible_since)[step]
        monkeypatch.setattr(module, name, dataclasses.replace(api, highest=version))
    version = (DESCRIBE_GROUPS.lowest, DESCRIBE_GROUPS.flexible_since - 1, DESCRIBE_GROUPS.flexible_since)[step]
    classic = dataclasses.replace(consumer_groups._CLASSIC, api=dataclasses.replace(DESCRIBE_GROUPS, highest=version))
    monkeypatch.setattr(consumer_groups, "_CLASSIC", classic)
    with lab.consumer(lab.name("classic"), topic), both_ways(lab) as (own, librdkafkas):
        eventually(lambda: sum(row["assigned_partitions"] for row in rows(own.collect(), MEMBERS)) == 3)
        own.close()  # as at the start: a topic's row is written once
        ours, theirs = own.collect(), librdkafkas.collect()
        assert read_itself(own) == set(Part)
    assert ours.errors == theirs.errors == {}
    assert [row["retention_ms"] for row in rows(ours, TOPICS)] == [77000]
    for table in (WATERMARKS, TOPICS):  # versions of Metadata before 10 do not have it
        assert {row["topic_id"] for row in rows(ours, table)} == {None}
    assert others(ours) == without_topic_ids(others(theirs))


def without_topic_ids(found: dict[str, Any]) -> dict[str, Any]:
    for table in (WATERMARKS, TOPICS):
        for row in found[table.name]:
            row["topic_id"] = None
    return found


def test_a_group_that_changes_its_protocol_after_it_was_listed_is_described_by_the_other_request(lab: Lab) -> None:
    topic = lab.topic()
    kip848 = {"group.protocol": "consumer"}
    names = [lab.name(kind) for kind in ("classic", "consumer", "gone")]
    with (
        lab.consumer(names[0], topic),
        lab.consumer(names[1], topic, **kip848),
        closing(ProtocolClient(lab.cluster())) as client,
    ):

        def types() -> list[tuple[str, str | None, int]]:
            client.read_brokers(client.deadline())
            listed = dict(zip(names, ("consumer", "classic", "classic"), strict=True))
            errors = ErrorTally()
            groups = consumer_groups.describe_consumer_groups(client, listed, errors)
            assert not errors
            return sorted((group.name, group.type, len(group.members)) for group in groups)

        eventually(lambda: types() == [(names[0], "classic", 1), (names[1], "consumer", 1)])


def test_what_a_broker_does_not_know_is_read_through_librdkafka_and_doctor_says_so(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = lab.topic()
    lab.produce(topic, {0: 5})
    lab.commit(lab.name("g"), topic, {0: 3})
    assert "read by Lagwise's own requests" in detail(lab.cluster())
    with closing(KafkaSource(lab.cluster())) as source:
        known = source.collect()
    future = {"lowest": 98, "highest": 99}
    for module, name in (
        (committed_offsets, "OFFSET_FETCH"),
        (watermarks, "LIST_OFFSETS"),
        (topics, "DESCRIBE_CONFIGS"),
    ):
        monkeypatch.setattr(module, name, dataclasses.replace(getattr(module, name), **future))
    classic = dataclasses.replace(consumer_groups._CLASSIC, api=dataclasses.replace(DESCRIBE_GROUPS, **future))
    monkeypatch.setattr(consumer_groups, "_CLASSIC", classic)
    with closing(KafkaSource(lab.cluster())) as source:
        snapshot = source.collect()
        assert read_itself(source) == {Part.TOPICS}
    assert snapshot.errors == {}
    assert (facts(snapshot), others(snapshot)) == (facts(known), others(known))
    assert [row[:4] for row in facts(snapshot)] == [(lab.name("g"), topic, 0, 3)]
    assert "read through librdkafka" in detail(lab.cluster())
    refused = {check.name: check for check in check_access(lab.cluster()) if not check.ok}
    assert refused.keys() == {f"{part} by Lagwise's own requests" for part in set(Part) - {Part.TOPICS}}
    assert not any(check.required for check in refused.values())
    assert "does not speak OffsetFetch" in refused["committed offsets by Lagwise's own requests"].detail


def detail(cluster: Cluster) -> str:
    [check] = [check for check in check_access(cluster) if check.name == "committed offsets"]
    assert check.ok
    return check.detail


def test_missing_rights_cost_the_same_rows_and_give_the_same_errors(
    secured_broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One group may not be described, nor one topic. Groups are given as described, so that it is the request for
    offsets that is refused."""
    lab = Lab(secured_broker.client_settings())
    monitor = secured_broker.client_settings("monitor")
    monkeypatch.setenv("LAB_PASSWORD", monitor.pop("sasl.password"))
    monitor.pop("bootstrap.servers")
    login = {**monitor, "sasl.password": "${env:LAB_PASSWORD}"}
    seen, hidden = lab.topic("seen"), lab.topic("hidden")
    for group in ("open-1", "open-2", "closed-1", "closed-2"):
        for topic in (seen, hidden):
            lab.commit(lab.name(group), topic, {0: 1, 1: 2})
    try:
        grant(lab, (ResourceType.GROUP, lab.name("open"), AclOperation.DESCRIBE))
        grant(lab, (ResourceType.TOPIC, seen, AclOperation.DESCRIBE))
        found = []
        for more in ({}, BY_LIBRDKAFKA["librdkafka"]):
            cluster = lab.cluster(librdkafka={**login, **more})
            client = KafkaClient(cluster)
            with closing(OwnPath(cluster, client.clean)) as own:
                reader, topic_reader = GroupReader(client, own, cluster), TopicReader(client, own)
                reader.list_groups(cluster.groups.selects, ErrorTally())
                names = ("open-1", "open-2", "closed-1", "closed-2", "never-seen")
                groups, errors = [KafkaGroup(lab.name(name)) for name in names], ErrorTally()
                eventually(
                    lambda reader=reader: len(reader.read_offsets([KafkaGroup(lab.name("open-1"))], ErrorTally()))
                )
                commits = reader.read_offsets(groups, errors)
                described = reader.describe_groups({lab.name(name): "classic" for name in names}, errors)
                seen_topics = topic_reader.describe((seen, hidden, lab.name("missing")), errors)
                marks = topic_reader.watermarks(seen_topics, {hidden: {1}}, errors)
                configs = topic_reader.topic_configs([seen])
                assert {part for part in Part if own.reads(part)} == (set() if more else set(Part))
            found.append(
                (
                    pairs(commits),
                    [group.error for group in groups],
                    sorted((group.name, group.error or "") for group in described),
                    {name: (topic.error, topic.topic_id, topic.partitions) for name, topic in seen_topics.items()},
                    [(marks.named(row), int(marks.high_watermark[row]), marks.error[row]) for row in range(len(marks))],
                    {name: str(getattr(config, "kind", "read")) for name, config in configs.items()},
                    errors.counts,
                )
            )
    finally:
        grant_nothing(lab)
    ours, theirs = found
    assert ours == theirs
    assert ours[0] == [(lab.name(group), seen, p, p + 1) for group in ("open-1", "open-2") for p in (0, 1)]
    assert ours[1][:4] == [None, None, "group_not_authorized", "group_not_authorized"]
    assert {error for _, error in ours[2]} == {"", "group_not_authorized"}
    assert {name: error for name, (error, _, _) in ours[3].items()} == {
        seen: None, hidden: "topic_not_authorized", lab.name("missing"): "topic_not_authorized",
    }  # fmt: skip
    assert ours[4] == [(f"{hidden}[1]", -1, "topic_not_authorized"), *((f"{seen}[{p}]", 0, None) for p in range(3))]
    assert ours[5] == {seen: "topic_not_authorized"}


def pairs(commits: CommitColumns) -> list[tuple[str, str, int, int]]:
    of_groups, groups = commits.numbered_groups()
    of_topics, topics = commits.numbered_topics()
    numbers = [commits.numbers(name, np.int64).tolist() for name in ("partition", "committed")]
    return sorted(
        (groups[group], topics[topic], partition, committed)
        for group, topic, partition, committed in zip(of_groups, of_topics, *numbers, strict=True)
    )
