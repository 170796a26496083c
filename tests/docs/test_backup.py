"""The commands of docs/guides/back-up-and-restore.md, run while the lake is written and maintained."""

import os
import re
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lagwise.config import RetentionSettings
from lagwise.operational.engine import open_engine
from lagwise.operational.migrate import NEWEST, database_version, migrate_database
from lagwise.tables import ALL_TABLES
from lagwise.tables.maintenance import maintain
from lagwise.tables.raw import COMMITS, SAMPLES
from lagwise.tables.store import Lake
from tests.spark.recorder import Recorder

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "back-up-and-restore.md"
#: So that maintenance has something to compact, from the first copy on.
_SAMPLES_BEFORE = 60


def _run(block: int, data: Path, backup: Path) -> None:
    """One of the two blocks of commands, as the page has them."""
    commands = re.findall(r"^```bash\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert len(commands) == 2
    environment = os.environ | {"DATA": str(data), "BACKUP": str(backup)}
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    ran = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands[block]], env=environment, capture_output=True, text=True, timeout=60
    )
    assert ran.returncode == 0, ran.stderr


@pytest.mark.process
def test_a_copy_of_a_lake_at_work_is_whole(tmp_path: Path) -> None:
    data, backup = tmp_path / "data", tmp_path / "backup"
    backup.mkdir()
    lake = Lake(str(data / "lake"))
    lake.create(*ALL_TABLES)
    engine = open_engine(f"sqlite:///{data / 'lagwise.db'}")
    migrate_database(engine)
    recorder = Recorder(lake, datetime.now(UTC) - timedelta(hours=2))

    def sample() -> None:
        recorder.sample({"orders": {0: recorder.count}}, {("billing", "orders", 0): (recorder.count, "m")})

    for _ in range(_SAMPLES_BEFORE):
        sample()
    written, stop = threading.Event(), threading.Event()

    def work() -> None:
        while not stop.is_set():
            sample()
            written.set()
            maintain(lake, RetentionSettings())

    worker = threading.Thread(target=work)
    worker.start()
    try:
        assert written.wait(60)
        _run(0, data, backup)
    finally:
        stop.set()
        worker.join()
    engine.dispose()
    _run(1, data, backup)
    restored = Lake(str(data / "lake"))
    for table in ALL_TABLES:
        restored.read(table)
    samples = set(restored.read(SAMPLES)["sample_id"].to_pylist())
    commits = restored.read(COMMITS).to_pylist()
    assert len(samples) > _SAMPLES_BEFORE
    # The row of a sample is written last: what it promises is there.
    assert samples <= {row["sample_id"] for row in commits}
    assert sorted(row["committed"] for row in commits) == list(range(len(commits))), "none twice, none left out"
    again = open_engine(f"sqlite:///{data / 'lagwise.db'}")
    assert database_version(again) == NEWEST
    again.dispose()
    Recorder(restored, datetime.now(UTC)).sample({"orders": {0: 1}}, {("billing", "orders", 0): (1, "m")})
