"""From commits' metadata to rows of ``raw/service_times``: each measurement once, and nothing from anything else."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from lagwise.tables.raw import COMMITS
from lagwise.tables.service_times import SERVICE_TIMES
from lagwise_collectors import snapshot_format
from lagwise_collectors.probe_service_times import new_measurements
from lagwise_collectors.protocol import ErrorTally, Snapshot
from tests.collectors.snapshots import INTERVAL, START, sample

Text = Mapping[tuple[str, str, int], str]


def text(t1: float = 0.016, *, at: datetime | None = START - timedelta(seconds=7), more: str = "") -> str:
    return f"lw1 t1={t1} t2=0.004 tq=0.001 n=50" + (f" at={int(at.timestamp())}" if at else "") + more


def snapshot(number: int, metadata: Text, **more: Any) -> Snapshot:
    return sample(number, commits={**dict.fromkeys(metadata, 1), ("plain", "orders", 0): 1}, metadata=metadata, **more)


def rows(*snapshots: Snapshot) -> list[list[dict[str, Any]]]:
    """The new rows of each snapshot in turn."""
    seen, found = None, []
    for one in snapshots:
        new = new_measurements(seen, one)
        seen = new.seen
        found.append(new.rows.to_pylist())
    return found


def test_a_row_holds_the_reported_numbers_and_the_owner_of_the_partition() -> None:
    reported = {("shop", "orders", 2): text(more=" c=8 s=10.5 tl=0.00004 cores=4 cpu=0.0045")}
    [[row]] = rows(snapshot(0, reported, members={"shop": {"web#1": [("orders", 2)]}}))
    assert row == {
        "sample_id": "0",
        "cluster": "shop",
        "sampled_at": START,
        "measured_at": START - timedelta(seconds=7),
        "group": "shop",
        "topic": "orders",
        "partition": 2,
        "member_id": "web#1",
        "client_id": "web",
        "host": "10.0.0.1",
        "source": "probe",
        "t1_seconds": 0.016,
        "t2_seconds": 0.004,
        "seconds_per_message": None,
        "run_queue_seconds": 0.001,
        "lock_wait_seconds": 0.00004,
        "t1_doubt": None,
        "process_cpu_seconds": 0.0045,
        "messages": 50,
        "threads": 8,
        "window_seconds": 10.5,
        "cores": 4.0,
    }


def test_rows_fit_the_table() -> None:
    new = new_measurements(None, snapshot(0, {("shop", "orders", 0): text()})).rows
    wanted = [field for field in SERVICE_TIMES.arrow if field.name != "day"]
    assert new.column_names == [field.name for field in wanted]
    for field in wanted:
        new[field.name].cast(field.type)
        assert field.nullable or new[field.name].null_count == 0


def test_a_doubt_about_t1_is_reported() -> None:
    [[row]] = rows(snapshot(0, {("shop", "orders", 0): text(more=" tl=0.02")}))
    assert row["t1_doubt"] == "interpreter_lock"


def test_a_text_on_many_partitions_is_one_measurement_of_each_topic() -> None:
    reported = {("shop", topic, p): text() for topic in ("orders", "bills") for p in (5, 3, 4)}
    [found] = rows(snapshot(0, reported))
    assert [(row["topic"], row["partition"]) for row in found] == [("bills", 3), ("orders", 3)]


def test_the_same_text_of_two_groups_is_two_measurements() -> None:
    [found] = rows(snapshot(0, {("shop", "orders", 0): text(), ("bank", "orders", 0): text()}))
    assert [row["group"] for row in found] == ["bank", "shop"]


def test_a_measurement_is_written_once_and_the_next_one_when_it_comes() -> None:
    pair = ("shop", "orders", 0)
    found = rows(
        snapshot(0, {pair: text(0.016)}),
        snapshot(1, {pair: text(0.016)}),
        snapshot(2, {pair: text(0.017, at=START + INTERVAL)}),
        snapshot(3, {}),
    )
    assert [[row["t1_seconds"] for row in new] for new in found] == [[0.016], [], [0.017], []]


def test_a_text_that_moves_to_a_lower_partition_is_no_news() -> None:
    assert rows(snapshot(0, {("shop", "orders", 4): text()}), snapshot(1, {("shop", "orders", 2): text()}))[1] == []


def test_a_text_without_its_time_is_dated_by_the_sample_and_not_at_all_after_a_start() -> None:
    pair = ("shop", "orders", 0)
    found = rows(snapshot(0, {pair: text(0.016, at=None)}), snapshot(1, {pair: text(0.017, at=None)}))
    assert found[0] == []
    assert [(row["t1_seconds"], row["measured_at"]) for row in found[1]] == [(0.017, START + INTERVAL)]


def test_a_clock_that_is_ahead_does_not_date_a_measurement_after_its_reading() -> None:
    [[row]] = rows(snapshot(0, {("shop", "orders", 0): text(at=START + timedelta(days=400))}))
    assert row["measured_at"] == START


def test_a_group_that_cannot_be_read_for_a_while_reports_nothing_twice() -> None:
    pair = ("shop", "orders", 0)
    found = rows(
        snapshot(0, {pair: text()}),
        sample(1, commits={("plain", "orders", 0): 1}, groups={"plain": "Empty", "shop": "!timed_out"}),
        snapshot(2, {pair: text()}),
    )
    assert [len(new) for new in found] == [1, 0, 0]


def test_a_cluster_that_cannot_be_read_for_a_while_reports_nothing_twice() -> None:
    pair, errors = ("shop", "orders", 0), ErrorTally()
    errors.note("unreachable", "nobody is there")
    found = rows(snapshot(0, {pair: text()}), sample(1, errors=errors), snapshot(2, {pair: text()}))
    assert [len(new) for new in found] == [1, 0, 0]


def test_columns_need_no_dictionary_and_may_have_come_over_the_wire() -> None:
    one = snapshot(0, {("shop", "orders", 0): text()})
    plain = one.with_rows(COMMITS, one.rows(COMMITS).cast(COMMITS.without_day))
    buffer = pa.BufferOutputStream()
    snapshot_format.write(buffer, one)
    sent = snapshot_format.read(pa.BufferReader(buffer.getvalue()))
    assert rows(plain) == rows(sent) == rows(one)


@given(st.lists(st.text(max_size=40) | st.text(max_size=40).map("lw1 t1=1 ".__add__), max_size=6))
def test_metadata_of_others_is_left_alone(texts: list[str]) -> None:
    reported = {("shop", "orders", number): theirs for number, theirs in enumerate(texts)}
    assert rows(snapshot(0, reported), snapshot(1, reported)) == [[], []]


def test_of_a_hundred_thousand_commits_only_texts_are_looked_at() -> None:
    count = 100_000
    columns = {
        "group": pa.repeat("shop", count),
        "topic": pa.repeat("orders", count),
        "partition": pa.array(range(count), pa.int32()),
        "sampled_at": pa.repeat(pa.scalar(datetime(2026, 11, 21, tzinfo=UTC), pa.timestamp("us", "UTC")), count),
        "owner": pa.nulls(count, pa.string()),
        "metadata": pa.array([*("theirs" for _ in range(count - 1)), text()]).dictionary_encode(),
    }
    one = sample(0).with_rows(COMMITS, pa.table(columns))
    assert [row["partition"] for row in new_measurements(None, one).rows.to_pylist()] == [count - 1]
