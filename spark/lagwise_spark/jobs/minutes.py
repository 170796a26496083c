"""Making minutes from raw samples: the open ones at every round, the finished ones once and for all."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lagwise.domain.history import gap_seconds
from lagwise.tables.minutes import FIVE_MINUTES, MINUTES, WATERMARK_FIVE_MINUTES, WATERMARK_MINUTES
from lagwise.tables.raw import COMMITS, WATERMARKS
from lagwise.tables.schema import TIMESTAMP, Table
from lagwise.tables.store import Lake
from lagwise_spark.frames import frame, materialised
from lagwise_spark.jobs import read, write
from lagwise_spark.jobs.progress import News, five_minutes_of, minute_of
from lagwise_spark.transforms.buckets import commit_minutes, watermark_minutes, with_lag
from lagwise_spark.transforms.coarser import five_minutes, watermark_five_minutes

_BOUNDS = pa.schema([("cluster", pa.string()), ("from", TIMESTAMP), ("until", TIMESTAMP)])


@dataclass(frozen=True, slots=True)
class OpenMinutes:
    """Rows of `minutes` and of `watermark_minutes` from each cluster's first open minute on."""

    pairs: DataFrame
    watermarks: DataFrame


def open_minutes(session: SparkSession, lake: Lake, news: Sequence[News], contexts: DataFrame) -> OpenMinutes:
    """Minutes from raw samples, from each cluster's first open minute to its newest."""
    reach = timedelta(seconds=max(gap_seconds(n.interval_seconds) for n in news))
    start = min(n.open_from for n in news) - reach
    complete = [sample.sample_id for sample in read.finished_samples(lake, start)]
    open_from = F.broadcast(contexts.select("cluster", "open_from"))

    def raw(table: Table) -> DataFrame:
        return read.of_samples(session, lake, table, complete, start - read.LONGEST_SAMPLE)

    def kept(rows: DataFrame) -> DataFrame:
        inside = rows.join(open_from, "cluster").where(F.col("minute") >= F.col("open_from")).drop("open_from")
        return materialised(inside)

    watermarks = raw(WATERMARKS)
    return OpenMinutes(
        kept(commit_minutes(with_lag(raw(COMMITS), watermarks), contexts)), kept(watermark_minutes(watermarks))
    )


def finish_minutes(session: SparkSession, lake: Lake, news: Sequence[News], minutes: OpenMinutes) -> int:
    """Write those minutes that no later sample will change: all before the latest sample's own. Where that completes
    five minutes, write these too.

    Returns how many minutes were written, over all clusters.
    """
    written = 0
    for n in news:
        end = minute_of(n.as_of)
        if end <= n.open_from:
            continue
        for table, rows in ((MINUTES, minutes.pairs), (WATERMARK_MINUTES, minutes.watermarks)):
            finished = rows.where((F.col("cluster") == n.cluster) & (F.col("minute") < F.lit(end)))
            write.replace_between(finished, lake, table, n.cluster, n.open_from, end)
        for table, coarse in ((MINUTES, FIVE_MINUTES), (WATERMARK_MINUTES, WATERMARK_FIVE_MINUTES)):
            merge_by_five(session, lake, n.cluster, n.open_from, end, table, coarse)
        written += int((end - n.open_from) / timedelta(minutes=1))
    return written


def merge_by_five(
    session: SparkSession, lake: Lake, cluster: str, start: datetime, end: datetime, table: Table, coarse: Table
) -> None:
    """Write the rows of ``coarse`` that the minutes of a cluster from ``start`` to ``end`` complete, from what
    ``table`` holds."""
    start, end = five_minutes_of(start), five_minutes_of(end)
    if start >= end:
        return
    rows = within(session, read.stretch(session, lake, table, start, end), cluster, start, end)
    merged = five_minutes if table is MINUTES else watermark_five_minutes
    write.replace_between(merged(rows), lake, coarse, cluster, start, end)


def within(session: SparkSession, rows: DataFrame, cluster: str, start: datetime, end: datetime) -> DataFrame:
    """Those of a cluster's rows whose minute lies in [start, end). The times come as columns: as constants they would
    have the query compiled anew for every stretch of time."""
    bounds = frame(session, pa.Table.from_pylist([{"cluster": cluster, "from": start, "until": end}], schema=_BOUNDS))
    is_inside = (F.col("minute") >= F.col("from")) & (F.col("minute") < F.col("until"))
    return rows.join(F.broadcast(bounds), "cluster").where(is_inside).drop("from", "until")
