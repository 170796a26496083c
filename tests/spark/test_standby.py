"""Of two analyses of a lake one works: a second one waits before it starts Spark, one that was replaced lets go."""

import logging
import os
import re
import signal
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest
import yaml

from lagwise.config import Config
from lagwise.operational.engine import open_engine
from lagwise.operational.leadership import Leadership
from lagwise.operational.lease import TAKE_OVER_SECONDS, Lease, Process
from lagwise.platform import health
from lagwise.tables.rounds import TICKS
from lagwise.tables.store import Lake
from tests.spark.recorder import Recorder

if TYPE_CHECKING:
    from pyspark import SparkContext

pytestmark = pytest.mark.process


def test_a_second_analysis_waits_without_spark(tmp_path: Path) -> None:
    data = tmp_path / "data"
    settings = tmp_path / "lagwise.yaml"
    settings.write_text(yaml.safe_dump({"data": str(data)}))
    environment = {k: v for k, v in os.environ.items() if not k.startswith("LAGWISE_")}
    command = [sys.executable, "-m", "lagwise", "--config", str(settings), "analyze"]
    engine = open_engine(f"sqlite:///{data / 'lagwise.db'}")
    other = Lease(engine, "analysis")
    other.ask()
    assert other.holds()
    holder = re.compile(rf"process {os.getpid()} on \S+ \(since [^)]+ UTC\) runs the analysis")

    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        refused = subprocess.run([*command, "--once"], capture_output=True, text=True, env=environment, check=False)
        deadline = time.monotonic() + 60
        while not holder.search(beat.line if (beat := health.read(data).get(health.ANALYSIS)) else ""):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert [child.name() for child in psutil.Process(process.pid).children(recursive=True)] == []
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=30)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0
    assert len(holder.findall(said)) == 1
    assert refused.returncode == 1
    (found,) = holder.finditer(refused.stderr)
    assert refused.stderr[: found.start()].endswith("lagwise: ")
    assert Lake(str(data / "lake")).open(TICKS) is None  # nothing was touched
    other.ask()
    assert other.holds()
    engine.dispose()


@pytest.mark.spark
def test_a_round_that_a_takeover_ends_writes_nothing_and_is_no_failure(
    spark: "SparkContext",
    lake: Lake,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    from lagwise_spark import run

    recorder = Recorder(lake, datetime(2026, 3, 1, tzinfo=UTC), gathers=True)
    for _ in range(8):
        recorder.sample({"orders": {0: 100}}, {("billing", "orders", 0): (40, "member-1")})
    recorder.write()
    seconds = 0.0
    engine = open_engine(f"sqlite:///{tmp_path / 'state' / 'lagwise.db'}")

    def lease(host: str) -> Lease:
        process = Process(host, 7, machine=f"boot of {host}", started=1)
        return Lease(engine, "analysis", process=process, clock=lambda: seconds)

    ours, other = lease("host-a"), lease("host-b")
    turn = Leadership(ours, "the analysis", logging.getLogger("lagwise.spark"))
    turn.ask()
    other.ask()
    assert ours.holds()

    def replaced_meanwhile() -> None:
        nonlocal seconds
        if not other.holds():
            seconds += TAKE_OVER_SECONDS  # this process was held up in the middle of its round
            other.ask()
        turn.check()

    lake.before_writing = replaced_meanwhile
    monkeypatch.setattr(run, "_spark", lambda *_: spark)
    monkeypatch.setattr(spark, "stop", lambda: None)
    heart = health.Heart(tmp_path / "state", health.ANALYSIS)
    run._analyze(Config(data=str(tmp_path)), run._Place(lake, turn), threading.Event(), heart)
    (line,) = [record.getMessage() for record in caplog.records if record.name == "lagwise.spark"]
    assert line.startswith("process 7 on host-b (since ")
    assert line.endswith(" UTC) runs the analysis; this process is on standby")
    assert health.read(tmp_path / "state")[health.ANALYSIS].line == "Spark is up"
    assert lake.read(TICKS).num_rows == 0
    engine.dispose()
