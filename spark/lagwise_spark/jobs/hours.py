"""Making hours, and of these the part of a day that lies behind: once an hour, when another one is whole."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lagwise.domain.history import HOURS_OF_DAY, gap_seconds
from lagwise.tables.capacity import TOPIC_HOURS
from lagwise.tables.minutes import DAYS, FIVE_MINUTES, HOURS, WATERMARK_FIVE_MINUTES, WATERMARK_MINUTES
from lagwise.tables.store import Lake
from lagwise_spark.columns import GROUP_PARTITION
from lagwise_spark.jobs import read, write
from lagwise_spark.jobs.minutes import within
from lagwise_spark.jobs.progress import News, whole_hours_until
from lagwise_spark.transforms.coarser import hours
from lagwise_spark.transforms.day import whole_hours
from lagwise_spark.transforms.time_lag import resets
from lagwise_spark.transforms.topic_hours import topic_hours


def finish_hours(session: SparkSession, lake: Lake, news: Sequence[News], contexts: DataFrame) -> list[News]:
    """Write the hours that are whole and not yet written, or that late samples have opened again, and replace the rows
    of `days`. The minutes and five minutes of these clusters must have been written. Returns their news with the hours
    that are left to later rounds."""
    left = [replace(n, hours_from=max(n.hours_from, whole_hours_until(n.as_of))) for n in news]
    rolled = False
    for n, after in zip(news, left, strict=True):
        start, until = n.hours_from, after.hours_from
        if start == until:
            continue
        rows = within(session, read.stretch(session, lake, FIVE_MINUTES, start, until), n.cluster, start, until)
        write.replace_between(hours(_in_order(rows)), lake, HOURS, n.cluster, start, until)
        # The first step of an hour begins with the last sample before it.
        gap = gap_seconds(n.interval_seconds)
        early = start - timedelta(seconds=gap)
        ends = within(session, read.stretch(session, lake, WATERMARK_MINUTES, early, until), n.cluster, early, until)
        of_topics = topic_hours(ends, gap).where(F.col("hour") >= F.lit(start))
        write.replace_between(of_topics, lake, TOPIC_HOURS, n.cluster, start, until)
        rolled = True
    if rolled:
        start = min(whole_hours_until(n.as_of) for n in news) - timedelta(hours=HOURS_OF_DAY)
        recreated = read.since(session, lake, WATERMARK_FIVE_MINUTES, start).where(F.col("recreated_at").isNotNull())
        day = whole_hours(_in_order(read.since(session, lake, HOURS, start)), resets(recreated), contexts)
        write.replace(day, lake, DAYS)
    return left


def _in_order(rows: DataFrame) -> DataFrame:
    """The rows of a group-partition in one task, in order of time: sums of fractions come out the same to the last
    digit, on however many tasks."""
    return rows.repartition(*GROUP_PARTITION).sortWithinPartitions(*GROUP_PARTITION, "minute")


def days(session: SparkSession, lake: Lake) -> DataFrame:
    """The rows of `days`."""
    return session.read.format("delta").load(lake.location(DAYS))
