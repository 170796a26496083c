"""The analysis of a lake in an object store gives the tables that it gives on a disk."""

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
import yaml

from lagwise.tables import ALL_TABLES
from lagwise.tables.analysis import ANALYSIS_TABLES
from lagwise.tables.capacity import FORECASTS
from lagwise.tables.membership import REBALANCE_STATS
from lagwise.tables.quarantine import DAMAGED_FILES
from lagwise.tables.store import Lake
from tests.fixtures.object_store import Bucket
from tests.spark.test_cluster import START, SlowRecorder, content, record

pytestmark = [pytest.mark.spark, pytest.mark.process, pytest.mark.long]


@pytest.mark.timeout(1_200)
def test_the_same_tables(bucket: Bucket, tmp_path: Path) -> None:
    """By the settings alone, and with credentials that only these know. Catching up first, then a round."""
    lakes = {str(tmp_path / "disk"): {}, bucket.uri: bucket.options}
    for data, options in lakes.items():
        lake = Lake(f"{data}/lake", options)
        lake.create(*ALL_TABLES)
        recorder = SlowRecorder(lake, START)
        for samples in (40, 70):
            record(recorder, samples)
            analyzed(data, options, tmp_path)
    on_disk, in_store = (Lake(f"{data}/lake", options) for data, options in lakes.items())
    for table in ANALYSIS_TABLES:
        rows = content(on_disk, table)
        # An hour of history is too little for a forecast, and no file is damaged.
        assert rows or table in (REBALANCE_STATS, FORECASTS, DAMAGED_FILES), table.name
        assert rows == content(in_store, table), table.name


def analyzed(data: str, options: dict[str, str], folder: Path) -> None:
    settings = folder / "lagwise.yaml"
    written = {
        "data": data,
        "state_dir": str(folder / "state"),
        "lake": {"storage_options": options | ({"AWS_SECRET_ACCESS_KEY": "${env:STORE_SECRET}"} if options else {})},
        "analysis": {"spark": {"master": "local[2]"}},
    }
    settings.write_text(yaml.safe_dump(written), encoding="utf-8")
    environment = os.environ | {"STORE_SECRET": options.get("AWS_SECRET_ACCESS_KEY", "")}
    command = [sys.executable, "-m", "lagwise", "--config", str(settings), "analyze", "--once"]
    log, lines = folder / "analyze.log", set[str]()
    with log.open("w") as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
        while process.poll() is None:
            for child in psutil.Process(process.pid).children(recursive=True):
                with suppress(psutil.Error):  # it has ended meanwhile
                    lines.add(" ".join(child.cmdline()))
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.5)
    assert process.returncode == 0, log.read_text()
    assert any("java" in line for line in lines)
    assert not [line for line in lines if "of-lakes" in line], "anybody may read command lines"
