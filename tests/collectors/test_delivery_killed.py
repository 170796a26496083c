"""A collector of several clusters that is killed at any instant: what was safe is in the lake, once, and in order."""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from lagwise.tables.raw import COMMITS, GROUPS, SAMPLES, WATERMARKS
from lagwise.tables.store import Lake
from tests.collectors.deliver_until_killed import CLUSTERS

pytestmark = pytest.mark.process

#: More samples than a process gets to deliver before it is killed.
_ENDLESS = 100_000


@pytest.mark.parametrize("kills", [4, pytest.param(100, marks=pytest.mark.long)])
def test_a_kill_loses_no_sample_that_was_safe_and_doubles_none(lake: Lake, tmp_path: Path, kills: int) -> None:
    spools, journal = tmp_path / "spools", tmp_path / "journal"
    journal.touch()
    chance = random.Random(27)

    def start(first: int, count: int) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", "tests.collectors.deliver_until_killed", lake.uri, str(spools), str(journal)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        return subprocess.Popen([*command, str(first), str(count)], env=environment)

    waiting_at_a_kill = 0
    for kill in range(kills):
        before = journal.stat().st_size
        with start(kill * _ENDLESS, _ENDLESS) as process:
            while journal.stat().st_size == before:  # it has begun to deliver
                assert process.poll() is None
                time.sleep(0.01)
            try:
                process.wait(chance.uniform(0, 0.8))
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
        assert process.returncode == -signal.SIGKILL
        waiting_at_a_kill += len(list(spools.glob("*/*.arrows")))
    with start(kills * _ENDLESS, 1) as process:
        assert process.wait(120) == 0
    assert waiting_at_a_kill > 0  # or no kill came between a sample and its commit
    assert list(spools.glob("*/*.arrows")) == []

    safe = Counter(journal.read_text().split("\n"))
    del safe[""]
    for table, rows_each in ((SAMPLES, 1), (GROUPS, 1), (COMMITS, 4), (WATERMARKS, 4)):
        rows = lake.read(table).select(["cluster", "sample_id"]).to_pylist()
        found = Counter(f"{row['cluster']} {row['sample_id']}" for row in rows)
        assert set(found.values()) == {rows_each}, table.name
        if table is SAMPLES:
            assert set(safe) <= set(found)
    samples = lake.read(SAMPLES).sort_by("written_at").to_pylist()
    for name in CLUSTERS:
        numbers = [int(row["sample_id"]) for row in samples if row["cluster"] == name]
        assert numbers == sorted(numbers)
