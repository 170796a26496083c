"""Column names and small expressions that several transforms share."""

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lagwise.domain.history import (
    COARSE_AFTER_SECONDS,
    COARSE_SECONDS,
    HOUR_IS_WHOLE_AFTER_SECONDS,
    HOUR_SECONDS,
    HOURS_OF_DAY,
)

#: What identifies a topic-partition and a group-partition.
TOPIC_PARTITION = ("cluster", "topic", "partition")
GROUP = ("cluster", "group")
GROUP_PARTITION = ("cluster", "group", "topic", "partition")

#: The additive statistics of `minutes`: a window is the sum of its buckets once they share an origin of time.
STATISTICS = (
    "samples",
    "sum_t",
    "sum_tt",
    "sum_lag",
    "sum_lag_lag",
    "sum_t_lag",
    "steps",
    "sum_dt_dt",
    "sum_dt_dlag",
    "sum_dlag_dlag",
)


def seconds(timestamp: Column) -> Column:
    """A timestamp as seconds since the epoch, to the microsecond."""
    return F.unix_micros(timestamp) / F.lit(1e6)


def seconds_between(earlier: Column, later: Column) -> Column:
    """Seconds from one timestamp to another, exact to the microsecond."""
    return (F.unix_micros(later) - F.unix_micros(earlier)) / F.lit(1e6)


def five_minutes_of(timestamp: Column) -> Column:
    """Start of the five UTC minutes a timestamp falls into."""
    return _start_of(COARSE_SECONDS, timestamp)


def hour_of(timestamp: Column) -> Column:
    """Start of the UTC hour a timestamp falls into."""
    return _start_of(HOUR_SECONDS, timestamp)


def _start_of(length_seconds: float, timestamp: Column) -> Column:
    micros = F.unix_micros(timestamp)
    return F.timestamp_micros(micros - F.pmod(micros, F.lit(int(length_seconds * 1e6))))


def bucket_of(minute: Column, as_of: Column) -> Column:
    """Start of the bucket that a minute belongs to as seen at ``as_of``: :func:`lagwise.domain.history.bucket_of`."""
    edge = _earlier(as_of, COARSE_AFTER_SECONDS)
    return F.when(minute < five_minutes_of(edge), five_minutes_of(minute)).otherwise(minute)


def whole_hours_until(as_of: Column) -> Column:
    """End of the last whole hour: :func:`lagwise.domain.history.whole_hours_until`."""
    return hour_of(_earlier(as_of, HOUR_IS_WHOLE_AFTER_SECONDS))


def whole_hours_from(until: Column) -> Column:
    """Start of the first of the day's whole hours, from the end of the last."""
    return _earlier(until, HOURS_OF_DAY * HOUR_SECONDS)


def _earlier(timestamp: Column, by_seconds: float) -> Column:
    return F.timestamp_micros(F.unix_micros(timestamp) - int(by_seconds * 1e6))


def minute_of(timestamp: Column) -> Column:
    """Start of the UTC minute a timestamp falls into."""
    return F.date_trunc("minute", timestamp)


def shifted_statistics(by_seconds: Column) -> dict[str, Column]:
    """The additive statistics as they are once every t has become t + ``by_seconds``."""
    n, by = F.col("samples"), by_seconds
    return {name: F.col(name) for name in STATISTICS} | {
        "sum_t": F.col("sum_t") + n * by,
        "sum_tt": F.col("sum_tt") + 2 * by * F.col("sum_t") + n * by * by,
        "sum_t_lag": F.col("sum_t_lag") + by * F.col("sum_lag"),
    }


def with_steps(rows: DataFrame, steps: Mapping[str, Column]) -> DataFrame:
    """Add columns each of which may be made from those before it, in one go: the analyser takes as long for the whole
    chain as for one `withColumn`. The names must be new (a name that exists would mean the old column)."""
    return rows.select("*", *[made.alias(name) for name, made in steps.items()])
