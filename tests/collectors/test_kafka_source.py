"""The Kafka source against a real broker: what it shows is what was produced, committed, and is in the groups."""

import threading
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, NewPartitions, ResourceType

from lagwise.domain.cluster_findings import cluster_findings
from lagwise.domain.vocabulary import EventKind
from lagwise.tables.raw import COMMITS, EVENTS, GROUPS, MEMBERS, RAW_TABLES, TOPICS, WATERMARKS
from lagwise_collectors.kafka.requests import committed_offsets
from lagwise_collectors.kafka.source import KafkaSource
from lagwise_collectors.protocol import Snapshot
from lagwise_collectors.sample_diff.compare_samples import PreviousSample, compare_samples
from lagwise_sandbox.broker import KafkaBroker
from tests.collectors.kafka import BY_LIBRDKAFKA, Lab, eventually, rows

pytestmark = pytest.mark.broker


@pytest.fixture
def lab(broker: KafkaBroker) -> Lab:
    return Lab(broker.client_settings())


@pytest.fixture
def source(lab: Lab) -> Iterator[KafkaSource]:
    made = KafkaSource(lab.cluster())
    yield made
    made.close()


def commits_of(snapshot: Snapshot, group: str) -> dict[tuple[str, int], tuple[int | None, str | None]]:
    return {
        (row["topic"], row["partition"]): (row["committed"], row["owner"])
        for row in rows(snapshot, COMMITS)
        if row["group"] == group
    }


def watermarks_of(snapshot: Snapshot, topic: str) -> dict[int, tuple[int, int, int]]:
    return {
        row["partition"]: (row["log_start"], row["high_watermark"], row["last_stable"])
        for row in rows(snapshot, WATERMARKS)
        if row["topic"] == topic
    }


def events_between(*snapshots: Snapshot) -> list[dict[str, object]]:
    known = PreviousSample()
    found = []
    for snapshot in snapshots:
        difference = compare_samples(known, snapshot)
        known = difference.latest
        found += difference.rows.to_pylist()
    return found


