"""A second analysis of a lake waits before it starts Spark, and says for whom."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import yaml

from lagwise import health
from lagwise.operational.engine import open_engine
from lagwise.operational.lease import Lease
from lagwise.tables.store import Lake
from lagwise.tables.ticks import TICKS

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
    holder = f"the analysis is run by process {os.getpid()} on "

    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        refused = subprocess.run([*command, "--once"], capture_output=True, text=True, env=environment, check=False)
        deadline = time.monotonic() + 60
        while holder not in (beat.line if (beat := health.read(data).get(health.ANALYSIS)) else ""):
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
    assert said.count(holder) == 1
    assert refused.returncode == 1
    assert f"lagwise: {holder}" in refused.stderr
    assert refused.stderr.count(holder) == 1
    assert Lake(str(data / "lake")).open(TICKS) is None  # nothing was touched
    other.ask()
    assert other.holds()
    engine.dispose()
