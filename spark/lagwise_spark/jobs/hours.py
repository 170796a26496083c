"""Making hours, and of these the part of a day that lies behind: once an hour, when another one is whole."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lagwise.domain.verdicts.samples import gap_seconds
from lagwise.domain.verdicts.windows import HOURS_OF_DAY
from lagwise.tables.capacity import TOPIC_HOURS
from lagwise.tables.minutes import DAYS, FIVE_MINUTES, HOURS, WATERMARK_FIVE_MINUTES, WATERMARK_MINUTES
from lagwise.tables.store import Lake
from lagwise_spark.jobs import read, write
from lagwise_spark.jobs.progress import News, whole_hours_until
from lagwise_spark.jobs.round_inputs import micros_of, ranges_of_round
from lagwise_spark.tasks.hours import DayUntil, HourSpan, made_days, made_hours
from lagwise_spark.tasks.lake_files import LakeFiles
from lagwise_spark.tasks.running import gathered
from lagwise_spark.transforms.topic_hours import topic_hours

#: Hours that are made at once, by the number of their rows.
ROWS_AT_ONCE = 500_000


def finish_hours(session: SparkSession, lake: Lake, news: Sequence[News]) -> list[News]:
    """Write the hours that are whole and not yet written, or that late samples have opened again, and replace the rows
    of `days`. The minutes and five minutes of these clusters must have been written. Returns their news with the hours
    that are left to later rounds."""
    left = [replace(n, hours_from=max(n.hours_from, whole_hours_until(n.as_of))) for n in news]
    rolled = False
    for n, after in zip(news, left, strict=True):
        start, until = n.hours_from, after.hours_from
        if start == until:
            continue
        ranges = ranges_of_round(lake, [n], session.sparkContext.defaultParallelism)
        for since, to in _parts(start, until, n.group_partitions):
            work = partial(made_hours, _files(lake, since, to), HourSpan(n.cluster, micros_of(since), micros_of(to)))
            made = gathered(session, work, [within.of(n.cluster) for within in ranges])
            write.replace_spans(lake, HOURS, {n.cluster: (since, to)}, made[HOURS.name])
        # The first step of an hour begins with the last sample before it.
        gap = gap_seconds(n.interval_seconds)
        early = start - timedelta(seconds=gap)
        ends = read.within(
            session, read.stretch(session, lake, WATERMARK_MINUTES, early, until), n.cluster, early, until
        )
        of_topics = topic_hours(ends, gap).where(F.col("hour") >= F.lit(start))
        write.replace_between(of_topics, lake, TOPIC_HOURS, n.cluster, start, until)
        rolled = True
    if rolled:
        write.replace_small(lake, DAYS, _days(session, lake, news))
    return left


def _parts(start: datetime, until: datetime, group_partitions: int) -> Iterator[tuple[datetime, datetime]]:
    length = timedelta(hours=max(1, ROWS_AT_ONCE // max(1, group_partitions)))
    while start < until:
        yield start, min(until, start + length)
        start += length


def _files(lake: Lake, start: datetime, until: datetime) -> LakeFiles:
    paths = {FIVE_MINUTES.name: lake.files(FIVE_MINUTES, since=start, until=until)}
    return LakeFiles(lake.uri, lake.storage_options, paths)


def _days(session: SparkSession, lake: Lake, news: Sequence[News]) -> pa.Table:
    """The rows of `days`."""
    days = [DayUntil(n.cluster, micros_of(whole_hours_until(n.as_of)), n.interval_seconds) for n in news]
    start = min(whole_hours_until(n.as_of) for n in news) - timedelta(hours=HOURS_OF_DAY)
    paths = {table.name: lake.files(table, since=start) for table in (HOURS, WATERMARK_FIVE_MINUTES)}
    ranges = ranges_of_round(lake, news, session.sparkContext.defaultParallelism)
    work = partial(made_days, LakeFiles(lake.uri, lake.storage_options, paths), days)
    return gathered(session, work, ranges)[DAYS.name]
