"""The bench of many clusters: its verdict can fail, and its collector counts what fails."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.clusters import missed_goals
from benchmarks.common import REPOSITORY
from lagwise.tables.raw import SAMPLES
from lagwise.tables.store import Lake

GOOD = {
    "failed_appends": 0,
    "wait_p95_seconds": 2.1,
    "memory_mib_by_quarter": [380, 400, 401, 402],
    "memory_mib_max": 410,
    "cores": 0.15,
}


def test_a_run_that_meets_every_goal() -> None:
    assert missed_goals(GOOD) == []


@pytest.mark.parametrize(
    ("figure", "value", "goal"),
    [
        ("failed_appends", 1, "no failed append"),
        ("wait_p95_seconds", 3.01, "95 % within 3 s"),
        ("memory_mib_by_quarter", [380, 400, 420, 440], "memory is flat"),
        ("memory_mib_max", 501, "memory below 500 MiB"),
        ("cores", 0.21, "0.2 of a core"),
    ],
)
def test_each_goal_can_be_missed(figure: str, value: object, goal: str) -> None:
    assert missed_goals({**GOOD, figure: value}) == [goal]


@pytest.mark.process
@pytest.mark.parametrize("way", [[], ["--former"]])
def test_its_collector_works_in_both_ways(tmp_path: Path, way: list[str]) -> None:
    command = [sys.executable, "-m", "benchmarks.clusters_collector", str(tmp_path), "10", "1", *way]
    with subprocess.Popen(
        command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as collector:
        assert collector.stdout is not None
        assert collector.stdout.readline() == "started\n"
        said = json.loads(collector.communicate("stop\n", timeout=60)[0])
    samples = Lake(str(tmp_path / "lake")).read(SAMPLES)
    assert len(set(samples["cluster"].to_pylist())) == 10
    assert samples["group_partitions"].to_pylist() == [2000] * samples.num_rows
    assert said["appends"] >= 5  # tables
    if not way:  # ten writers may get in each other's way
        assert said["failed_appends"] == 0
