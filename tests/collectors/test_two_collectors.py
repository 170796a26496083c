"""Two collectors of one cluster on one data folder: one reads, the other waits, says for whom, and takes over."""

import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from lagwise.platform import health
from lagwise.tables.raw import COMMITS, SAMPLES
from lagwise.tables.store import Lake
from lagwise_sandbox.broker import KafkaBroker
from tests.collectors.kafka import Lab, eventually

pytestmark = [pytest.mark.process, pytest.mark.broker]

Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def settings(broker: KafkaBroker, tmp_path: Path) -> Path:
    lab = Lab(broker.client_settings())
    group = lab.name("reader")
    lab.commit(group, lab.topic(), {0: 0})
    # The broker has groups of other tests, too.
    clusters = [{"name": "shop", "bootstrap": broker.bootstrap, "interval_seconds": 1, "groups": {"include": [group]}}]
    path = tmp_path / "lagwise.yaml"
    path.write_text(yaml.safe_dump({"data": str(tmp_path / "data"), "clusters": clusters}))
    return path


@pytest.fixture
def start(settings: Path, tmp_path: Path) -> Iterator[Start]:
    """Starts `lagwise collect`."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("LAGWISE_")}
    made = []

    def one(*arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "lagwise", "--config", str(settings), "collect", *arguments]
        with (tmp_path / f"log-{len(made)}").open("w") as log:
            made.append(subprocess.Popen(command, stdout=log, stderr=log, text=True, env=environment))
        return made[-1]

    yield one
    for process in made:
        process.kill()
        process.wait()


def test_one_reads_and_the_other_waits_its_turn(start: Start, tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "data" / "lake"))

    def log(number: int) -> str:
        return (tmp_path / f"log-{number}").read_text()

    def by(process: subprocess.Popen[str]) -> bool:
        """Whether the heartbeat of the folder is this process's, and says that it reads."""
        beat = health.read(tmp_path / "data").get(health.COLLECTOR)
        return beat is not None and beat.pid == process.pid and beat.line.startswith("shop: 1 group, ")

    def more_samples() -> bool:
        count = lake.read(SAMPLES).num_rows
        return bool(eventually(lambda: lake.read(SAMPLES).num_rows >= count + 2))

    first = start()
    eventually(lambda: by(first))
    second = start()
    waits = f"process {first.pid} on "
    eventually(lambda: waits in log(1))
    assert more_samples()
    assert by(first)  # one that waits leaves the heartbeat of the other alone
    refused = start("--once")
    assert refused.wait(120) == 1
    assert f"lagwise: {waits}" in log(2)
    assert log(2).endswith(" UTC) runs the collection of shop: stop that one first [already_running]\n")

    first.kill()
    first.wait()
    eventually(lambda: by(second))
    assert more_samples()
    third = start()
    eventually(lambda: f"process {second.pid} on " in log(3))
    second.send_signal(signal.SIGTERM)
    assert second.wait(60) == 0, log(1)
    eventually(lambda: by(third))
    assert more_samples()
    third.send_signal(signal.SIGTERM)
    assert third.wait(60) == 0, log(3)

    samples = lake.read(SAMPLES).sort_by("started_at").to_pylist()
    assert len({row["sample_id"] for row in samples}) == len(samples)
    assert all(one["finished_at"] <= next_["started_at"] for one, next_ in itertools.pairwise(samples))
    assert lake.read(COMMITS)["sample_id"].to_pylist().count(samples[0]["sample_id"]) == 1
    for number in range(4):
        assert "Traceback" not in log(number)
        assert log(number).count(" UTC) runs the collection of shop") <= 1, log(number)  # said once
