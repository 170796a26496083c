"""From five minutes to hours, and from these to the part of a day that lies behind."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lagwise.domain.verdicts.buckets import hours_of
from lagwise.domain.verdicts.columns import NULL, taken
from lagwise.domain.verdicts.windows import whole_hours
from lagwise.tables.minutes import DAYS, FIVE_MINUTES, HOURS, WATERMARK_FIVE_MINUTES
from lagwise_spark.tasks.lake_files import KeyRange, LakeFiles
from lagwise_spark.tasks.minutes import in_order
from lagwise_spark.tasks.range_rows import OF_LOG, RangeReader, bucket_rows, buckets_of

_MADE = Iterator[tuple[str, pa.Table]]


@dataclass(frozen=True)
class HourSpan:
    """Whole hours of a cluster, from ``start`` up to ``until`` (microseconds since the epoch)."""

    cluster: str
    start: int
    until: int


def made_hours(files: LakeFiles, span: HourSpan, within: KeyRange) -> _MADE:
    """Rows of `hours`, from `five_minutes`. The range holds one cluster only."""
    reader = RangeReader(files, within, [span.cluster])
    rows = reader.read(FIVE_MINUTES, [column.name for column in FIVE_MINUTES.columns])
    keys = reader.keys()
    its = taken(rows, (rows["minute"] >= span.start) & (rows["minute"] < span.until))
    hours = hours_of(in_order(buckets_of(its)))
    yield HOURS.name, bucket_rows(hours, keys.of_pairs(hours["pair"]), HOURS.without_day)


@dataclass(frozen=True)
class DayUntil:
    """A cluster's day so far: it ends with its last whole hour."""

    cluster: str
    until: int
    interval_seconds: float


def made_days(files: LakeFiles, days: Sequence[DayUntil], within: KeyRange) -> _MADE:
    """Rows of `days`, from `hours`. The hours up to a topic's re-creation tell of another log."""
    reader = RangeReader(files, within, [day.cluster for day in days])
    rows = reader.read(HOURS, [column.name for column in HOURS.columns])
    ends = reader.read(WATERMARK_FIVE_MINUTES, (*OF_LOG, "recreated_at"))
    keys = reader.keys()
    # Another cluster than those that are there is not asked about.
    is_asked = rows["cluster"] < len(days)
    hours = in_order(buckets_of(taken(rows, is_asked)))
    pair = np.unique(hours["pair"])
    cluster = keys.cluster_of(pair)
    until = np.array([day.until for day in days], np.int64)[cluster]
    recreated_at = np.full(len(keys.logs["topic"]), NULL)
    np.maximum.at(recreated_at, ends["log"], ends["recreated_at"])
    wanted = {
        "pair": pair,
        "until": until,
        "recreated_at": recreated_at[keys.pairs["log"][pair]],
        "interval_seconds": np.array([day.interval_seconds for day in days], np.float64)[cluster],
    }
    made = whole_hours(hours, wanted) | {"pair": pair, "until": until}
    made = taken(made, made["samples"] > 0)
    yield DAYS.name, bucket_rows(made, keys.of_pairs(made["pair"]), DAYS.without_day)
