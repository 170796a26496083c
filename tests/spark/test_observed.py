"""Capacity under saturation over a real lake: hour by hour what the definition says, done again nothing else."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lagwise.config import Config
from lagwise.domain.capacity.observed import Floor, observed_capacity
from lagwise.domain.capacity.saturation import Block
from lagwise.tables.capacity import OBSERVED_CAPACITY, THROUGHPUT
from lagwise.tables.raw import EVENTS
from lagwise.tables.store import Lake
from tests.domain.consumers import World, daily
from tests.spark.recorder import Recorder
from tests.spark.test_rebalance_stats import append

if TYPE_CHECKING:
    from pyspark import SparkContext

pytestmark = pytest.mark.spark

#: Across midnight UTC. Two hours are whole when the third is ten minutes old.
START = datetime(2026, 3, 1, 23, 0, tzinfo=UTC)
WHOLE_HOURS, SAMPLES = 2, 521
OUTAGE = (1200.0, 2100.0)


@pytest.fixture(scope="module")
def world() -> World:
    return World(arrivals=daily(60), capacity=50.0, outages=[OUTAGE], hours=2.5, seed=3)


def record(recorder: Recorder, world: World, until: int) -> None:
    """`billing` reads one topic and was stopped for a while; `audit` keeps up; `both` is like billing, but reads
    another topic as well; `simple` is like billing, but no group that anybody could ask for members."""
    while recorder.count < until:
        i = recorder.count
        at = recorder.elapsed
        ends: dict[str, dict[int, int]] = {"orders": {}, "letters": {0: 60 * at}}
        commits: dict[tuple[str, str, int], tuple[int, str | None]] = {}
        for p, samples in world.samples.items():
            _, committed, lag = samples[i]
            ends["orders"][p] = committed + lag
            commits["billing", "orders", p] = (committed, f"m{p % 2}")
            commits["both", "orders", p] = (committed, f"b{p % 2}")
            commits["simple", "orders", p] = (committed, None)
            commits["audit", "orders", p] = (max(0, committed + lag - 20), "a")
        commits["both", "letters", 0] = (60 * at, "b0")
        recorder.sample(ends, commits)
    recorder.write()


def member(number: int) -> str:
    return f"client of m{number} (10.0.0.1)"


def blocks(row: dict[str, Any]) -> list[Block]:
    def seconds(at: datetime) -> float:
        return (at - START).total_seconds()

    return [Block(seconds(b["start"]), seconds(b["end"]), float(b["records"]), b["members"]) for b in row["blocks"]]


def seen(lake: Lake, group: str, who: str | None = None) -> list[Block]:
    rows = [r for r in lake.read(THROUGHPUT).to_pylist() if (r["group"], r["topic"]) == (group, "orders")]
    return [b for r in sorted(rows, key=lambda r: r["hour"]) if r["member"] == who for b in blocks(r)]


def capacity(lake: Lake) -> dict[tuple[str, str, str | None], dict[str, Any]]:
    return {(r["group"], r["topic"], r["member"]): r for r in lake.read(OBSERVED_CAPACITY).to_pylist()}


def version(lake: Lake) -> int:
    delta = lake.open(OBSERVED_CAPACITY)
    assert delta is not None
    return int(delta.version())


@pytest.mark.timeout(900)
def test_spark_agrees_with_the_definition(
    spark: "SparkContext", lake: Lake, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lagwise_spark.jobs import round_inputs
    from lagwise_spark.jobs.observed import observe
    from lagwise_spark.jobs.progress import read_news, read_progress
    from lagwise_spark.jobs.tick import tick

    monkeypatch.setattr(round_inputs, "PAIRS_PER_TASK", 4)  # several ranges, of which one has all of `orders`
    config = Config(data=str(Path(lake.uri).parent))
    recorder = Recorder(lake, START, gathers=True)
    at = START + timedelta(seconds=OUTAGE[1])
    for group in ("billing", "both", "simple"):
        append(lake, EVENTS, {"cluster": "test", "at": at, "kind": "rebalance", "group": group, "source": "samples"})
    record(recorder, world, 285)
    tick(spark, lake, config)  # the first hour is whole
    first = version(lake)
    assert capacity(lake)["billing", "orders", None]["members"] == 2
    record(recorder, world, SAMPLES - 2)
    tick(spark, lake, config)
    assert version(lake) == first, "no hour was finished"
    record(recorder, world, SAMPLES)
    tick(spark, lake, config)

    within = WHOLE_HOURS * 3600.0
    whole = [b for b in world.blocks() if b.start < within]
    assert len(whole) > 5
    assert seen(lake, "billing") == whole
    for number in (0, 1):
        of_member = [b for b in world.blocks([number, number + 2], 1) if b.start < within]
        assert seen(lake, "billing", member(number)) == of_member
    assert seen(lake, "simple") == [replace(b, members=None) for b in whole]
    assert seen(lake, "audit") == []

    found = capacity(lake)
    floors = [f for f in world.floors() if f.at < within]
    best = [max((f for f in floors if h <= f.at < h + 3600), key=lambda f: f.rate_per_second) for h in (0.0, 3600.0)]
    said = observed_capacity(whole, [Floor(f.at, f.rate_per_second, 2) for f in best], members=2)
    billing = found["billing", "orders", None]
    assert said.rate_per_second == pytest.approx(world.truth, rel=0.1)
    assert billing["rate_per_second"] == pytest.approx(said.rate_per_second)
    assert billing["rate_low_per_second"] == pytest.approx(said.low)
    assert billing["rate_high_per_second"] == pytest.approx(said.high)
    assert billing["seconds_per_message"] == pytest.approx(said.seconds_per_message)
    assert (billing["blocks"], billing["episodes"], billing["members"]) == (said.blocks, said.episodes, 2)
    assert said.at_least_per_second is not None
    assert 0.9 * said.at_least_per_second <= billing["at_least_per_second"] <= 1.1 * said.at_least_per_second
    assert billing["measured_from"] == START + timedelta(seconds=whole[0].start)
    assert (billing["reason"], billing["load_test"]) == (None, None)

    one = found["billing", "orders", member(0)]
    assert one["rate_per_second"] == pytest.approx(50.0, rel=0.1)
    assert (one["members"], one["at_least_per_second"]) == (1, None)
    assert found["simple", "orders", None]["rate_per_second"] == pytest.approx(said.rate_per_second)
    assert found["simple", "orders", None]["seconds_per_message"] is None

    audit = found["audit", "orders", None]
    assert (audit["rate_per_second"], audit["reason"]) == (None, "never_saturated")
    assert 60 < audit["at_least_per_second"] < 90
    assert "Stop the group for" in audit["load_test"]
    assert found["both", "orders", None]["reason"] == "shared"
    assert found["both", "letters", None]["reason"] == "never_saturated"

    # Done again, as after a kill or where a late sample opens an hour again.
    [now] = read_news(lake, read_progress(lake))
    before = sorted(map(str, lake.read(THROUGHPUT).to_pylist()))
    assert observe(spark, lake, [replace(now, observed_from=START + timedelta(hours=1))]) == [now]
    assert sorted(map(str, lake.read(THROUGHPUT).to_pylist())) == before
    assert capacity(lake) == found


@pytest.mark.timeout(900)
def test_after_an_outage_a_round_observes_no_more_than_it_may(
    spark: "SparkContext", lake: Lake, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lagwise_spark.jobs import catch_up, observed
    from lagwise_spark.jobs.tick import tick

    monkeypatch.setattr(observed, "ROWS_AT_A_TIME", 1)  # an hour
    monkeypatch.setattr(catch_up, "ROWS_PER_ROUND", 1)  # the first round catches up on two hours and more
    record(Recorder(lake, START, gathers=True), world, SAMPLES)
    hours = []
    for _ in range(4):
        tick(spark, lake, Config(data=str(Path(lake.uri).parent)))
        hours.append({row["hour"] for row in lake.read(THROUGHPUT).to_pylist()})
    later = START + timedelta(hours=1)
    assert hours == [set(), {START}, {START, later}, {START, later}]
    assert capacity(lake)["billing", "orders", None]["rate_per_second"] == pytest.approx(world.truth, rel=0.1)


def test_of_very_many_readers_those_with_most_saturated_minutes_count(monkeypatch: pytest.MonkeyPatch) -> None:
    from lagwise_spark.tasks import observing

    monkeypatch.setattr(observing, "MOST_READERS", 2)
    names = [("a", None), ("b", None), ("b", "m"), ("c", "m")]
    minutes = [100, 10, 20, 15]
    rows = [
        {"cluster": "test", "group": group, "topic": "orders", "member": member, "start": 60.0 * n}
        for (group, member), count in zip(names, minutes, strict=True)
        for n in range(count)
    ]
    found = observing.of_most(pa.Table.from_pylist(rows)).to_pylist()
    assert found == [row for row in rows if (row["group"], row["member"]) in (("a", None), ("b", "m"))]
    assert observing.of_most(pa.Table.from_pylist(rows[:120])).num_rows == 120, "as many as two readers have at most"
