"""Making hours, and of these the part of a day that lies behind: once an hour, when another one is whole."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

import pyarrow as pa
from pyspark import SparkContext

from lagwise.domain.verdicts.samples import gap_seconds
from lagwise.domain.verdicts.windows import HOURS_OF_DAY
from lagwise.tables.capacity import TOPIC_HOURS
from lagwise.tables.minutes import DAYS, FIVE_MINUTES, HOURS, WATERMARK_FIVE_MINUTES, WATERMARK_MINUTES
from lagwise.tables.store import Lake
from lagwise_spark.jobs import read, write
from lagwise_spark.jobs.progress import News, micros_of, whole_hours_until
from lagwise_spark.jobs.round_inputs import PAIRS_PER_TASK, ranges_of_round
from lagwise_spark.tasks.hours import DayUntil, HourSlice, made_days, made_hours
from lagwise_spark.tasks.lake_files import KeyRange
from lagwise_spark.tasks.running import gathered

#: Hours that are made at once, by the number of their rows.
ROWS_AT_ONCE = 500_000


def finish_hours(context: SparkContext, lake: Lake, news: Sequence[News]) -> list[News]:
    """Write the hours that are whole and not yet written, or that late samples have opened again, and replace the rows
    of `days`. The minutes and five minutes of these clusters must have been written. Returns their news with the hours
    that are left to later rounds."""
    left = [replace(n, hours_from=max(n.hours_from, whole_hours_until(n.as_of))) for n in news]
    rolled = False
    for n, after in zip(news, left, strict=True):
        start, until = n.hours_from, after.hours_from
        if start == until:
            continue
        cores = context.defaultParallelism
        ranges = [w.of(n.cluster) for w in ranges_of_round(lake, [n], cores, whole_topics=True)]
        for since, to in _parts(start, until, ROWS_AT_ONCE, n):
            made = gathered(context, made_hours, list(_slices(lake, n, since, to, ranges)))
            for table in (HOURS, TOPIC_HOURS):
                write.replace_spans(lake, table, {n.cluster: (since, to)}, made[table.name])
        rolled = True
    if rolled:
        lake.replace(DAYS, _days(context, lake, news))
    return left


def _parts(start: datetime, until: datetime, rows: int, n: News) -> Iterator[tuple[datetime, datetime]]:
    """The time from ``start`` to ``until`` in parts of whole hours, with about so many rows of `hours` each."""
    length = timedelta(hours=max(1, rows // max(1, n.group_partitions)))
    while start < until:
        yield start, min(until, start + length)
        start += length


def _slices(lake: Lake, n: News, start: datetime, until: datetime, ranges: Sequence[KeyRange]) -> Iterator[HourSlice]:
    gap = gap_seconds(n.interval_seconds)
    for since, to in _parts(start, until, PAIRS_PER_TASK, n):
        before = since - timedelta(seconds=gap)
        files = read.files_of(lake, {FIVE_MINUTES: (since, to), WATERMARK_MINUTES: (before, to)})
        for within in ranges:
            yield HourSlice(n.cluster, micros_of(since), micros_of(to), gap, files, within)


def _days(context: SparkContext, lake: Lake, news: Sequence[News]) -> pa.Table:
    """The rows of `days`."""
    days = [DayUntil(n.cluster, micros_of(whole_hours_until(n.as_of))) for n in news]
    start = min(whole_hours_until(n.as_of) for n in news) - timedelta(hours=HOURS_OF_DAY)
    theirs = {table: lake.files(table, since=start) for table in (HOURS, WATERMARK_FIVE_MINUTES)}
    files = read.files_of(lake, {}, theirs)
    ranges = ranges_of_round(lake, news, context.defaultParallelism)
    work = partial(made_days, files, days)
    return gathered(context, work, ranges)[DAYS.name]
