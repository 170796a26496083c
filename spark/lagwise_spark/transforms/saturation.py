"""Minutes under saturation, in bulk: :mod:`lagwise.domain.capacity.saturation` for all group-partitions at once.

`hours` here are a column ``hour``, the start of the UTC hour; a bucket's habits are those of its own hour.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from lagwise.domain.capacity.saturation import (
    CADENCES_AT_WORK,
    CADENCES_OF_BACKLOG,
    LEAST_BACKLOG_SECONDS,
    LEAST_SECONDS_AT_WORK,
)
from lagwise.domain.verdicts.buckets import FIVE_MINUTES_SECONDS
from lagwise_spark.columns import GROUP, GROUP_PARTITION, hour_of, minute_of, seconds_between, with_steps

GROUP_TOPIC = (*GROUP, "topic")


def habits(five_minutes: DataFrame) -> DataFrame:
    """One row per group-partition and hour from rows of `five_minutes`: ``cadence_seconds`` (null where nothing was
    committed), ``needed_backlog`` (records that must be unread to be a backlog), ``longest_silence_seconds`` (a
    partition that moved within it is at work), ``records`` committed, and ``max_lag``.

    The cadence is that of the liveliest five minutes, so that a standstill does not lengthen it; who commits too rarely
    for that is judged by the whole hour. Cadences shorter than the sampling interval look as long as that.
    """
    span = F.greatest(F.lit(FIVE_MINUTES_SECONDS / 2), seconds_between(F.col("first_at"), F.col("last_at")))
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
        F.lit(FIVE_MINUTES_SECONDS) + F.coalesce(F.max(cadence), F.lit(0.0))
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
    """Who owned each group-partition, one row for an hour: ``owners``, each from a minute to a minute. ``members`` are
    rows of raw `members` of the first sample of each minute."""
    label = F.concat(F.coalesce("client_id", F.lit("?")), F.lit(" ("), F.coalesce("host", F.lit("?")), F.lit(")"))
    hour, minute = hour_of(F.col("sampled_at")), minute_of(F.col("sampled_at"))
    # Most keep what they have for an hour: only then is it taken apart by partition.
    kept = members.groupBy(*GROUP, hour.alias("hour"), "member_id", label.alias("member"), "assignment").agg(
        F.min(minute).alias("from"), F.max(minute).alias("until")
    )
    owned = kept.select(*GROUP, "hour", "member_id", "member", "from", "until", F.explode("assignment").alias("owned"))
    partitions = owned.select(
        *GROUP, "hour", "member_id", "member", "from", "until", "owned.topic",
        F.explode("owned.partitions").alias("partition"),
    )  # fmt: skip
    times = partitions.groupBy(*GROUP_PARTITION, "hour", "member", "member_id").agg(
        F.min("from").alias("from"), F.max("until").alias("until")
    )
    in_order = F.sort_array(F.collect_list(F.struct("from", "until", "member", "member_id")))
    return times.groupBy(*GROUP_PARTITION, "hour").agg(in_order.alias("owners"))


def judged(minutes: DataFrame, habits: DataFrame) -> DataFrame:
    """Rows of `minutes` with the habits of their hour: whether there was anything to read (``is_read``), whether it was
    a backlog (``has_backlog``), and who owned the partition (null is no member, or more than one).

    No sample of a minute had less lag than ``least_lag``: the smallest of n numbers is at least their mean less √(n−1)
    standard deviations (Samuelson's inequality); both are there to be had, the smallest itself is not.
    """
    rows = minutes.withColumn("hour", hour_of(F.col("minute"))).join(habits, [*GROUP_PARTITION, "hour"])
    mean = F.col("sum_lag") / F.col("samples")
    variance = F.greatest(F.lit(0.0), F.col("sum_lag_lag") / F.col("samples") - mean * mean)
    least_lag = mean - F.sqrt((F.col("samples") - 1) * variance)
    is_backlog = F.col("cadence_seconds").isNotNull() & (least_lag > 0) & (least_lag >= F.col("needed_backlog"))
    at_the_time = F.filter("owners", lambda o: F.col("minute").between(o["from"], o["until"]))
    return with_steps(
        rows,
        {
            "is_read": (F.col("moves") > 0) | (F.col("sum_lag") > 0),
            "has_backlog": is_backlog,
            "owner": F.when(F.size(at_the_time) == 1, F.get(at_the_time, F.lit(0))),
        },
    )


def promising(judged: DataFrame) -> DataFrame:
    """Group-topics and hours with a minute in which all that a member or the group read had a backlog."""
    read = judged.where("is_read")
    of_member = read.groupBy(*GROUP_TOPIC, "hour", "minute", F.col("owner")["member"].alias("member")).agg(
        F.bool_and("has_backlog").alias("all")
    )
    all_of_group = F.bool_and("all")
    of_group = of_member.groupBy(*GROUP_TOPIC, "hour", "minute").agg(
        (all_of_group | F.bool_or(F.col("all") & F.col("member").isNotNull())).alias("is_promising")
    )
    return of_group.where("is_promising").select(*GROUP_TOPIC, "hour").distinct()


def saturated(judged: DataFrame) -> DataFrame:
    """Saturated minutes of groups (``member`` null) and of their members: the fields of
    :class:`lagwise.domain.capacity.saturation.SaturatedMinute`, rebalances not yet considered."""
    earlier = Window.partitionBy(*GROUP_PARTITION, "hour").orderBy("minute")
    moved_at = F.last("last_moved_at", ignorenulls=True).over(earlier)
    is_at_work = seconds_between(moved_at, F.col("last_at")) <= F.col("longest_silence_seconds")

    def of_read(name: str) -> Column:
        return F.when(F.col("is_read"), F.col(name))

    of_member = (
        judged.withColumn(
            "is_saturated", ~F.col("is_read") | (F.col("has_backlog") & F.coalesce(is_at_work, F.lit(False)))
        )
        .withColumn("member", F.col("owner")["member"])
        .groupBy(*GROUP_TOPIC, "member", "minute")
        .agg(
            F.max(of_read("last_moved_at")).alias("moved_at"),
            F.sum("last_committed").alias("committed"),
            F.sum(of_read("last_lag")).alias("lag"),
            F.max(of_read("cadence_seconds")).alias("cadence_seconds"),
            F.count_distinct(F.col("owner")["member_id"]).alias("members"),
            F.count("*").alias("partitions"),
            # Together with their number enough to tell that these are the same partitions as a minute before.
            F.bit_xor(F.xxhash64("partition")).alias("signature"),
            F.bool_or("is_read").alias("is_read"),
            F.bool_and(F.col("is_saturated") & F.col("rewound_from").isNull()).alias("is_saturated"),
        )
    )
    # A name of a member stands for members of its own, and each partition has one of them or none.
    of_group = of_member.groupBy(*GROUP_TOPIC, "minute").agg(
        F.max("moved_at").alias("moved_at"),
        *[F.sum(name).alias(name) for name in ("committed", "lag", "members", "partitions")],
        F.max("cadence_seconds").alias("cadence_seconds"),
        F.bit_xor("signature").alias("signature"),
        F.bool_or("is_read").alias("is_read"),
        F.bool_and("is_saturated").alias("is_saturated"),
    )
    both = of_member.where(F.col("member").isNotNull()).unionByName(
        of_group.withColumn("member", F.lit(None).cast("string"))
    )
    return both.where(F.col("is_read") & F.col("is_saturated")).drop("is_read", "is_saturated")
