"""The whole hours of a group-partition's day as one row, which changes once an hour; the rest changes all the time."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lagwise.domain.commit_cadence import HOURS_OF_USUAL_PAUSE, INTERVALS_OF_PAUSE, SHARE_OF_HOURS, USUAL_PAUSE_SECONDS
from lagwise_spark.columns import GROUP_PARTITION, TOPIC_PARTITION, hour_of, whole_hours_from, whole_hours_until
from lagwise_spark.transforms.coarser import lost_in_stretches, merged_statistics, pause_before


def whole_hours(hours: DataFrame, known_resets: DataFrame, contexts: DataFrame) -> DataFrame:
    """Rows of `days` from those of `hours`: the sum of the whole hours of each cluster's day.

    ``known_resets`` is :func:`lagwise_spark.transforms.time_lag.resets`, as far back as that: the hours up to a topic's
    re-creation tell of another log.
    """
    now = contexts.select("cluster", "interval_seconds", whole_hours_until(F.col("as_of")).alias("until"))
    recreated = known_resets.where(F.col("recreated_minute").isNotNull()).select(*TOPIC_PARTITION, "recreated_minute")
    is_same_log = F.col("recreated_minute").isNull() | (F.col("minute") > hour_of(F.col("recreated_minute")))
    first = whole_hours_from(F.col("until"))
    return (
        hours.join(F.broadcast(now), "cluster")
        .where((F.col("minute") >= first) & (F.col("minute") < F.col("until")))
        .join(F.broadcast(recreated), list(TOPIC_PARTITION), "left")
        .where(is_same_log)
        .withColumn("pause", F.greatest("longest_pause_seconds", pause_before()))
        .groupBy(*GROUP_PARTITION, "until", "interval_seconds")
        .agg(*merged_statistics(first), *lost_in_stretches(), _usual_pause().alias("usual_pause_seconds"))
        .withColumn("usual_pause_seconds", F.when(_is_telling(), F.col("usual_pause_seconds")))
        .drop("interval_seconds")
    )


def _usual_pause() -> Column:
    """Aggregate: :func:`lagwise.domain.commit_cadence.usual_pause_of`, of whatever length."""
    got_on = F.count("first_progress_at")
    rank = F.greatest(F.lit(HOURS_OF_USUAL_PAUSE), F.ceil(SHARE_OF_HOURS * got_on))
    return F.get(F.sort_array(F.collect_list("pause"), asc=False), (rank - 1).cast("int"))


def _is_telling() -> Column:
    shortest = F.greatest(F.lit(USUAL_PAUSE_SECONDS), INTERVALS_OF_PAUSE * F.col("interval_seconds"))
    return F.col("usual_pause_seconds") >= shortest
