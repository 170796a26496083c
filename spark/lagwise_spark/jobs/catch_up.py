"""Making the minutes of a longer stretch of time: the first start, an outage of the analysis, a late delivery.

The same minutes as a round makes, but planned for throughput. Minutes are made from arrays, in slices of time that
need nothing from each other (:mod:`lagwise_spark.jobs.slices`); and the tables are written side by side, so that the
cores have work while one of the writes is being planned or committed.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from pyspark.sql import DataFrame, SparkSession

from lagwise.domain.history import gap_seconds
from lagwise.tables.minutes import FIVE_MINUTES, MINUTES, WATERMARK_FIVE_MINUTES, WATERMARK_MINUTES
from lagwise.tables.schema import Table
from lagwise.tables.store import Lake
from lagwise_spark.jobs import read, slices, write
from lagwise_spark.jobs.minutes import merge_by_five
from lagwise_spark.jobs.progress import News, minute_of, whole_hours_until
from lagwise_spark.jobs.read import FinishedSample
from lagwise_spark.jobs.slices import Stretch
from lagwise_spark.tuning import tune_for_catching_up

_LOG = logging.getLogger("lagwise.spark")

#: What is open is made in one round together with its verdicts up to so many rows of `minutes`, …
ROWS_PER_ROUND = 50_000
#: … or so many minutes; beyond both, it is caught up on first, in stretches of at most so many rows, …
MINUTES_PER_ROUND = 5
ROWS_PER_STRETCH = 1_200_000
#: … and of so many minutes at most and at least.
LONGEST_STRETCH_MINUTES = 240
SHORTEST_STRETCH_MINUTES = 5
#: So many of them are merged by five together: each merge is planned and committed anew.
STRETCHES_PER_MERGE = 4

_WRITTEN = (MINUTES, WATERMARK_MINUTES, FIVE_MINUTES, WATERMARK_FIVE_MINUTES)


def catch_up(session: SparkSession, lake: Lake, news: Sequence[News], explicit: dict[str, str]) -> list[News]:
    """Finish what is open where it is more than a round should make. Returns the news with what is left open.

    ``explicit`` are the settings that tuning leaves alone.
    """
    left = []
    for n in news:
        end = minute_of(n.as_of)
        if is_a_round(n):
            left.append(n)
            continue
        parts = list(stretches(n.open_from, end, n.group_partitions))
        finished = _finished_samples(lake, n, end)
        # Once for all of them: the lanes read the settings too, whenever they come to it.
        tune_for_catching_up(session, _samples_in(n, *parts[0]), explicit)
        with slices.python_of_executors("catching up", "numpy and pyarrow"), _lanes() as lanes:
            for some in _groups(parts, STRETCHES_PER_MERGE):
                for start, until in some:
                    _LOG.info("%s: catching up, making the minutes from %s to %s", n.cluster, start, until)
                    _finish(session, lake, replace(n, open_from=start), until, finished, lanes)
                _merge(session, lake, n.cluster, some[0][0], some[-1][1], lanes)
        left.append(replace(n, open_from=end))
    return left


def is_a_round(n: News) -> bool:
    """Whether what is open is no more than a round makes together with its verdicts. Hours that are whole by now must
    have all their minutes before anything is judged."""
    if n.open_from < whole_hours_until(n.as_of):
        return False
    minutes = (n.as_of - n.open_from) / timedelta(minutes=1)
    return minutes <= MINUTES_PER_ROUND or minutes * n.group_partitions <= ROWS_PER_ROUND


def stretches(start: datetime, end: datetime, group_partitions: int) -> Iterator[tuple[datetime, datetime]]:
    """The time from ``start`` to ``end`` in parts of bounded size."""
    minutes = ROWS_PER_STRETCH // max(1, group_partitions)
    length = timedelta(minutes=min(LONGEST_STRETCH_MINUTES, max(SHORTEST_STRETCH_MINUTES, minutes)))
    while start < end:
        until = min(end, start + length)
        yield start, until
        start = until


def _groups(parts: Sequence[tuple[datetime, datetime]], size: int) -> Iterator[Sequence[tuple[datetime, datetime]]]:
    for first in range(0, len(parts), size):
        yield parts[first : first + size]


def _finished_samples(lake: Lake, n: News, end: datetime) -> list[FinishedSample]:
    """The samples that the minutes up to ``end`` are made of. They are looked up once for all stretches: a day of them
    is thousands of files of a row each."""
    start = n.open_from - timedelta(seconds=gap_seconds(n.interval_seconds))
    # What happened during an outage shows between the last sample before it and the first one after it.
    last = read.last_finished_sample(lake, n.cluster, start)
    return [*last, *(s for s in read.finished_samples(lake, start, end) if s.cluster == n.cluster)]


def _samples_in(n: News, start: datetime, until: datetime) -> int:
    """About how many committed offsets were sampled meanwhile."""
    return round((until - start).total_seconds() / n.interval_seconds * n.group_partitions)


@dataclass(frozen=True, slots=True)
class _Lanes:
    """A thread for each table that is written: two writes of one table would be in each other's way."""

    of: Mapping[str, ThreadPoolExecutor]
    #: The minutes and the five minutes that are still being written.
    minutes: list[Future[None]]
    five_minutes: list[Future[None]]

    def wait_for(self, writes: list[Future[None]]) -> None:
        """Until these are done. Raises what any of them died of."""
        while writes:
            writes.pop(0).result()


@contextmanager
def _lanes() -> Iterator[_Lanes]:
    with ExitStack() as ends:
        lanes = _Lanes(
            {table.name: ends.enter_context(ThreadPoolExecutor(1, table.name)) for table in _WRITTEN}, [], []
        )
        yield lanes
        lanes.wait_for(lanes.minutes)
        lanes.wait_for(lanes.five_minutes)


def _finish(
    session: SparkSession, lake: Lake, n: News, until: datetime, finished: Sequence[FinishedSample], lanes: _Lanes
) -> None:
    """Have one stretch written; when this returns, ``lanes`` are at it."""
    start, gap = n.open_from, timedelta(seconds=gap_seconds(n.interval_seconds))
    its = read.around(finished, start - gap, until)
    stretch = Stretch(n.cluster, start, until, gap, n.group_partitions / n.interval_seconds, its)

    # Planned, and its files looked up, while the stretch before is being written.
    pairs, ends = slices.minutes(session, lake, stretch), slices.watermark_minutes(session, lake, stretch)

    def write_minutes(rows: DataFrame, table: Table) -> None:
        write.replace_between(rows, lake, table, n.cluster, start, until)

    lanes.wait_for(lanes.minutes)
    for rows, table in ((ends, WATERMARK_MINUTES), (pairs, MINUTES)):
        lanes.minutes.append(lanes.of[table.name].submit(write_minutes, rows, table))


def _merge(session: SparkSession, lake: Lake, cluster: str, start: datetime, until: datetime, lanes: _Lanes) -> None:
    """Have the minutes of some stretches merged by five, once they are written."""
    written = tuple(lanes.minutes)

    def write_by_five(table: Table, coarse: Table) -> None:
        for write_of_minutes in written:
            write_of_minutes.result()
        merge_by_five(session, lake, cluster, start, until, table, coarse)

    for table, coarse in ((WATERMARK_MINUTES, WATERMARK_FIVE_MINUTES), (MINUTES, FIVE_MINUTES)):
        lanes.five_minutes.append(lanes.of[coarse.name].submit(write_by_five, table, coarse))
