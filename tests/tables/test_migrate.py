"""A lake of an older version keeps its rows: columns are added, steps are done once, and a kill at any instant costs
only the step under way."""

import random
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from shutil import rmtree

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from lagwise.platform.errors import LakeError, NewerThanProgram
from lagwise.tables import ALL_TABLES
from lagwise.tables.capacity import TOPIC_HOURS
from lagwise.tables.lake_version import NEWEST, WRITER, lake_version
from lagwise.tables.migrate import migrate, plan_of
from lagwise.tables.migration_steps import STEPS
from lagwise.tables.migrations_table import MIGRATIONS
from lagwise.tables.rounds import TICKS
from lagwise.tables.schema import Table
from lagwise.tables.store import Lake

NOW = datetime(2026, 11, 26, 12, tzinfo=UTC)


def as_of_old(lake: Lake, table: Table, rows: pa.Table) -> None:
    """Make a table as an older version made it, with rows in several files."""
    rmtree(lake.location(table), ignore_errors=True)
    by = ["day"] if table.partitioned else None
    for i in range(rows.num_rows):
        write_deltalake(lake.location(table), rows.slice(i, 1), mode="append", partition_by=by)


def old_ticks() -> pa.Table:
    """Rounds from before `progress.observed_until` and `group_partitions`."""
    rows = [
        {"started_at": NOW, "finished_at": NOW, "wall_seconds": float(i), "samples": i,
         "progress": [{"cluster": "shop", "read_until": NOW}], "day": NOW.date()}
        for i in range(3)
    ]  # fmt: skip
    progress = pa.list_(pa.struct([("cluster", pa.string()), ("read_until", pa.timestamp("us", "UTC"))]))
    time_ = pa.timestamp("us", "UTC")
    columns = [("started_at", time_), ("finished_at", time_), ("wall_seconds", pa.float64()), ("samples", pa.int64()),
               ("progress", progress), ("day", pa.date32())]  # fmt: skip
    return pa.Table.from_pylist(rows, schema=pa.schema(columns))


def old_topic_hours(count: int) -> pa.Table:
    """Hours from before their minutes were kept."""
    row = {
        "cluster": "shop", "topic": "orders", "hour": NOW, "partitions": 1, "minutes": 60, "seconds": 3600.0,
        "max_rate_per_second": 2.0, "max_at": NOW, "partition_records": [{"partition": 0, "records": 7}],
        "zero_minutes": 3, "rates": [{"bucket": 1, "minutes": 57}], "day": NOW.date(),
    }  # fmt: skip
    rates = pa.list_(pa.struct([("bucket", pa.int32()), ("minutes", pa.int32())]))
    kept = [f for f in TOPIC_HOURS.arrow if f.name not in ("minute_rates_per_second", "day")]
    schema = pa.schema([*kept, ("zero_minutes", pa.int32()), ("rates", rates), ("day", pa.date32())])
    return pa.Table.from_pylist([row | {"records": i} for i in range(count)], schema=schema)


@pytest.fixture
def nullable_ticks() -> Table:
    """The table of rounds with a column that is new and may be null."""
    from dataclasses import replace

    from lagwise.tables.schema import TEXT, Column

    return replace(TICKS, columns=(*TICKS.columns, Column("mood", TEXT, "how it went")))


def test_new_columns_are_null_in_old_rows_for_every_reader(lake: Lake, nullable_ticks: Table) -> None:
    row = {"started_at": NOW, "finished_at": NOW, "wall_seconds": 1.0, "samples": 1, "group_partitions": 1,
           "progress": []}  # fmt: skip
    lake.append(TICKS, TICKS.from_rows([row]))
    new = Lake(lake.uri)
    with pytest.raises(LakeError, match=r"lacks mood: another version of Lagwise made it\. `lagwise migrate` brings"):
        new.open(nullable_ticks)
    new.create(nullable_ticks)
    assert new.read(nullable_ticks)["mood"].to_pylist() == [None]
    assert new.query("select mood from ticks", over=[nullable_ticks])["mood"].to_pylist() == [None]
    new.append(nullable_ticks, nullable_ticks.from_rows([row | {"mood": "good"}]))
    both = ["good", None]
    assert new.query("select mood from ticks order by mood", over=[nullable_ticks])["mood"].to_pylist() == both
    assert sorted(new.read(nullable_ticks)["mood"].to_pylist(), key=str) == [None, "good"]
    chosen = new.select("select mood from ticks", nullable_ticks)
    assert chosen is not None
    assert sorted(chosen["mood"].to_pylist(), key=str) == [None, "good"]


