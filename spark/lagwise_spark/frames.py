"""Small tables from the driver into Spark and back, with the types that the tables declare."""

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
