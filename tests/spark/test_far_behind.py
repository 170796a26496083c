"""Readers that are days behind: how old their oldest unread record is, from history that lies hours and days back."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lagwise.config import Config
from lagwise.tables.analysis import PARTITION_STATUS
from lagwise.tables.minutes import WATERMARK_FIVE_MINUTES
from lagwise.tables.store import Lake
from tests.spark.recorder import Recorder

if TYPE_CHECKING:
    from pyspark import SparkContext

pytestmark = pytest.mark.spark

START = datetime(2026, 3, 5, 12, 0, tzinfo=UTC)
HISTORY = timedelta(hours=30)
RATE = 10


def offset_at(at: datetime) -> int:
    return int((at - (START - 2 * HISTORY)).total_seconds()) * RATE


BURST = 360_000


def write_history(lake: Lake, reset_at: datetime | None = None, burst_at: datetime | None = None) -> None:
    """Thirty hours of one partition that is written to at a steady rate, and once in a burst, sampled every fifteen
    seconds. Before it was reset, the offsets were a million higher; the log start jumps every ten hours."""
    rows = []
    at = START - HISTORY
    while at < START:
        times = [at + timedelta(seconds=15 * i) for i in range(20)]
        more = 1_000_000 if reset_at is not None and at < reset_at else 0
        more += BURST if burst_at is not None and at >= burst_at else 0
        log_start = 1000 * ((at - START + HISTORY) // timedelta(hours=10))
        row: dict[str, Any] = {
            "cluster": "test",
            "topic": "orders",
            "partition": 0,
            "minute": at,
            "topic_id": "orders",
            "first_log_start": log_start,
            "last_log_start": log_start,
            "first_high_watermark": offset_at(times[0]) + more,
            "last_high_watermark": offset_at(times[-1]) + more,
            "reset_at": reset_at if reset_at == at else None,
            "first_at": times[0],
            "last_at": times[-1],
            "points": [{"at": t, "high_watermark": offset_at(t) + more} for t in times],
        }
        rows.append(row)
        at += timedelta(minutes=5)
    lake.append(WATERMARK_FIVE_MINUTES, WATERMARK_FIVE_MINUTES.from_rows(rows))


@pytest.mark.parametrize("together", [False, True], ids=["each by itself", "with one beyond all history"])
def test_the_age_is_known_as_far_back_as_the_history(spark: "SparkContext", lake: Lake, together: bool) -> None:
    from lagwise_spark.jobs.tick import tick

    write_history(lake)
    behind = {"hours": timedelta(hours=3, minutes=1), "a day": timedelta(hours=26, minutes=2)}
    commits = {(group, "orders", 0): (offset_at(START - by), "m") for group, by in behind.items()}
    if together:
        commits["forever", "orders", 0] = (0, "m")
    recorder = Recorder(lake, START)
    for _ in range(2):
        # The first round learns that they are far behind, the second one looks how far.
        recorder.sample({"orders": {0: offset_at(START + timedelta(seconds=recorder.elapsed))}}, commits)
        tick(spark, lake, Config(data=str(Path(lake.uri).parent)))
    rows = {row["group"]: row for row in lake.read(PARTITION_STATUS).to_pylist()}
    for group, by in behind.items():
        # At a steady rate interpolation is exact, be it between samples or between points five minutes apart.
        assert rows[group]["lag_seconds"] == pytest.approx(by.total_seconds() + 15, abs=0.2), group
        assert not rows[group]["lag_seconds_is_lower_bound"], group
    if together:
        assert rows["forever"]["lag_seconds_is_lower_bound"]
        assert rows["forever"]["lag_seconds"] == pytest.approx(HISTORY.total_seconds() + 15)


def test_a_cluster_that_is_gone_takes_nothing_of_anothers_history(spark: "SparkContext", lake: Lake) -> None:
    """What lies between the end of its own history and the look-back of the one that is there."""
    from lagwise_spark.jobs.tick import tick

    write_history(lake, burst_at=START - timedelta(hours=5))
    gone = Recorder(lake, START - timedelta(hours=20), "gone")
    gone.sample({"orders": {0: 50}}, {("left", "orders", 0): (10, "m")})
    recorder = Recorder(lake, START)
    behind = timedelta(hours=3, minutes=1)
    for _ in range(3):
        ends = {"orders": {0: offset_at(START + timedelta(seconds=recorder.elapsed)) + BURST}}
        recorder.sample(ends, {("late", "orders", 0): (offset_at(START - behind) + BURST, "m")})
        tick(spark, lake, Config(data=str(Path(lake.uri).parent)))
    rows = {row["group"]: row for row in lake.read(PARTITION_STATUS).to_pylist()}
    assert rows["late"]["lag_seconds"] == pytest.approx(behind.total_seconds() + 30, abs=0.2)
    assert not rows["late"]["lag_seconds_is_lower_bound"]


def test_only_informative_rows_of_the_history_are_kept(spark: "SparkContext", lake: Lake) -> None:
    """Around each offset and each jump of the log start, of the log as it is since its reset."""
    from lagwise_spark.jobs.far_behind import telling_rows

    reset_at = START - timedelta(hours=25)
    write_history(lake, reset_at)
    read_next = [START - timedelta(hours=20, minutes=3), START - timedelta(hours=3), START - timedelta(hours=40)]
    positions = pa.Table.from_pylist(
        [{"cluster": "test", "topic": "orders", "partition": 0, "position": offset_at(at)} for at in read_next]
    )
    kept = sorted(row["minute"] for row in telling_rows(lake, positions, START - HISTORY, {"test": START}).to_pylist())
    ago = [(START - minute) / timedelta(minutes=1) for minute in kept]
    around = [20 * 60 + 5, 20 * 60, 3 * 60, 3 * 60 - 5]
    jumps = [20 * 60 + 5, 20 * 60, 10 * 60 + 5, 10 * 60, 5]
    assert sorted(ago) == sorted({*around, *jumps, 25 * 60}), "the reset is also the first row, after one beyond it"
