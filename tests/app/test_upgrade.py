"""`lagwise migrate`, and the start of processes on the lake of an older version."""

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from shutil import rmtree

import pyarrow as pa
import pytest
from click.testing import CliRunner
from deltalake import write_deltalake

from lagwise.tables.lake_version import NEWEST, WRITER, lake_version
from lagwise.tables.migrations_table import MIGRATIONS
from lagwise.tables.minutes import HOURS
from lagwise.tables.store import Lake
from lagwise_app.cli import cli

NOW = datetime(2026, 11, 26, 12, tzinfo=UTC)


def run(*arguments: str) -> tuple[int, str]:
    ran = CliRunner().invoke(cli, arguments)
    return ran.exit_code, ran.output


@pytest.fixture
def old(lake: Lake, tmp_path: Path) -> Path:
    """A data folder whose lake lacks a column that may not be null, from before versions."""
    for table in (MIGRATIONS, HOURS):
        rmtree(lake.location(table))
    names = [name for name in HOURS.arrow.names if name != "long_pauses"]
    schema = pa.schema([HOURS.arrow.field(name) for name in names])
    write_deltalake(lake.location(HOURS), schema.empty_table(), partition_by=["day"])
    return tmp_path


def test_a_dry_run_says_what_would_be_done_and_does_nothing(old: Path) -> None:
    code, said = run("migrate", "--data", str(old), "--dry-run")
    assert code == 0, said
    assert "would be done: make the tables of the database" in said
    assert "would be done: the lake, to version 1" in said
    assert "analysis/hours gets long_pauses" in said
    assert not (old / "lagwise.db").exists()
    assert lake_version(Lake(str(old / "lake"))) == 0
    code, said = run("migrate", "--data", str(old), "--json")
    assert code == 0, said
    answer = json.loads(said)
    assert answer["lake"] == {"version": NEWEST, "newest": NEWEST, "steps": [], "columns": {}}
    assert answer["database"]["version"] == answer["database"]["newest"]
    assert len(answer["done"]) == 3
    assert run("migrate", "--data", str(old)) == (0, "lake and database are up to date\n")


def test_where_there_is_nothing_nothing_is_made(tmp_path: Path) -> None:
    """A wrong --data, which often is one folder too deep."""
    for more in ((), ("--dry-run",)):
        code, said = run("migrate", "--data", str(tmp_path / "wrong"), *more)
        assert code == 1
        assert "there is neither a lake at" in said and "Check --data" in said
        assert not list(tmp_path.glob("wrong/**/*.db")) and not (tmp_path / "wrong" / "lake").exists()


def test_the_doctor_says_what_helps_and_that_once(old: Path) -> None:
    _, said = run("doctor", "--data", str(old), "--no-spark")
    lines = [line for line in said.splitlines() if " lake: " in line]
    assert len(lines) == 1, lines
    assert "1 more table of an older version, to be migrated" in lines[0]
    assert "check that the storage" not in said


def test_without_java_the_analysis_migrates_nothing(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    code, said = run("analyze", "--once", "--data", str(old))
    assert (code, "Java" in said) == (1, True)
    assert lake_version(Lake(str(old / "lake"))) == 0
    assert not (old / "lagwise.db").exists()


@pytest.mark.process
def test_processes_that_start_together_migrate_once(old: Path) -> None:
    command = [sys.executable, "-m", "lagwise", "migrate", "--data", str(old), "--json"]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=old) for _ in range(2)]
    answers = [json.loads(process.communicate(timeout=60)[0]) for process in started]
    done = [line for answer in answers for line in answer["done"] if "to version 1" in line]
    assert len(done) == 1
    assert all(answer["lake"]["version"] == NEWEST for answer in answers)
    assert Lake(str(old / "lake")).read(MIGRATIONS)["version"].to_pylist() == [NEWEST]


def test_a_newer_lake_is_refused_by_every_command(lake: Lake, tmp_path: Path) -> None:
    row = {"version": 99, "at": NOW, "what": "something"}
    lake.append(MIGRATIONS, MIGRATIONS.from_rows([row]), transactions={WRITER: 99})
    for command in ("status", "migrate", "collect", "dashboard"):
        more = ["--bootstrap", "127.0.0.1:9"] if command == "collect" else []
        code, said = run(command, "--data", str(tmp_path), *more)
        assert code == 1
        assert "has version 99, and this Lagwise knows versions up to 1: a newer Lagwise wrote it" in said
