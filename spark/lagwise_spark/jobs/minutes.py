"""Making minutes from raw samples: the open ones at every round, the finished ones once and for all."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lagwise.domain.history import gap_seconds
from lagwise.tables.analysis import FIVE_MINUTES, MINUTES, WATERMARK_FIVE_MINUTES, WATERMARK_MINUTES
from lagwise.tables.raw import COMMITS, WATERMARKS
from lagwise.tables.schema import Table
from lagwise.tables.store import Lake
from lagwise_spark.frames import contexts_frame, materialised
from lagwise_spark.jobs import read, write
from lagwise_spark.jobs.progress import News, five_minutes_of, minute_of
from lagwise_spark.transforms.buckets import commit_minutes, watermark_minutes, with_lag
from lagwise_spark.transforms.five_minutes import five_minutes, watermark_five_minutes

_LOG = logging.getLogger("lagwise.spark")

#: Minutes are made in stretches of at most so many rows, so that catching up after an outage needs no more memory than
#: keeping up …
ROWS_PER_STRETCH = 600_000
#: … and of so many minutes at most and at least.
LONGEST_STRETCH_MINUTES = 60
SHORTEST_STRETCH_MINUTES = 5


@dataclass(frozen=True, slots=True)
class OpenMinutes:
    """Rows of `minutes` and of `watermark_minutes` from each cluster's first open minute on."""

    pairs: DataFrame
    watermarks: DataFrame


def catch_up(session: SparkSession, lake: Lake, news: Sequence[News]) -> list[News]:
    """Finish whole stretches where more than one is open (first start, outage, late delivery).

    Returns the news with what is left open.
    """
    left = []
    for n in news:
        stretch = stretch_of(n.group_partitions)
        while n.as_of - n.open_from > stretch:
            end = n.open_from + stretch
            _LOG.info("%s: catching up, making the minutes from %s to %s", n.cluster, n.open_from, end)
            minutes = open_minutes(session, lake, [n], minimal_contexts(session, [n]), until=end, used_once=True)
            finish_minutes(session, lake, [n], minutes, until=end)
            n = replace(n, open_from=end)
        left.append(n)
    return left


def stretch_of(group_partitions: int) -> timedelta:
    """How much history is made into minutes at a time."""
    minutes = ROWS_PER_STRETCH // max(1, group_partitions)
    return timedelta(minutes=min(LONGEST_STRETCH_MINUTES, max(SHORTEST_STRETCH_MINUTES, minutes)))


def minimal_contexts(session: SparkSession, news: Sequence[News]) -> DataFrame:
    """Contexts with just what making minutes needs."""
    return contexts_frame(
        session,
        [
            {"cluster": n.cluster, "gap_seconds": gap_seconds(n.interval_seconds), "open_from": n.open_from}
            for n in news
        ],
    )


def open_minutes(
    session: SparkSession,
    lake: Lake,
    news: Sequence[News],
    contexts: DataFrame,
    *,
    until: datetime | None = None,
    used_once: bool = False,
) -> OpenMinutes:
    """Minutes from raw samples, from each cluster's first open minute to ``until`` (by default to the newest)."""
    reach = timedelta(seconds=max(gap_seconds(n.interval_seconds) for n in news))
    start = min(n.open_from for n in news) - reach
    complete = read.finished_samples(lake, start, until)
    open_from = F.broadcast(contexts.select("cluster", "open_from"))

    def raw(table: Table) -> DataFrame:
        rows = read.of_samples(session, lake, table, complete, start)
        return rows if until is None else rows.where(F.col(str(table.clock)) < F.lit(until))

    def kept(rows: DataFrame) -> DataFrame:
        inside = rows.join(open_from, "cluster").where(F.col("minute") >= F.col("open_from")).drop("open_from")
        return inside if used_once else materialised(inside)

    watermarks = raw(WATERMARKS)
    return OpenMinutes(
        kept(commit_minutes(with_lag(raw(COMMITS), watermarks), contexts)), kept(watermark_minutes(watermarks))
    )


def finish_minutes(
    session: SparkSession, lake: Lake, news: Sequence[News], minutes: OpenMinutes, *, until: datetime | None = None
) -> int:
    """Write those minutes that no later sample will change: all before the latest sample's own. Where that completes
    five minutes, write these too.

    Returns how many minutes were written, over all clusters.
    """
    written = 0
    for n in news:
        end = until or minute_of(n.as_of)
        if end <= n.open_from:
            continue
        for table, rows in ((MINUTES, minutes.pairs), (WATERMARK_MINUTES, minutes.watermarks)):
            finished = rows.where((F.col("cluster") == n.cluster) & (F.col("minute") < F.lit(end)))
            write.replace_between(finished, lake, table, n.cluster, n.open_from, end)
        start, end_of_five = five_minutes_of(n.open_from), five_minutes_of(end)
        if start < end_of_five:
            for table, coarse, merged in (
                (MINUTES, FIVE_MINUTES, five_minutes),
                (WATERMARK_MINUTES, WATERMARK_FIVE_MINUTES, watermark_five_minutes),
            ):
                rows = read.since(session, lake, table, start, end_of_five)
                rows = rows.where((F.col("cluster") == n.cluster) & (F.col("minute") >= F.lit(start)))
                write.replace_between(merged(rows), lake, coarse, n.cluster, start, end_of_five)
        written += int((end - n.open_from) / timedelta(minutes=1))
    return written