def test_fields_of_structs_are_added_too(lake: Lake) -> None:
    complete = TICKS.arrow.names
    rows = old_ticks().append_column(TICKS.arrow.field("group_partitions"), pa.array([1, 1, 1], pa.int64()))
    as_of_old(lake, TICKS, rows.select([n for n in complete if n in rows.column_names]))
    Lake(lake.uri).create(TICKS)
    found = Lake(lake.uri).query("select progress from ticks", over=[TICKS])["progress"].to_pylist()
    assert [one[0]["cluster"] for one in found] == ["shop"] * 3
    assert {one[0]["observed_until"] for one in found} == {None}


def test_a_lake_from_before_the_first_release_keeps_its_rows(lake: Lake) -> None:
    rmtree(lake.location(MIGRATIONS))
    as_of_old(lake, TOPIC_HOURS, old_topic_hours(5))
    plan = plan_of(Lake(lake.uri))
    assert plan.version == 0
    assert plan.columns == {"analysis/topic_hours": ["minute_rates_per_second"]}
    said: list[str] = []
    migrate(Lake(lake.uri), say=said.append)
    assert said[0].endswith(f"to version 1: {STEPS[0].what}")
    rows = Lake(lake.uri).read(TOPIC_HOURS)
    assert sorted(rows["records"].to_pylist()) == list(range(5))
    assert rows["minute_rates_per_second"].to_pylist() == [[2.0] + [None] * 59] * 5
    assert lake_version(Lake(lake.uri)) == NEWEST
    assert plan_of(Lake(lake.uri)).is_up_to_date
    again: list[str] = []
    migrate(Lake(lake.uri), say=again.append)
    assert again == []


def test_the_newest_version_is_that_of_the_last_step() -> None:
    assert [step.version for step in STEPS] == list(range(1, NEWEST + 1))


def test_a_new_lake_has_the_newest_version(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    assert plan_of(lake).version is None
    migrate(lake)
    assert lake_version(Lake(lake.uri)) == NEWEST


def test_a_newer_lake_is_refused_in_a_sentence(lake: Lake) -> None:
    row = {"version": 99, "at": NOW, "what": "something"}
    lake.append(MIGRATIONS, MIGRATIONS.from_rows([row]), transactions={WRITER: 99})
    with pytest.raises(NewerThanProgram, match=r"has version 99.*a newer Lagwise wrote it\. Upgrade Lagwise"):
        migrate(Lake(lake.uri))


@pytest.mark.process
def test_a_kill_at_any_instant_loses_no_row_and_doubles_none(lake: Lake) -> None:
    rmtree(lake.location(MIGRATIONS))
    as_of_old(lake, TOPIC_HOURS, old_topic_hours(60))
    code = (
        "import sys; from lagwise.tables.migrate import migrate; from lagwise.tables.store import Lake; "
        "print('ready', flush=True); migrate(Lake(sys.argv[1])); print('done', flush=True)"
    )
    chance, kills, longest = random.Random(26), 0, 0.05
    while True:
        with subprocess.Popen([sys.executable, "-c", code, lake.uri], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            try:
                process.wait(chance.uniform(0, longest))
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
            is_done = "done" in process.stdout.read()
        if is_done:
            break
        kills, longest = kills + 1, longest + 0.05
        rows = DeltaTable(lake.location(TOPIC_HOURS)).to_pyarrow_table(columns=["records"])
        assert sorted(rows["records"].to_pylist()) == list(range(60))
    assert kills > 0
    assert sorted(Lake(lake.uri).read(TOPIC_HOURS)["records"].to_pylist()) == list(range(60))
    assert plan_of(Lake(lake.uri)).is_up_to_date
    assert all(Lake(lake.uri).open(table) is not None for table in ALL_TABLES)
