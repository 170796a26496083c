"""The whole hours of a group-partition's day as one row, which changes once an hour; the rest changes all the time."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lagwise_spark.columns import GROUP_PARTITION, TOPIC_PARTITION, hour_of, whole_hours_from, whole_hours_until
from lagwise_spark.transforms.coarser import merged_statistics


def whole_hours(minutes: DataFrame, known_resets: DataFrame, contexts: DataFrame) -> DataFrame:
    """Rows of `days` from those of `hours` (or of `minutes`): the sum of the whole hours of each cluster's day.

    ``known_resets`` is :func:`lagwise_spark.transforms.time_lag.resets`, as far back as that: the hours up to a topic's
    re-creation tell of another log.
    """
    until = F.broadcast(contexts.select("cluster", whole_hours_until(F.col("as_of")).alias("until")))
    recreated = known_resets.where(F.col("recreated_minute").isNotNull()).select(*TOPIC_PARTITION, "recreated_minute")
    is_same_log = F.col("recreated_minute").isNull() | (hour_of(F.col("minute")) > hour_of(F.col("recreated_minute")))
    first = whole_hours_from(F.col("until"))
    return (
        minutes.join(until, "cluster")
        .where((F.col("minute") >= first) & (F.col("minute") < F.col("until")))
        .join(F.broadcast(recreated), list(TOPIC_PARTITION), "left")
        .where(is_same_log)
        .groupBy(*GROUP_PARTITION, "until")
        .agg(*merged_statistics(first))
    )
