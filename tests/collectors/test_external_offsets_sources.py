"""Several sources of a cluster: none waits for another, and one that cannot be read loses nothing of what was known."""

import json
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lagwise.config import Cluster
from lagwise.config.external_offsets import ExternalOffsetSource, FlinkJobs, OffsetFiles
from lagwise_collectors.external_offsets.merge_with_kafka import TopicNames, merge_with_kafka
from lagwise_collectors.external_offsets.model import (
    ExternalGroup,
    ExternalOffset,
    FlinkJob,
    OffsetSourceTrouble,
    SourceResult,
)
from lagwise_collectors.external_offsets.sources import ExternalOffsets, OffsetSources, check_offset_sources
from lagwise_collectors.external_offsets.timed_read import TimedRead
from lagwise_collectors.kafka.requests.commit_columns import NONE, CommitColumns, without_offset
from lagwise_collectors.kafka.requests.group_members import KafkaGroup, KafkaMember
from lagwise_collectors.protocol import ErrorTally
from lagwise_collectors.source_of_cluster import ReaderTask
from tests.collectors.flink_server import FlinkServer

pytestmark = pytest.mark.thorough


def files(folder: Path, name: str = "files", **groups: int) -> OffsetFiles:
    folder.mkdir(exist_ok=True)
    for group, offset in groups.items():
        (folder / f"{group}.json").write_text(json.dumps({"orders": {"0": offset}}))
    return OffsetFiles(name=name, path=str(folder / "*.json"))


def look(sources: OffsetSources, selects: Any = lambda name: True) -> tuple[dict[str, ExternalGroup], dict[str, int]]:
    errors = ErrorTally()
    sources.begin()
    found = sources.finish(selects, errors)
    return {group.name: group for group in found.groups}, errors.counts


# --- time-outs ---


def test_a_source_that_hangs_costs_its_time_out_and_its_own_groups(tmp_path: Path) -> None:
    flink = FlinkServer("healthy")
    with flink.running() as url:
        hanging: ExternalOffsetSource = FlinkJobs(name="jobs", url=url, timeout_seconds=4.0)
        sources = OffsetSources([hanging, files(tmp_path / "f", billing=3)])
        groups, errors = look(sources)
        assert (set(groups), errors) == ({"orders-job", "billing"}, {})
        flink.gate.clear()
        began = time.monotonic()
        groups, errors = look(sources)
        assert 4.0 <= time.monotonic() - began < 12.0
        assert errors == {"external_offsets_timeout": 1}
        assert groups["orders-job"].error == "external_offsets_timeout"
        assert groups["orders-job"].offsets == []
        assert groups["billing"].error is None


