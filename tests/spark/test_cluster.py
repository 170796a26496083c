"""The same rounds on a standalone cluster and in one process: the tables are identical."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lagwise.tables import ALL_TABLES
from lagwise.tables.analysis import ANALYSIS_TABLES
from lagwise.tables.capacity import FORECASTS
from lagwise.tables.membership import REBALANCE_STATS
from lagwise.tables.quarantine import DAMAGED_FILES
from lagwise.tables.rounds import TICKS
from lagwise.tables.store import Lake
from tests.spark.recorder import Recorder
from tests.spark.standalone import WORKERS, executors_of, standalone_cluster
from tests.spark.test_demand import write_histories

pytestmark = [pytest.mark.spark, pytest.mark.process]

#: Not on whole seconds: sums over such times are not exact, so that the order in which they are added would show.
START = datetime(2026, 3, 1, 23, 17, 3, 141_592, tzinfo=UTC)
PARTITIONS = 12

#: `lagwise`, catching up on whatever there is.
CATCHING_UP = """
from lagwise_app.cli import main
from lagwise_spark.jobs import catch_up
catch_up.ROWS_PER_ROUND, catch_up.MINUTES_PER_ROUND = 0, 1
main()
"""
#: Forecasting on a cluster, with a folder that its executors' Python looks into first, and for a horizon.
FORECASTING = """
import sys
from lagwise.config import SparkSettings
from lagwise.config.model import ForecastSettings
from lagwise.tables.store import Lake
from lagwise_spark.jobs.demand import forecast_topics
from lagwise_spark.start import start_spark
url, hiding, lake, horizon_days = sys.argv[1:]
conf = {"spark.executor.memory": "512m", "spark.executorEnv.PYTHONPATH": hiding}
context = start_spark(SparkSettings(master=url, conf=conf))
print(forecast_topics(context, Lake(lake), ForecastSettings(horizon_days=int(horizon_days))))
"""
#: A job on a cluster, with a folder for notes. Its first task ends the executor that runs it, once.
LOSING = """
import sys
from pathlib import Path
import psutil
import pyarrow as pa
from lagwise.config import SparkSettings
from lagwise_spark.start import start_spark
from lagwise_spark.tasks.running import gathered
url, folder = sys.argv[1:]
def work(number):
    note = Path(folder, "killed")
    if number == 0 and not note.exists():
        note.touch()
        psutil.Process().parent().parent().kill()  # above the daemon of the Python workers
    yield "numbers", pa.table({"number": [number]})
