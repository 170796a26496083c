"""Making minutes in slices of time, each in one task that reads its own files.

A minute depends on its own samples and on the one before: cut by time, nothing has to be moved between tasks. A task
reads a slice's samples and hands them to :mod:`lagwise_spark.transforms.array_minutes`: from a disk by itself, from
elsewhere as rows that Spark has read.
"""

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import reduce

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lagwise.platform.errors import MissingRequirement
from lagwise.tables.minutes import MINUTES, WATERMARK_MINUTES
from lagwise.tables.raw import COMMITS, WATERMARKS
from lagwise.tables.schema import Table
from lagwise.tables.store import Lake
from lagwise_spark.frames import empty, struct_type
from lagwise_spark.jobs import read
from lagwise_spark.transforms import array_minutes, raw_files
from lagwise_spark.transforms.array_minutes import OF_COMMITS, OF_ENDS, Span
from lagwise_spark.transforms.raw_files import Files

# Executors of a cluster have Python, but nothing of ours.
for module in (array_minutes, raw_files):
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]  # pyspark leaves it untyped

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
    """A cluster's minutes in [start, until), and the ``finished`` samples that they are made of, with those of the gap
    before and the last one before that. ``samples_per_second`` are those of all group-partitions together."""

    cluster: str
    start: datetime
    until: datetime
    gap: timedelta
    samples_per_second: float
    finished: Sequence[read.FinishedSample]


@contextmanager
def python_of_executors(work: str, packages: str) -> Iterator[None]:
    """Raises MissingRequirement where it turns out meanwhile that the executors' Python cannot do this work, for which
    it needs these packages."""
    try:
        yield
    except Exception as error:
        if any(sign in str(error) for sign in _LACKING):
            raise MissingRequirement(
                f"{work} needs Python {sys.version_info.major}.{sys.version_info.minor} with {packages} on Spark's "
                "executors: install them there, and name that Python in analysis.spark.conf as spark.pyspark.python"
            ) from error
        raise


def minutes(session: SparkSession, lake: Lake, stretch: Stretch) -> DataFrame:
    """Rows of `minutes`."""
    raw = {COMMITS: OF_COMMITS, WATERMARKS: OF_ENDS}
    return _in_slices(session, lake, stretch, raw, array_minutes.commit_minutes, MINUTES)


def watermark_minutes(session: SparkSession, lake: Lake, stretch: Stretch) -> DataFrame:
    """Rows of `watermark_minutes`."""
    return _in_slices(session, lake, stretch, {WATERMARKS: OF_ENDS}, array_minutes.watermark_minutes, WATERMARK_MINUTES)


def _in_slices(
    session: SparkSession,
    lake: Lake,
    stretch: Stretch,
    raw: Mapping[Table, Sequence[str]],
    function: _Function,
    table: Table,
) -> DataFrame:
    made = struct_type(pa.schema([field for field in table.arrow if field.name not in ("cluster", "day")]))
    parts = []
    for start, until in slices(stretch, session.sparkContext.defaultParallelism):
        samples = read.around(stretch.finished, start - stretch.gap, until)
        # Those of the gap alone make no minute.
        if not any(s.finished_at >= start for s in samples):
            continue
        of_slice = (until - start + stretch.gap).total_seconds() * stretch.samples_per_second
        tasks = round(of_slice / SAMPLES_PER_TASK)
        span = Span(_micros(start), _micros(until), stretch.gap.total_seconds())
        if tasks <= 1 and "://" not in lake.uri:
            files = _files(lake, stretch.cluster, samples, raw)
            parts.append(session.range(0, 1, 1, 1).mapInArrow(_over_files(function, span, files), made))
            continue
        rows = _rows(session, lake, stretch.cluster, samples, raw)
        # Even the shortest slice of a very large cluster is too much for a task: then rows are moved after all.
        together = rows.coalesce(1) if tasks <= 1 else rows.repartition(tasks, "topic", "partition")
        parts.append(together.mapInArrow(_over(function, span), made))
    if not parts:
        return empty(session, table).drop("day")
    return reduce(DataFrame.union, parts).withColumn("cluster", F.lit(stretch.cluster))


def _rows(
    session: SparkSession,
    lake: Lake,
    cluster: str,
    samples: Sequence[read.FinishedSample],
    raw: Mapping[Table, Sequence[str]],
) -> DataFrame:
    """The samples' rows of these tables, read by Spark, which knows how to reach object storage."""
    of_each = [read.of_finished(session, lake, table, cluster, samples).select(*names) for table, names in raw.items()]
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), of_each)


def _files(
    lake: Lake, cluster: str, samples: Sequence[read.FinishedSample], raw: Mapping[Table, Sequence[str]]
) -> Files:
    """The same rows as files on a disk, which Python reads by itself: handing them over from Spark, row by row, would
    cost several times as much as all that is done with them."""
    paths = [(p, tuple(names)) for table, names in raw.items() for p in read.files_of_finished(lake, table, samples)]
    columns = {name: table.arrow.field(name).type for table, names in raw.items() for name in names}
    return Files(tuple(paths), cluster, frozenset(s.sample_id for s in samples), columns)


def _over_files(function: _Function, span: Span, files: Files) -> Callable[..., Iterator[pa.RecordBatch]]:
    def made(nothing: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in nothing:
            yield from function(raw_files.batches(files), span)

    return made


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
