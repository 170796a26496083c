"""An upgrade that is killed at any step keeps every row, and the next start completes it."""

import json
import os
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from sqlalchemy import select, update

from lagwise.operational.engine import open_engine, transaction
from lagwise.operational.lease import LEASES, TAKE_OVER_SECONDS
from lagwise.operational.migrate import NEWEST, database_version
from lagwise.tables import ALL_TABLES
from lagwise.tables.lake_version import lake_version
from lagwise.tables.migrate import plan_of
from lagwise.tables.migration_steps import STEPS
from lagwise.tables.migrations_table import MIGRATIONS
from lagwise.tables.schema import Table
from lagwise.tables.store import Lake
from lagwise_alerts.operate import queries

pytestmark = pytest.mark.process

_PACKED = Path(__file__).with_name("before-0.1.tar.xz")
_CHILD = Path(__file__).with_name("kill_child.py")
#: The analysis makes these anew, so that a migration may empty them.
_MADE_ANEW = {"demand", "forecasts", "capacity"}
#: How many points CI tries, evenly spread. All of them are `long`.
_SOME = 5


@dataclass(frozen=True)
class Upgraded:
    """The points that an upgrade passed, and whether it was killed at the last of them."""

    passed: list[str]
    killed: bool


Upgrade = Callable[..., Upgraded]


@pytest.fixture(scope="module")
def upgraded() -> Iterator[Upgrade]:
    """Upgrades a folder in a process of its own that is killed at a point; 0 is never."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, str(_CHILD)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:

        def run(data: Path, point: int = 0, *, times: float = 1.0) -> Upgraded:
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write(json.dumps({"data": str(data), "point": point, "times": times}) + "\n")
            process.stdin.flush()
            return Upgraded(**json.loads(process.stdout.readline()))

        yield run
        assert process.stdin is not None
        process.stdin.close()


def unpacked(folder: Path) -> Path:
    with tarfile.open(_PACKED) as tar:
        tar.extractall(folder, filter="data")
    return folder


def counts(data: Path) -> dict[str, int]:
    """The rows of every table that is there, as any reader of Delta counts them."""
    return {
        table.name: DeltaTable(str(data / "lake" / table.path)).to_pyarrow_table().num_rows
        for table in ALL_TABLES
        if table.name not in _MADE_ANEW and (data / "lake" / table.path / "_delta_log").is_dir()
    }


def complete(data: Path) -> dict[str, Any]:
    """What a completed upgrade left: rows of the lake, and alerts. It is complete, or this fails."""
    lake = Lake(str(data / "lake"))
    assert plan_of(lake).is_up_to_date
    assert lake_version(lake) == STEPS[-1].version
    assert lake.read(MIGRATIONS)["version"].to_pylist() == [step.version for step in STEPS], "each step is noted once"
    engine = open_engine(f"sqlite:///{data / 'lagwise.db'}")
    try:
        assert database_version(engine) == NEWEST
        found = {"counts": queries.counts(engine)}
    finally:
        engine.dispose()

    def rows(table: Table) -> list[str]:
        return sorted(json.dumps(row, default=str, sort_keys=True) for row in lake.read(table).to_pylist())

    return found | {table.name: rows(table) for table in ALL_TABLES if table is not MIGRATIONS}


@pytest.fixture(scope="module")
def unharmed(upgraded: Upgrade, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], dict[str, Any]]:
    """The points that an upgrade passes, and what it leaves."""
    data = unpacked(tmp_path_factory.mktemp("unharmed"))
    done = upgraded(data)
    assert not done.killed
    return done.passed, complete(data)


def kill_and_complete(upgraded: Upgrade, data: Path, point: int, expected: dict[str, Any]) -> str:
    """Kill an upgrade at a point, look at what it left, and complete it; says where it was killed."""
    before = counts(unpacked(data))
    first = upgraded(data, point)
    where = f"{point}: {first.passed[-1]}"
    assert first.killed and len(first.passed) == point
    after = counts(data)
    assert {name: after[name] for name in before} == before, f"{where}: no row is lost, and none is there twice"
    assert not upgraded(data).killed
    assert complete(data) == expected, where
    return first.passed[-1]


def test_a_kill_at_some_steps(upgraded: Upgrade, unharmed: tuple[list[str], dict[str, Any]], tmp_path: Path) -> None:
    points, expected = unharmed
    assert len(points) > 50
    chosen = [1 + i * (len(points) - 1) // (_SOME - 1) for i in range(_SOME)]
    seen = [kill_and_complete(upgraded, tmp_path / str(point), point, expected) for point in chosen]
    assert any("create_" in one for one in seen) and any("create_" not in one for one in seen)


@pytest.mark.long
def test_a_kill_at_every_step(upgraded: Upgrade, unharmed: tuple[list[str], dict[str, Any]], tmp_path: Path) -> None:
    points, expected = unharmed
    assert {"before create_write_transaction", "after create_write_transaction", "after create_deltalake"} <= set(
        points
    )
    for point in range(1, len(points) + 1):
        kill_and_complete(upgraded, tmp_path / str(point), point, expected)


def test_a_killed_upgrade_of_another_machine_is_taken_over_when_its_lease_has_run_out(
    upgraded: Upgrade, unharmed: tuple[list[str], dict[str, Any]], tmp_path: Path
) -> None:
    (points, expected), data, times = unharmed, unpacked(tmp_path), 0.1
    assert upgraded(data, 1 + points.index("before create_write_transaction")).killed
    engine = open_engine(f"sqlite:///{data / 'lagwise.db'}")
    with transaction(engine) as connection:
        mine = LEASES.c.scope == "migration"
        assert connection.execute(select(LEASES.c.hold_id).where(mine)).scalar_one() is not None, "it had the lease"
        connection.execute(update(LEASES).where(mine).values(machine="another boot", host="node-7"))
    engine.dispose()
    began = time.monotonic()
    assert not upgraded(data, times=times).killed
    assert time.monotonic() - began > times * TAKE_OVER_SECONDS, "until then, it might still have been at work"
    assert complete(data) == expected
