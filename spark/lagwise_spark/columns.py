"""Column names and small expressions that several transforms share."""

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

#: What identifies a group and a group-partition.
GROUP = ("cluster", "group")
GROUP_PARTITION = ("cluster", "group", "topic", "partition")

_HOUR_MICROS = 3_600_000_000


def seconds_between(earlier: Column, later: Column) -> Column:
    """Seconds from one timestamp to another, exact to the microsecond."""
    return (F.unix_micros(later) - F.unix_micros(earlier)) / F.lit(1e6)


def hour_of(timestamp: Column) -> Column:
    """Start of the UTC hour a timestamp falls into."""
    micros = F.unix_micros(timestamp)
    return F.timestamp_micros(micros - F.pmod(micros, F.lit(_HOUR_MICROS)))


def minute_of(timestamp: Column) -> Column:
    """Start of the UTC minute a timestamp falls into."""
    return F.date_trunc("minute", timestamp)


def with_steps(rows: DataFrame, steps: Mapping[str, Column]) -> DataFrame:
    """Add columns each of which may be made from those before it, in one go: the analyser takes as long for the whole
    chain as for one `withColumn`. The names must be new (a name that exists would mean the old column)."""
    return rows.select("*", *[made.alias(name) for name, made in steps.items()])
