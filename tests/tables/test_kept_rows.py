"""What a process that asks the same all the time need not read, look up or open again."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from lagwise.platform.errors import LakeError
from lagwise.tables import data_files
from lagwise.tables.analysis import GROUP_STATUS, PARTITION_STATUS
from lagwise.tables.data_files import DataFile, are_small
from lagwise.tables.duckdb_connection import borrowed, connected
from lagwise.tables.kept_rows import KeptRows
from lagwise.tables.raw import GROUPS
from lagwise.tables.schema import Table
from lagwise.tables.store import Lake

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
NAMES = 'select "group" from groups order by 1'


@pytest.fixture
def keeping(lake: Lake) -> Lake:
    lake.kept = KeptRows(2**20)
    return lake


def groups(*names: str, at: datetime = AT) -> pa.Table:
    rows = [{"sample_id": "s", "cluster": "c", "sampled_at": at, "group": name, "state": "Stable"} for name in names]
    return GROUPS.from_rows(rows)


def asked(lake: Lake) -> list[str]:
    names: list[str] = lake.query(NAMES, over=[GROUPS])["group"].to_pylist()
    return names


def files_on_disk(lake: Lake, table: Table) -> list[Path]:
    return list(Path(lake.location(table)).rglob("day=*/*.parquet"))


def test_a_file_is_read_once(keeping: Lake) -> None:
    keeping.append(GROUPS, groups("a"))
    assert asked(keeping) == ["a"]
    for file in files_on_disk(keeping, GROUPS):
        file.write_bytes(b"not parquet any more")
    keeping.append(GROUPS, groups("b"))
    assert asked(keeping) == ["a", "b"]
    with pytest.raises(LakeError, match="cannot read"):
        asked(Lake(keeping.uri))


def test_older_files_are_left_out_and_rows_of_others_are_not(keeping: Lake) -> None:
    keeping.append(GROUPS, groups("old", at=AT - timedelta(hours=2)))
    keeping.append(GROUPS, pa.concat_tables([groups("a"), groups("b", at=AT - timedelta(minutes=10))]))
    for lake in (keeping, Lake(keeping.uri)):
        assert sorted(lake.read(GROUPS, since=AT - timedelta(minutes=5))["group"].to_pylist()) == ["a", "b"]


def test_what_was_asked_for_longest_ago_goes_first() -> None:
    rows = {name: pa.table({"x": pa.array(range(100), pa.int64())}) for name in "abc"}
    read: list[str] = []

    def reading(name: str) -> pa.Table:
        read.append(name)
        return rows[name]

    kept = KeptRows(2 * rows["a"].nbytes)
    for names in ("ab", "a", "c", "ac", "b"):
        assert kept.of(list(names), reading) == [rows[name] for name in names]
    assert read == ["a", "b", "c", "b"]


def test_large_files_are_not_kept(keeping: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    keeping.append(GROUPS, groups("a"))
    with connected() as connection:
        for limit, name in ((0, "b"), (2**20, "c"), (0, "d")):
            monkeypatch.setattr(data_files, "_SMALL_BYTES", limit)
            keeping.append(GROUPS, groups(name))
            keeping.scan(connection, GROUPS)
            assert name in {row[0] for row in connection.execute(NAMES).fetchall()}, "an older view hides this one"


def test_a_table_does_not_change_meanwhile_but_for_what_is_written_here(lake: Lake) -> None:
    lake.append(GROUPS, groups("a"))
    other = Lake(lake.uri)
    with lake.unchanging():
        assert asked(lake) == ["a"]
        other.append(GROUPS, groups("b"))
        assert asked(lake) == ["a"]
        lake.append(GROUPS, groups("c"))
        assert "c" in asked(lake)
    assert asked(lake) == ["a", "b", "c"]


def test_rows_are_replaced_where_a_condition_holds(lake: Lake) -> None:
    lake.append(GROUPS, groups("a"))
    lake.append(GROUPS, groups("b", at=AT + timedelta(days=1)))
    lake.replace(GROUPS, groups("c", at=AT + timedelta(days=1)), "day >= DATE '2026-03-02'")
    assert asked(lake) == ["a", "c"]
    lake.replace(GROUPS, groups("d"))
    assert asked(lake) == ["d"]


def test_nothing_is_replaced_that_may_not_be_written(tmp_path: Path, lake: Lake) -> None:
    def refuse() -> None:
        raise LakeError("another process leads")

    lake.append(GROUPS, groups("a"))
    lake.before_writing = refuse
    with pytest.raises(LakeError, match="another process leads"):
        lake.replace(GROUPS, groups("b"))
    assert asked(lake) == ["a"]
    with pytest.raises(LakeError, match="there is no table"):
        Lake(str(tmp_path / "nothing")).replace(GROUP_STATUS, GROUP_STATUS.from_rows([]))


def test_a_borrowed_connection_is_nobody_elses() -> None:
    with borrowed() as one, borrowed() as other:
        one.register("mine", pa.table({"x": [1]}))
        with pytest.raises(duckdb.CatalogException):
            other.sql("select * from mine").fetchall()


def test_a_connection_that_failed_is_not_lent_again() -> None:
    with pytest.raises(ZeroDivisionError), borrowed() as failed:
        raise ZeroDivisionError
    with pytest.raises(duckdb.ConnectionException):
        failed.sql("select 1").fetchall()
    with borrowed() as next_one:
        assert next_one is not failed


@pytest.mark.parametrize("keeps", [True, False])
def test_what_is_newer_than_asked_for_is_not_read(lake: Lake, keeps: bool) -> None:
    lake.kept = KeptRows() if keeps else None
    lake.append(GROUPS, groups("a"))
    (old,) = files_on_disk(lake, GROUPS)
    lake.append(GROUPS, groups("b", at=AT + timedelta(minutes=1)))
    for file in files_on_disk(lake, GROUPS):
        if file != old:
            file.write_bytes(b"not parquet any more")
    assert lake.query(NAMES, over=[GROUPS], until=AT + timedelta(minutes=1))["group"].to_pylist() == ["a"]


def test_what_is_new_in_each_round_leaves_room_for_what_is_not() -> None:
    files = [DataFile("a", 2 * 2**20)]
    assert are_small(GROUPS, files)
    assert not are_small(PARTITION_STATUS, files)
