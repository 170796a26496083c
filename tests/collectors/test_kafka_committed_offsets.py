"""Committed offsets by our own requests are those that librdkafka reads, row by row, on a real broker."""

import dataclasses
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Any

import numpy as np
import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AclOperation, ResourceType

from lagwise.config import Cluster
from lagwise.tables.raw import COMMITS, GROUPS
from lagwise_collectors.kafka.access import check_access
from lagwise_collectors.kafka.group_reader import GroupReader
from lagwise_collectors.kafka.requests.client import KafkaClient
from lagwise_collectors.kafka.requests.commit_columns import CommitColumns
from lagwise_collectors.kafka.requests.group_members import KafkaGroup
from lagwise_collectors.kafka.source import KafkaSource
from lagwise_collectors.kafka_protocol import committed_offsets
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


@contextmanager
def both_ways(lab: Lab) -> Iterator[tuple[KafkaSource, KafkaSource]]:
    with closing(KafkaSource(lab.cluster())) as own, closing(KafkaSource(lab.cluster(**BY_LIBRDKAFKA))) as librdkafkas:
        yield own, librdkafkas


def reads_itself(source: KafkaSource) -> bool:
    assert source._session is not None
    return source._session._group_reader.reads_offsets_itself


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
    with ExitStack() as stack:
        classic = stack.enter_context(lab.consumer(lab.name("classic"), other))
        kip848 = stack.enter_context(lab.consumer(lab.name("kip848"), other, **{"group.protocol": "consumer"}))
        stack.enter_context(lab.consumer(lab.name("no-commits"), unread))
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
        reader = Consumer({**lab.settings, "group.id": lab.name("transactional")})
        producer.send_offsets_to_transaction([TopicPartition(other, 0, 8)], reader.consumer_group_metadata(), 20)
        try:
            # Librdkafka's way reads big groups in slices from the second sample on.
            samples = [(own.collect(), librdkafkas.collect()) for _ in range(2)]
        finally:
            producer.abort_transaction(20)
            reader.close()
        assert (reads_itself(own), reads_itself(librdkafkas)) == (True, False)
    for ours, theirs in samples:
        assert ours.errors == theirs.errors == {}
        assert facts(ours) == facts(theirs)
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
def test_every_version_reads_the_same(lab: Lab, version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those before version 8 have one group in a request: more requests than may be under way at once."""
    topic, other = lab.topic(), lab.topic("other", 1)
    for number in range(12):
        lab.commit(lab.name(f"g{number}"), topic, {0: number, 2: 9})
        lab.commit(lab.name(f"g{number}"), other, {0: 4})
    older = dataclasses.replace(OFFSET_FETCH, highest=version)
    monkeypatch.setattr(committed_offsets, "OFFSET_FETCH", older)
    with both_ways(lab) as (own, librdkafkas):
        ours, theirs = own.collect(), librdkafkas.collect()
        assert (reads_itself(own), reads_itself(librdkafkas)) == (True, False)
    assert ours.errors == theirs.errors == {}
    assert facts(ours) == facts(theirs)
    assert len(facts(ours)) == 36


def test_a_broker_that_does_not_know_our_request_is_read_through_librdkafka_and_doctor_says_so(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = lab.topic()
    lab.commit(lab.name("g"), topic, {0: 3})
    assert "read by Lagwise's own requests" in detail(lab.cluster())
    future = dataclasses.replace(OFFSET_FETCH, lowest=98, highest=99)
    monkeypatch.setattr(committed_offsets, "OFFSET_FETCH", future)
    with closing(KafkaSource(lab.cluster())) as source:
        snapshot = source.collect()
        assert not reads_itself(source)
    assert snapshot.errors == {}
    assert [row[:4] for row in facts(snapshot)] == [(lab.name("g"), topic, 0, 3)]
    assert "read through librdkafka" in detail(lab.cluster())
    [check] = [check for check in check_access(lab.cluster()) if check.name == "offsets of many groups at once"]
    assert (check.ok, check.required) == (False, False)
    assert "does not speak OffsetFetch" in check.detail


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
            with closing(GroupReader(KafkaClient(cluster), cluster)) as reader:
                reader.list_groups(cluster.groups.selects, ErrorTally())
                names = ("open-1", "open-2", "closed-1", "closed-2", "never-seen")
                groups, errors = [KafkaGroup(lab.name(name)) for name in names], ErrorTally()
                eventually(lambda: len(reader.read_offsets([KafkaGroup(lab.name("open-1"))], ErrorTally())))
                commits = reader.read_offsets(groups, errors)
                assert reader.reads_offsets_itself == (not more)
            found.append((pairs(commits), [group.error for group in groups], errors.counts))
    finally:
        grant_nothing(lab)
    ours, theirs = found
    assert ours == theirs
    assert ours[0] == [(lab.name(group), seen, p, p + 1) for group in ("open-1", "open-2") for p in (0, 1)]
    assert ours[1][:4] == [None, None, "group_not_authorized", "group_not_authorized"]


def pairs(commits: CommitColumns) -> list[tuple[str, str, int, int]]:
    of_groups, groups = commits.numbered_groups()
    of_topics, topics = commits.numbered_topics()
    numbers = [commits.numbers(name, np.int64).tolist() for name in ("partition", "committed")]
    return sorted(
        (groups[group], topics[topic], partition, committed)
        for group, topic, partition, committed in zip(of_groups, of_topics, *numbers, strict=True)
    )
