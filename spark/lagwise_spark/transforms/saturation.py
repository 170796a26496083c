"""Minutes under saturation, in bulk: :mod:`lagwise.domain.saturation` for all group-partitions at once.

`hours` here are a column ``hour``, the start of the UTC hour; a bucket's habits are those of its own hour.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from lagwise.domain.history import COARSE_SECONDS
from lagwise.domain.saturation import (
    CADENCES_AT_WORK,
    CADENCES_OF_BACKLOG,
    LEAST_BACKLOG_SECONDS,
    LEAST_SECONDS_AT_WORK,
)
from lagwise_spark.columns import GROUP, GROUP_PARTITION, hour_of, minute_of, seconds_between

GROUP_TOPIC = (*GROUP, "topic")


def habits(five_minutes: DataFrame) -> DataFrame:
    """One row per group-partition and hour from rows of `five_minutes`: ``cadence_seconds`` (null where nothing was
    committed), ``needed_backlog`` and ``longest_silence_seconds`` as in :class:`lagwise.domain.saturation.Habit`,
    ``records`` committed, and ``max_lag``."""
    span = F.greatest(F.lit(COARSE_SECONDS / 2), seconds_between(F.col("first_at"), F.col("last_at")))
    pace = (F.col("last_committed") - F.col("first_committed")) / span
    is_lively = (F.col("moves") >= 2) & (F.col("backlog_seconds") > 0)
    rows = five_minutes.withColumn("hour", hour_of(F.col("minute")))
    summed = rows.groupBy(*GROUP_PARTITION, "hour").agg(
        F.greatest(F.lit(0.0), F.max(pace)).alias("peak"),
        F.min(F.when(is_lively, F.col("backlog_seconds") / F.col("moves"))).alias("lively"),
        F.sum("backlog_seconds").alias("backlog_seconds"),
        F.sum("moves").alias("moves"),
        F.max("max_lag").alias("max_lag"),
        F.greatest(F.lit(0), F.max_by("last_committed", "last_at") - F.min_by("first_committed", "first_at")).alias(
            "records"
        ),
    )
    hourly = F.when(F.col("moves") > 0, F.col("backlog_seconds") / F.col("moves"))
    cadence = F.coalesce("lively", hourly)
    known = F.coalesce(cadence, F.lit(0.0))
    return summed.select(
        *GROUP_PARTITION,
        "hour",
        "records",
        "max_lag",
        cadence.alias("cadence_seconds"),
        (F.col("peak") * F.greatest(F.lit(LEAST_BACKLOG_SECONDS), CADENCES_OF_BACKLOG * known)).alias("needed_backlog"),
        F.greatest(F.lit(LEAST_SECONDS_AT_WORK), CADENCES_AT_WORK * known).alias("longest_silence_seconds"),
    )


def with_backlog(habits: DataFrame) -> DataFrame:
    """Group-topics and hours that can hold a saturated minute at all: few, where consumers keep up."""
    had = F.col("cadence_seconds").isNotNull() & (F.col("max_lag") > 0) & (F.col("max_lag") >= F.col("needed_backlog"))
    return habits.where(had).select(*GROUP_TOPIC, "hour").distinct()


def hourly_throughput(five_minutes: DataFrame, habits: DataFrame) -> DataFrame:
    """One row per group-topic and hour in which anything was committed: ``records``, ``share_of_group``, and the best
    five minutes with a rate that was reached at least (a commit at their beginning may be of work before it, for a
    cadence at most)."""
    cadence = F.when(F.col("moves") > 0, F.col("backlog_seconds") / F.col("moves"))
    rate = F.sum(F.col("last_committed") - F.col("first_committed")) / (
        F.lit(COARSE_SECONDS) + F.coalesce(F.max(cadence), F.lit(0.0))
    )
    rates = five_minutes.groupBy(*GROUP_TOPIC, "minute").agg(rate.alias("rate"))
    best = (
        rates.withColumn("hour", hour_of(F.col("minute")))
        .groupBy(*GROUP_TOPIC, "hour")
        .agg(F.max(F.struct("rate", "minute")).alias("best"))
    )
    of_topic = habits.groupBy(*GROUP_TOPIC, "hour").agg(F.sum("records").alias("records"))
    of_group = F.sum("records").over(Window.partitionBy(*GROUP, "hour"))
    read = of_topic.withColumn("share_of_group", F.col("records") / F.greatest(F.lit(1), of_group))
    return (
        read.where(F.col("records") > 0)
        .join(best, [*GROUP_TOPIC, "hour"])
        .select(
            *GROUP_TOPIC,
            "hour",
            "records",
            "share_of_group",
            F.col("best")["minute"].alias("best_at"),
            F.greatest(F.lit(0.0), F.col("best")["rate"]).alias("best_rate_per_second"),
        )
    )


def owners(members: DataFrame) -> DataFrame:
    """Who owned which partition at a minute's first sample, from rows of raw `members` of these samples."""
    label = F.concat(F.coalesce("client_id", F.lit("?")), F.lit(" ("), F.coalesce("host", F.lit("?")), F.lit(")"))
    return (
        members.select(
            *GROUP,
            minute_of(F.col("sampled_at")).alias("minute"),
            "member_id",
            label.alias("member"),
            F.explode("assignment").alias("owned"),
        )
        .select(
            *GROUP, "minute", "member_id", "member", "owned.topic", F.explode("owned.partitions").alias("partition")
        )
        # A sample in which a partition is on its way from one member to another may name both.
        .groupBy(*GROUP_PARTITION, "minute")
        .agg(F.min(F.struct("member", "member_id")).alias("owner"))
    )


