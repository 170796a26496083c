"""Damaged files of the lake: found, quarantined and counted; what others hold stays, and nothing healthy is touched."""

import os
import resource
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lagwise.platform.errors import LakeError
from lagwise.tables import ALL_TABLES
from lagwise.tables.analysis import GROUP_STATUS
from lagwise.tables.damage import Fault, unreadable
from lagwise.tables.minutes import MINUTES
from lagwise.tables.orphans import APPEND_ONLY
from lagwise.tables.quarantine import DAMAGED_FILES
from lagwise.tables.raw import COMMITS, EVENTS
from lagwise.tables.repair import inspect, repair
from lagwise.tables.schema import Table
from lagwise.tables.storage import Storage
from lagwise.tables.store import Lake
from tests.app.judged import append, row

NOW = datetime(2026, 3, 3, 12, tzinfo=UTC)

#: One that is appended to, one that is replaced by the day and one that is replaced as a whole, whenever tests run;
#: the others with the thorough tests.
_FEW = (COMMITS, MINUTES, GROUP_STATUS)
TABLES = [pytest.param(t, id=t.name, marks=() if t in _FEW else pytest.mark.thorough) for t in ALL_TABLES]


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def rot(file: Path) -> None:
    content = bytearray(file.read_bytes())
    for place in range(4, 40):
        content[place] ^= 0xFF
    file.write_bytes(content)


def empty(file: Path) -> None:
    file.write_bytes(b"")


def zeros(file: Path) -> None:
    file.write_bytes(bytes(file.stat().st_size))


@contextmanager
def others_may_enter(folder: Path) -> Iterator[None]:
    folder.chmod(0o755)
    yield


@contextmanager
def without_root() -> Iterator[None]:
    """Without the rights of the superuser, who may read everything."""
    mine = os.geteuid()
    if mine == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(mine)