class Waiting:
    """A place that answers when it is let."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.looks = 0

    def read(self) -> SourceResult:
        self.looks += 1
        self.gate.wait(30)
        return SourceResult({"billing": ExternalGroup("billing", "files")})


def test_a_look_that_has_not_ended_is_not_joined_by_another(tmp_path: Path) -> None:
    place, settings = Waiting(), files(tmp_path / "f").model_copy(update={"timeout_seconds": 0.1})
    sources = OffsetSources([])
    lane = TimedRead(settings.name, settings.timeout_seconds, place.read, lambda: datetime.now(UTC))
    sources._reads.append(lane)
    assert look(sources) == ({}, {"external_offsets_timeout": 1})
    assert look(sources) == ({}, {"external_offsets_timeout": 1})
    assert place.looks == 1
    place.gate.set()
    assert lane._result is not None
    lane._result.result()
    # What the late look found is not taken for an answer to the new one.
    assert set(look(sources)[0]) == {"billing"}
    assert place.looks == 2


def test_a_reading_thread_that_ends_in_whatever_way_is_not_taken_for_one_that_hangs() -> None:
    def read() -> SourceResult:
        raise SystemExit(3)

    lane = TimedRead("files", 30.0, read, lambda: datetime.now(UTC))
    for _ in range(2):
        lane.begin()
        with pytest.raises(OffsetSourceTrouble, match="SystemExit: 3") as raised:
            lane.finish()
        assert raised.value.kind == "external_offsets_malformed"


# --- what was known ---


def test_groups_of_a_source_that_is_gone_are_unreadable_even_after_a_restart(tmp_path: Path) -> None:
    state = tmp_path / "state" / "known"
    settings = OffsetFiles(name="files", path=str(tmp_path / "offsets.json"))
    (tmp_path / "offsets.json").write_text('[{"group": "billing", "topic": "orders", "partition": 0, "offset": 3}]')
    assert look(OffsetSources([settings], state=state))[0]["billing"].error is None
    (tmp_path / "offsets.json").unlink()
    groups, errors = look(OffsetSources([settings], state=state))
    assert (groups["billing"].error, groups["billing"].type) == ("external_offsets_missing", "files")
    assert errors == {"external_offsets_missing": 1}


@pytest.mark.parametrize(
    "text", ["", "{}", '{"format": "x", "sources": {}}', '{"format": "lagwise-external-groups-1"}', "[]"]
)
def test_a_damaged_memory_is_as_good_as_none(tmp_path: Path, text: str) -> None:
    state = tmp_path / "known"
    state.write_text(text)
    groups, _ = look(OffsetSources([files(tmp_path / "f", billing=3)], state=state))
    assert set(groups) == {"billing"}
    assert json.loads(state.read_text())["sources"] == {"files": {"billing": "files"}}


def test_a_group_that_is_gone_from_a_source_that_can_be_read_is_gone(tmp_path: Path) -> None:
    sources = OffsetSources([files(tmp_path / "f", billing=3, mail=4)])
    assert set(look(sources)[0]) == {"billing", "mail"}
    (tmp_path / "f" / "mail.json").unlink()
    assert set(look(sources)[0]) == {"billing"}


def test_only_selected_groups_and_of_two_sources_the_first(tmp_path: Path) -> None:
    sources = OffsetSources([files(tmp_path / "a", "a", billing=3), files(tmp_path / "b", "b", billing=4, secret=1)])
    groups, _ = look(sources, lambda name: name != "secret")
    assert {name: group.offsets[0].committed for name, group in groups.items()} == {"billing": 3}


def test_what_a_library_raises_costs_only_its_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = OffsetSources([files(tmp_path / "a", "a", billing=3), files(tmp_path / "b", "b", mail=4)])

    def breaks() -> None:
        raise MemoryError("too large")

    monkeypatch.setattr(sources._reads[0], "_read", breaks)
    groups, errors = look(sources)
    assert (set(groups), errors) == ({"mail"}, {"external_offsets_malformed": 1})


def test_sources_reach_the_process_that_reads_them(tmp_path: Path) -> None:
    flink = FlinkJobs(name="jobs", url="http://h", token="${env:T}", jobs={"a": "b"})
    cluster = Cluster(bootstrap="h:1", external_offsets=(flink, files(tmp_path / "f")))
    task = ReaderTask(reads="cluster", cluster=cluster, state=Path("state"))
    assert ReaderTask.model_validate_json(task.model_dump_json()) == task


# --- doctor ---


def test_the_doctor_tries_each_source(tmp_path: Path) -> None:
    well = files(tmp_path / "a", "a", billing=3, mail=4)
    missing = OffsetFiles(name="b", path=str(tmp_path / "none.json"))
    checks = check_offset_sources([well, missing])
    assert [(c.name, c.ok, c.required) for c in checks] == [
        ("offsets from a", True, False),
        ("offsets from b", False, False),
    ]
    assert checks[0].detail == "2 groups, 2 offsets"
    assert "none.json" in checks[1].detail
    assert checks[1].advice is not None


# --- together with Kafka's own ---


def commits_of(group: str, offsets: dict[tuple[str, int], int | None]) -> CommitColumns:
    commits = CommitColumns()
    for (topic, partition), offset in offsets.items():
        block = without_offset(group, {topic: [partition]})
        block.committed[0] = NONE if offset is None else offset
        commits.blocks.append(block)
    return commits


def joined(
    found: ExternalGroup, groups: list[KafkaGroup], commits: CommitColumns, topics: tuple[str, ...] = ()
) -> tuple[KafkaGroup | None, dict[tuple[str, int], tuple[int | None, str | None]], dict[str, int]]:
    errors = ErrorTally()
    found.source = "there"
    merge_with_kafka(ExternalOffsets([found]), groups, commits, TopicNames(lambda: topics), errors)
    rows: dict[tuple[str, int], tuple[int | None, str | None]] = {}
    for (topic, partition), (block, row) in commits.rows_by_partition({found.name}).get(found.name, {}).items():
        committed = int(block.committed[row])
        rows[topic, partition] = None if committed == NONE else committed, block.owner[row] if block.owner else None
    for block in commits.blocks:
        columns = (block.committed, block.leader_epoch, block.metadata, block.owner, block.committed_at)
        assert {len(column) for column in columns if column is not None} == {len(block)}
    return next((g for g in groups if g.name == found.name), None), rows, errors.counts


def job(**more: Any) -> ExternalGroup:
    offsets = more.pop("offsets", [ExternalOffset("orders", 0, 7), ExternalOffset("orders", 1, None)])
    return ExternalGroup("flink-orders", "flink", "RUNNING", offsets=offsets, job=FlinkJob("j1", "orders-job"), **more)


def test_a_running_job_owns_the_offsets_that_its_empty_group_has_committed() -> None:
    kafka = KafkaGroup("flink-orders", state="Empty", type="simple")
    commits = commits_of("flink-orders", {("orders", 0): 9, ("orders", 2): 4})
    group, rows, _ = joined(job(), [kafka], commits)
    assert group is kafka
    assert (group.state, group.type, group.source) == ("RUNNING", "flink", "there")
    assert [(m.client_id, m.assignment) for m in group.members] == [("orders-job", {"orders": [0, 1]})]
    # What Kafka has is newer; what the job has not committed is owned all the same; what it does not read is nobody's.
    assert rows == {("orders", 0): (9, "j1"), ("orders", 1): (None, "j1"), ("orders", 2): (4, None)}


def test_a_checkpoint_that_is_ahead_of_what_was_once_committed_counts() -> None:
    kafka = KafkaGroup("flink-orders", state="Empty", type="simple")
    _, rows, _ = joined(job(), [kafka], commits_of("flink-orders", {("orders", 0): 5}))
    assert rows[("orders", 0)] == (7, "j1")


def test_a_job_that_kafka_knows_nothing_of_is_a_group() -> None:
    group, rows, _ = joined(job(), [], CommitColumns())
    assert group is not None
    assert rows == {("orders", 0): (7, "j1"), ("orders", 1): (None, "j1")}


def test_a_job_that_has_ended_and_left_nothing_is_none() -> None:
    group, rows, _ = joined(ExternalGroup("batch", "flink", "FINISHED"), [], CommitColumns())
    assert (group, rows) == (None, {})


def test_a_group_with_members_stays_what_it_is() -> None:
    member = KafkaMember("m1", "client", "host", None, {"orders": [0]})
    kafka = KafkaGroup("flink-orders", state="Stable", type="classic", members=[member])
    group, rows, _ = joined(job(), [kafka], commits_of("flink-orders", {("orders", 0): 9}))
    assert group is not None
    assert (group.state, group.type, group.source, group.members) == ("Stable", "classic", None, [member])
    assert rows[("orders", 1)] == (None, "j1")


def test_external_offsets_win_over_an_old_commit() -> None:
    kafka = KafkaGroup("billing", state="Empty", type="classic")
    found = ExternalGroup("billing", "sql", offsets=[ExternalOffset("orders", 0, 7)])
    group, rows, _ = joined(found, [kafka], commits_of("billing", {("orders", 0): 900}))
    assert group is not None
    assert (group.state, group.type) == ("Recorded", "sql")
    assert rows == {("orders", 0): (7, None)}


def test_without_an_answer_of_flink_the_commits_are_known_and_no_group_is_called_dead() -> None:
    kafka = KafkaGroup("flink-orders", state="Empty", type="simple")
    found = ExternalGroup("flink-orders", "flink", error="external_offsets_unreachable")
    group, rows, _ = joined(found, [kafka], commits_of("flink-orders", {("orders", 0): 9}))
    assert group is not None
    assert (group.state, group.error, group.type) == (None, None, "flink")
    assert rows == {("orders", 0): (9, None)}


def test_without_an_answer_a_group_that_is_only_there_is_unreadable() -> None:
    for kind in ("flink", "sql"):
        group, rows, _ = joined(ExternalGroup("billing", kind, error="external_offsets_timeout"), [], CommitColumns())
        assert group is not None
        assert (group.state, group.error, rows) == (None, "external_offsets_timeout", {})


# --- names of topics in Flink's metrics ---

DOTTED = [ExternalOffset("shop_orders-v1", 0, 7)]


def test_dots_are_put_back_into_the_names_of_topics() -> None:
    _, rows, errors = joined(job(offsets=DOTTED), [], CommitColumns(), ("shop.orders-v1", "other"))
    assert (rows, errors) == ({("shop.orders-v1", 0): (7, "j1")}, {})


def test_correct_and_unknown_names_stay() -> None:
    assert joined(job(offsets=DOTTED), [], CommitColumns(), ("shop_orders-v1",))[1] == {
        ("shop_orders-v1", 0): (7, "j1")
    }
    assert joined(job(offsets=DOTTED), [], CommitColumns(), ("other",))[1] == {("shop_orders-v1", 0): (7, "j1")}


def test_of_topics_that_are_spelled_alike_the_one_that_was_committed_to() -> None:
    alike = ("shop.orders-v1", "shop_orders-v1")
    kafka = KafkaGroup("flink-orders", state="Empty", type="simple")
    _, rows, _ = joined(job(offsets=DOTTED), [kafka], commits_of("flink-orders", {("shop.orders-v1", 0): 3}), alike)
    assert rows == {("shop.orders-v1", 0): (7, "j1")}
    group, rows, errors = joined(job(offsets=DOTTED), [], CommitColumns(), alike)
    assert group is not None
    assert (group.error, rows, errors) == ("external_offsets_malformed", {}, {"external_offsets_malformed": 1})