class TestValues:
    def test_commits_and_watermarks_are_what_was_committed_and_produced(self, lab: Lab, source: KafkaSource) -> None:
        topic, group = lab.topic(), lab.name("reader")
        lab.produce(topic, {0: 10, 1: 7})
        lab.commit(group, topic, {0: 4, 1: 7})
        snapshot = source.collect()
        assert commits_of(snapshot, group) == {(topic, 0): (4, None), (topic, 1): (7, None)}
        # Every partition of a watched topic is read, also the one without a commit.
        assert watermarks_of(snapshot, topic) == {0: (0, 10, 10), 1: (0, 7, 7), 2: (0, 0, 0)}
        header = snapshot.header
        assert (header["groups"], header["group_partitions"], header["partitions"]) == (1, 2, 3)
        assert header["errors"] == []
        assert header["system"] == "kafka"
        assert header["offsets_retention_seconds"] == 7 * 24 * 3600
        assert header["started_at"] <= header["commits_read_at"] <= header["watermarks_read_at"]
        assert header["watermarks_read_at"] <= header["finished_at"] <= datetime.now(UTC)

    def test_every_table_fits_its_schema(self, lab: Lab, source: KafkaSource) -> None:
        topic, group = lab.topic(), lab.name("reader")
        with lab.consumer(group, topic):
            snapshot = eventually(lambda: (s := source.collect()) and rows(s, MEMBERS) and s)
        assert set(snapshot.tables) <= {table.name for table in RAW_TABLES}
        for table in RAW_TABLES:
            found = snapshot.rows(table)
            wanted = [field for field in table.arrow if field.name != "day"]
            assert found.num_rows == 0 or found.column_names == [field.name for field in wanted]
            for field in wanted if found.num_rows else ():
                found[field.name].cast(field.type)
                assert field.nullable or found[field.name].null_count == 0

    def test_commit_metadata_and_leader_epoch_come_along(self, lab: Lab, source: KafkaSource) -> None:
        topic, group = lab.topic(), lab.name("probe")
        lab.produce(topic, {0: 5})
        consumer = Consumer({**lab.settings, "group.id": group})
        offsets_with_metadata = [TopicPartition(topic, 0, 3, metadata='{"T1": 12.5}', leader_epoch=0)]
        consumer.commit(offsets=offsets_with_metadata, asynchronous=False)
        consumer.close()
        [row] = rows(source.collect(), COMMITS)
        assert (row["committed"], row["metadata"], row["leader_epoch"]) == (3, '{"T1": 12.5}', 0)

    def test_leader_replicas_and_topic_id(self, lab: Lab, source: KafkaSource) -> None:
        topic = lab.topic(partitions=1)
        lab.commit(lab.name("reader"), topic, {0: 0})
        [row] = rows(source.collect(), WATERMARKS)
        assert (row["leader"], row["replicas"], row["isr"], row["error"]) == (1, [1], [1], None)
        described = lab.admin.describe_topics(_topics(topic))[topic].result(10)
        assert row["topic_id"] == str(described.topic_id).replace("+", "-").replace("/", "_")

    def test_what_endangers_offsets_and_records(self, lab: Lab, source: KafkaSource) -> None:
        """One broker: the offsets topic has one replica, and what requires two in sync can never have them. Such a
        topic can be written to all the same."""
        topic = lab.topic(partitions=2, **{"min.insync.replicas": "2"})
        lab.commit(lab.name("reader"), topic, {0: 0})
        header = source.collect().header
        (broker,) = header["brokers"]
        assert (broker["name"], broker["role"], broker["rack"], broker["gone_at"]) == ("1", "broker", None, None)
        assert broker["clock_ahead_seconds"] == pytest.approx(0, abs=1), "it runs on this machine"
        assert (header["offsets_topic_replicas"], header["offsets_topic_min_isr"]) == (1, 1)
        found = {finding.kind.value: finding.sentence for finding in cluster_findings(header) or ()}
        assert found.keys() == {"min_isr_too_high", "offsets_unreplicated"}
        assert found["min_isr_too_high"] == (
            f"2 partitions have fewer replicas than min.insync.replicas ({topic}-0, {topic}-1). "
            "Kafka 3.7 and newer accepts writes with fewer copies than that; older brokers reject producers with "
            "acks=all."
        )
        answers: list[KafkaError | None] = []
        producer = Producer({**lab.settings, "acks": "all"})
        producer.produce(topic, b"accepted", partition=0, on_delivery=lambda error, _: answers.append(error))
        producer.flush(20)
        assert answers == [None], "as the finding says"

    def test_log_start_moves_when_records_are_deleted(self, lab: Lab, source: KafkaSource) -> None:
        topic = lab.topic()
        lab.produce(topic, {0: 10})
        lab.commit(lab.name("reader"), topic, {0: 1})
        lab.admin.delete_records([TopicPartition(topic, 0, 6)])[TopicPartition(topic, 0)].result(10)
        assert watermarks_of(source.collect(), topic)[0] == (6, 10, 10)

    def test_last_stable_offset_stays_behind_an_open_transaction(self, lab: Lab, source: KafkaSource) -> None:
        topic = lab.topic(partitions=1)
        lab.commit(lab.name("reader"), topic, {0: 0})
        lab.produce(topic, {0: 3})
        producer = Producer({**lab.settings, "transactional.id": lab.name("tx")})
        producer.init_transactions(20)
        producer.begin_transaction()
        producer.produce(topic, b"unfinished", partition=0)
        producer.flush(20)
        try:
            assert watermarks_of(source.collect(), topic)[0] == (0, 4, 3)
        finally:
            producer.abort_transaction(20)

    def test_only_selected_groups_and_their_topics_are_read(self, lab: Lab) -> None:
        wanted, other = lab.topic("wanted"), lab.topic("other")
        lab.commit(lab.name("shop-a"), wanted, {0: 0})
        lab.commit(lab.name("shop-test"), other, {0: 0})
        lab.commit(lab.name("bank"), other, {0: 0})
        groups = {"include": (f"{lab.prefix}-shop-.*",), "exclude": (".*-test",)}
        snapshot = KafkaSource(lab.cluster(groups=groups)).collect()
        assert [row["group"] for row in rows(snapshot, GROUPS)] == [lab.name("shop-a")]
        assert {row["topic"] for row in rows(snapshot, WATERMARKS)} == {wanted}

    def test_names_may_be_hostile(self, lab: Lab, source: KafkaSource) -> None:
        topic, group = lab.topic(), lab.name("<script>'; drop table \x1b[31m ü 🦊")
        lab.commit(group, topic, {0: 0})
        snapshot = source.collect()
        assert [row["group"] for row in rows(snapshot, GROUPS)] == [group]
        assert list(commits_of(snapshot, group)) == [(topic, 0)]

    def test_lag_is_never_negative_while_records_are_produced_and_committed(
        self, lab: Lab, source: KafkaSource
    ) -> None:
        topic, group = lab.topic(partitions=1), lab.name("reader")
        lab.produce(topic, {0: 1})
        lab.commit(group, topic, {0: 0})
        stop = threading.Event()

        def work() -> None:
            """Produce one and commit it, so that the committed offset is always right behind the end."""
            producer = Producer({**lab.settings, "linger.ms": 0})
            consumer = Consumer({**lab.settings, "group.id": group})
            end = 1
            while not stop.is_set():
                producer.produce(topic, b"x", partition=0)
                producer.flush(20)
                end += 1
                consumer.commit(offsets=[TopicPartition(topic, 0, end)], asynchronous=False)
            consumer.close()

        worker = threading.Thread(target=work)
        worker.start()
        try:
            lags, seen = [], set()
            for _ in range(25):
                snapshot = source.collect()
                [(committed, _)] = commits_of(snapshot, group).values()
                assert committed is not None
                seen.add(committed)
                lags.append(watermarks_of(snapshot, topic)[0][1] - committed)
        finally:
            stop.set()
            worker.join()
        assert min(lags) >= 0
        assert len(seen) > 5  # it did move meanwhile


