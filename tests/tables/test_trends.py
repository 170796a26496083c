"""The trends of a group over all windows, read from buckets that are written as the analysis writes them."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from lagwise.tables.analysis import PARTITION_STATUS
from lagwise.tables.minutes import DAYS, FIVE_MINUTES, MINUTES, WATERMARK_MINUTES
from lagwise.tables.schema import Table
from lagwise.tables.store import Lake
from lagwise.tables.trends import WindowTrend, in_words, trends
from tests.app.judged import append, row
from tests.domain import lags as sampled

#: A quarter past an hour and a few seconds: the day's whole hours end with that hour.
AS_OF = datetime(2026, 3, 2, 13, 15, 7, tzinfo=UTC)
END = AS_OF.replace(second=0)
HOURS_UNTIL = END.replace(minute=0)
HOURS_FROM = HOURS_UNTIL - timedelta(hours=23)
INTERVAL = timedelta(seconds=30)

Lag = Callable[[datetime], float]


def statistics(lag: Lag, since: datetime, until: datetime, origin: datetime) -> dict[str, Any]:
    """What a bucket holds of the samples in [since, until): the step into the first of them comes from before."""
    times = [since + INTERVAL * n for n in range(-1, int((until - since) / INTERVAL))]
    samples = [((at - origin).total_seconds(), lag(at)) for at in times[1:]]
    steps = [((at - before).total_seconds(), lag(at) - lag(before)) for before, at in pairwise(times)]
    return sampled.statistics_of([samples], [steps])


def rows(table: Table, lags: Iterable[Lag], starts: Iterable[datetime], length: timedelta) -> pa.Table:
    starts = list(starts)
    made: list[dict[str, Any]] = []
    for partition, lag in enumerate(lags):
        for start in starts:
            sums = statistics(lag, start, start + length, start)
            key = {"cluster": "c", "group": "g", "topic": "t", "partition": partition, "minute": start}
            key |= {"until": start + length, "long_pauses": 0} if table is DAYS else {}
            key |= {"first_at": start}
            made.append(key | {name: values[0] for name, values in sums.items()})
    return table.from_rows(made)


def every(length: timedelta, since: datetime, until: datetime) -> list[datetime]:
    return [since + length * n for n in range((until - since) // length)]


def write(lake: Lake, *lags: Lag, first: datetime = HOURS_FROM) -> None:
    """A group's partitions from ``first`` on: five minutes up to a quarter of an hour ago, then minutes, and the day's
    whole hours."""
    minute, five, hour = timedelta(minutes=1), timedelta(minutes=5), timedelta(hours=1)
    lake.append(MINUTES, rows(MINUTES, lags, every(minute, max(first, END - hour), END), minute))
    lake.append(FIVE_MINUTES, rows(FIVE_MINUTES, lags, every(five, max(first, END - 2 * hour), END), five))
    statuses = [
        row(PARTITION_STATUS, cluster="c", group="g", topic="t", partition=number, status="ok", lag=1)
        for number in range(len(lags))
    ]
    append(lake, PARTITION_STATUS, *statuses)
    if first < HOURS_UNTIL:
        lake.append(DAYS, rows(DAYS, lags, [first], HOURS_UNTIL - first))


def defined(lag: Lag, seconds: float) -> sampled.Trend:
    return trend_since(lag, HOURS_FROM if seconds == 86_400 else END - timedelta(seconds=seconds))


def trend_since(lag: Lag, since: datetime) -> sampled.Trend:
    (found,) = sampled.trends(statistics(lag, since, END, END))
    assert found is not None
    return found


def line(slope: float, at_end: float = 1e6) -> Lag:
    """Straight but for a wobble, so that there is an interval."""
    return lambda at: at_end + slope * (at - END).total_seconds() + at.minute * 31 % 7 + at.second


def test_every_window_is_the_trend_of_its_samples(lake: Lake) -> None:
    write(lake, line(2.5))
    found = trends(lake, "c", "g", AS_OF)
    assert [t.window_seconds for t in found] == [300.0, 900.0, 3600.0, 86_400.0]
    for trend in found:
        expected = defined(line(2.5), trend.window_seconds)
        assert trend.slope_per_second == pytest.approx(expected.slope, rel=1e-6)
        assert trend.low_per_second == pytest.approx(expected.low, rel=1e-4)
        assert trend.high_per_second == pytest.approx(expected.high, rel=1e-4)
        assert trend.partitions == 1


def test_slopes_add_up_and_so_do_their_errors(lake: Lake) -> None:
    lags = [line(2.5), line(-1.0), line(0.0, 0.0)]
    write(lake, *lags)
    for trend in trends(lake, "c", "g", AS_OF):
        parts = [defined(lag, trend.window_seconds) for lag in lags]
        margin = sum(part.high - part.slope for part in parts)
        assert trend.partitions == 3
        assert trend.slope_per_second == pytest.approx(sum(part.slope for part in parts), rel=1e-6)
        assert trend.high_per_second - trend.low_per_second == pytest.approx(2 * margin, rel=1e-4)


def test_a_window_longer_than_the_history_is_left_out(lake: Lake) -> None:
    write(lake, line(1.0), first=END - timedelta(minutes=10))
    found = trends(lake, "c", "g", AS_OF)
    assert [(t.window_seconds, t.span_seconds, t.length) for t in found] == [
        (300.0, 300.0, "5 min"),
        (900.0, 600.0, "10 min"),
    ]


@pytest.mark.parametrize("known", [{"status": "ghost"}, {"status": "unknown", "reason": "out_of_range", "lag": None}])
def test_partitions_that_do_not_count_in_the_lag_do_not_count_here(lake: Lake, known: dict[str, Any]) -> None:
    write(lake, line(1.0), line(50.0))
    rest = {"cluster": "c", "group": "g", "topic": "t", "lag": 1}
    kept = [row(PARTITION_STATUS, **rest, partition=0, status="ok"), row(PARTITION_STATUS, **rest | known, partition=1)]
    write_deltalake(lake.location(PARTITION_STATUS), PARTITION_STATUS.from_rows(kept), mode="overwrite")
    for trend in trends(lake, "c", "g", AS_OF):
        assert trend.partitions == 1
        assert trend.slope_per_second == pytest.approx(defined(line(1.0), trend.window_seconds).slope, rel=1e-6)


def test_until_the_newest_hour_is_merged_the_day_is_an_hour_longer(lake: Lake) -> None:
    """Its five minutes are read instead."""
    hour = timedelta(hours=1)
    write(lake, line(2.5))
    before = rows(DAYS, [line(2.5)], [HOURS_FROM - hour], 23 * hour)
    write_deltalake(lake.location(DAYS), before, mode="overwrite")
    day = trends(lake, "c", "g", AS_OF)[-1]
    expected = trend_since(line(2.5), HOURS_FROM - hour)
    assert (day.window_seconds, day.length) == (86_400.0, "24 h")
    assert day.slope_per_second == pytest.approx(expected.slope, rel=1e-6)


def test_what_came_before_a_re_creation_is_another_log(lake: Lake) -> None:
    """Ten minutes ago; the minute in which it happened holds samples of both."""
    write(lake, line(1.0))
    at = END - timedelta(minutes=10)
    row = {"cluster": "c", "topic": "t", "partition": 0, "minute": at, "reset_at": at, "recreated_at": at}
    lake.append(WATERMARK_MINUTES, WATERMARK_MINUTES.from_rows([row]))
    found = trends(lake, "c", "g", AS_OF)
    assert [t.window_seconds for t in found] == [300.0, 900.0]
    nine = trend_since(line(1.0), at + timedelta(minutes=1))
    assert found[1].slope_per_second == pytest.approx(nine.slope)


def test_another_group_and_an_empty_lake_have_no_trend(lake: Lake) -> None:
    assert trends(lake, "c", "g", AS_OF) == []
    write(lake, line(1.0))
    assert trends(lake, "c", "other", AS_OF) == trends(lake, "other", "g", AS_OF) == []


def test_in_words() -> None:
    reported = [
        WindowTrend(300.0, 300.0, 2, 12.34, 8.0, 16.68),
        WindowTrend(900.0, 850.0, 2, -4.0, -5.0, -3.0),
        WindowTrend(3600.0, 1230.0, 2, 0.1, -0.5, 0.7),
        WindowTrend(86_400.0, 80_000.0, 0, None, None, None),
    ]
    assert in_words(reported) == (
        "5 min: grows by 12.3 records/s (8.00 to 16.7) · 15 min: shrinks by 4.00 records/s (3.00 to 5.00) · "
        "20 min: no clear trend"
    )
    assert in_words(reported[3:]) == in_words([]) == ""


def test_two_windows_over_the_same_young_history_are_one() -> None:
    reported = [
        WindowTrend(300.0, 290.0, 2, 12.34, 8.0, 16.68),
        WindowTrend(900.0, 330.0, 2, -4.0, -5.0, -3.0),
    ]
    assert [trend.length for trend in reported] == ["5 min", "5 min"]
    assert in_words(reported) == "5 min: shrinks by 4.00 records/s (3.00 to 5.00)"


def test_a_history_of_less_than_a_minute_is_no_trend_over_0_s() -> None:
    assert in_words([WindowTrend(300, 45.0, 1, 4.0, 3.0, 5.0)]) == ""
    assert in_words([WindowTrend(300, 60.0, 1, 4.0, 3.0, 5.0)]) == "1 min: grows by 4.00 records/s (3.00 to 5.00)"