def saturated(minutes: DataFrame, habits: DataFrame, owners: DataFrame) -> DataFrame:
    """Saturated minutes of groups (``member`` null) and of their members: the fields of
    :class:`lagwise.domain.saturation.SaturatedMinute`, rebalances not yet considered."""
    rows = minutes.withColumn("hour", hour_of(F.col("minute"))).join(habits, [*GROUP_PARTITION, "hour"])
    earlier = Window.partitionBy(*GROUP_PARTITION, "hour").orderBy("minute")
    moved_at = F.last("last_moved_at", ignorenulls=True).over(earlier)
    mean = F.col("sum_lag") / F.col("samples")
    variance = F.greatest(F.lit(0.0), F.col("sum_lag_lag") / F.col("samples") - mean * mean)
    least_lag = mean - F.sqrt((F.col("samples") - 1) * variance)
    is_at_work = seconds_between(moved_at, F.col("last_at")) <= F.col("longest_silence_seconds")
    has_backlog = (least_lag > 0) & (least_lag >= F.col("needed_backlog"))
    judged = (
        rows.withColumn("is_read", (F.col("moves") > 0) | (F.col("sum_lag") > 0))
        .withColumn(
            "is_saturated", F.coalesce(F.col("cadence_seconds").isNotNull() & is_at_work & has_backlog, F.lit(False))
        )
        .join(owners, [*GROUP_PARTITION, "minute"], "left")
    )
    whole = _together(judged.withColumn("member", F.lit(None).cast("string")))
    by_member = _together(judged.where(F.col("owner").isNotNull()).withColumn("member", F.col("owner")["member"]))
    return whole.unionByName(by_member)


def _together(judged: DataFrame) -> DataFrame:
    def of_read(name: str) -> Column:
        return F.when(F.col("is_read"), F.col(name))

    members = F.count_distinct(F.col("owner")["member_id"])
    return (
        judged.groupBy(*GROUP_TOPIC, "member", "minute")
        .agg(
            F.max(of_read("last_moved_at")).alias("moved_at"),
            F.sum("last_committed").alias("committed"),
            F.sum(of_read("last_lag")).alias("lag"),
            F.max(of_read("cadence_seconds")).alias("cadence_seconds"),
            members.alias("members"),
            F.count("*").alias("partitions"),
            # Together with their number enough to tell that these are the same partitions as a minute before.
            F.bit_xor(F.xxhash64("partition")).alias("signature"),
            F.bool_or("is_read").alias("is_read"),
            F.bool_and(~F.col("is_read") | F.col("is_saturated")).alias("is_saturated"),
            F.bool_or(F.col("rewound_from").isNotNull()).alias("went_back"),
        )
        .where(F.col("is_read") & F.col("is_saturated") & ~F.col("went_back"))
        .drop("is_read", "is_saturated", "went_back")
    )
