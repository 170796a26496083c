"""From raw samples to minutes: sufficient statistics per group-partition, watermark history per topic-partition."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from lagwise_spark.columns import GROUP_PARTITION, TOPIC_PARTITION, minute_of, seconds_between


def with_lag(commits: DataFrame, watermarks: DataFrame) -> DataFrame:
    """Commits with the watermarks read right after them, and ``lag`` (null where it cannot be known).

    The rules are those of :mod:`lagwise.domain.lag`.
    """
    key = ["cluster", "sample_id", "topic", "partition"]
    ends = watermarks.select(*key, "log_start", "high_watermark", "last_stable")
    joined = commits.join(ends, key, "left")
    return joined.withColumn("lag", lag_expression())


def lag_expression() -> Column:
    """Unread records that still exist, from the columns committed, log_start, high_watermark and last_stable."""
    committed, last_stable, high = F.col("committed"), F.col("last_stable"), F.col("high_watermark")
    end = F.when(last_stable.isNotNull() & (committed <= last_stable), F.least(last_stable, high)).otherwise(high)
    position = F.greatest(committed, F.col("log_start"))
    known = committed.isNotNull() & F.col("log_start").isNotNull() & high.isNotNull() & (committed <= high)
    return F.when(known, F.greatest(end - position, F.lit(0)))


def commit_minutes(samples_with_lag: DataFrame, contexts: DataFrame) -> DataFrame:
    """Rows of `minutes` from samples with their lag.

    A sample's step from its predecessor counts in the sample's own minute, so the samples must reach back at least
    one gap before the first minute that is wanted; surplus minutes are for the caller to drop.
    """
    order = Window.partitionBy(*GROUP_PARTITION).orderBy("sampled_at")

    def before(name: str) -> Column:
        return F.lag(name).over(order)

    known = (
        samples_with_lag.where(F.col("lag").isNotNull())
        .join(F.broadcast(contexts.select("cluster", "gap_seconds")), "cluster")
        .select(*GROUP_PARTITION, "sampled_at", "committed", "lag", "gap_seconds")
        .withColumn("minute", minute_of(F.col("sampled_at")))
        .withColumn("previous_at", before("sampled_at"))
        .withColumn("previous_committed", before("committed"))
        .withColumn("previous_lag", before("lag"))
        .withColumn("t", seconds_between(F.col("minute"), F.col("sampled_at")))
        .withColumn("y", F.col("lag").cast("double"))
        .withColumn("gap_free_dt", seconds_between(F.col("previous_at"), F.col("sampled_at")))
    )
    is_step = F.col("gap_free_dt") <= F.col("gap_seconds")
    dt = F.when(is_step, F.col("gap_free_dt"))
    dlag = (F.col("lag") - F.col("previous_lag")).cast("double")
    moved = F.col("committed") != F.col("previous_committed")
    went_back = is_step & (F.col("committed") < F.col("previous_committed"))
    t, y = F.col("t"), F.col("y")
    return known.groupBy(*GROUP_PARTITION, "minute").agg(
        F.count("*").cast("int").alias("samples"),
        F.min("sampled_at").alias("first_at"),
        F.max("sampled_at").alias("last_at"),
        F.min_by("committed", "sampled_at").alias("first_committed"),
        F.max_by("committed", "sampled_at").alias("last_committed"),
        F.max_by("lag", "sampled_at").alias("last_lag"),
        F.max("lag").alias("max_lag"),
        F.sum(t).alias("sum_t"),
        F.sum(t * t).alias("sum_tt"),
        F.sum(y).alias("sum_lag"),
        F.sum(y * y).alias("sum_lag_lag"),
        F.sum(t * y).alias("sum_t_lag"),
        F.count(dt).cast("int").alias("steps"),
        F.coalesce(F.sum(dt * dt), F.lit(0.0)).alias("sum_dt_dt"),
        F.coalesce(F.sum(dt * dlag), F.lit(0.0)).alias("sum_dt_dlag"),
        F.coalesce(F.sum(F.when(is_step, dlag * dlag)), F.lit(0.0)).alias("sum_dlag_dlag"),
        F.count(F.when(is_step & moved, 1)).cast("int").alias("moves"),
        F.max(F.when(moved, F.col("sampled_at"))).alias("last_moved_at"),
        F.coalesce(F.sum(F.when(F.col("previous_lag") > 0, dt)), F.lit(0.0)).alias("backlog_seconds"),
        F.max(F.when(went_back, F.col("previous_committed"))).alias("rewound_from"),
    )


def watermark_minutes(watermarks: DataFrame) -> DataFrame:
    """Rows of `watermark_minutes` from raw watermarks, which must reach back one sample before the first minute."""
    order = Window.partitionBy(*TOPIC_PARTITION).orderBy("sampled_at")
    other_topic = F.lag("topic_id").over(order) != F.col("topic_id")
    known = (
        watermarks.where(F.col("high_watermark").isNotNull() & F.col("log_start").isNotNull())
        .withColumn("minute", minute_of(F.col("sampled_at")))
        .withColumn("is_other_topic", F.coalesce(other_topic, F.lit(False)))
        .withColumn(
            "is_reset",
            F.col("is_other_topic")
            | F.coalesce(F.lag("high_watermark").over(order) > F.col("high_watermark"), F.lit(False)),
        )
    )
    at = F.col("sampled_at")
    rows = known.groupBy(*TOPIC_PARTITION, "minute").agg(
        F.max_by("topic_id", at).alias("topic_id"),
        F.min_by("log_start", at).alias("first_log_start"),
        F.max_by("log_start", at).alias("last_log_start"),
        F.min_by("high_watermark", at).alias("first_high_watermark"),
        F.max_by("high_watermark", at).alias("last_high_watermark"),
        F.min(at).alias("first_at"),
        F.max(at).alias("last_at"),
        F.max(F.when(F.col("is_reset"), at)).alias("reset_at"),
        F.max(F.when(F.col("is_other_topic"), at)).alias("recreated_at"),
        F.sort_array(F.collect_list(F.struct(at.alias("at"), F.col("high_watermark")))).alias("points"),
    )
    since_reset = F.filter("points", lambda p: p["at"] >= F.col("reset_at"))
    return rows.withColumn("points", F.when(F.col("reset_at").isNull(), F.col("points")).otherwise(since_reset))
