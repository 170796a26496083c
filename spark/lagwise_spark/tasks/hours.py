"""From minutes to hours, of group-partitions and of topics, and from these to the part of a day that lies behind."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lagwise.domain.capacity.demand import MINUTES_OF_HOUR
from lagwise.domain.capacity.topic_hours import topic_hours
from lagwise.domain.verdicts.buckets import hours_of
from lagwise.domain.verdicts.columns import NULL, Array, micros, taken
from lagwise.domain.verdicts.windows import whole_hours
from lagwise.tables.capacity import MINUTE_RATES, TOPIC_HOURS
from lagwise.tables.minutes import DAYS, FIVE_MINUTES, HOURS, WATERMARK_FIVE_MINUTES, WATERMARK_MINUTES
from lagwise_spark.tasks.arrow_columns import lists_of, table_of
from lagwise_spark.tasks.lake_files import KeyRange, LakeFiles
from lagwise_spark.tasks.minutes import in_order
from lagwise_spark.tasks.range_rows import OF_LOG, RangeReader, bucket_rows
from lagwise_spark.tasks.running import Made

#: Columns of `watermark_minutes` that the hours of topics are made of.
_ENDS = (
    *OF_LOG, "minute", "first_at", "last_at", "first_high_watermark", "last_high_watermark", "reset_at",
)  # fmt: skip


@dataclass(frozen=True)
class HourSlice:
    """Whole hours of one cluster, from ``start`` up to ``until`` (microseconds since the epoch).

    Attributes:
        files: those that hold the five minutes, and the minutes of high watermarks from one gap before on.
        within: the range, which holds one cluster only, and each of its topics as a whole.
    """

    cluster: str
    start: int
    until: int
    gap_seconds: float
    files: LakeFiles
    within: KeyRange


def made_hours(wanted: HourSlice) -> Made:
    """Rows of `hours`, from `five_minutes`, and of `topic_hours`, from `watermark_minutes`."""
    yield HOURS.name, _of_pairs(wanted)
    yield TOPIC_HOURS.name, _of_topics(wanted)


def _of_pairs(wanted: HourSlice) -> pa.Table:
    reader = RangeReader(wanted.files, wanted.within, [wanted.cluster])
    rows = reader.buckets(FIVE_MINUTES)
    keys = reader.keys()
    hours = hours_of(in_order([(rows, (rows["minute"] >= wanted.start) & (rows["minute"] < wanted.until))]))
    return bucket_rows(hours, keys.of_pairs(hours["pair"]), HOURS.without_day)


def _of_topics(wanted: HourSlice) -> pa.Table:
    reader = RangeReader(wanted.files, wanted.within, [wanted.cluster])
    ends = reader.read(WATERMARK_MINUTES, _ENDS)
    names = reader.keys().names
    early = wanted.start - micros(wanted.gap_seconds)
    is_wanted = (ends["minute"] >= early) & (ends["minute"] < wanted.until)
    order = np.lexsort((ends["minute"], ends["log"]))
    made = topic_hours(taken(ends, order[is_wanted[order]]), wanted.start, wanted.gap_seconds)
    topic = made.rows["topic"]
    schema = TOPIC_HOURS.without_day
    partitions = made.partition_records
    columns = {
        "cluster": pa.repeat(wanted.cluster, len(topic)),
        "topic": names["topic"].named(topic),
        "minute_rates_per_second": _minute_lists(made.minute_rates),
        "partition_records": lists_of(
            np.bincount(partitions["row"], minlength=len(topic)),
            partitions,
            schema.field("partition_records").type,
        ),
    }
    return table_of(made.rows, columns, schema)


def _minute_lists(rates: Array) -> pa.Array:
    """A list of 60 a row, with null where nothing is known."""
    flat = rates.astype(np.float32).ravel()
    offsets = np.arange(0, flat.size + 1, MINUTES_OF_HOUR, dtype=np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(flat, mask=np.isnan(flat)), type=MINUTE_RATES)


@dataclass(frozen=True)
class DayUntil:
    """A cluster's day so far: it ends with its last whole hour."""

    cluster: str
    until: int


def made_days(files: LakeFiles, days: Sequence[DayUntil], within: KeyRange) -> Made:
    """Rows of `days`, from `hours`. The hours up to a topic's re-creation tell of another log."""
    reader = RangeReader(files, within, [day.cluster for day in days])
    rows = reader.buckets(HOURS)
    ends = reader.read(WATERMARK_FIVE_MINUTES, (*OF_LOG, "recreated_at"))
    keys = reader.keys()
    # Another cluster than those that are there is not asked about.
    hours = in_order([(rows, rows["cluster"] < len(days))])
    pair = np.unique(hours["pair"])
    cluster = keys.cluster_of(pair)
    until = np.array([day.until for day in days], np.int64)[cluster]
    recreated_at = np.full(len(keys.logs["topic"]), NULL)
    np.maximum.at(recreated_at, ends["log"], ends["recreated_at"])
    wanted = {"pair": pair, "until": until, "recreated_at": recreated_at[keys.pairs["log"][pair]]}
    made = whole_hours(hours, wanted) | {"pair": pair, "until": until}
    made = taken(made, made["samples"] > 0)
    yield DAYS.name, bucket_rows(made, keys.of_pairs(made["pair"]), DAYS.without_day)
