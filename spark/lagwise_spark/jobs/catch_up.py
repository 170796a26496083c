"""Making the minutes of a longer stretch of time: the first start, an outage of the analysis, a late delivery.

The same minutes as a round makes, but planned for throughput. Raw samples are moved once, by topic-partition, which
serves the join of commits with watermarks and everything after it; nothing of a stretch's time is a constant of a
query, so that every stretch runs the compiled code of the first; and the tables are written side by side, so that the
cores have work while one of the writes is being planned or committed.
"""

import logging
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lagwise.domain.history import gap_seconds
from lagwise.tables.analysis import FIVE_MINUTES, MINUTES, WATERMARK_FIVE_MINUTES, WATERMARK_MINUTES
from lagwise.tables.raw import COMMITS, WATERMARKS
from lagwise.tables.schema import Table
from lagwise.tables.store import Lake
from lagwise_spark.frames import contexts_frame, frame
from lagwise_spark.jobs import read, write
from lagwise_spark.jobs.minutes import merge_by_five, within
from lagwise_spark.jobs.progress import News, minute_of
from lagwise_spark.transforms.buckets import commit_minutes, watermark_minutes, with_lag
from lagwise_spark.tuning import tune_for_catching_up

_LOG = logging.getLogger("lagwise.spark")

#: What minutes are made of.
_OF_COMMITS = ("sample_id", "sampled_at", "group", "topic", "partition", "committed", "next_record")
_OF_WATERMARKS = (
    "sample_id",
    "sampled_at",
    "topic",
    "partition",
    "topic_id",
    "log_start",
    "high_watermark",
    "last_stable",
)

#: What is open is made in one round together with its verdicts up to so many rows of `minutes`, …
ROWS_PER_ROUND = 50_000
#: … or so many minutes; beyond both, it is caught up on first, in stretches of at most so many rows, …
MINUTES_PER_ROUND = 5
ROWS_PER_STRETCH = 1_200_000
#: … and of so many minutes at most and at least.
LONGEST_STRETCH_MINUTES = 240
SHORTEST_STRETCH_MINUTES = 5


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
        # Once for all of them: the lanes read the settings too, whenever they come to it.
        tune_for_catching_up(session, _samples_in(n, *parts[0]), explicit)
        with _lanes() as lanes:
            for start, until in parts:
                _LOG.info("%s: catching up, making the minutes from %s to %s", n.cluster, start, until)
                _finish(session, lake, replace(n, open_from=start), until, lanes)
        left.append(replace(n, open_from=end))
    return left


def is_a_round(n: News) -> bool:
    """Whether what is open is no more than a round makes together with its verdicts."""
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


def _samples_in(n: News, start: datetime, until: datetime) -> int:
    """About how many committed offsets were sampled meanwhile."""
    return round((until - start).total_seconds() / n.interval_seconds * n.group_partitions)


@dataclass(frozen=True, slots=True)
class _Lanes:
    """A thread for each table that is written: two writes of one table would be in each other's way."""

    pairs: ThreadPoolExecutor
    watermarks: ThreadPoolExecutor
    by_five: ThreadPoolExecutor
    #: What the stretch before is still busy with.
    unfinished: list[Future[None]]

    def wait(self) -> None:
        """Until all of that is done. Raises what any of it died of."""
        while self.unfinished:
            self.unfinished.pop(0).result()


@contextmanager
def _lanes() -> Iterator[_Lanes]:
    with ExitStack() as ends:
        pairs, watermarks, by_five = (
            ends.enter_context(ThreadPoolExecutor(1, name)) for name in ("minutes", "watermarks", "by-five")
        )
        lanes = _Lanes(pairs, watermarks, by_five, [])
        yield lanes
        lanes.wait()


