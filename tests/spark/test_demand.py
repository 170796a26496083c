"""What topics were sent, by the hour as it is defined; and the forecasts of the topics that are due."""

import math
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from lagwise.config import Config
from lagwise.config.model import ForecastSettings, RetentionSettings
from lagwise.domain.sizing.objective import KEPT_OBJECTIVES_SECONDS
from lagwise.domain.verdicts.samples import gap_seconds
from lagwise.tables.capacity import DEMAND, FORECASTS, TOPIC_HOURS
from lagwise.tables.maintenance import maintain
from lagwise.tables.minutes import WATERMARK_MINUTES
from lagwise.tables.store import Lake
from tests.domain.topic_hours import EndMinute, TopicHour, topic_hours
from tests.spark.recorder import Recorder

if TYPE_CHECKING:
    from pyspark import SparkContext

pytestmark = pytest.mark.spark

START = datetime(2026, 3, 1, 21, 43, tzinfo=UTC)
INTERVAL_SECONDS = 45.0
SAMPLES = 330
#: A sample of the second hour is delivered two hours after it.
LATE, DELIVERED = 100, 260
#: Nothing was collected for a quarter of an hour.
GAP = range(150, 170)


class SlowRecorder(Recorder):
    interval_seconds = INTERVAL_SECONDS


def defined(lake: Lake, topic: str, gap: float) -> list[TopicHour]:
    """The topic's hours by their definition, from all minutes there are."""
    rows = [row for row in lake.read(WATERMARK_MINUTES).to_pylist() if row["topic"] == topic]
    return topic_hours([_end(row) for row in rows], gap)


def _end(row: dict[str, Any]) -> EndMinute:
    names = ("partition", "minute", "first_at", "last_at", "first_high_watermark", "last_high_watermark")
    return EndMinute(*(row[name] for name in names), was_reset=row["reset_at"] is not None)


def shown(lake: Lake, topic: str) -> list[TopicHour]:
    rows = sorted((r for r in lake.read(TOPIC_HOURS).to_pylist() if r["topic"] == topic), key=lambda r: r["hour"])
    others = ("cluster", "topic", "minute_rates_per_second", "partition_records", "day")
    names = [name for name in rows[0] if name not in others]
    return [
        TopicHour(
            **{n: row[n] for n in names},
            minute_rates=tuple(row["minute_rates_per_second"]),
            partition_records={r["partition"]: r["records"] for r in row["partition_records"]},
        )
        for row in rows
    ]


