"""The live round over a real lake: what it writes, that doing it again changes nothing, that it catches up."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lagwise.config import Config
from lagwise.tables.analysis import GROUP_STATUS, PARTITION_STATUS, STATUS_CHANGES
from lagwise.tables.minutes import MINUTES, WATERMARK_MINUTES
from lagwise.tables.rounds import TICKS
from lagwise.tables.store import Lake
from tests.spark.recorder import Recorder

if TYPE_CHECKING:
    from pyspark import SparkContext

pytestmark = pytest.mark.spark

START = datetime(2026, 3, 1, 23, 40, tzinfo=UTC)


@pytest.fixture
def config(lake: Lake) -> Config:
    return Config(data=str(Path(lake.uri).parent))


def run(spark: "SparkContext", lake: Lake, config: Config) -> Any:
    from lagwise_spark.jobs.tick import tick

    return tick(spark, lake, config)


def statuses(lake: Lake) -> dict[tuple[str, int], tuple[str, str | None]]:
    rows = lake.read(PARTITION_STATUS).to_pylist()
    return {(r["group"], r["partition"]): (r["status"], r["reason"]) for r in rows}


def test_nothing_collected_is_not_a_round(spark: "SparkContext", lake: Lake, config: Config) -> None:
    assert run(spark, lake, config) is None
    assert lake.read(TICKS).num_rows == 0


def test_verdicts_follow_the_history(spark: "SparkContext", lake: Lake, config: Config) -> None:
    """Twenty minutes across midnight UTC: one group keeps pace, one stands still with an owner, one without."""
    recorder = Recorder(lake, START)
    for _ in range(80):
        end = recorder.elapsed * 100
        recorder.sample(
            {"orders": {0: end}},
            {
                ("healthy", "orders", 0): (max(0, end - 20), "member-1"),
                ("stuck", "orders", 0): (min(end, 30_000), "member-2"),
                ("gone", "orders", 0): (min(end, 30_000), None),
            },
        )
    cost = run(spark, lake, config)
    assert cost.new_samples == 80
    assert cost.group_partitions == 3
    assert statuses(lake) == {
        ("healthy", 0): ("ok", None),
        ("stuck", 0): ("stalled", None),
        ("gone", 0): ("stopped", None),
    }
    rows = {r["group"]: r for r in lake.read(PARTITION_STATUS).to_pylist()}
    # Offset 30,000 was written 300 s after the start; the last sample was taken at 1,185 s.
    assert rows["stuck"]["lag"] == 1185 * 100 - 30_000
    assert rows["stuck"]["lag_seconds"] == pytest.approx(885.0)
    assert rows["stuck"]["produce_rate_per_second"] == pytest.approx(100.0)
    assert rows["stuck"]["client_id"] == "client of member-2"
    groups = {r["group"]: r for r in lake.read(GROUP_STATUS).to_pylist()}
    assert groups["gone"]["status"] == "stopped"
    assert groups["gone"]["members"] == 0
    assert groups["gone"]["sentence"].startswith("No members. ")
    minutes = {r["minute"] for r in lake.read(MINUTES).to_pylist()}
    assert minutes == {START + timedelta(minutes=m) for m in range(19)}, "the minute of the last sample is still open"


def test_each_group_is_held_to_the_objective_that_names_it(spark: "SparkContext", lake: Lake, config: Config) -> None:
    """Three groups, always two minutes behind."""
    entry = {"groups": {"include": ["hasty-.*"]}, "lag_objective_seconds": 60}
    patient = {"groups": {"include": [".*-patient"]}, "lag_objective_seconds": 600}
    cluster = {"bootstrap": "127.0.0.1:1", "lag_objective_seconds": 90, "lag_objectives": [entry, patient]}
    named = Config.model_validate({"data": config.data, "clusters": [{"name": "test", **cluster}]})
    recorder = Recorder(lake, START)
    for _ in range(60):
        end = recorder.elapsed * 100 + 20_000
        groups = ("hasty-patient", "very-patient", "others")
        behind = {(group, "orders", 0): (end - 12_000, f"member of {group}") for group in groups}
        recorder.sample({"orders": {0: end}}, behind)
    run(spark, lake, named)
    shown = {r["group"]: r["status"] for r in lake.read(GROUP_STATUS).to_pylist()}
    assert shown == {"hasty-patient": "lagging", "very-patient": "ok", "others": "lagging"}


def test_readers_of_the_files_see_times_in_utc(spark: "SparkContext", lake: Lake, config: Config) -> None:
    """The dashboard reads the files themselves; times without a zone among them break its arithmetic."""
    recorder = Recorder(lake, START)
    for _ in range(8):
        recorder.sample({"orders": {0: recorder.elapsed}}, {("g", "orders", 0): (recorder.elapsed, "m")})
    run(spark, lake, config)
    for table in (PARTITION_STATUS, MINUTES, WATERMARK_MINUTES, GROUP_STATUS):
        found = lake.query(f"select * from {table.name}", over=[table])
        declared = {field.name: field.type for field in table.arrow if str(field.type).startswith("timestamp")}
        assert {name: found.schema.field(name).type for name in declared} == declared, table.name
        assert found.num_rows


def test_a_round_done_again_changes_nothing(spark: "SparkContext", lake: Lake, config: Config) -> None:
    recorder = Recorder(lake, START)
    for _ in range(20):
        recorder.sample({"orders": {0: recorder.elapsed}}, {("g", "orders", 0): (recorder.elapsed, "m")})
    run(spark, lake, config)
    before = {
        t.name: sorted(map(str, lake.read(t).to_pylist())) for t in (MINUTES, WATERMARK_MINUTES, PARTITION_STATUS)
    }
    changes = lake.read(STATUS_CHANGES).num_rows
    # The round was cut short before it said that it had finished: it is done again from the start.
    _forget(lake)
    run(spark, lake, config)
    after = {t.name: sorted(map(str, lake.read(t).to_pylist())) for t in (MINUTES, WATERMARK_MINUTES, PARTITION_STATUS)}
    assert after == before
    assert lake.read(STATUS_CHANGES).num_rows == changes


def test_a_round_leaves_nothing_in_memory(spark: "SparkContext", lake: Lake, config: Config) -> None:
    def held() -> set[int]:
        every = spark._jsc.getPersistentRDDs()
        return {number for number, rdd in every.items() if rdd.isCheckpointed()}

    recorder = Recorder(lake, START)
    before = held()
    for _ in range(8):
        recorder.sample({"orders": {0: recorder.elapsed}}, {("g", "orders", 0): (recorder.elapsed, "m")})
    run(spark, lake, config)
    assert held() <= before


def test_rounds_in_steps_equal_one_round_at_the_end(
    spark: "SparkContext", lake: Lake, config: Config, tmp_path: Path
) -> None:
    other = Lake(str(tmp_path / "other"))
    other.create(*_all_tables())
    stepwise, at_once = Recorder(lake, START), Recorder(other, START)
    for i in range(24):
        end = stepwise.elapsed * 50
        pairs = {("g", "orders", p): (max(0, end - 400 * p), "m" if p else None) for p in range(3)}
        ends = {"orders": dict.fromkeys(range(3), end)}
        stepwise.sample(ends, pairs)
        at_once.sample(ends, pairs)
        if i % 5 == 4:
            run(spark, lake, config)
    run(spark, lake, config)
    run(spark, other, config)
    for table in (MINUTES, WATERMARK_MINUTES):
        assert sorted(map(str, lake.read(table).to_pylist())) == sorted(map(str, other.read(table).to_pylist()))
    skipped = {"since", "committed_since"}
    mine = [{k: v for k, v in r.items() if k not in skipped} for r in lake.read(PARTITION_STATUS).to_pylist()]
    theirs = [{k: v for k, v in r.items() if k not in skipped} for r in other.read(PARTITION_STATUS).to_pylist()]
    assert sorted(map(str, mine)) == sorted(map(str, theirs))


def test_a_late_sample_reopens_its_minute(spark: "SparkContext", lake: Lake, config: Config) -> None:
    recorder = Recorder(lake, START)
    for i in range(20):
        recorder.sample({"orders": {0: 10 * i}}, {("g", "orders", 0): (10 * i, "m")}, withheld=i == 6)
    run(spark, lake, config)
    late = START + timedelta(minutes=1)
    assert _samples_of(lake, late) == 3
    recorder.deliver_withheld()
    run(spark, lake, config)
    assert _samples_of(lake, late) == 4


def test_a_torn_write_is_not_data(spark: "SparkContext", lake: Lake, config: Config) -> None:
    recorder = Recorder(lake, START)
    for i in range(10):
        recorder.sample({"orders": {0: 100}}, {("g", "orders", 0): (100, "m")}, torn=i == 5)
    run(spark, lake, config)
    assert sum(r["samples"] for r in lake.read(MINUTES).to_pylist()) == 7, "two minutes of four samples, one torn"


def test_more_than_a_hundred_commits_are_read(spark: "SparkContext", lake: Lake, config: Config) -> None:
    """By then the log of the table has checkpoints."""
    recorder = Recorder(lake, START)
    for i in range(105):
        recorder.sample({"orders": {0: i}}, {("g", "orders", 0): (i, "m")})
    cost = run(spark, lake, config)
    assert cost.new_samples == 105
    assert statuses(lake) == {("g", 0): ("ok", None)}


def _samples_of(lake: Lake, minute: datetime) -> int:
    return sum(int(r["samples"]) for r in lake.read(MINUTES).to_pylist() if r["minute"] == minute)


def _forget(lake: Lake) -> None:
    delta = lake.open(TICKS)
    assert delta is not None
    delta.delete()


def _all_tables() -> Any:
    from lagwise.tables import ALL_TABLES

    return ALL_TABLES