def _finish(session: SparkSession, lake: Lake, n: News, until: datetime, lanes: _Lanes) -> None:
    """Write one stretch; what is left to do of it when this returns is in ``lanes.unfinished``."""
    start, gap = n.open_from, gap_seconds(n.interval_seconds)
    before = start - timedelta(seconds=gap)
    ids = read.finished_samples(lake, before, until)
    contexts = contexts_frame(session, [{"cluster": n.cluster, "gap_seconds": gap}])

    def raw(table: Table) -> DataFrame:
        # A sample's watermarks are read after its commits, and may lie in the next stretch.
        rows = read.stretch(session, lake, table, before - read.LONGEST_SAMPLE, until + read.LONGEST_SAMPLE, ids=ids)
        return rows.where(F.col("cluster") == n.cluster)

    def write_inside(rows: DataFrame, table: Table) -> None:
        write.replace_between(within(session, rows, n.cluster, start, until), lake, table, n.cluster, start, until)

    def write_by_five(finished: Future[None], table: Table, coarse: Table) -> None:
        finished.result()
        merge_by_five(session, lake, n.cluster, start, until, table, coarse)

    read_names = read.names_in_commits(lake, before - read.LONGEST_SAMPLE, until + read.LONGEST_SAMPLE)
    names = _Names(session, read_names, ids)
    with_ends = with_lag(
        _together(names.numbered(raw(COMMITS).select(*_OF_COMMITS)), n.cluster),
        _together(names.numbered(raw(WATERMARKS).select(*_OF_WATERMARKS)), n.cluster).hint("shuffle_hash"),
    )
    of_pairs = lanes.pairs.submit(write_inside, names.named(commit_minutes(with_ends, contexts)), MINUTES)
    ends = _together(raw(WATERMARKS).select(*_OF_WATERMARKS), n.cluster)
    of_ends = lanes.watermarks.submit(write_inside, watermark_minutes(ends), WATERMARK_MINUTES)
    lanes.wait()
    of_pairs.result()
    lanes.unfinished.extend(
        (
            lanes.by_five.submit(write_by_five, of_ends, WATERMARK_MINUTES, WATERMARK_FIVE_MINUTES),
            lanes.by_five.submit(write_by_five, of_pairs, MINUTES, FIVE_MINUTES),
        )
    )


def _together(rows: DataFrame, cluster: str) -> DataFrame:
    """Rows of a topic-partition in one task. The cluster is the same in all of them, and need not be moved."""
    return rows.repartition("topic", "partition").withColumn("cluster", F.lit(cluster))


class _Names:
    """Numbers in the place of names while rows are moved, sorted and compared: they are shorter, and compared at once.

    A group is numbered anew for each of its topics, so that one look-up tells both.
    """

    def __init__(self, session: SparkSession, groups_and_topics: pa.Table, sample_ids: Sequence[str]) -> None:
        topics = groups_and_topics["topic"].unique()
        of_topic = pc.index_in(groups_and_topics["topic"], topics)
        of_group = pa.array(range(groups_and_topics.num_rows), pa.int32())
        pairs = groups_and_topics.append_column("group_number", of_group).append_column("topic_number", of_topic)
        self._pairs = F.broadcast(frame(session, pairs))
        self._topics = F.broadcast(_numbers(session, "topic", topics))
        self._samples = F.broadcast(_numbers(session, "sample_id", pa.array(sample_ids, pa.string())))

    def numbered(self, rows: DataFrame) -> DataFrame:
        """Numbers instead of names in the columns sample_id, group (where there is one) and topic."""
        of_pairs = "group" in rows.columns
        names = ["group", "topic"] if of_pairs else ["topic"]
        joined = rows.join(self._pairs if of_pairs else self._topics, names).join(self._samples, "sample_id")
        numbers = {name: F.col(f"{name}_number") for name in [*names, "sample_id"]}
        return joined.select(*[numbers.get(name, F.col(name)).alias(name) for name in rows.columns])

    def named(self, rows: DataFrame) -> DataFrame:
        """The names again, in the columns group and topic."""
        numbered = rows.withColumnRenamed("group", "group_number").drop("topic")
        return numbered.join(self._pairs.drop("topic_number"), "group_number").drop("group_number")


def _numbers(session: SparkSession, name: str, values: pa.Array) -> DataFrame:
    numbers = pa.array(range(len(values)), pa.int32())
    return frame(session, pa.table({name: values, f"{name}_number": numbers}))
