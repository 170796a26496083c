"""Small tables from the driver into Spark and back, with the types that the tables declare."""

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from lagwise.tables.schema import Table


def struct_type(schema: pa.Schema) -> StructType:
    """The Spark type of an Arrow schema."""
    return from_arrow_schema(schema, prefer_timestamp_ntz=False)


def frame(session: SparkSession, rows: pa.Table) -> DataFrame:
    """An Arrow table as a DataFrame. Meant for thousands of rows, not for millions."""
    schema = struct_type(rows.schema)
    # Spark's conversion chokes on columns without chunks, which is how an empty result comes, and silently leaves out
    # all that follows an empty chunk.
    return session.createDataFrame(rows.combine_chunks() if rows.num_rows else [], schema=schema)


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
