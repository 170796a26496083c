"""How fast the lag of a group has grown over the last minutes, hour and day, for people.

A verdict rests on the window that suits the group's commits, and keeps only that trend. Here are those of all windows,
from the same buckets, up to the last whole minute.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from lagwise.domain.humanise import duration, growth
from lagwise.domain.verdicts.buckets import FIVE_MINUTES_SECONDS, MINUTE_SECONDS, STATISTICS
from lagwise.domain.verdicts.changes import COARSE_AFTER_SECONDS
from lagwise.domain.verdicts.trend import slope_and_margin
from lagwise.domain.verdicts.windows import DAY_SECONDS, HOURS_OF_DAY, WINDOWS_SECONDS
from lagwise.domain.vocabulary import Status
from lagwise.tables.analysis import PARTITION_STATUS
from lagwise.tables.minutes import DAYS, FIVE_MINUTES, MINUTES, WATERMARK_MINUTES
from lagwise.tables.store import Lake

#: The tables that are read.
TABLES = (MINUTES, FIVE_MINUTES, DAYS, WATERMARK_MINUTES, PARTITION_STATUS)
#: A window counts as full from this share of it on; before that, what it holds is called by its length.
_FULL = 0.9

_SUMS = ", ".join(STATISTICS)

#: Written as conditions on columns, so that whole row groups of a large table are left out.
_ASKED = 'cluster = $1 and "group" = $2'
#: One row per window and partition: the statistics of its buckets, t counted from the end, and when they begin. Only
#: partitions whose lag is known now and which the group still reads, as in the sum of its lag.
_QUERY = f"""
    with counted as (
        select topic, partition from partition_status
        where {_ASKED} and lag is not null and status <> '{Status.GHOST}'
    ), recreated as (
        select topic, partition, max(minute) as recreated_minute
        from watermark_minutes semi join counted using (topic, partition)
        where cluster = $1 and recreated_at is not null group by all
    ), whole_hours as (
        select days.* from days semi join counted using (topic, partition) where {_ASKED}
    ), buckets as (
        select topic, partition, minute, first_at, {_SUMS} from minutes
        where {_ASKED} and minute >= $4::timestamptz and minute < $3::timestamptz
        union all
        select topic, partition, minute, first_at, {_SUMS} from five_minutes
        where {_ASKED} and minute < $4::timestamptz
    ), windows as (
        select unnest($5::double[]) as window_seconds, unnest($6::timestamptz[]) as since
        union all
        select {DAY_SECONDS}, max(until) from whole_hours having max(until) is not null
    ), parts as (
        select window_seconds, topic, partition, minute, first_at, {_SUMS}, minute as comparable
        from buckets semi join counted using (topic, partition) join windows on minute >= since
        union all
        -- Hours up to a re-creation were left out when they were merged.
        select {DAY_SECONDS}, topic, partition, until - interval {HOURS_OF_DAY} hours, first_at, {_SUMS}, until
        from whole_hours
    ), shifted as (
        select parts.*, epoch(minute) - epoch($3::timestamptz) as by_seconds
        from parts left join recreated using (topic, partition)
        where recreated_minute is null or comparable > recreated_minute
    )
    select window_seconds, min(first_at) as first_at, sum(samples)::bigint as samples,
        sum(sum_t + samples * by_seconds) as sum_t,
        sum(sum_tt + 2 * by_seconds * sum_t + samples * by_seconds * by_seconds) as sum_tt,
        sum(sum_lag) as sum_lag, sum(sum_lag_lag) as sum_lag_lag, sum(sum_t_lag + by_seconds * sum_lag) as sum_t_lag,
        sum(steps)::bigint as steps, sum(sum_dt_dt) as sum_dt_dt, sum(sum_dt_dlag) as sum_dt_dlag,
        sum(sum_dlag_dlag) as sum_dlag_dlag
    from shifted group by window_seconds, topic, partition order by window_seconds
"""  # noqa: S608 (names and words of our own)


@dataclass(frozen=True, slots=True)
class WindowTrend:
    """Growth of a group's lag over the window that ends now: the sum over those of its partitions that show a trend, in
    records per second, and its confidence interval (99 %, or better). ``partitions`` is how many they are; the rest is
    None without any. ``span_seconds`` is how much of the window there is a history of."""

    window_seconds: float
    span_seconds: float
    partitions: int
    slope_per_second: float | None
    low_per_second: float | None
    high_per_second: float | None

    @property
    def length(self) -> str:
        """How long it is, or its history where that does not fill it."""
        if self.span_seconds >= _FULL * self.window_seconds:
            return "24 h" if self.window_seconds == DAY_SECONDS else duration(self.window_seconds)
        return duration(self.span_seconds // MINUTE_SECONDS * MINUTE_SECONDS)


def trends(lake: Lake, cluster: str, group: str, as_of: datetime) -> list[WindowTrend]:
    """The trend over each window, shortest first, as of the last whole minute before ``as_of``. Raises LakeError.

    A window that holds no more than a shorter one is left out. So is the day before its first whole hours are there.
    """
    end = as_of.astimezone(UTC).replace(second=0, microsecond=0)
    coarse_until = datetime.fromtimestamp(
        (end.timestamp() - COARSE_AFTER_SECONDS) // FIVE_MINUTES_SECONDS * FIVE_MINUTES_SECONDS, UTC
    )
    since = [end - timedelta(seconds=seconds) for seconds in WINDOWS_SECONDS]
    values = [cluster, group, end, coarse_until, list(WINDOWS_SECONDS), since]
    # Whole hours end two hours ago at most, while the newest of them are being made.
    rows = lake.query(_QUERY, values, over=TABLES, since=end - timedelta(hours=2, minutes=15)).to_pylist()
    found: list[WindowTrend] = []
    most = 0
    for seconds in (*WINDOWS_SECONDS, DAY_SECONDS):
        its = [row for row in rows if row["window_seconds"] == seconds]
        samples = sum(row["samples"] for row in its)
        if samples > most:
            found.append(_sum(seconds, its, end))
        most = max(most, samples)
    return found


def in_words(found: Iterable[WindowTrend]) -> str:
    """``5 min: grows by 12.3 records/s (8.1 to 16.5) · 1 h: no clear trend``; windows without a trend, or without a
    minute of history, are left out, and of those that a short history makes equally long, all but the one that reaches
    back farthest."""
    growths = {
        t.length: growth(t.slope_per_second, t.low_per_second, t.high_per_second)
        for t in found
        if t.span_seconds >= MINUTE_SECONDS
        and t.slope_per_second is not None
        and t.low_per_second is not None
        and t.high_per_second is not None
    }
    return " · ".join(f"{length}: {words}" for length, words in growths.items())


def _sum(window_seconds: float, partitions: Sequence[Mapping[str, Any]], end: datetime) -> WindowTrend:
    """Slopes add up, and so do the ends of their intervals: partitions that share a member or a database stray
    together, so that their errors cannot be taken to cancel out."""
    slopes, margins = slope_and_margin({name: np.array([row[name] for row in partitions]) for name in STATISTICS})
    number = int(np.isfinite(slopes).sum())
    slope, margin = (float(np.nansum(values)) if number else None for values in (slopes, margins))
    span = max((end - row["first_at"]).total_seconds() for row in partitions)
    return WindowTrend(
        window_seconds,
        span,
        partitions=number,
        slope_per_second=slope,
        low_per_second=None if slope is None or margin is None else slope - margin,
        high_per_second=None if slope is None or margin is None else slope + margin,
    )
