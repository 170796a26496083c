"""Small tables from the driver into Spark and back, with the types that the tables declare."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from lagwise.tables.schema import TIMESTAMP, Table

CONTEXT = pa.schema(
    {
        "cluster": pa.string(),
        "sample_id": pa.string(),
        "as_of": TIMESTAMP,
        "interval_seconds": pa.float64(),
        "gap_seconds": pa.float64(),
        "lag_objective_seconds": pa.float64(),
        "risk_horizon_seconds": pa.float64(),
        "minimum_span_seconds": pa.float64(),
        "offsets_retention_seconds": pa.float64(),
        # The first minute that is made from raw samples; earlier ones are read from `minutes`.
        "open_from": TIMESTAMP,
        # The first minute that is read from `minutes`; earlier ones are read from `five_minutes`.
        "fine_from": TIMESTAMP,
    }
)
OBJECTIVES = pa.schema({"cluster": pa.string(), "group": pa.string(), "own_lag_objective_seconds": pa.float64()})


def struct_type(schema: pa.Schema) -> StructType:
    """The Spark type of an Arrow schema."""
    return from_arrow_schema(schema, prefer_timestamp_ntz=False)


def frame(session: SparkSession, rows: pa.Table) -> DataFrame:
    """An Arrow table as a DataFrame. Meant for thousands of rows, not for millions."""
    schema = struct_type(rows.schema)
    # Spark's conversion chokes on columns without chunks, which is how an empty result comes, and silently leaves out
    # all that follows an empty chunk.
    return session.createDataFrame(rows.combine_chunks() if rows.num_rows else [], schema=schema)


def contexts_frame(session: SparkSession, rows: Sequence[Mapping[str, Any]]) -> DataFrame:
    """One row per cluster: its latest sample, and what verdicts go by (see :class:`lagwise.domain.status.Policy`)."""
    known = [{name: row.get(name) for name in CONTEXT.names} for row in rows]
    return frame(session, pa.Table.from_pylist(known, schema=CONTEXT))


def objectives_frame(session: SparkSession, objectives: Mapping[tuple[str, str], float]) -> DataFrame | None:
    """One row per group that has a lag objective of its own; None where none has, which needs no join."""
    rows = [dict(zip(OBJECTIVES.names, (*group, seconds), strict=True)) for group, seconds in objectives.items()]
    return frame(session, pa.Table.from_pylist(rows, schema=OBJECTIVES)) if rows else None


def empty(session: SparkSession, table: Table) -> DataFrame:
    """No rows of a table."""
    return session.createDataFrame([], schema=struct_type(table.arrow))


def materialised(rows: DataFrame) -> DataFrame:
    """The same rows, computed now and held by the executors, with a plan that starts there.

    A round is many small queries over the same few results: planning each from the raw files again would cost more
    than computing it. The rows are held until :func:`freed_afterwards` frees them.
    """
    return rows.localCheckpoint(eager=True)


@contextmanager
def freed_afterwards(session: SparkSession) -> Iterator[None]:
    """Free at the end what :func:`materialised` has come to hold meanwhile.

    Left to itself, Spark frees it when the JVM's collector finds that nothing refers to it any more. By then the memory
    is full of earlier rounds, and what is needed has been moved to disk.
    """
    context = session.sparkContext._jsc  # pyspark has no words for this, though Spark has
    before = set(context.getPersistentRDDs())
    try:
        yield
    finally:
        for number, held in context.getPersistentRDDs().items():
            # Those that are not checkpoints are Delta's own, worth keeping from round to round.
            if number not in before and held.isCheckpointed():
                held.unpersist(False)
