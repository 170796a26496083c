"""The next record where a group stands still: fetched once, remembered, and asked again only for a reason."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from confluent_kafka import Producer, TopicPartition

from lagwise.tables.raw import COMMITS
from lagwise_collectors.kafka.requests.next_records import (
    MAX_LOOK_UPS,
    NEAR,
    LogPosition,
    NextRecord,
    NextRecordCache,
    NextRecords,
)
from lagwise_collectors.kafka.source import KafkaSource
from lagwise_sandbox.broker import KafkaBroker
from tests.collectors.kafka import Lab, rows

T0 = ("t", 0)


class Log:
    """A log that is asked: where its records are, and what was asked of it."""

    def __init__(self, *records: int, end: int) -> None:
        self.records, self.end = list(records), end
        self.asked: list[LogPosition] = []

    def __call__(self, places: Sequence[LogPosition]) -> Mapping[LogPosition, NextRecord]:
        self.asked += places
        return {place: self._next(place.offset) for place in places}

    def _next(self, offset: int) -> NextRecord:
        found = [record for record in self.records if record >= offset]
        return NextRecord(found[0], True) if found else NextRecord(self.end, False)


def ends(end: int, start: int = 0) -> dict[tuple[str, int], tuple[int, int]]:
    return {T0: (start, end)}


class TestWhenItIsAskedFor:
    def test_one_that_stands_still_before_the_end_is_looked_at_once(self) -> None:
        log = Log(end=10)
        known = NextRecords(log)
        commit = [LogPosition("t", 0, 9)]
        assert known.after(commit, ends(10)) == [None], "it may be about to be read"
        assert known.after(commit, ends(10)) == [10]
        assert known.after(commit, ends(10)) == [10]
        assert log.asked == [LogPosition("t", 0, 9)]

    def test_a_record_that_is_there_is_not_asked_for_again_whatever_comes_after_it(self) -> None:
        log = Log(9, end=10)
        known = NextRecords(log)
        commit = [LogPosition("t", 0, 7)]
        answers = [known.after(commit, ends(end)) for end in (10, 10, 11, 11, 11)]
        assert answers == [[None], [9], [9], [9], [9]]
        assert len(log.asked) == 1

    def test_behind_a_dead_end_it_is_asked_from_there_once_there_is_more(self) -> None:
        log = Log(end=10)
        known = NextRecords(log)
        commit = [LogPosition("t", 0, 9)]
        known.after(commit, ends(10))
        known.after(commit, ends(10))
        log.records, log.end = [12], 14
        assert known.after(commit, ends(14)) == [10], "nothing is known of the new ones yet, but of the old ones"
        assert known.after(commit, ends(14)) == [12]
        assert log.asked == [LogPosition("t", 0, 9), LogPosition("t", 0, 10)]

    @pytest.mark.parametrize(
        ("why", "commit", "end"),
        [
            ("it is the end", 10, 10),
            ("it is beyond the end", 11, 10),
            ("it is far from the end", 10, NEAR + 11),
            ("nothing is committed", None, 10),
        ],
    )
    def test_it_is_not_asked_for_where(self, why: str, commit: int | None, end: int) -> None:
        log = Log(end=end)
        known = NextRecords(log)
        commits = [None if commit is None else LogPosition("t", 0, commit)]
        for _ in range(3):
            assert known.after(commits, ends(end)) == [None], why
        assert log.asked == []

    def test_one_whose_end_or_commit_moves_is_not_looked_at(self) -> None:
        log = Log(end=10)
        known = NextRecords(log)
        for step in range(5):
            known.after([LogPosition("t", 0, 9)], ends(10 + step))
            known.after([LogPosition("t", 0, 20 + step)], ends(30))
        known.after([LogPosition("t", 0, 9)], {})
        assert log.asked == []

    def test_what_was_deleted_is_not_asked_for(self) -> None:
        log = Log(8, end=10)
        known = NextRecords(log)
        for _ in range(2):
            found = known.after([LogPosition("t", 0, 3)], ends(10, start=7))
        assert found == [8]
        assert log.asked == [LogPosition("t", 0, 7)]

    def test_groups_that_stand_at_the_same_place_share_a_look_and_others_take_turns(self) -> None:
        log = Log(end=10)
        known = NextRecords(log)
        commits = [LogPosition("t", 0, 8), LogPosition("t", 0, 8), LogPosition("t", 0, 9)]
        assert known.after(commits, ends(10)) == [None, None, None]
        assert known.after(commits, ends(10)) == [10, 10, None]
        assert known.after(commits, ends(10)) == [10, 10, 10]

    def test_many_are_spread_over_samples(self) -> None:
        log = Log(end=10)
        known = NextRecords(log)
        commits = [LogPosition("t", number, 9) for number in range(MAX_LOOK_UPS + 20)]
        all_ends = {commit[:2]: (0, 10) for commit in commits}
        reported = [known.after(commits, all_ends).count(10) for _ in range(4)]
        assert reported == [0, MAX_LOOK_UPS, MAX_LOOK_UPS + 20, MAX_LOOK_UPS + 20]

    def test_a_look_up_that_is_late_is_repeated(self) -> None:
        asked = []

        def late(places: Sequence[LogPosition]) -> Mapping[LogPosition, NextRecord]:
            asked.append(places)
            return {} if len(asked) == 1 else {place: NextRecord(10, False) for place in places}

        known = NextRecords(late)
        commit = [LogPosition("t", 0, 9)]
        assert [known.after(commit, ends(10)) for _ in range(3)] == [[None], [None], [10]]


class TestOnceItIsDeleted:
    """Nothing can be fetched any more: what was found before counts, and the one offset of a marker is no loss."""

    def test_a_single_offset_before_an_empty_log_need_not_have_been_a_record(self) -> None:
        log = Log(end=10)
        known = NextRecords(log)
        assert known.after([LogPosition("t", 0, 9)], ends(10, start=10)) == [10]
        assert log.asked == []

    @pytest.mark.parametrize(
        ("why", "commit", "start", "end"),
        [
            ("two offsets are no single marker", 8, 10, 10),
            ("after it come records, which were fetched if they were there", 9, 10, 2_000),
            ("it is the end", 10, 10, 10),
        ],
    )
    def test_of_others_nothing_is_taken_for_granted(self, why: str, commit: int, start: int, end: int) -> None:
        known = NextRecords(Log(end=end))
        assert known.after([LogPosition("t", 0, commit)], ends(end, start=start)) == [None], why

    @pytest.mark.parametrize(("records", "found"), [((), 10), ((8,), 8)])
    def test_what_was_found_before_outlives_the_process_and_a_partition_that_cannot_be_read(
        self, tmp_path: Path, records: tuple[int, ...], found: int
    ) -> None:
        commit, file = [LogPosition("t", 0, 8)], tmp_path / "state" / "lab.json"
        before = NextRecords(Log(*records, end=10), NextRecordCache(file))
        before.after(commit, ends(10))
        assert before.after(commit, ends(10)) == [found]
        after = NextRecords(Log(end=10), NextRecordCache(file))
        assert after.after(commit, {}) == [found]
        assert after.after(commit, ends(10, start=10)) == [found]

    def test_what_is_no_longer_committed_is_forgotten(self, tmp_path: Path) -> None:
        file = tmp_path / "lab.json"
        NextRecords(Log(end=10), NextRecordCache(file)).after([LogPosition("t", 0, 9)], ends(10, start=10))
        NextRecords(Log(end=10), NextRecordCache(file)).after([LogPosition("t", 0, 10)], ends(10, start=10))
        assert NextRecordCache(file).load() == {}

    @pytest.mark.parametrize("content", ["", "[]", "{}", '{"format": "other"}', '{"format": null, "places": 1}'])
    def test_a_damaged_file_is_as_good_as_none(
        self, tmp_path: Path, content: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        file = tmp_path / "lab.json"
        file.write_text(content)
        known = NextRecords(Log(end=10), NextRecordCache(file))
        assert "looked up again" in caplog.text
        assert known.after([LogPosition("t", 0, 9)], ends(10, start=10)) == [10]
        assert NextRecordCache(file).load() == {LogPosition("t", 0, 9): NextRecord(10, False)}

    def test_a_file_that_cannot_be_written_costs_nothing_else(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        (tmp_path / "taken").write_text("a file where a folder should be")
        known = NextRecords(Log(end=10), NextRecordCache(tmp_path / "taken" / "lab.json"))
        for start in (10, 10):
            assert known.after([LogPosition("t", 0, 9)], ends(10, start=start)) == [10]
        assert caplog.text.count("cannot write") == 1


@pytest.mark.broker
class TestOnABroker:
    @pytest.fixture
    def lab(self, broker: KafkaBroker) -> Lab:
        return Lab(broker.client_settings())

    @pytest.fixture
    def source(self, lab: Lab) -> Iterator[KafkaSource]:
        made = KafkaSource(lab.cluster())
        yield made
        made.close()

    @staticmethod
    def next_of(source: KafkaSource) -> dict[int, int | None]:
        """Of each partition, after the two samples that it takes."""
        source.collect()
        return {row["partition"]: row["next_record"] for row in rows(source.collect(), COMMITS)}

    @staticmethod
    def transaction(lab: Lab, topic: str, *values: bytes, commit: bool = True) -> None:
        producer = Producer({**lab.settings, "transactional.id": lab.name("tx")})
        producer.init_transactions(20)
        producer.begin_transaction()
        for value in values:
            producer.produce(topic, value, partition=0)
        producer.flush(20)
        producer.commit_transaction(20) if commit else producer.abort_transaction(20)

    def test_a_commit_marker_is_no_record(self, lab: Lab, source: KafkaSource) -> None:
        topic = lab.topic(partitions=1)
        self.transaction(lab, topic, b"a", b"b")
        lab.commit(lab.name("reader"), topic, {0: 2})
        assert self.next_of(source) == {0: 3}

    def test_neither_are_the_records_of_an_aborted_transaction(self, lab: Lab, source: KafkaSource) -> None:
        topic = lab.topic(partitions=1)
        self.transaction(lab, topic, b"a")
        self.transaction(lab, topic, b"never", b"was", commit=False)
        lab.commit(lab.name("reader"), topic, {0: 1})
        assert self.next_of(source) == {0: 5}

    def test_a_record_after_a_marker_is_one(self, lab: Lab, source: KafkaSource) -> None:
        topic = lab.topic(partitions=1)
        self.transaction(lab, topic, b"a")
        self.transaction(lab, topic, b"b")
        lab.commit(lab.name("reader"), topic, {0: 1})
        assert self.next_of(source) == {0: 2}

    def test_an_unread_record_stays_one_and_its_neighbour_is_not_asked_for(self, lab: Lab, source: KafkaSource) -> None:
        topic = lab.topic()
        lab.produce(topic, {0: 5, 1: 5})
        lab.commit(lab.name("reader"), topic, {0: 4, 1: 5})
        assert self.next_of(source) == {0: 4, 1: None}

    def test_what_was_deleted_is_looked_past(self, lab: Lab, source: KafkaSource) -> None:
        topic = lab.topic(partitions=1)
        lab.produce(topic, {0: 10})
        lab.admin.delete_records([TopicPartition(topic, 0, 6)])[TopicPartition(topic, 0)].result(10)
        lab.commit(lab.name("reader"), topic, {0: 1})
        assert self.next_of(source) == {0: 6}

    @staticmethod
    def delete_all(lab: Lab, topic: str, before: int) -> None:
        lab.admin.delete_records([TopicPartition(topic, 0, before)])[TopicPartition(topic, 0)].result(10)

    def test_a_control_record_deleted_by_retention_while_unwatched_is_no_loss(self, lab: Lab) -> None:
        topic = lab.topic(partitions=1)
        self.transaction(lab, topic, b"a", b"b")
        lab.commit(lab.name("reader"), topic, {0: 2})
        self.delete_all(lab, topic, 3)
        assert self.next_of(KafkaSource(lab.cluster())) == {0: 3}

    def test_aborted_records_that_retention_deleted_are_known_after_a_restart(self, lab: Lab, tmp_path: Path) -> None:
        topic, state = lab.topic(partitions=1), tmp_path / "lab.json"
        self.transaction(lab, topic, b"a")
        self.transaction(lab, topic, b"never", b"was", commit=False)
        lab.commit(lab.name("reader"), topic, {0: 1})
        before = KafkaSource(lab.cluster(), state=state)
        assert self.next_of(before) == {0: 5}
        before.close()
        self.delete_all(lab, topic, 5)
        assert self.next_of(KafkaSource(lab.cluster(), state=state)) == {0: 5}
        assert self.next_of(KafkaSource(lab.cluster())) == {0: None}, "only the file knows"

    def test_a_record_that_retention_deleted_is_still_a_loss_after_a_restart(self, lab: Lab, tmp_path: Path) -> None:
        topic, state = lab.topic(partitions=1), tmp_path / "lab.json"
        lab.produce(topic, {0: 3})
        lab.commit(lab.name("reader"), topic, {0: 2})
        before = KafkaSource(lab.cluster(), state=state)
        assert self.next_of(before) == {0: 2}
        before.close()
        self.delete_all(lab, topic, 3)
        assert self.next_of(KafkaSource(lab.cluster(), state=state)) == {0: 2}

    def test_settings_may_forbid_it(self, lab: Lab) -> None:
        topic = lab.topic(partitions=1)
        self.transaction(lab, topic, b"a")
        lab.commit(lab.name("reader"), topic, {0: 1})
        source = KafkaSource(lab.cluster(skip_control_records=False))
        assert self.next_of(source) == {0: None}

    def test_nothing_is_committed_and_no_group_is_made(self, lab: Lab, source: KafkaSource) -> None:
        topic = lab.topic(partitions=1)
        self.transaction(lab, topic, b"a")
        lab.commit(lab.name("reader"), topic, {0: 1})
        assert self.next_of(source) == {0: 2}
        listed = lab.admin.list_consumer_groups(request_timeout=10).result(20)
        assert "lagwise" not in {group.group_id for group in listed.valid}