@pytest.mark.timeout(600)
def test_hours_are_what_is_defined(spark: "SparkContext", lake: Lake) -> None:
    """Over rounds that finish an hour each, one that catches up, a late sample, a gap, a truncated and a re-created
    topic, an unreadable partition and one that is added."""
    from lagwise_spark.jobs.tick import tick

    config = Config(data=str(Path(lake.uri).parent))
    recorder = SlowRecorder(lake, START, gathers=True)
    noise, high = random.Random(3), dict.fromkeys(range(3), 0)
    for i in range(SAMPLES):
        at = recorder.elapsed
        if i in GAP:
            recorder.count += 1
            continue
        high = {p: h + (0 if noise.random() < 0.2 else noise.randrange(40_000)) for p, h in high.items()}
        ends = {
            "noisy": {p: h for p, h in high.items() if p < (2 if at < 6000 else 3) and (p, i // 12) != (1, 5)},
            "cut": {0: 10 * int(at) if i < 60 else 10 * int(at) - 2000},
            "again": {0: 70 * int(at) if i < 200 else 900_000 + 3 * int(at)},
            "still": {0: 12},
        }
        topic_ids = {"again": "old" if i < 200 else "new"}
        commits = {("g", topic, p): (0, "m") for topic, its in ends.items() for p in its}
        recorder.sample(ends, commits, topic_ids=topic_ids, withheld=i == LATE)
        if i == DELIVERED:
            recorder.deliver_withheld()
        if i in (90, 110, DELIVERED, SAMPLES - 1):
            recorder.write()
            tick(spark, lake, config)
    gap = gap_seconds(INTERVAL_SECONDS)
    for topic in ("noisy", "cut", "again", "still"):
        hours = shown(lake, topic)
        wanted = [hour for hour in defined(lake, topic, gap) if hour.hour <= hours[-1].hour]
        assert len(hours) == len(wanted) == 4
        for mine, theirs in zip(hours, wanted, strict=True):
            assert mine == theirs, topic
    assert {hour.max_rate_per_second for hour in shown(lake, "still")} == {0.0}
    assert max(hour.max_rate_per_second for hour in shown(lake, "cut")) == pytest.approx(10.0)
    assert max(hour.max_rate_per_second for hour in shown(lake, "again")) == pytest.approx(70.0)
    assert max(hour.partitions for hour in shown(lake, "noisy")) == 3
    assert all(sum(hour.partition_records.values()) == hour.records for hour in shown(lake, "noisy"))


def history(topic: str, rates: np.ndarray, first: datetime, *, known: np.ndarray | None = None) -> list[dict[str, Any]]:
    """Rows of `topic_hours`: hours of steady rates, each with a minute of twice that."""
    rows = []
    for i, rate in enumerate(rates):
        if known is not None and not known[i]:
            continue
        hour, records = first + timedelta(hours=i), int(rate * 3600)
        rows.append(
            {
                "cluster": "test",
                "topic": topic,
                "hour": hour,
                "partitions": 1,
                "minutes": 60,
                "records": records,
                "seconds": 3600.0,
                "max_rate_per_second": 2.0 * rate,
                "max_at": hour,
                "minute_rates_per_second": [2.0 * rate, *[rate] * 59],
                "partition_records": [{"partition": 0, "records": records}],
            }
        )
    return rows


def write_histories(lake: Lake, days: int = 35) -> dict[str, np.ndarray]:
    """Histories of all kinds that end with the same hour."""
    noise = np.random.default_rng(7)
    t = np.arange(24 * days)
    weekly = 1000 * (1 + 0.5 * np.sin(t * np.pi / 12)) * np.where(t // 24 % 7 >= 5, 0.5, 1.0)
    burst = np.full(len(t), 2.0)
    burst[300] = 1e6
    known = noise.random(len(t)) > 0.1
    known[400:500] = False
    series = {
        "weekly": weekly * np.exp(noise.normal(0, 0.05, len(t))),
        "nothing": np.zeros(len(t)),
        "same": np.full(len(t), 5.0),
        "burst": burst,
        "new": np.full(5, 3.0),
        "young": 10 + np.sin(np.arange(24 * 5) * np.pi / 12),
        "gaps": weekly,
    }
    rows = []
    for topic, rates in series.items():
        first = START.replace(minute=0) - timedelta(hours=len(rates))
        rows += history(topic, rates, first, known=known if topic == "gaps" else None)
    lake.append(TOPIC_HOURS, TOPIC_HOURS.from_rows(rows))
    return series


def test_of_a_past_day_only_the_topics_wanted_are_read(lake: Lake) -> None:
    """Those of each cluster, from files that maintenance has sorted: a damaged page among other topics is not seen."""
    from lagwise_spark.tasks.demand import made_demand
    from lagwise_spark.tasks.lake_files import LakeFiles

    hour = START.replace(minute=0)
    for after in range(2):
        [row] = history("", np.array([5.0 + after]), hour + timedelta(hours=after))
        rows = [row | {"cluster": c, "topic": f"topic-{t:05d}"} for t in range(8_000) for c in ("test", "other")]
        lake.append(TOPIC_HOURS, TOPIC_HOURS.from_rows(rows))
    maintain(lake, RetentionSettings(), now=START + timedelta(days=3))
    [merged] = lake.files(TOPIC_HOURS)
    names = pq.read_metadata(merged).row_group(0).column(TOPIC_HOURS.without_day.names.index("topic"))
    content = bytearray(Path(merged).read_bytes())
    content[names.dictionary_page_offset + names.total_compressed_size // 2] ^= 1
    Path(merged).write_bytes(content)

    files = LakeFiles(lake.uri, {}, {TOPIC_HOURS.name: [merged]})
    until = hour + timedelta(hours=2)
    due = [("test", "topic-07000"), ("other", "topic-07500"), ("test", "topic-07999")]
    found = dict(made_demand(files, 90, [{"cluster": c, "topic": t, "until": until} for c, t in due]))[DEMAND.name]
    assert sorted((r["cluster"], r["topic"]) for r in found.to_pylist()) == sorted(due)
    assert {(r["history_hours"], r["peak_per_second"], r["first_hour"]) for r in found.to_pylist()} == {(2, 12.0, hour)}
    with pytest.raises(OSError, match=f"cannot read {merged}"):
        dict(made_demand(files, 90, [{"cluster": "test", "topic": "topic-00000", "until": until}]))


@pytest.mark.timeout(600)
def test_topics_are_forecast_the_stalest_first_and_once(spark: "SparkContext", lake: Lake) -> None:
    from lagwise_spark.jobs.demand import forecast_topics

    series = write_histories(lake)
    until = START.replace(minute=0)
    assert forecast_topics(spark, lake, ForecastSettings(max_topics_per_round=4)) == 4
    assert forecast_topics(spark, lake, ForecastSettings(max_topics_per_round=4)) == 3
    assert forecast_topics(spark, lake, ForecastSettings()) == 0, "nothing is due"
    rows = {row["topic"]: row for row in lake.read(DEMAND).to_pylist()}
    assert rows.keys() == series.keys()
    assert {row["as_of"] for row in rows.values()} == {until}
    ahead: dict[str, list[dict[str, Any]]] = {topic: [] for topic in rows}
    for row in lake.read(FORECASTS).to_pylist():
        ahead[row["topic"]].append(row)

    for topic, row in rows.items():
        hours = shown(lake, topic)
        busiest = min(hours, key=lambda hour: (-hour.max_rate_per_second, hour.hour))
        assert (row["peak_per_second"], row["peak_at"]) == (busiest.max_rate_per_second, busiest.max_at), topic
        minutes = sorted(rate for hour in hours for rate in hour.minute_rates if rate is not None)
        assert row["minutes"] == len(minutes)
        for share in (50, 95, 99):
            assert row[f"p{share}_per_second"] == minutes[math.ceil(share / 100 * len(minutes)) - 1], topic
        if topic != "new":
            least = {one["objective_seconds"]: one for one in row["objective_rates"]}
            assert tuple(least) == KEPT_OBJECTIVES_SECONDS
            assert least[0.0]["rate_per_second"] == pytest.approx(row["peak_per_second"])

    assert rows["new"]["objective_rates"] == [], "less than two days are recorded"
    assert rows["same"]["busy_hour_per_second"] == rows["burst"]["busy_hour_per_second"] * 2.5 == 5.0
    # An hour of a million a second, the first minute of it of two: it may wait for five minutes.
    five = next(one for one in rows["burst"]["objective_rates"] if one["objective_seconds"] == 300.0)
    assert five["rate_per_second"] == pytest.approx(1e6 * 61 / 65)
    assert five["until"] - five["start"] == timedelta(hours=1)
    assert five["start"] == until - timedelta(hours=35 * 24 - 300)
    weekly = rows["weekly"]
    assert weekly["reason"] is None
    assert weekly["peak_per_second"] == pytest.approx(2 * series["weekly"].max())
    assert weekly["p50_per_second"] == pytest.approx(np.median(series["weekly"]), rel=0.03)
    assert weekly["mase"] <= weekly["baseline_mase"]
    assert weekly["growth_low_per_month"] <= 0.0 <= weekly["growth_high_per_month"]
    assert weekly["forecast_peak_low_per_second"] < 3000 < weekly["forecast_peak_high_per_second"] < 6000
    assert len(ahead["weekly"]) == 14 * 24 + 76
    by_time = sorted(ahead["weekly"], key=lambda row: row["at"])
    assert by_time[0]["at"] == until
    assert by_time[-1]["at"] + timedelta(days=1) == until + timedelta(days=90)
    assert all(0 <= r["low_per_second"] <= r["produce_rate_per_second"] <= r["high_per_second"] for r in by_time)
    truth = 1000 * (1 + 0.5 * np.sin(np.arange(24 * 7) * np.pi / 12)) * np.where(np.arange(168) // 24 >= 5, 0.5, 1.0)
    # 35 days are five weeks: the next hour is the first of the pattern again.
    found = np.array([row["produce_rate_per_second"] for row in by_time[:168]])
    assert np.abs(found / truth - 1).mean() < 0.05
    days = [row for row in by_time if row["peak_per_second"] is not None]
    assert [row["at"] for row in days] == [until + timedelta(days=day) for day in range(90)]
    assert all(row["peak_low_per_second"] <= row["peak_per_second"] <= row["peak_high_per_second"] for row in days)
    peaks = np.array([row["peak_per_second"] for row in days[:7]])
    # A minute has twice its hour's rate; the highest of a day's noisy hours is above the rate without noise.
    assert 2 * truth.reshape(7, 24).max(axis=1) == pytest.approx(peaks, rel=0.15)
    names = [share.rsplit(" ", 2)[0] for share in weekly["models"].split(", ")]
    assert set(names) <= {"seasonal-naive", "median", "smoothed", "level", "theta", "damped"}

    assert rows["nothing"]["forecast_peak_high_per_second"] == 0.0
    assert rows["same"]["forecast_peak_per_second"] == pytest.approx(10.0)
    assert {row["produce_rate_per_second"] for row in ahead["same"]} == {5.0}
    assert rows["same"]["mase"] is None, "a history that never changes has no scale"
    assert rows["burst"]["peak_per_second"] == 2e6
    assert max(row["produce_rate_per_second"] for row in ahead["burst"]) == pytest.approx(2.0)
    assert rows["new"]["reason"].startswith("too little history: 0.2 days; a forecast 90 days ahead needs 14")
    assert ahead["new"] == []
    assert {row["peak_per_second"] for row in ahead["young"]} == {None}
    assert rows["new"]["peak_per_second"] == 6.0
    assert rows["young"]["reason"].startswith("too little history: 5.0 days")
    assert rows["young"]["forecast_peak_per_second"] is None
    assert len(ahead["young"]) == 5 * 24, "as far ahead as back"
    assert rows["gaps"]["reason"] is None
    assert rows["gaps"]["history_hours"] < 35 * 24 - 100
    for row in [*rows.values(), *(one for its in ahead.values() for one in its)]:
        assert all(np.isfinite(v) for v in row.values() if isinstance(v, float)), row


@pytest.mark.timeout(600)
def test_what_becomes_due(spark: "SparkContext", lake: Lake) -> None:
    from lagwise_spark.jobs.demand import forecast_topics

    write_histories(lake)
    settings = ForecastSettings()
    assert forecast_topics(spark, lake, settings) == 7

    def hours_pass(hours: int, after: int) -> None:
        first = START.replace(minute=0) + timedelta(hours=after)
        rows = [r for topic in ("weekly", "new") for r in history(topic, np.full(hours, 4.0), first)]
        lake.append(TOPIC_HOURS, TOPIC_HOURS.from_rows(rows))

    hours_pass(1, 0)
    assert forecast_topics(spark, lake, settings) == 2, "those whose history was too short"
    hours_pass(23, 1)
    assert forecast_topics(spark, lake, settings) == 7
    assert forecast_topics(spark, lake, settings.model_copy(update={"horizon_days": 30})) == 7, "another horizon"
    hours_pass(60, 24)
    assert forecast_topics(spark, lake, settings) == 2, "the others are gone"
    rows = lake.read(FORECASTS).to_pylist()
    keys = [(r["topic"], r["made_at"], r["at"], r["hours"]) for r in rows if r["made_at"] > START]
    assert len(set(keys)) == len(keys)


def test_a_week_to_come_takes_more_the_more_the_recorded_weeks_differ() -> None:
    """By the interval of a normal distribution's next value, of the logarithms of what each week takes."""
    from scipy import stats

    from lagwise_spark.tasks.demand import demand_of

    def highs(bursts: list[float]) -> dict[float, dict[str, Any]]:
        rows = history("t", np.full(24 * 7 * len(bursts), 10.0), START.replace(minute=0) - timedelta(weeks=len(bursts)))
        for row in rows:
            row["minute_rates_per_second"] = [10.0] * 60
        for week, burst in enumerate(bursts):
            rows[24 * 7 * week + 50]["minute_rates_per_second"][7] = burst
            rows[24 * 7 * week + 50]["max_rate_per_second"] = burst
        made = demand_of(TOPIC_HOURS.from_rows(rows), START.replace(minute=0), 28)
        return {one["objective_seconds"]: one for one in made["objective_rates"]}

    alike = highs([100.0] * 4)
    assert all(one["high_per_second"] == pytest.approx(one["rate_per_second"], rel=1e-6) for one in alike.values())
    bursts = [100.0, 200.0, 400.0, 800.0]
    found = highs(bursts)
    logs = np.log([burst * 60 / 360 for burst in bursts])
    high = logs.mean() + stats.t.ppf(0.95, 3) * logs.std(ddof=1) * np.sqrt(1 + 1 / 4)
    assert found[300.0]["rate_per_second"] == pytest.approx(800 * 60 / 360)
    assert found[300.0]["high_per_second"] == pytest.approx(np.exp(high), rel=1e-3)


@pytest.mark.parametrize("quiet", [0.0, 1e-3], ids=["idle", "nearly idle"])
def test_an_idle_week_does_not_make_the_next_one_busier(quiet: float) -> None:
    """It is left out; where only one week is left, days are compared."""
    from lagwise_spark.tasks.demand import demand_of

    def highs(weeks: list[float]) -> dict[float, float]:
        end = START.replace(minute=0)
        rows = history("t", np.repeat(weeks, 24 * 7), end - timedelta(weeks=len(weeks)))
        for row, rate in zip(rows, np.repeat(weeks, 24 * 7), strict=True):
            row |= {"minute_rates_per_second": [rate] * 60, "max_rate_per_second": float(rate)}
        made = demand_of(TOPIC_HOURS.from_rows(rows), end, 28)
        return {one["objective_seconds"]: one["high_per_second"] for one in made["objective_rates"]}

    of_three = highs([100.0] * 3)
    assert of_three[300.0] == pytest.approx(100.0, rel=0.01)
    for weeks in ([100.0, quiet, 100.0, 100.0], [quiet, 100.0]):
        found = highs(weeks)
        # An objective of a day is kept with a little less in one day than in a week.
        assert all(0.5 * of_three[seconds] <= high <= 1.01 * of_three[seconds] for seconds, high in found.items())
    assert highs([80.0, quiet, 100.0, 120.0]) == pytest.approx(highs([80.0, 100.0, 120.0]), rel=1e-6)
    assert set(highs([0.0] * 3).values()) == {0.0}


def test_a_steady_topic_takes_no_more_by_the_objective_than_by_the_peak() -> None:
    """Its hourly interval, 90 days ahead after 7 tested ones, ends far above its highest minute."""
    from lagwise.domain.capacity.verdict import busy_hours
    from lagwise.tables.topic_facts import objective_takes
    from lagwise_spark.tasks.demand import demand_of

    noise, weeks, end = np.random.default_rng(7), 4, START.replace(minute=0)
    sine = 120.0 + 80.0 * np.sin(2 * np.pi * np.arange(24 * 7 * weeks) / 24)
    rows = history("t", sine * noise.lognormal(0.0, 0.15, len(sine)), end - timedelta(weeks=weeks))
    for row in rows:
        minutes = row["records"] / row["seconds"] * noise.lognormal(0.0, 0.05, 60)
        row |= {"minute_rates_per_second": minutes.tolist(), "max_rate_per_second": float(minutes.max())}
        # Collectors round minutes up, but not the highest one.
        row["minute_rates_per_second"] = [1.005 * rate for rate in row["minute_rates_per_second"]]
    made = demand_of(TOPIC_HOURS.from_rows(rows), end, 90)
    ahead = busy_hours((one["at"], one["busiest_per_second"], one["busiest_high_per_second"]) for one in made["ahead"])
    peak = max(made["peak_per_second"], made["forecast_peak_per_second"])
    assert max(hour.upper for hour in ahead) > 1.3 * made["busy_hour_per_second"]
    for objective in (0.0, 300.0, 1_800.0, 86_400.0):
        takes = objective_takes({"forecast_peak_high_per_second": None} | made, objective, ahead)
        assert takes is not None
        assert takes.recorded.rate_per_second <= takes.planned_per_second <= peak
