"""Runs a function over pieces of work in Spark jobs, a task each, and gathers the tables that it makes."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import pyarrow as pa
from pyspark import SparkContext

from lagwise.platform.error_codes import ErrorCode
from lagwise.platform.errors import MissingRequirement
from lagwise_spark.tasks.error_text import reason_of

#: Tasks of a job, at least. What a job made lies in the JVM as a whole before Python gets it: 20 MB of a task that
#: finished five minutes of 20,000 group-partitions. (There are as many as cores, or a multiple.)
TASKS_OF_JOB = 16

T = TypeVar("T")
#: What is made of a piece of work: rows, with the name of their table.
Made = Iterator[tuple[str, pa.Table]]

_COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4")

#: What Spark says where the executors lack Python, or what our code needs there.
_LACKING = ("Cannot run program", "ModuleNotFoundError", "PACKAGE_NOT_INSTALLED", "PYTHON_VERSION_MISMATCH")


def gathered(
    context: SparkContext,
    work: Callable[[T], Made],
    pieces: Sequence[T],
    *,
    name: str = "the analysis",
    packages: str = "numpy, pyarrow and deltalake",
) -> dict[str, pa.Table]:
    """The rows that ``work`` makes of all pieces, by the name of their table.

    Raises MissingRequirement where the executors' Python cannot do it, which says under this name what it needs.
    """

    def run(piece: T) -> list[tuple[str, bytes]]:
        return [(table, _written(rows)) for table, rows in work(piece)]

    tables: dict[str, list[pa.Table]] = {}
    cores = context.defaultParallelism
    size = -(-TASKS_OF_JOB // cores) * cores
    with _python_of_executors(name, packages):
        for first in range(0, len(pieces), size):
            some = pieces[first : first + size]
            for table, rows in context.parallelize(some, len(some)).flatMap(run).collect():
                tables.setdefault(table, []).append(pa.ipc.open_stream(rows).read_all())
    return {table: pa.concat_tables(parts) for table, parts in tables.items()}


def echo(piece: pa.Table) -> Made:
    """The piece itself: the smallest work there is, to try whether Spark does any."""
    yield "echo", piece


@contextmanager
def _python_of_executors(name: str, packages: str) -> Iterator[None]:
    """Raises MissingRequirement where it turns out meanwhile that the executors' Python cannot do this work, for which
    it needs these packages."""
    try:
        yield
    except Exception as error:
        if any(sign in str(error) for sign in _LACKING):
            raise MissingRequirement(
                f"{name} needs Python {sys.version_info.major}.{sys.version_info.minor} with {packages} on Spark's "
                "executors: install them there, and name that Python in analysis.spark.conf as spark.pyspark.python "
                f"({reason_of(error)})",
                code=ErrorCode.EXECUTORS_INCOMPLETE,
            ) from error
        raise


def _written(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=_COMPRESSED) as stream:
        stream.write_table(rows)
    written: bytes = sink.getvalue().to_pybytes()
    return written
