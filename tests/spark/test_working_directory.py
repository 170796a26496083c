"""Spark's Python workers do not import from the working directory, and one that cannot start says why."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.process]

#: The smallest job, with settings of Spark.
JOB = """
import json, sys
import pyarrow as pa
from lagwise.config import SparkSettings
from lagwise_spark.start import start_spark
from lagwise_spark.tasks.error_text import reason_of
from lagwise_spark.tasks.running import echo, gathered
context = start_spark(SparkSettings(master="local[1]", driver_memory="512m", conf=json.loads(sys.argv[1])))
try:
    print(gathered(context, echo, [pa.table({"number": [7]})])["echo"]["number"].to_pylist())
except Exception as error:
    print(reason_of(error))
"""


def said(folder: Path, **conf: str) -> str:
    """What the job prints that is started in this folder."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", JOB, json.dumps(conf)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(str(Path(p)) for p in sys.path if p)},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.timeout(240)
def test_modules_in_the_working_directory_hide_none_of_ours(tmp_path: Path) -> None:
    for name in ("lagwise", "pyarrow"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise ImportError('this is another package')", encoding="utf-8")
    assert said(tmp_path) == "[7]"
    # Without the setting that keeps them from it, the workers do look there.
    assert said(tmp_path, **{"spark.executorEnv.PYTHONSAFEPATH": ""}) == "ImportError: this is another package"


@pytest.mark.timeout(120)
def test_a_worker_that_cannot_start_says_why(tmp_path: Path) -> None:
    (tmp_path / "uuid.py").write_text("raise ImportError('this is another uuid')", encoding="utf-8")
    assert said(tmp_path, **{"spark.executorEnv.PYTHONPATH": str(tmp_path)}) == "ImportError: this is another uuid"
