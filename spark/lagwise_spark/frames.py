"""Small tables from the driver into Spark and back, with the types that the tables declare."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from lagwise.tables.schema import TIMESTAMP, Table

CONTEXT = pa.schema(
    [
        pa.field("cluster", pa.string()),
        pa.field("sample_id", pa.string()),
        pa.field("as_of", TIMESTAMP),
        pa.field("interval_seconds", pa.float64()),
        pa.field("gap_seconds", pa.float64()),
        pa.field("lag_objective_seconds", pa.float64()),
        pa.field("risk_horizon_seconds", pa.float64()),
        pa.field("minimum_span_seconds", pa.float64()),
        pa.field("offsets_retention_seconds", pa.float64()),
        # The first minute that is made from raw samples; earlier ones are read from `minutes`.
        pa.field("open_from", TIMESTAMP),
        # The first minute that is read from `minutes`; earlier ones are read from `five_minutes`.
        pa.field("fine_from", TIMESTAMP),
    ]
)


def struct_type(schema: pa.Schema) -> StructType:
    """The Spark type of an Arrow schema."""
    return from_arrow_schema(schema, prefer_timestamp_ntz=False)


def frame(session: SparkSession, rows: pa.Table) -> DataFrame:
    """An Arrow table as a DataFrame. Meant for thousands of rows, not for millions."""
    schema = struct_type(rows.schema)
    # Spark's conversion chokes on columns without chunks, which is how an empty result comes.
    return session.createDataFrame(rows if rows.num_rows else [], schema=schema)


def contexts_frame(session: SparkSession, rows: Sequence[Mapping[str, Any]]) -> DataFrame:
    """One row per cluster: its latest sample, and what verdicts go by (see :class:`lagwise.domain.status.Policy`)."""
    known = [{name: row.get(name) for name in CONTEXT.names} for row in rows]
    return frame(session, pa.Table.from_pylist(known, schema=CONTEXT))


def empty(session: SparkSession, table: Table) -> DataFrame:
    """No rows of a table."""
    return session.createDataFrame([], schema=struct_type(table.arrow))


def materialised(rows: DataFrame) -> DataFrame:
    """The same rows, computed now and held by the executors, with a plan that starts there.

    A round is many small queries over the same few results: planning each from the raw files again would cost more
    than computing it. The rows are freed when nothing refers to them any more.
    """
    return rows.localCheckpoint(eager=True)