@contextmanager
def no_more_files() -> Iterator[None]:
    """The process has as many open files as it may have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with ExitStack() as files:
        highest = max(map(int, os.listdir("/proc/self/fd")))
        resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 2, hard))
        files.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        while True:
            try:
                files.enter_context(open(os.devnull, "rb"))
            except OSError:
                break
        yield


def column(table: Table) -> str:
    """A column to tell rows by."""
    return next(c.name for c in table.columns if str(c.type) in ("string", "int64") and c.name != "table")


def value(table: Table, name: str) -> str | int:
    """This name, or where the column is one of numbers its own number."""
    is_text = str(table.arrow.field(column(table)).type) == "string"
    return name if is_text else ord(name)


def filled(lake: Lake, table: Table, *names: str) -> None:
    """A row to each name, each in a file and a commit of its own; of a table with a clock each on its own day."""
    for number, name in enumerate(names):
        clock = {} if table.clock is None else {table.clock: NOW - timedelta(days=number)}
        append(lake, table, row(table, **{column(table): value(table, name)}, **clock))


def held(lake: Lake, table: Table) -> list[str]:
    """The names that a reader sees who opens the table anew."""
    found = [r[column(table)] for r in Lake(lake.uri).read(table).to_pylist()]
    return sorted(one if isinstance(one, str) else chr(one) for one in found)


def file_of(lake: Lake, table: Table, name: str) -> Path:
    """The data file that holds only this row."""
    for file in lake.files(table):
        if pq.read_table(file, columns=[column(table)], partitioning=None)[0].to_pylist() == [value(table, name)]:
            return Path(file)
    raise AssertionError(name)


def entry(lake: Lake, table: Table, version: int) -> Path:
    return Path(lake.location(table), "_delta_log", f"{version:020d}.json")


@pytest.mark.parametrize("table", TABLES)
def test_damaged_files_cost_their_own_rows(tmp_path: Path, table: Table) -> None:
    lake = Lake(str(tmp_path / "lake"))
    lake.create(table)
    filled(lake, table, *"abcdef")
    damaged = {"b": (Path.unlink, "missing"), "c": (cut, "truncated"), "d": (empty, "truncated"), "e": (rot, "corrupt")}
    files, contents = {name: file_of(lake, table, name) for name in damaged}, {}
    for name, (damage, _) in damaged.items():
        damage(files[name])
        contents[name] = files[name].read_bytes() if files[name].exists() else None
    with pytest.raises(LakeError, match=table.path):
        held(lake, table)
    # What one look at sizes does not show is found by the error that it caused.
    found = inspect(lake, error=f"Error while reading file {files['e']}.", tables=[table])
    by_file = {one.file: one for one in found.damaged}
    for name, (_, fault) in damaged.items():
        one = by_file.pop(str(files[name].relative_to(lake.location(table))))
        assert (one.table, one.fault, one.rows) == (table, Fault(fault), 1)
        assert str(one).startswith(f"{table.path}/{one.file} is {fault} (")
        if table.clock is not None:
            assert one.first_at == one.last_at == NOW - timedelta(days=" abcdef".index(name) - 1)
    assert by_file == {}

    assert len(repair(lake, found, NOW).quarantined) == len(damaged)
    kept = {r["file"]: r for r in lake.read(DAMAGED_FILES).to_pylist() if r["quarantined"] or r["fault"] == "missing"}
    for name, (_, fault) in damaged.items():
        noted = kept[str(files[name].relative_to(lake.location(table)))]
        assert (noted["table"], noted["fault"], noted["rows"]) == (table.path, fault, 1)
        assert (noted["quarantined"] is None) == (contents[name] is None)
        if contents[name] is not None:
            assert Path(lake.uri, noted["quarantined"]).read_bytes() == contents[name]
    assert inspect(lake, thorough=True, tables=[table]).damaged == []
    filled(lake, table, "g")
    there = held(lake, table)
    assert [name for name in there if name in "abcdefg"] == ["a", "f", "g"]


@pytest.mark.parametrize("table", TABLES)
def test_damaged_entries_of_the_log_cost_their_own_rows_at_most(tmp_path: Path, table: Table) -> None:
    lake = Lake(str(tmp_path / "lake"))
    lake.create(table)
    filled(lake, table, *"abcdef")
    damages: dict[int, Callable[[Path], Any]] = {2: cut, 3: empty, 4: Path.unlink, 6: zeros}
    contents: dict[str, bytes | None] = {}
    for version, damage in damages.items():
        file = entry(lake, table, version)
        damage(file)
        contents[file.name] = file.read_bytes() if file.exists() else None
    found = inspect(Lake(lake.uri), tables=[table])
    assert [(one.table, one.file) for one in found.damaged] == [(table, f"_delta_log/{name}") for name in contents]
    assert [str(one.fault) for one in found.damaged] == ["truncated", "truncated", "missing", "corrupt"]
    done = repair(lake, found, NOW)
    # Rows that are never replaced are recovered from the files that the entries named.
    assert done.recovered == (4 if table in APPEND_ONLY else 0)
    there = list("abcdef" if table in APPEND_ONLY else "ae")
    assert [name for name in held(lake, table) if name in "abcdef"] == there
    for name, content in contents.items():
        kept = Path(lake.uri, "quarantine/2026-03-03", table.path, "_delta_log", name)
        assert (kept.read_bytes() if kept.exists() else None) == content
    assert inspect(lake, thorough=True, tables=[table]).damaged == []
    filled(lake, table, "g")
    assert [name for name in held(lake, table) if name in "abcdefg"] == [*there, "g"]


def checkpoint(lake: Lake, table: Table) -> Path:
    return sorted(Path(lake.location(table), "_delta_log").glob("*.checkpoint.parquet"))[-1]


def with_checkpoint(lake: Lake, table: Table, *names: str) -> None:
    """A row to each name, and a checkpoint after all but the last."""
    filled(lake, table, *names[:-1])
    delta = lake.open(table)
    assert delta is not None
    delta.create_checkpoint()
    lake.forget(table)
    filled(lake, table, names[-1])


@pytest.mark.parametrize("damage", [cut, empty, rot])
def test_a_damaged_checkpoint_costs_nothing_where_the_entries_before_it_are_there(
    lake: Lake, damage: Callable[[Path], Any]
) -> None:
    for table in (COMMITS, MINUTES):
        with_checkpoint(lake, table, *"abcd")
        damage(checkpoint(lake, table))
        with pytest.raises(LakeError):
            held(lake, table)
    found = inspect(lake)
    assert [one.table for one in found.damaged] == [COMMITS, MINUTES]
    repair(lake, found, NOW)
    for table in (COMMITS, MINUTES):
        assert held(lake, table) == list("abcd")
        filled(lake, table, "e")
        assert held(lake, table) == list("abcde")
    assert inspect(lake, thorough=True).damaged == []


def test_rows_are_recovered_where_readers_can_start_nowhere(lake: Lake) -> None:
    """The only checkpoint is damaged, and the entries before it have been cleaned up. What raw tables hold is there."""
    for table in (COMMITS, EVENTS, GROUP_STATUS):
        with_checkpoint(lake, table, *"abcd")
        for version in range(4):
            entry(lake, table, version).unlink()
        cut(checkpoint(lake, table))
    done = repair(lake, inspect(lake), NOW)
    assert done.recovered == 6
    assert (held(lake, COMMITS), held(lake, EVENTS)) == (list("abcd"), list("abcd"))
    assert held(lake, GROUP_STATUS) == ["d"], "the next round replaces it anyway"
    assert inspect(lake, thorough=True).damaged == []
    for table in (COMMITS, EVENTS, GROUP_STATUS):
        filled(lake, table, "e")
    assert held(lake, COMMITS) == list("abcde")


def test_a_log_that_is_gone(lake: Lake) -> None:
    filled(lake, COMMITS, *"abc")
    rmtree(Path(lake.location(COMMITS), "_delta_log"))
    found = inspect(lake)
    assert [str(one) for one in found.damaged] == ["raw/commits/_delta_log is missing (data files without a log)"]
    assert repair(lake, found, NOW).recovered == 3
    assert held(lake, COMMITS) == list("abc")


def test_a_damaged_hint_at_the_checkpoint_costs_nothing(lake: Lake) -> None:
    with_checkpoint(lake, COMMITS, *"abcd")
    cut(Path(lake.location(COMMITS), "_delta_log", "_last_checkpoint"))
    repair(lake, inspect(lake), NOW)
    assert held(lake, COMMITS) == list("abcd")
    assert inspect(lake, thorough=True).damaged == []


def test_a_file_that_was_merged_is_not_added_twice(lake: Lake) -> None:
    """The entry of a compaction is lost: the files that it merged are there, and so is what it made of them."""
    filled(lake, COMMITS, "a")
    for name in "bc":
        append(lake, COMMITS, row(COMMITS, sample_id=name, sampled_at=NOW))
    delta = lake.open(COMMITS)
    assert delta is not None
    delta.optimize.compact()
    empty(entry(lake, COMMITS, delta.version()))
    assert repair(lake, inspect(Lake(lake.uri)), NOW).recovered == 0
    assert held(lake, COMMITS) == list("abc")


def test_rows_that_only_a_merged_file_holds_are_recovered(lake: Lake) -> None:
    """As before, and the files that were merged have been removed since."""
    for name in "abc":
        append(lake, COMMITS, row(COMMITS, sample_id=name, sampled_at=NOW))
    before = lake.files(COMMITS)
    delta = lake.open(COMMITS)
    assert delta is not None
    delta.optimize.compact()
    empty(entry(lake, COMMITS, delta.version()))
    for file in before:
        Path(file).unlink()
    done = repair(lake, inspect(Lake(lake.uri)), NOW)
    assert (len(done.quarantined), done.recovered) == (4, 1)
    assert held(lake, COMMITS) == list("abc")


def test_files_that_name_their_day_are_not_damaged(lake: Lake) -> None:
    """Spark writes the partition into the file, too."""
    filled(lake, MINUTES, "a")
    [file] = map(Path, lake.files(MINUTES))
    rows = pq.read_table(file, partitioning=None)
    day = pa.repeat(pa.scalar(date(2026, 3, 3), pa.date32()), rows.num_rows)
    pq.write_table(rows.append_column("day", day), file)
    assert unreadable(file.read_bytes(), MINUTES, 1, file) is None
    assert held(lake, MINUTES) == ["a"]


def test_a_file_that_must_not_be_read_is_not_damaged() -> None:
    """Without permission to read it, that is unknown. The folder may be entered by others, unlike those of pytest."""
    with TemporaryDirectory() as folder, others_may_enter(Path(folder)):
        lake = Lake(f"{folder}/lake")
        lake.create(COMMITS)
        filled(lake, COMMITS, *"ab")
        file = file_of(lake, COMMITS, "a")
        for place in (file, file.parent):
            place.chmod(0)
            with without_root():
                found = inspect(lake, error=str(file), tables=[COMMITS])
            place.chmod(0o755)
            assert found.damaged == []
            assert any("Permission denied" in line for line in found.unchecked)
        assert held(lake, COMMITS) == ["a", "b"]


def test_too_many_open_files_are_not_damage(lake: Lake) -> None:
    filled(lake, COMMITS, *"ab")
    lake.open(COMMITS)
    with no_more_files():
        found = inspect(lake, thorough=True, tables=[COMMITS])
    assert found.damaged == []
    assert any("Too many open files" in line for line in found.unchecked)


def test_appends_during_a_repair_are_not_lost(lake: Lake) -> None:
    """A collector goes on while a file after the other is damaged and quarantined."""
    filled(lake, COMMITS, *"abcdefgh")
    written = []

    def collect() -> None:
        other = Lake(lake.uri)
        for number in range(40):
            append(other, COMMITS, row(COMMITS, sample_id=f"new {number}", sampled_at=NOW))
            written.append(f"new {number}")

    collector = Thread(target=collect)
    collector.start()
    for name in "abcdefg":
        file_of(lake, COMMITS, name).unlink()
        assert len(repair(lake, inspect(lake, tables=[COMMITS]), NOW).quarantined) == 1
    collector.join()
    assert len(written) == 40
    assert held(lake, COMMITS) == sorted([*written, "h"])


def test_two_repairs_at_once_count_a_file_once(lake: Lake) -> None:
    filled(lake, COMMITS, *"ab")
    file_of(lake, COMMITS, "a").unlink()
    mine, theirs = Lake(lake.uri), Lake(lake.uri)
    found = inspect(mine, tables=[COMMITS]), inspect(theirs, tables=[COMMITS])
    assert [len(repair(one, what, NOW).quarantined) for one, what in zip((mine, theirs), found, strict=True)] == [1, 0]
    assert len(lake.read(DAMAGED_FILES)) == 1
    assert held(lake, COMMITS) == ["b"]


@pytest.mark.parametrize("step", ["append", "commit", "move"])
def test_a_repair_that_is_cut_short_is_finished_by_the_next(
    lake: Lake, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(lake, COMMITS, *"abc")
    cut(file_of(lake, COMMITS, "b"))

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Storage if step == "move" else Lake, step, killed)
        with pytest.raises(KeyboardInterrupt):
            repair(lake, inspect(lake, tables=[COMMITS]), NOW)
    repair(lake, inspect(lake, tables=[COMMITS]), NOW)
    assert held(lake, COMMITS) == ["a", "c"]
    assert {r["file"] for r in lake.read(DAMAGED_FILES).to_pylist()} != set()
    assert inspect(lake, thorough=True).damaged == []
