"""The hottest partition's share, and the forecast from now on, from the hours of a real lake."""

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lagwise.domain.capacity.verdict import DemandAhead
from lagwise.tables.capacity import FORECASTS, TOPIC_HOURS
from lagwise.tables.store import Lake
from lagwise.tables.topic_facts import demand_ahead, skew_of
from tests.app.judged import HOSTILE, append, row

NOW = datetime(2026, 11, 22, 12, 20, tzinfo=UTC)
THE_HOUR = NOW.replace(minute=0)
ORDERS = ("shop", "orders")


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    made = Lake(str(tmp_path / "lake"))
    made.create(TOPIC_HOURS, FORECASTS)
    return made


def hours(lake: Lake, *of: Sequence[int], topic: str = "orders", until: datetime = THE_HOUR) -> None:
    """Whole hours with so many records in each partition, the newest last."""
    rows = [
        row(
            TOPIC_HOURS,
            cluster="shop",
            topic=topic,
            hour=until - timedelta(hours=len(of) - i),
            partitions=len(records),
            records=sum(records),
            seconds=3600.0,
            partition_records=[{"partition": p, "records": n} for p, n in enumerate(records)],
        )
        for i, records in enumerate(of)
    ]
    append(lake, TOPIC_HOURS, *rows)


def test_busy_hours_count(lake: Lake) -> None:
    """By night all goes to one partition, by day the other one is a little hotter: a plan is made for the day."""
    hours(lake, *[[2_000, 0]] * 12, *[[4_000, 6_000]] * 11, [6_000, 6_000], until=THE_HOUR - timedelta(hours=1))
    found = skew_of(lake, {ORDERS}, NOW)[ORDERS]
    assert found.hottest_share == pytest.approx(72 / 122)
    assert (found.records, found.hours, found.until) == (122_000, 12, THE_HOUR - timedelta(hours=1))


def test_a_quiet_night_is_not_known(lake: Lake) -> None:
    hours(lake, *[[0] * 11 + [5]] * 10)
    assert skew_of(lake, {ORDERS}, NOW) == {}
    assert skew_of(lake, set(), NOW) == {}


def test_the_hottest_itself_must_have_had_enough(lake: Lake) -> None:
    hours(lake, [999] + [900] * 11)
    hours(lake, [1_000] + [900] * 11, topic=HOSTILE)
    assert set(skew_of(lake, {ORDERS, ("shop", HOSTILE)}, NOW)) == {("shop", HOSTILE)}


def test_hours_before_the_partitions_became_more_do_not_count(lake: Lake) -> None:
    hours(lake, *[[9_000, 9_000]] * 20, *[[1_000, 1_000, 1_000, 1_000]] * 4)
    assert skew_of(lake, {ORDERS}, NOW)[ORDERS].hottest_share == pytest.approx(0.25)


def test_a_week_counts(lake: Lake) -> None:
    hours(lake, *[[9_000, 1_000]] * 24, until=THE_HOUR - timedelta(days=8))
    assert skew_of(lake, {ORDERS}, NOW) == {}


@pytest.mark.parametrize("per_second", [0.2, 1.0])
def test_chance_is_no_skew(lake: Lake, per_second: float) -> None:
    """Twelve partitions that get the same, at random: over five minutes the hottest seems to have 11 to 15 %."""
    noise = random.Random(7)
    spread: list[list[int]] = []
    for _ in range(7 * 24):
        counts = [0] * 12
        for _ in range(int(per_second * 3600)):
            counts[noise.randrange(12)] += 1
        spread.append(counts)
    hours(lake, *spread, until=THE_HOUR)
    found = skew_of(lake, {ORDERS}, NOW)[ORDERS]
    assert found.hottest_share == pytest.approx(1 / 12, rel=0.03)
    assert found.records > 100_000


@pytest.mark.parametrize("later", [timedelta(hours=1), timedelta(hours=23, minutes=59)])
def test_the_peak_of_the_24_hours_that_have_begun_is_still_ahead(lake: Lake, later: timedelta) -> None:
    """It stands in the row in which they begin, and may come until they are over. An hour that has begun is past."""
    about = {"cluster": "shop", "topic": "orders", "made_at": THE_HOUR, "hours": 1}
    rows = [
        row(
            FORECASTS, **about, at=THE_HOUR + timedelta(hours=hour), busiest_per_second=10.0 + hour,
            busiest_high_per_second=20.0 + hour,
            **({"peak_per_second": 100.0 + hour, "peak_high_per_second": 200.0 + hour} if hour % 24 == 0 else {}),
        )
        for hour in range(72)
    ]  # fmt: skip
    append(lake, FORECASTS, *rows)
    now = THE_HOUR + later
    found = demand_ahead(lake, now)[ORDERS]
    ends = [THE_HOUR + timedelta(days=day) for day in (1, 2)]
    assert found.minutes == (
        DemandAhead(now, 100.0, 200.0), DemandAhead(ends[0], 124.0, 224.0), DemandAhead(ends[1], 148.0, 248.0),
    )  # fmt: skip
    first = -(-later // timedelta(hours=1))
    assert [point.mean for point in found.hours] == [10.0 + hour for hour in range(first, 72)]
    assert demand_ahead(lake, ends[0])[ORDERS].minutes[0] == DemandAhead(ends[0], 124.0, 224.0), "the first is over"
