"""When a topic's records are deleted: its limits of time and size."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F


def limits(topics: DataFrame) -> DataFrame:
    """``retention_seconds`` (null is no limit), ``retention_is_known`` and ``retention_is_by_size`` of each topic, from
    its newest row."""
    return topics.select(
        "cluster",
        "topic",
        F.when(_deletes() & (F.col("retention_ms") >= 0), F.col("retention_ms") / 1000.0).alias("retention_seconds"),
        F.col("retention_ms").isNotNull().alias("retention_is_known"),
        (_deletes() & (F.coalesce(F.col("retention_bytes"), F.lit(-1)) >= 0)).alias("retention_is_by_size"),
    )


def _deletes() -> Column:
    return F.coalesce(F.col("cleanup_policy"), F.lit("delete")).contains("delete")
