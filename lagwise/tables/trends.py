"""How fast the lag of a group has grown over the last minutes, hour and day, for whoever looks at it.

Verdicts look at the window that suits the group's commits, and keep that one's trend. Here all windows are told, from
the same buckets, up to the last whole minute.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from lagwise.domain.history import (
    COARSE_AFTER_SECONDS,
    COARSE_SECONDS,
    DAY_SECONDS,
    HOUR_IS_WHOLE_AFTER_SECONDS,
    HOUR_SECONDS,
    HOURS_OF_DAY,
    WINDOWS_SECONDS,
)
from lagwise.domain.humanise import duration, growth
from lagwise.domain.trend import Statistics, Trend, trend_of
from lagwise.tables.analysis import DAYS, FIVE_MINUTES, MINUTES, WATERMARK_MINUTES
from lagwise.tables.store import Lake

#: The tables that are read.
TABLES = (MINUTES, FIVE_MINUTES, DAYS, WATERMARK_MINUTES)

_SUMS = "samples, sum_t, sum_tt, sum_lag, sum_lag_lag, sum_t_lag, steps, sum_dt_dt, sum_dt_dlag, sum_dlag_dlag"

#: One row per window and partition: the statistics of its buckets, t counted from the end.
_QUERY = f"""
    with asked as (
        select ? as cluster, ? as "group", ?::timestamptz as "end", ?::timestamptz as coarse_until,
            ?::timestamptz as hours_until, ?::timestamptz as hours_from
    ), recreated as (
        select topic, partition, max(minute) as recreated_minute
        from watermark_minutes semi join asked using (cluster)
        where recreated_at is not null group by all
    ), buckets as (
        select topic, partition, minute, {_SUMS} from minutes join asked using (cluster, "group")
        where minute >= coarse_until and minute < "end"
        union all
        select topic, partition, minute, {_SUMS} from five_minutes join asked using (cluster, "group")
        where minute < coarse_until
    ), windows as (
        select unnest(?::double[]) as window_seconds, unnest(?::timestamptz[]) as since
    ), parts as (
        select window_seconds, topic, partition, minute, {_SUMS} from buckets join windows on minute >= since
        union all
        select {DAY_SECONDS}, topic, partition, hours_from, {_SUMS} from days join asked using (cluster, "group")
        where until = hours_until
    ), shifted as (
        select parts.*, epoch(minute) - epoch("end") as by_seconds
        from parts cross join asked left join recreated using (topic, partition)
        where recreated_minute is null
            or case when minute = hours_from then recreated_minute < hours_until else minute > recreated_minute end
    )
    select window_seconds, sum(samples)::bigint as samples, sum(sum_t + samples * by_seconds) as sum_t,
        sum(sum_tt + 2 * by_seconds * sum_t + samples * by_seconds * by_seconds) as sum_tt,
        sum(sum_lag) as sum_lag, sum(sum_lag_lag) as sum_lag_lag, sum(sum_t_lag + by_seconds * sum_lag) as sum_t_lag,
        sum(steps)::bigint as steps, sum(sum_dt_dt) as sum_dt_dt, sum(sum_dt_dlag) as sum_dt_dlag,
        sum(sum_dlag_dlag) as sum_dlag_dlag
    from shifted group by window_seconds, topic, partition order by window_seconds
"""  # noqa: S608 (names of our own)


@dataclass(frozen=True, slots=True)
class WindowTrend:
    """Growth of a group's lag over the window that ends now: the sum over those of its partitions that tell a trend, in
    records per second, and its 99 % confidence interval. ``partitions`` is how many they are; the rest is None without
    any."""

    window_seconds: float
    partitions: int
    slope_per_second: float | None
    low_per_second: float | None
    high_per_second: float | None


def trends(lake: Lake, cluster: str, group: str, as_of: datetime) -> list[WindowTrend]:
    """The trend over each window, shortest first, as of the last whole minute before ``as_of``.

    A window longer than the history is left out: it would say what a shorter one says. Raises LakeError.
    """
    end = as_of.astimezone(UTC).replace(second=0, microsecond=0)
    hours_until = _floor(end - timedelta(seconds=HOUR_IS_WHOLE_AFTER_SECONDS), HOUR_SECONDS)
    since = {seconds: end - timedelta(seconds=seconds) for seconds in WINDOWS_SECONDS} | {DAY_SECONDS: hours_until}
    values = [
        cluster,
        group,
        end,
        _floor(end - timedelta(seconds=COARSE_AFTER_SECONDS), COARSE_SECONDS),
        hours_until,
        hours_until - timedelta(seconds=HOURS_OF_DAY * HOUR_SECONDS),
        list(since),
        list(since.values()),
    ]
    rows = lake.query(_QUERY, values, over=TABLES, since=min(*since.values()) - timedelta(minutes=10)).to_pylist()
    found: list[WindowTrend] = []
    most = 0
    for seconds in since:
        its = [row for row in rows if row["window_seconds"] == seconds]
        samples = sum(row["samples"] for row in its)
        if samples > most:
            found.append(_sum(seconds, its))
        most = max(most, samples)
    return found


def in_words(found: Iterable[WindowTrend]) -> str:
    """``5 min: grows by 12.3/s (8.1 to 16.5) · 1 h: no clear trend``; windows without a trend are left out."""
    return " · ".join(
        f"{duration(t.window_seconds)}: {growth(t.slope_per_second, t.low_per_second, t.high_per_second)}"
        for t in found
        if t.slope_per_second is not None and t.low_per_second is not None and t.high_per_second is not None
    )


def _sum(window_seconds: float, partitions: Iterable[Mapping[str, Any]]) -> WindowTrend:
    """Slopes add up; their errors, which are taken to be independent, by their squares."""
    names = Statistics.__dataclass_fields__
    found: list[Trend] = []
    for row in partitions:
        trend = trend_of(Statistics(**{name: row[name] for name in names}))
        if trend is not None:
            found.append(trend)
    if not found:
        return WindowTrend(window_seconds, 0, None, None, None)
    slope = sum(t.slope for t in found)
    margin = math.hypot(*(t.high - t.slope for t in found))
    return WindowTrend(window_seconds, len(found), slope, slope - margin, slope + margin)


def _floor(at: datetime, seconds: float) -> datetime:
    return datetime.fromtimestamp(at.timestamp() // seconds * seconds, UTC)
