"""The lake through delta-rs and DuckDB: what is written is read, and what cannot be trusted is refused."""

from datetime import UTC, date, datetime
from pathlib import Path
from shutil import rmtree
from tempfile import gettempdir

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from lagwise.platform.errors import LakeError
from lagwise.tables import ALL_TABLES
from lagwise.tables.analysis import GROUP_STATUS
from lagwise.tables.duckdb_connection import connected
from lagwise.tables.open_tables import TABLE_PROPERTIES
from lagwise.tables.raw import GROUPS
from lagwise.tables.rounds import TICKS
from lagwise.tables.schema import TIMESTAMP
from lagwise.tables.store import Lake

AT = datetime(2026, 3, 1, 23, 59, 59, 999_999, tzinfo=UTC)


def groups(*names: str, at: datetime = AT) -> pa.Table:
    rows = [{"sample_id": "s", "cluster": "c", "sampled_at": at, "group": name, "state": "Stable"} for name in names]
    return GROUPS.from_rows(rows)


def test_tables_are_created_plain_and_pinned(lake: Lake) -> None:
    for table in ALL_TABLES:
        delta = lake.open(table)
        assert delta is not None
        assert delta.protocol().min_reader_version == 1
        assert TABLE_PROPERTIES.items() <= delta.metadata().configuration.items()
        assert delta.metadata().partition_columns == (["day"] if table.partitioned else [])


def test_creating_again_keeps_what_is_there(lake: Lake) -> None:
    lake.append(GROUPS, groups("a"))
    lake.create(*ALL_TABLES)
    assert lake.read(GROUPS).num_rows == 1


def test_the_day_is_that_of_the_clock_in_utc(lake: Lake) -> None:
    lake.append(GROUPS, groups("a"))
    lake.append(GROUPS, groups("b", at=datetime(2026, 3, 2, tzinfo=UTC)))
    days = {row["group"]: row["day"] for row in lake.read(GROUPS).to_pylist()}
    assert days == {"a": date(2026, 3, 1), "b": date(2026, 3, 2)}
    assert len(lake.files(GROUPS, days=("2026-03-02", "2026-03-02"))) == 1


def test_duckdb_sees_what_was_appended(lake: Lake) -> None:
    empty = lake.query("select count(*) as n from groups", over=[GROUPS])
    assert empty.to_pylist() == [{"n": 0}]
    lake.append(GROUPS, groups("a", "b'; drop table groups; --"))
    found = lake.query('select "group", sampled_at from groups where "group" like ?', ["b%"], over=[GROUPS])
    assert found.to_pylist() == [{"group": "b'; drop table groups; --", "sampled_at": AT}]


def test_a_table_that_does_not_exist_is_empty(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "nothing"))
    assert lake.open(GROUPS) is None
    assert lake.read(GROUPS).num_rows == 0
    assert lake.query("select * from groups", over=[GROUPS]).num_rows == 0


def test_column_mapping_is_refused(tmp_path: Path) -> None:
    """Readers of ours would return columns of nulls for such a table, without a word."""
    lake = Lake(str(tmp_path))
    DeltaTable.create(
        lake.location(GROUP_STATUS),
        schema=GROUP_STATUS.arrow,
        configuration={"delta.columnMapping.mode": "name", "delta.minReaderVersion": "2"},
    )
    with pytest.raises(LakeError, match="column mapping"):
        lake.open(GROUP_STATUS)


def test_a_corrupt_log_is_one_clear_line(lake: Lake) -> None:
    lake.append(GROUPS, groups("a"))
    for entry in (Path(lake.location(GROUPS)) / "_delta_log").glob("*.json"):
        entry.write_text("{ this is not json")
    with pytest.raises(LakeError, match="cannot read the table") as raised:
        Lake(lake.uri).open(GROUPS)
    assert "\n" not in str(raised.value)


def test_a_corrupt_data_file_is_one_clear_line(lake: Lake) -> None:
    lake.append(GROUPS, groups("a"))
    Path(lake.files(GROUPS)[0]).write_bytes(b"not parquet")
    with pytest.raises(LakeError, match="cannot read") as raised:
        lake.query("select * from groups", over=[GROUPS])
    assert "\n" not in str(raised.value)


def test_a_lake_that_cannot_be_created_is_one_clear_line(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("a file where a folder should be")
    with pytest.raises(LakeError, match="cannot create the table"):
        Lake(str(blocked)).create(GROUPS)


def test_a_row_that_does_not_fit_is_refused_as_a_whole(lake: Lake) -> None:
    torn = groups("a").set_column(0, "sample_id", pa.nulls(1, pa.string()))
    with pytest.raises((LakeError, ValueError)):
        lake.append(GROUPS, torn)
    assert lake.read(GROUPS).num_rows == 0


def test_a_snapshot_does_not_change_under_a_query(lake: Lake) -> None:
    lake.append(GROUPS, groups("a"))
    with duckdb.connect() as connection:
        lake.scan(connection, GROUPS)
        write_deltalake(lake.location(GROUPS), lake.read(GROUPS), mode="append")
        assert connection.sql("select count(*) from groups").fetchall() == [(1,)]


def test_what_does_not_fit_into_memory_goes_to_the_systems_temporary_files() -> None:
    """And not to the working directory, nor to where another connection puts its own."""
    with connected() as one, connected() as other:
        places = [Path(c.sql("select current_setting('temp_directory')").fetchall()[0][0]) for c in (one, other)]
    assert [place.parent for place in places] == [Path(gettempdir())] * 2
    assert places[0] != places[1]


def test_a_lake_of_an_older_version_is_refused_and_not_misread(lake: Lake) -> None:
    rmtree(lake.location(GROUPS))
    write_deltalake(lake.location(GROUPS), pa.table({"cluster": ["shop"], "sample_id": ["s"]}))
    with pytest.raises(LakeError, match=r"lacks .*: another version of Lagwise made it"):
        Lake(lake.uri).open(GROUPS)


def test_a_table_with_a_column_that_nobody_writes_is_refused(lake: Lake) -> None:
    rmtree(lake.location(GROUPS), ignore_errors=True)
    surplus = GROUPS.arrow.append(pa.field("mood", pa.string()))
    write_deltalake(lake.location(GROUPS), surplus.empty_table())
    with pytest.raises(LakeError, match=r"groups also has mood: another version of Lagwise made it"):
        Lake(lake.uri).open(GROUPS)


def test_what_a_struct_lacks_is_an_older_version_too(lake: Lake) -> None:
    rmtree(lake.location(TICKS), ignore_errors=True)
    known = pa.list_(pa.struct([pa.field("cluster", pa.string()), pa.field("read_until", TIMESTAMP)]))
    fields = [f.with_type(known) if f.name == "progress" else f for f in TICKS.arrow]
    write_deltalake(lake.location(TICKS), pa.schema(fields).empty_table())
    with pytest.raises(LakeError, match=r"lacks progress\.finished_until, progress\.hours_until, progress\.observed"):
        Lake(lake.uri).open(TICKS)