class TestGroups:
    def test_a_classic_group_its_members_and_what_they_own(self, lab: Lab, source: KafkaSource) -> None:
        topic, group = lab.topic(partitions=4), lab.name("classic")
        lab.produce(topic, {0: 5})
        settings = {"partition.assignment.strategy": "range"}
        with lab.consumer(group, topic, **settings) as one, lab.consumer(group, topic, **settings):
            snapshot = eventually(
                lambda: (s := source.collect()) and [r["assigned_partitions"] for r in rows(s, MEMBERS)] == [2, 2] and s
            )
            one.commit([TopicPartition(topic, 0, 5)])
            snapshot = source.collect()
        [row] = rows(snapshot, GROUPS)
        assert (row["state"], row["type"], row["assignor"], row["coordinator"]) == ("Stable", "classic", "range", 1)
        assert (row["member_count"], row["error"]) == (2, None)
        members = rows(snapshot, MEMBERS)
        owned = {
            (entry["topic"], partition): member["member_id"]
            for member in members
            for entry in member["assignment"]
            for partition in entry["partitions"]
        }
        assert set(owned) == {(topic, p) for p in range(4)}
        assert all(member["host"] == "127.0.0.1" and member["client_id"] for member in members)
        # Owned partitions without a commit have a row that says so.
        assert commits_of(snapshot, group) == {
            (topic, 0): (5, owned[topic, 0]),
            **{(topic, p): (None, owned[topic, p]) for p in (1, 2, 3)},
        }
        assert snapshot.header["group_partitions"] == 1

    def test_a_new_protocol_group(self, lab: Lab, source: KafkaSource) -> None:
        topic, group = lab.topic(), lab.name("kip848")
        lab.produce(topic, {0: 5})
        with lab.consumer(group, topic, **{"group.protocol": "consumer"}) as consumer:
            eventually(lambda: [r["assigned_partitions"] for r in rows(source.collect(), MEMBERS)] == [3])
            consumer.commit([TopicPartition(topic, 0, 2)])
            snapshot = eventually(lambda: (s := source.collect()) and rows(s, GROUPS)[0]["state"] == "Stable" and s)
        [row] = rows(snapshot, GROUPS)
        assert (row["type"], row["member_count"]) == ("consumer", 1)
        committed = commits_of(snapshot, group)
        assert {pair: offset for pair, (offset, _) in committed.items()} == {
            (topic, 0): 2,
            (topic, 1): None,
            (topic, 2): None,
        }
        assert {owner for _, owner in committed.values()} == {rows(snapshot, MEMBERS)[0]["member_id"]}

    def test_a_new_protocol_group_that_moves_partitions_is_reconciling(self, lab: Lab, source: KafkaSource) -> None:
        """librdkafka does not know the word; the members' current and target assignments give it away."""
        topic, group = lab.topic(partitions=2), lab.name("moving")
        settings, may_go = {"group.protocol": "consumer"}, threading.Event()

        def state() -> str:
            found: str = rows(source.collect(), GROUPS)[0]["state"]
            return found

        with lab.consumer(group, topic, revoke_when=may_go, **settings):
            eventually(lambda: [r["assigned_partitions"] for r in rows(source.collect(), MEMBERS)] == [2])
            with lab.consumer(group, topic, **settings):
                eventually(lambda: state() == "Reconciling")
                may_go.set()
                eventually(lambda: state() == "Stable")
                members = rows(source.collect(), MEMBERS)
        assert [member["assigned_partitions"] for member in members] == [1, 1]

    def test_a_static_member_that_restarts_is_no_join_and_no_leave(self, lab: Lab, source: KafkaSource) -> None:
        topic, group = lab.topic(), lab.name("static")
        member = {"group.instance.id": "node-1", "session.timeout.ms": 30000}

        def settled() -> Snapshot | None:
            snapshot = source.collect()
            return snapshot if [r["assigned_partitions"] for r in rows(snapshot, MEMBERS)] == [3] else None

        with lab.consumer(group, topic, **member):
            first = eventually(settled)
        with lab.consumer(group, topic, **member):
            second = eventually(
                lambda: (
                    (s := settled()) and rows(s, MEMBERS)[0]["member_id"] != rows(first, MEMBERS)[0]["member_id"] and s
                )
            )
        assert rows(second, MEMBERS)[0]["static_instance_id"] == "node-1"
        rebalances = [e for e in events_between(first, second) if e["kind"] == EventKind.REBALANCE]
        assert [(e["joined"], e["left"], e["partitions_moved"]) for e in rebalances] in ([], [([], [], 0)])

    def test_a_group_that_commits_without_the_protocol_is_simple(self, lab: Lab, source: KafkaSource) -> None:
        lab.commit(lab.name("assigns"), lab.topic(), {0: 0})
        [row] = rows(source.collect(), GROUPS)
        assert (row["state"], row["type"], row["member_count"]) == ("Empty", "simple", 0)

    def test_a_member_that_joins_is_a_rebalance_with_its_name(self, lab: Lab, source: KafkaSource) -> None:
        topic, group = lab.topic(partitions=2), lab.name("grows")

        def settled(*assigned: int) -> Snapshot:
            def read() -> Snapshot | None:
                snapshot = source.collect()
                stable = [row["state"] for row in rows(snapshot, GROUPS)] == ["Stable"]
                return (
                    snapshot
                    if stable and tuple(r["assigned_partitions"] for r in rows(snapshot, MEMBERS)) == assigned
                    else None
                )

            found: Snapshot = eventually(read)
            return found

        with lab.consumer(group, topic, **{"client.id": "first"}):
            before = settled(2)
            with lab.consumer(group, topic, **{"client.id": "second"}):
                after = settled(1, 1)
        [event] = [e for e in events_between(before, after) if e["kind"] == EventKind.REBALANCE]
        assert (event["joined"], event["left"], event["partitions_moved"]) == (["second (127.0.0.1)"], [], 1)

    def test_big_groups_are_read_in_slices_and_still_show_everything(
        self, lab: Lab, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(committed_offsets, "BIG_GROUP", 10)
        monkeypatch.setattr(committed_offsets, "SLICE", 4)
        monkeypatch.setattr(committed_offsets, "WHOLE_EVERY", 3)
        topic, late, group = lab.topic(partitions=15), lab.topic("late", 1), lab.name("big")
        lab.commit(group, topic, dict.fromkeys(range(13), 0))
        source = KafkaSource(lab.cluster(**BY_LIBRDKAFKA))
        asked: list[bool] = []
        ask = committed_offsets.CommitReader._ask

        def watched(self: committed_offsets.CommitReader, group: object, slices: object) -> object:
            asked.append(slices is None)
            return ask(self, group, slices)  # type: ignore[arg-type]  # passed on as it came

        monkeypatch.setattr(committed_offsets.CommitReader, "_ask", watched)
        first = source.collect()
        assert set(commits_of(first, group)) == {(topic, p) for p in range(13)}
        lab.commit(group, topic, dict.fromkeys(range(13), 3))
        lab.commit(group, late, {0: 1})
        collected = [source.collect() for _ in range(3)]
        assert asked.count(True) == 2  # the first time, and once in the round of three
        assert asked.count(False) == 2
        for snapshot in collected:
            committed = commits_of(snapshot, group)
            assert {committed[topic, p] for p in range(13)} == {(3, None)}
        assert (late, 0) in commits_of(collected[-1], group)
        after = commits_of(source.collect(), group)  # in slices again, the late one included
        assert after == {**{(topic, p): (3, None) for p in range(13)}, (late, 0): (1, None)}


class TestTopics:
    def test_settings_are_reported_at_the_start_and_when_they_change(
        self, lab: Lab, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        topic = lab.topic(**{"retention.ms": "120000", "cleanup.policy": "compact,delete", "segment.bytes": "1048576"})
        lab.commit(lab.name("reader"), topic, {0: 0})
        # As many samples to a round of configurations as at an interval of 150 s: two.
        source = KafkaSource(lab.cluster(interval_seconds=150.0))
        first = source.collect()
        [row] = rows(first, TOPICS)
        assert (row["retention_ms"], row["retention_bytes"], row["segment_bytes"]) == (120000, -1, 1048576)
        assert (row["cleanup_policy"], row["min_isr"], row["segment_ms"]) == ("compact,delete", 1, 604800000)
        assert (row["partitions"], row["replication_factor"]) == (3, 1)
        assert [rows(source.collect(), TOPICS) for _ in range(3)] == [[], [], []]
        entry = ConfigEntry("retention.ms", "60000", incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        lab.admin.incremental_alter_configs([resource])[resource].result(10)
        later = eventually(lambda: (s := source.collect()) and rows(s, TOPICS) and s)
        assert [row["retention_ms"] for row in rows(later, TOPICS)] == [60000]
        [event] = [e for e in events_between(first, later) if e["kind"] == EventKind.CONFIG_CHANGED]
        assert (event["topic"], event["before"], event["after"]) == (topic, "retention_ms=120000", "retention_ms=60000")

    def test_added_partitions_are_seen(self, lab: Lab, source: KafkaSource) -> None:
        topic = lab.topic(partitions=2)
        lab.commit(lab.name("reader"), topic, {0: 0})
        before = source.collect()
        lab.admin.create_partitions([NewPartitions(topic, 5)])[topic].result(10)
        after = eventually(lambda: (s := source.collect()) and len(watermarks_of(s, topic)) == 5 and s)
        [event] = [e for e in events_between(before, after) if e["kind"] == EventKind.PARTITIONS_ADDED]
        assert (event["topic"], event["before"], event["after"]) == (topic, "2", "5")

    def test_a_recreated_topic_has_a_new_id_and_is_an_event(self, lab: Lab, source: KafkaSource) -> None:
        topic, group = lab.topic(), lab.name("reader")
        lab.produce(topic, {0: 5})
        lab.commit(group, topic, {0: 5})
        before = source.collect()
        lab.delete_topic(topic)
        lab.topic()
        lab.commit(group, topic, {0: 0})
        after = source.collect()
        ids = [{row["topic_id"] for row in rows(s, WATERMARKS)} for s in (before, after)]
        assert len(ids[0]) == len(ids[1]) == 1
        assert ids[0] != ids[1]
        events = events_between(before, after)
        # The commit that went back is the new topic's, and no rewind.
        assert [(e["kind"], e["topic"]) for e in events] == [(EventKind.TOPIC_RECREATED, topic)]

    def test_a_deleted_topic_is_an_event_and_costs_only_itself(self, lab: Lab, source: KafkaSource) -> None:
        topic, other, group = lab.topic(), lab.topic("other"), lab.name("reader")
        lab.commit(group, topic, {0: 0})
        lab.commit(group, other, {0: 0})
        before = source.collect()
        lab.delete_topic(topic)
        after = source.collect()
        lost = [row for row in rows(after, WATERMARKS) if row["topic"] == topic]
        assert {row["partition"] for row in lost} == {0, 1, 2}
        assert {(row["error"], row["high_watermark"], row["topic_id"]) for row in lost} == {
            ("unknown_topic", None, None)
        }
        assert after.errors == {"unknown_topic": 1}
        assert len(watermarks_of(after, other)) == 3
        later = source.collect()
        kinds = [(e["kind"], e["topic"]) for e in events_between(before, after, later)]
        assert kinds == [(EventKind.TOPIC_GONE, topic)]

    def test_a_deleted_group_is_an_event(self, lab: Lab, source: KafkaSource) -> None:
        topic = lab.topic()
        lab.commit(lab.name("stays"), topic, {0: 0})
        lab.commit(lab.name("goes"), topic, {0: 0})
        before = source.collect()
        lab.delete_group(lab.name("goes"))
        after = source.collect()
        assert [row["group"] for row in rows(after, GROUPS)] == [lab.name("stays")]
        assert after.errors == {}
        assert [(e["kind"], e["group"]) for e in events_between(before, after)] == [
            (EventKind.GROUP_GONE, lab.name("goes"))
        ]

    def test_a_rewound_and_a_deleted_commit_are_events(self, lab: Lab, source: KafkaSource) -> None:
        topic, group = lab.topic(), lab.name("reader")
        lab.produce(topic, {0: 9, 1: 9})
        lab.commit(group, topic, {0: 9, 1: 9})
        before = source.collect()
        lab.commit(group, topic, {0: 2})
        after = source.collect()
        [event] = events_between(before, after)
        assert (event["kind"], event["group"], event["topic"], event["partition"]) == (
            EventKind.COMMIT_REWOUND,
            group,
            topic,
            0,
        )
        assert (event["before"], event["after"]) == ("9", "2")
        assert compare_samples(compare_samples(PreviousSample(), before).latest, after).rows.num_rows == 1
        assert EVENTS.name not in after.tables  # comparing is not the source's business


def _topics(*names: str) -> object:
    from confluent_kafka import TopicCollection

    return TopicCollection(list(names))
