"""Heartbeats in the database: seen from everywhere, forgotten in order, and in nobody's way."""

import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import Engine, insert, update

from lagwise.operational import heartbeats
from lagwise.operational.engine import make_database_folder, transaction
from lagwise.operational.heartbeats import HEARTBEATS, SILENT_SECONDS, SharedBeat, beating, read_heartbeats
from lagwise.operational.lease import Process
from lagwise.operational.migrate import migrate_database
from lagwise.platform import health

Open = Callable[[str], Engine]


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeats, "WRITE_SECONDS", 0.05)


def until(found: Callable[[], list[SharedBeat]], lines: list[str]) -> list[SharedBeat]:
    deadline = time.monotonic() + 30
    while (beats := found()) is not None and [beat.line for beat in beats] != lines:
        assert time.monotonic() < deadline, beats
        time.sleep(0.02)
    return beats


def test_the_last_reports_of_all_processes_are_seen_until_they_end(url: str, opened: Open, tmp_path: Path) -> None:
    engine = opened(url)
    migrate_database(engine)

    def found() -> list[SharedBeat]:
        return read_heartbeats(engine, datetime.now(UTC))

    assert found() == []
    with beating(tmp_path / "a", health.ALERTS, url) as alerts:
        with beating(tmp_path / "b", health.ANALYSIS, url) as analysis:
            alerts.beat("2 firing")
            analysis.beat("a round \x1b[2J at http://u:pw@h")
            until(found, ["2 firing", "a round \\x1b[2J at http://u:[redacted]@h"])
            analysis.beat("another round", unless_by=1)
            beats = until(found, ["2 firing", "another round"])
            assert [beat.process for beat in beats] == [health.ALERTS, health.ANALYSIS]
            assert {beat.where for beat in beats} == {Process.of_this()}
            assert health.read(tmp_path / "b")[health.ANALYSIS].line == "another round", "the file is written, too"
        until(found, ["2 firing"])
    until(found, [])


def test_who_is_killed_stays_until_another_starts_on_its_machine(url: str, opened: Open, tmp_path: Path) -> None:
    engine, now = opened(url), datetime.now(UTC)
    migrate_database(engine)
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    me = Process.of_this()
    rows = {
        "killed here": (replace(me, pid=child.pid, started=1), now),
        "elsewhere": (Process("node-7", 1, "another boot", 1), now - timedelta(seconds=SILENT_SECONDS + 60)),
        "long ago": (Process("node-8", 1, "another boot", 1), now - timedelta(days=2)),
    }
    with transaction(engine) as connection:
        for number, (line, (where, at)) in enumerate(rows.items()):
            row = {"id": number, "process": "collector", "at": at, "line": line, "host": where.host, "pid": where.pid}
            connection.execute(insert(HEARTBEATS).values(**row, machine=where.machine, started=where.started))
    beats = {beat.line: beat for beat in read_heartbeats(engine, now)}
    assert set(beats) == {"killed here", "elsewhere"}
    assert [beats[line].is_silent(now) for line in ("killed here", "elsewhere")] == [False, True]
    with beating(tmp_path, "server", url) as heart:
        heart.beat("answers")
        until(lambda: read_heartbeats(engine, now), ["elsewhere", "answers"])


def test_a_database_that_cannot_be_used_costs_nothing_else(tmp_path: Path, opened: Open) -> None:
    folder = tmp_path / "state"
    folder.write_text("in the way")
    url = f"sqlite:///{folder / 'lagwise.db'}"
    engine = opened(url)
    assert read_heartbeats(engine, datetime.now(UTC)) == []
    with beating(tmp_path / "own", health.ALERTS, url) as heart:
        heart.beat("works")
        assert health.read(tmp_path / "own")[health.ALERTS].line == "works"
        folder.unlink()
        make_database_folder(engine)
        until(lambda: read_heartbeats(engine, datetime.now(UTC)), ["works"])  # it makes the table
        with transaction(engine) as connection:
            connection.execute(update(HEARTBEATS).values(id=1))  # another process has forgotten it
        heart.beat("works on")
        until(lambda: read_heartbeats(engine, datetime.now(UTC)), ["works", "works on"])
    with beating(tmp_path / "own", health.ALERTS, "nonsense://") as heart:
        heart.beat("without")
    assert health.read(tmp_path / "own")[health.ALERTS].line == "without"