context = start_spark(SparkSettings(master=url, conf={"spark.executor.memory": "512m"}))
print(gathered(context, work, list(range(4)))["numbers"]["number"].to_pylist())
"""
#: A module of this content hides a package of the same name.
HIDDEN = "raise ImportError('executors do without this')"


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


def analyze(data: Path, *python: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """One round as a user starts it, or with other arguments for Python, told everything by its environment."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("LAGWISE_", "SPARK_", "PYSPARK_"))}
    roots = [str(Path(p)) for p in sys.path if p]
    return subprocess.run(
        [sys.executable, *(python or ("-m", "lagwise")), "analyze", "--once", "--data", str(data)],
        env=kept | environment | {"PYTHONPATH": os.pathsep.join(roots)},
        cwd=data,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


def analyzed(data: Path, *python: str, **environment: str) -> None:
    done = analyze(data, *python, **environment)
    assert done.returncode == 0, done.stderr


@pytest.mark.timeout(600)
def test_a_cluster_gives_the_same_tables(cluster: tuple[str, Path], tmp_path: Path) -> None:
    """A round in one process leaves statuses and minutes; a copy of that lake goes on on the cluster. Both catch up
    first: on the cluster in the executors' Python, which has nothing of ours, and only numpy and pyarrow besides."""
    url, logs = cluster
    alone, together, hiding = tmp_path / "alone", tmp_path / "together", tmp_path / "hiding"
    hiding.mkdir()
    for package in ("lagwise", "lagwise_spark", "deltalake", "pandas"):
        (hiding / f"{package}.py").write_text(HIDDEN, encoding="utf-8")
    recorder = recorder_of(alone)
    record(recorder, 40)
    analyzed(alone, LAGWISE_ANALYSIS__SPARK__MASTER="local[2]")
    # Until after ten past midnight, when the hour before it counts as whole.
    record(recorder, 70)
    shutil.copytree(alone, together)
    analyzed(alone, "-c", CATCHING_UP, LAGWISE_ANALYSIS__SPARK__MASTER="local[2]")
    before = executors_of(logs)
    analyzed(
        together,
        "-c",
        CATCHING_UP,
        LAGWISE_ANALYSIS__SPARK__MASTER=url,
        LAGWISE_ANALYSIS__SPARK__CONF=f"{{spark.executor.memory: 512m, spark.executorEnv.PYTHONPATH: '{hiding}'}}",
    )
    assert executors_of(logs) == before + WORKERS, "the round ran on both workers"
    for table in ANALYSIS_TABLES:
        mine, theirs = (content(Lake(str(data / "lake")), table) for data in (alone, together))
        # An hour of history is too little for a forecast, and no file is damaged.
        assert mine or table in (REBALANCE_STATS, FORECASTS, DAMAGED_FILES), table.name
        assert mine == theirs, table.name


@pytest.mark.timeout(300)
def test_executors_without_python_are_reported(tmp_path: Path) -> None:
    record(recorder_of(tmp_path), 40)
    done = analyze(
        tmp_path,
        "-c",
        CATCHING_UP,
        LAGWISE_ANALYSIS__SPARK__MASTER="local[1]",
        LAGWISE_ANALYSIS__SPARK__CONF="{spark.pyspark.python: there-is-no-such-python}",
    )
    assert done.returncode == 1
    assert "with numpy, pyarrow and deltalake on Spark's executors: install them there" in " ".join(done.stderr.split())


@pytest.mark.timeout(300)
def test_forecasts_are_made_by_executors_that_have_the_models(cluster: tuple[str, Path], tmp_path: Path) -> None:
    """They have nothing of ours. Where the models are missing, too, it says what to install."""
    url, _ = cluster
    lake = Lake(str(tmp_path / "lake"))
    lake.create(*ALL_TABLES)
    topics = write_histories(lake)
    hidden = {"lagwise": HIDDEN, "lagwise_spark": HIDDEN}
    forecast = forecast_on(url, tmp_path / "ours", hidden, lake)
    assert (forecast.returncode, forecast.stdout.strip()) == (0, str(len(topics))), forecast.stderr
    assert len({row["topic"] for row in lake.read(FORECASTS).to_pylist()}) == len(topics) - 1, "one is too new"
    missing = "raise ModuleNotFoundError('No module named statsforecast')"
    lacking = forecast_on(url, tmp_path / "theirs", {**hidden, "statsforecast": missing}, lake, horizon_days=30)
    assert lacking.returncode == 1
    needs = "MissingRequirement: forecasting needs Python"
    assert needs in lacking.stderr
    assert "with numpy, scipy, pandas, pyarrow and statsforecast on Spark's executors" in lacking.stderr


@pytest.mark.timeout(300)
def test_tasks_of_a_lost_executor_are_done_again(cluster: tuple[str, Path], tmp_path: Path) -> None:
    url, _ = cluster
    done = subprocess.run(
        [sys.executable, "-c", LOSING, url, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(str(Path(p)) for p in sys.path if p)},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert (done.returncode, done.stdout.strip()) == (0, "[0, 1, 2, 3]"), done.stderr
    assert (tmp_path / "killed").exists()


def forecast_on(
    url: str, hiding: Path, hidden: Mapping[str, str], lake: Lake, *, horizon_days: int = 90
) -> "subprocess.CompletedProcess[str]":
    """Forecast what is due on a cluster whose executors find these modules in the place of packages."""
    hiding.mkdir()
    for package, content in hidden.items():
        (hiding / f"{package}.py").write_text(content, encoding="utf-8")
    return subprocess.run(
        [sys.executable, "-c", FORECASTING, url, str(hiding), lake.uri, str(horizon_days)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(str(Path(p)) for p in sys.path if p)},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


def recorder_of(data: Path) -> Recorder:
    lake = Lake(str(data / "lake"))
    lake.create(*ALL_TABLES)
    return SlowRecorder(lake, START)


def content(lake: Lake, table: Any) -> list[str]:
    """A table's rows in an order of their own, digits of every number as they are. What a round says of itself is not
    the same twice."""
    volatile = {"started_at", "finished_at", "wall_seconds", "day"} if table is TICKS else set()
    rows = lake.read(table).to_pylist()
    return sorted(str({k: v for k, v in row.items() if k not in volatile}) for row in rows)
