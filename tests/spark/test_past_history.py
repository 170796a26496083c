"""What is caught up on gets the history of groups that rounds in time would have written, and no other."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lagwise.config import Config
from lagwise.tables import ALL_TABLES
from lagwise.tables.analysis import GROUP_HISTORY, GROUP_STATUS, PARTITION_STATUS, STATUS_CHANGES
from lagwise.tables.raw import SAMPLES
from lagwise.tables.store import Lake
from tests.spark.recorder import Recorder

if TYPE_CHECKING:
    from pyspark import SparkContext

    from lagwise_spark.jobs.progress import News

START = datetime(2026, 3, 1, 23, 50, 7, tzinfo=UTC)
#: Of each minute the last one is judged.
RECORDED = 4 * 34


def record(recorder: Recorder, until: int) -> None:
    """One keeps pace, one stops reading and is never back, one stops for a while, one grows behind, one is new."""
    while recorder.count < until:
        at = recorder.elapsed
        ends = {"orders": {0: 20 * at, 1: 10 * at}, "slow": {0: 30 * at}}
        paused = 20 * (600 if 600 <= at < 1200 else at)
        commits: dict[Any, tuple[int | None, str | None]] = {
            ("steady", "orders", 0): (max(0, 20 * at - at % 40), "m"),
            ("steady", "orders", 1): (max(0, 10 * at - at % 30), "m"),
            ("stuck", "orders", 0): (min(20 * at, 10_000), "n"),
            ("pausing", "orders", 0): (paused, None if 600 <= at < 1200 else "o"),
            ("behind", "slow", 0): (15 * at, "p"),
        }
        if at > 900:
            commits["new", "orders", 1] = (10 * at, "q")
        recorder.sample(ends, commits)


def run(spark: "SparkContext", lake: Lake) -> Any:
    from lagwise_spark.jobs.tick import tick

    return tick(spark, lake, Config(data=str(Path(lake.uri).parent)))


def history(lake: Lake) -> dict[tuple[str, datetime], Any]:
    return {(row["group"], row["as_of"]): row for row in lake.read(GROUP_HISTORY).to_pylist()}


def changes(lake: Lake) -> list[Any]:
    rows = lake.read(STATUS_CHANGES).to_pylist()
    names = ("group", "topic", "partition", "at", "before", "after", "reason")
    return sorted(str([row[name] for name in names]) for row in rows)


@pytest.fixture
def stretched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything but the open minute is caught up on, and its past judged in several slices."""
    from lagwise_spark.jobs import catch_up, past_moments

    monkeypatch.setattr(catch_up, "ROWS_PER_ROUND", 0)
    monkeypatch.setattr(catch_up, "MINUTES_PER_ROUND", 1)
    monkeypatch.setattr(past_moments, "ROWS_PER_TASK", 1_000)


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_the_past_equals_rounds_at_its_moments(
    spark: "SparkContext", lake: Lake, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    in_rounds = Lake(str(tmp_path / "rounds" / "lake"))
    in_rounds.create(*ALL_TABLES)
    live, all_there = Recorder(in_rounds, START, gathers=True), Recorder(lake, START, gathers=True)
    # The last sample of each minute is the one before its end.
    for until in range(4, RECORDED + 1, 4):
        record(live, until)
        live.write()
        run(spark, in_rounds)
    record(all_there, RECORDED)
    all_there.write()
    request.getfixturevalue("stretched")
    run(spark, lake)
    expected, found = history(in_rounds), history(lake)
    assert found.keys() == expected.keys()
    wrong = {
        key: (row, expected[key])
        for key, row in found.items()
        if any(
            row[name] != pytest.approx(value, rel=1e-9) if isinstance(value, float) else row[name] != value
            for name, value in expected[key].items()
        )
    }
    assert wrong == {}
    assert changes(lake) == changes(in_rounds)
    since = [{row["group"]: row["since"] for row in one.read(GROUP_STATUS).to_pylist()} for one in (lake, in_rounds)]
    assert since[0] == since[1]
    partitions = [
        {
            (r["group"], r["topic"], r["partition"]): (r["status"], r["since"])
            for r in one.read(PARTITION_STATUS).to_pylist()
        }
        for one in (lake, in_rounds)
    ]
    assert partitions[0] == partitions[1]


@pytest.mark.spark
@pytest.mark.timeout(600)
@pytest.mark.usefixtures("stretched")
def test_what_rounds_have_judged_stays_when_a_late_sample_opens_its_minutes_again(
    spark: "SparkContext", lake: Lake
) -> None:
    recorder = Recorder(lake, START, gathers=True)
    ends, commits = {"orders": {0: 100}}, {("steady", "orders", 0): (100, "m")}
    for number in range(40):
        recorder.sample(ends, commits, withheld=number == 9)
    recorder.write()
    run(spark, lake)
    before = history(lake)
    assert len(before) == 10, "one a minute, and the round's own"
    for _ in range(12):
        recorder.sample(ends, commits)
    recorder.deliver_withheld()
    run(spark, lake)
    after = history(lake)
    assert {key: row for key, row in after.items() if key in before} == before
    assert len(after) == 13
    assert len(lake.read(GROUP_HISTORY)) == 13, "no moment twice"


def news(group_partitions: int) -> "News":
    from lagwise_spark.jobs.progress import News

    return News(
        cluster="test", system="kafka", latest_id="", as_of=START, latest_from=START, interval_seconds=15.0,
        group_partitions=group_partitions, offsets_retention_seconds=None, new_samples=1, read_until=START,
        open_from=START, hours_from=START, observed_from=START,
    )  # fmt: skip


def sampled(lake: Lake, days: int) -> None:
    """Samples of so many days up to the start, one a minute, the rows of `samples` alone."""
    times = [START - timedelta(minutes=minute) for minute in range(1, days * 24 * 60 + 1)]
    row = {
        "cluster": "test", "system": "kafka", "interval_seconds": 60.0, "groups": 1, "group_partitions": 1,
        "partitions": 1, "wall_seconds": 0.1, "cpu_seconds": 0.1, "errors": [],
    }  # fmt: skip
    clocks = ("started_at", "commits_read_at", "watermarks_read_at", "finished_at", "written_at")
    rows = [row | {"sample_id": f"{at:%m%d%H%M}"} | dict.fromkeys(clocks, at) for at in times]
    lake.append(SAMPLES, SAMPLES.from_rows(rows))


def test_moments_are_as_far_apart_as_the_points_of_a_chart_over_their_age(lake: Lake) -> None:
    from lagwise_spark.jobs.past_moments import VERDICTS_AT_MOST, moments_of

    sampled(lake, 14)
    start = START - timedelta(days=14)
    moments = [m.as_of for m, _ in moments_of(lake, news(19), start, START)]
    assert moments == sorted(moments)
    apart = {
        # But for where one distance gives way to the next.
        age: {b - a for a, b in list(pairwise(m for m in moments if low < START - m <= high))[1:-1]}
        for age, low, high in (
            (1, timedelta(0), timedelta(hours=2)),
            (5, timedelta(hours=2), timedelta(days=1)),
            (15, timedelta(days=1), timedelta(days=8)),
            (60, timedelta(days=8), timedelta(days=14)),
        )
    }
    assert apart == {minutes: {timedelta(minutes=minutes)} for minutes in apart}
    assert moments[-1] == START - timedelta(minutes=1)
    for partitions in (1_000, 10_000, 100_000):
        fewer = moments_of(lake, news(partitions), start, START)
        assert 0 < len(fewer) * partitions <= max(VERDICTS_AT_MOST, 15 * partitions), "one a day, if need be"
    assert len(moments_of(lake, news(10_000), start, START)) >= 24


def test_slices_hold_each_moment_once_and_what_it_remembers(lake: Lake) -> None:
    from lagwise_spark.jobs.past_moments import ROWS_PER_TASK, moments_of, slices_of

    sampled(lake, 3)
    for partitions in (19, 5_000, 60_000):
        moments = moments_of(lake, news(partitions), START - timedelta(days=3), START)
        distances = {moment: distance // timedelta(minutes=1) for moment, distance in moments}
        slices = list(slices_of(moments, partitions, cores=2))
        shown = [m for its in slices for m in its.moments if m.as_of >= its.shown_from]
        assert shown == [m for m, _ in moments]
        assert [its.is_last for its in slices] == [False] * (len(slices) - 1) + [True]
        for its in slices[1:]:
            remembered = [m for m in its.moments if m.as_of < its.shown_from]
            assert len(remembered) == 60 // distances[its.moments[-1]]
            hours = (its.moments[-1].as_of - its.moments[0].as_of) / timedelta(hours=1)
            assert (60 * hours + 30) * partitions / its.pieces <= 2 * ROWS_PER_TASK, "a task has a bound"
