"""Minutes made in slices: from files that Python reads by itself, and from rows that Spark has read."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lagwise.config import RetentionSettings
from lagwise.tables import ALL_TABLES
from lagwise.tables.maintenance import maintain
from lagwise.tables.store import Lake
from tests.spark.recorder import Recorder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

START = datetime(2026, 3, 1, 23, 51, tzinfo=UTC)
SAMPLES = 100
GAP = timedelta(minutes=2)


@pytest.fixture
def recorded(tmp_path: Path) -> Lake:
    """Two clusters in one lake whose name wants escaping, across midnight; some of it compacted, one sample torn."""
    lake = Lake(str(tmp_path / "a lake, 50 % full" / "lake"))
    lake.create(*ALL_TABLES)
    recorders = [Recorder(lake, START, cluster, gathers=True) for cluster in ("test", "other")]
    for i in range(SAMPLES):
        for recorder in recorders:
            at = recorder.elapsed
            ends = {"orders": {0: 10 * at, 1: 3 * at}, "ünïcode": {0: at}}
            commits: dict[Any, tuple[int | None, str | None]] = {
                ("behind", "orders", 0): (5 * at, "m"),
                ("behind", "orders", 1): (None if i % 7 == 0 else 3 * at, "m"),
                ("ünïcode", "ünïcode", 0): (at - at % 60, None),
            }
            recorder.sample(ends, commits, torn=i == 30)
            if i % 5 == 4:
                recorder.write()
        if i == 60:
            maintain(lake, RetentionSettings(), now=START + timedelta(hours=1))
    return lake


def test_both_ways_make_the_same_minutes(
    spark: "SparkSession", recorded: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lagwise_spark.jobs import read, slices

    until = START + timedelta(minutes=24)
    finished = [s for s in read.finished_samples(recorded, START - GAP, until) if s.cluster == "test"]
    assert len(finished) == 95, "the torn one is left out"
    stretch = slices.Stretch("test", START + timedelta(minutes=3), until, GAP, 0.2, finished)
    made = []
    # So few that no slice is short enough: rows are read by Spark, and moved.
    for samples_per_task in (slices.SAMPLES_PER_TASK, 20):
        monkeypatch.setattr(slices, "SAMPLES_PER_TASK", samples_per_task)
        rows = [rows_of(spark, recorded, stretch) for rows_of in (slices.minutes, slices.watermark_minutes)]
        made.append([sorted(map(str, some.toArrow().to_pylist())) for some in rows])
    assert made[0] == made[1]
    of_pairs, of_ends = made[0]
    assert (len(of_pairs), len(of_ends)) == (3 * 21, 3 * 21)
