"""When a topic's records are deleted: its limits of time and size."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lagwise.domain.loss.retention import CHECK_SECONDS


def limits(topics: DataFrame) -> DataFrame:
    """Of each topic, from its newest row: ``retention_seconds`` (null is no limit), ``retention_is_known``,
    ``retention_is_by_size`` and ``segment_seconds`` (null is not known).
    :func:`lagwise.domain.log_history.retention_of` is the definition."""
    return topics.select(
        "cluster",
        "topic",
        F.when(_deletes() & (F.col("retention_ms") >= 0), F.col("retention_ms") / 1000.0).alias("retention_seconds"),
        F.col("retention_ms").isNotNull().alias("retention_is_known"),
        (_deletes() & (F.coalesce(F.col("retention_bytes"), F.lit(-1)) >= 0)).alias("retention_is_by_size"),
        F.when(_deletes() & ~_compacts(), F.col("segment_ms") / 1000.0).alias("segment_seconds"),
    )


def longest_kept_seconds() -> Column:
    """:func:`lagwise.domain.loss.retention.longest_kept_seconds`."""
    return F.col("retention_seconds") + F.col("segment_seconds") + CHECK_SECONDS


def _deletes() -> Column:
    return F.coalesce(F.col("cleanup_policy"), F.lit("delete")).contains("delete")


def _compacts() -> Column:
    return F.coalesce(F.col("cleanup_policy"), F.lit("delete")).contains("compact")
