"""Of a table whose log has not changed, the newest version is known; a commit is seen at once."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lagwise.tables.open_tables import OpenTables, _log_changed_at
from lagwise.tables.rounds import TICKS
from lagwise.tables.store import Lake

NOW = datetime(2026, 11, 26, 12, tzinfo=UTC)


def _row() -> dict[str, object]:
    return {"started_at": NOW, "finished_at": NOW, "wall_seconds": 1.0, "samples": 1, "group_partitions": 1,
            "progress": []}  # fmt: skip


def test_every_commit_of_another_writer_is_seen_at_once(tmp_path: Path) -> None:
    writer, reader = Lake(str(tmp_path)), Lake(str(tmp_path))
    writer.create(TICKS)
    for version in range(1, 30):
        writer.append(TICKS, TICKS.from_rows([_row()]))
        assert reader.version(TICKS) == version
        assert reader.version(TICKS) == version


def test_nothing_is_looked_up_while_the_log_stays_as_it_is(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    lake.create(TICKS)
    log = Path(lake.location(TICKS), "_delta_log")
    os.utime(log, (0, 0))  # it has not changed for a long time
    tables = OpenTables()
    opened = tables.newest(TICKS, lake.location(TICKS), {})
    assert opened is not None
    # A commit that does not show in the folder's time of change, as none can be.
    lake.append(TICKS, TICKS.from_rows([_row()]))
    os.utime(log, (0, 0))
    again = tables.newest(TICKS, lake.location(TICKS), {})
    assert again is not None
    assert again.version() == 0
    os.utime(log)
    again = tables.newest(TICKS, lake.location(TICKS), {})
    assert again is not None
    assert again.version() == 1


def test_a_change_of_this_moment_is_not_relied_upon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another commit within the same tick of the kernel's clock would leave the time of change as it is."""
    lake = Lake(str(tmp_path))
    lake.create(TICKS)
    changed_at = os.stat(Path(lake.location(TICKS), "_delta_log")).st_mtime_ns
    clock = [changed_at + 1_000_000]
    monkeypatch.setattr("lagwise.tables.open_tables.time.time_ns", lambda: clock[-1])

    def slow(location: str) -> int | None:
        clock.append(changed_at + 10**9)  # the lookup takes a second: what counts is when it began
        return _log_changed_at(location)

    monkeypatch.setattr("lagwise.tables.open_tables._log_changed_at", slow)
    tables = OpenTables()
    tables.newest(TICKS, lake.location(TICKS), {})
    lake.append(TICKS, TICKS.from_rows([_row()]))
    os.utime(Path(lake.location(TICKS), "_delta_log"), ns=(changed_at, changed_at))
    again = tables.newest(TICKS, lake.location(TICKS), {})
    assert again is not None
    assert again.version() == 1
