"""A day of history: what commits too rarely for an hour is judged by its hours, which are merged once and for all."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lagwise.config import Config
from lagwise.tables.minutes import DAYS, HOURS
from lagwise.tables.store import Lake
from tests.contract.plain_model.evaluation import Moment
from tests.contract.plain_model.records import Pair, Policy
from tests.spark.defined import holds_what_is_defined
from tests.spark.recorder import Recorder

if TYPE_CHECKING:
    from pyspark import SparkContext

pytestmark = pytest.mark.spark

#: Thirty hours, in which two days of UTC begin, from no full hour on.
START = datetime(2026, 3, 1, 21, 17, tzinfo=UTC)
SAMPLES = 30 * 6 + 1
#: A sample of the seventeenth hour is delivered six hours after it.
LATE, DELIVERED = 100, 136
ROUNDS = (50, DELIVERED, 170, 173, SAMPLES - 1)


class HourlyRecorder(Recorder):
    """A sample every ten minutes: a day is then a hundred and a half."""

    interval_seconds = 600.0


def offsets(at: int) -> tuple[dict[str, dict[int, int]], dict[str, str], dict[Any, tuple[int | None, str | None]]]:
    """Ends by topic and partition, topic ids, and commits with their owners, ``at`` seconds after the start."""
    end = 10 * at
    # Re-created in the thirteenth hour.
    recreated_at = 45_000
    new = end if at < recreated_at else 10 * (at - recreated_at)
    checkpoint = at - at % 2400
    since = checkpoint if at < recreated_at else max(0, checkpoint - recreated_at)
    ends = {"plain": {0: end}, "recreated": {0: new}}
    commits: dict[Any, tuple[int | None, str | None]] = {
        ("level", "plain", 0): (max(0, 10 * checkpoint - 500), "m"),
        ("behind", "plain", 0): (3 * checkpoint, "m"),
        ("catching-up", "plain", 0): (min(10 * checkpoint, 13 * max(0, checkpoint - 21_600)), "m"),
        ("recreated", "recreated", 0): (min(new, 4 * since), "m"),
        ("often", "plain", 0): (end - 7, "m"),
    }
    if at < 50_000:
        commits["gone", "plain", 0] = (end, "m")
    return ends, {"recreated": "old" if at < recreated_at else "new"}, commits


@pytest.mark.timeout(900)
def test_spark_agrees_with_the_plain_model(spark: "SparkContext", lake: Lake) -> None:
    from lagwise_spark.jobs.tick import tick

    config = Config(data=str(Path(lake.uri).parent))
    recorder = HourlyRecorder(lake, START, gathers=True)
    compared, said = [], set()
    for i in range(SAMPLES):
        ends, topic_ids, commits = offsets(recorder.elapsed)
        at = START + timedelta(seconds=recorder.elapsed)
        recorder.sample(ends, commits, topic_ids=topic_ids, withheld=i == LATE)
        if i == DELIVERED:
            recorder.deliver_withheld()
        if i in ROUNDS:
            recorder.write()
            tick(spark, lake, config)
        if i in ROUNDS[-3:]:
            compared.append(at)
            found = holds_what_is_defined(lake, Moment(f"{i:08d}", at, Policy(600.0)), ever=("gone",))
            said |= {(pair.group, numbers["status"]) for pair, numbers in found.items()}
            by_group = {pair.group: numbers for pair, numbers in found.items()}
            assert by_group["behind"]["lag_slope_per_second"] == pytest.approx(7.0, rel=0.05)
            assert by_group["level"]["samples"] == by_group["behind"]["samples"] > 138
            assert by_group["recreated"]["samples"] < 110
            assert by_group["often"]["samples"] == 6
    assert {at.minute < 10 for at in compared} == {True, False}, "before and after an hour counts as whole"
    assert ("behind", "falling_behind") in said
    assert not {("level", "falling_behind"), ("level", "catching_up")} & said

    hours = [row for row in lake.read(HOURS).to_pylist() if row["group"] == "level"]
    assert len({row["minute"] for row in hours}) == len(hours) == 30
    assert [row["samples"] for row in sorted(hours, key=lambda row: row["minute"])] == [5, *[6] * 29]
    until = max(row["minute"] for row in hours) + timedelta(hours=1)
    days = {Pair(row["group"], row["topic"], row["partition"]): row for row in lake.read(DAYS).to_pylist()}
    assert {row["until"] for row in days.values()} == {until}
    assert days[Pair("level", "plain", 0)]["samples"] == 23 * 6
    assert days[Pair("level", "plain", 0)]["usual_pause_seconds"] == 2400.0
    # The collector's own interval: verdicts leave it out.
    assert days[Pair("often", "plain", 0)]["usual_pause_seconds"] == 600.0
