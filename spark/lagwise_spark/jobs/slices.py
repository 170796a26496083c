"""Making minutes in slices of time, each in one task that reads its own files.

A minute depends on its own samples and on the one before: cut by time, nothing has to be moved between tasks. A task
reads a slice's samples in the JVM and hands them to :mod:`lagwise_spark.transforms.array_minutes`.
"""

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import reduce

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lagwise.errors import MissingRequirement
from lagwise.tables.analysis import MINUTES, WATERMARK_MINUTES
from lagwise.tables.raw import COMMITS, WATERMARKS
from lagwise.tables.schema import Table
from lagwise.tables.store import Lake
from lagwise_spark.frames import empty, struct_type
from lagwise_spark.jobs import read
from lagwise_spark.transforms import array_minutes
from lagwise_spark.transforms.array_minutes import OF_COMMITS, OF_ENDS, Span

# Executors of a cluster have Python, but nothing of ours.
cloudpickle.register_pickle_by_value(array_minutes)  # type: ignore[no-untyped-call]

#: About how many samples a task works on: with 1.4 million its Python process takes 320 MiB.
SAMPLES_PER_TASK = 1_500_000
#: A slice reads the samples of the gap before it, too: shorter ones would read those too often.
SHORTEST_SLICE = timedelta(minutes=5)

_Function = Callable[[Iterable[pa.RecordBatch], Span], Iterator[pa.RecordBatch]]

#: What Spark says where there is no such Python.
_LACKING = ("Cannot run program", "ModuleNotFoundError", "PACKAGE_NOT_INSTALLED", "PYTHON_VERSION_MISMATCH")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Stretch:
    """A cluster's minutes in [start, until), and the samples that they are made of. ``samples_per_second`` are those
    of all group-partitions together."""

    cluster: str
    start: datetime
    until: datetime
    gap: timedelta
    samples_per_second: float
    finished: Sequence[read.FinishedSample]


@contextmanager
def python_of_executors() -> Iterator[None]:
    """Raises MissingRequirement where it turns out meanwhile that the executors' Python cannot do the work."""
    try:
        yield
    except Exception as error:
        if any(sign in str(error) for sign in _LACKING):
            raise MissingRequirement(
                f"catching up needs Python {sys.version_info.major}.{sys.version_info.minor} with numpy and pyarrow on "
                "Spark's executors: install them there, and name that Python in analysis.spark.conf as "
                "spark.pyspark.python"
            ) from error
        raise


def minutes(session: SparkSession, lake: Lake, stretch: Stretch) -> DataFrame:
    """Rows of `minutes`."""

    def both(samples: Sequence[read.FinishedSample]) -> DataFrame:
        commits = read.of_finished(session, lake, COMMITS, stretch.cluster, samples).select(*OF_COMMITS)
        ends = read.of_finished(session, lake, WATERMARKS, stretch.cluster, samples).select(*OF_ENDS)
        return commits.unionByName(ends, allowMissingColumns=True)

    return _in_slices(session, stretch, both, array_minutes.commit_minutes, MINUTES)


def watermark_minutes(session: SparkSession, lake: Lake, stretch: Stretch) -> DataFrame:
    """Rows of `watermark_minutes`."""

    def ends(samples: Sequence[read.FinishedSample]) -> DataFrame:
        return read.of_finished(session, lake, WATERMARKS, stretch.cluster, samples).select(*OF_ENDS)

    return _in_slices(session, stretch, ends, array_minutes.watermark_minutes, WATERMARK_MINUTES)


def _in_slices(
    session: SparkSession,
    stretch: Stretch,
    rows_of: Callable[[Sequence[read.FinishedSample]], DataFrame],
    function: _Function,
    table: Table,
) -> DataFrame:
    made = pa.schema([field for field in table.arrow if field.name not in ("cluster", "day")])
    parts = []
    for start, until in slices(stretch, session.sparkContext.defaultParallelism):
        samples = [s for s in stretch.finished if s.finished_at >= start - stretch.gap and s.started_at < until]
        if not samples:
            continue
        of_slice = (until - start + stretch.gap).total_seconds() * stretch.samples_per_second
        tasks = round(of_slice / SAMPLES_PER_TASK)
        rows = rows_of(samples)
        # Even the shortest slice of a very large cluster is too much for a task: then rows are moved after all.
        together = rows.coalesce(1) if tasks <= 1 else rows.repartition(tasks, "topic", "partition")
        span = Span(_micros(start), _micros(until), stretch.gap.total_seconds())
        parts.append(together.mapInArrow(_over(function, span), struct_type(made)))
    if not parts:
        return empty(session, table).drop("day")
    return reduce(DataFrame.union, parts).withColumn("cluster", F.lit(stretch.cluster))


def _over(function: _Function, span: Span) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    return lambda batches: function(batches, span)


def slices(stretch: Stretch, cores: int) -> Iterator[tuple[datetime, datetime]]:
    """The time of a stretch in parts that are not too large for a task, as many as there are cores or a multiple."""
    seconds = (stretch.until - stretch.start).total_seconds()
    # As many for each core, so that none waits for another at the end.
    wanted = cores * max(1, math.ceil(seconds * stretch.samples_per_second / SAMPLES_PER_TASK / cores))
    length = max(SHORTEST_SLICE, timedelta(minutes=math.ceil(seconds / 60 / wanted)))
    start = stretch.start
    while start < stretch.until:
        until = min(start + length, stretch.until)
        yield start, until
        start = until


def _micros(at: datetime) -> int:
    return (at - _EPOCH) // timedelta(microseconds=1)
