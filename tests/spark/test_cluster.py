"""The same rounds on a standalone cluster and in one process: the tables are identical."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lagwise.tables import ALL_TABLES
from lagwise.tables.analysis import ANALYSIS_TABLES, TICKS
from lagwise.tables.membership import REBALANCE_STATS
from lagwise.tables.store import Lake
from tests.spark.recorder import Recorder
from tests.spark.standalone import WORKERS, executors_of, standalone_cluster

pytestmark = [pytest.mark.spark, pytest.mark.process]

#: Not on whole seconds: sums over such times are not exact, so that the order in which they are added would show.
START = datetime(2026, 3, 1, 23, 17, 3, 141_592, tzinfo=UTC)
PARTITIONS = 12


class SlowRecorder(Recorder):
    interval_seconds = 30.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    folder = tmp_path_factory.mktemp("cluster")
    with standalone_cluster(folder) as url:
        yield url, folder


def record(recorder: Recorder, samples: int) -> None:
    """Groups that keep pace, fall behind, stand still, go back, and have no member, on twelve partitions each."""
    for _ in range(samples):
        at = recorder.elapsed
        ends = {p: (7 + 3 * p) * at + at % 11 for p in range(PARTITIONS)}
        turned = 1500
        commits: dict[Any, tuple[int | None, str | None]] = {}
        for p, end in ends.items():
            commits[("healthy", "orders", p)] = (max(0, end - at % 70), f"member-{p % 4}")
            commits[("behind", "orders", p)] = (int(end * 0.7), "slow")
            commits[("stuck", "orders", p)] = (min(end, 9_000), "dead")
            commits[("gone", "orders", p)] = (min(end, 9_000), None)
            commits[("rewound", "orders", p)] = (end if at < turned else end // 2, f"member-{p}")
            commits[("fresh", "orders", p)] = (None if at % 90 else end, "m")
        recorder.sample({"orders": ends}, commits, log_start=0)


def analyze(data: Path, **environment: str) -> None:
    """One round as a user starts it, told everything by its environment."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("LAGWISE_", "SPARK_", "PYSPARK_"))}
    roots = [str(Path(p)) for p in sys.path if p]
    done = subprocess.run(
        [sys.executable, "-m", "lagwise", "analyze", "--once", "--data", str(data)],
        env=kept | environment | {"PYTHONPATH": os.pathsep.join(roots)},
        cwd=data,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.timeout(600)
def test_a_cluster_gives_the_same_tables(cluster: tuple[str, Path], tmp_path: Path) -> None:
    """A round in one process leaves statuses and minutes; a copy of that lake goes on on the cluster."""
    url, logs = cluster
    alone, together = tmp_path / "alone", tmp_path / "together"
    recorder = recorder_of(alone)
    record(recorder, 40)
    analyze(alone, LAGWISE_ANALYSIS__SPARK__MASTER="local[2]")
    record(recorder, 52)
    shutil.copytree(alone, together)
    analyze(alone, LAGWISE_ANALYSIS__SPARK__MASTER="local[2]")
    analyze(
        together,
        LAGWISE_ANALYSIS__SPARK__MASTER=url,
        LAGWISE_ANALYSIS__SPARK__CONF="{spark.executor.memory: 512m}",
    )
    assert executors_of(logs) == WORKERS, "the round ran on both workers"
    for table in ANALYSIS_TABLES:
        mine, theirs = content(alone, table), content(together, table)
        assert mine or table is REBALANCE_STATS, table.name
        assert mine == theirs, table.name


def recorder_of(data: Path) -> Recorder:
    lake = Lake(str(data / "lake"))
    lake.create(*ALL_TABLES)
    return SlowRecorder(lake, START)


def content(data: Path, table: Any) -> list[str]:
    """A table's rows in an order of their own, digits of every number as they are. What a round says of itself is not
    the same twice."""
    volatile = {"started_at", "finished_at", "wall_seconds", "day"} if table is TICKS else set()
    rows = Lake(str(data / "lake")).read(table).to_pylist()
    return sorted(str({k: v for k, v in row.items() if k not in volatile}) for row in rows)
