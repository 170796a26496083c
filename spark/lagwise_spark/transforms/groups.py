"""From partition statuses to what a group's verdict is made of: a few rows per group."""

from math import inf

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lagwise.domain.causes import STANDING
from lagwise_spark.columns import GROUP, seconds_between


def partitions_by_status(partition_status: DataFrame) -> DataFrame:
    """One row per group, status, reason and cause of the nearest loss, with the fields of
    :class:`lagwise.domain.partition_rollup.PartitionsInStatus`."""
    age = F.coalesce("lag_seconds", F.lit(0.0))
    return partition_status.groupBy(*GROUP, "status", "reason", "loss_cause").agg(
        F.count("*").cast("int").alias("partitions"),
        F.sum("lag").alias("lag"),
        F.max("lag_seconds").alias("lag_seconds"),
        F.max(F.struct(age.alias("age"), "lag_seconds_is_lower_bound"))["lag_seconds_is_lower_bound"].alias(
            "lag_seconds_is_lower_bound"
        ),
        F.max(seconds_between(F.col("committed_since"), F.col("as_of"))).alias("unmoved_seconds"),
        F.sum("produce_rate_per_second").alias("produce_rate_per_second"),
        F.sum("consume_rate_per_second").alias("consume_rate_per_second"),
        F.sum("commits_seen").cast("int").alias("commits_seen"),
        F.sum("lag_slope_per_second").alias("lag_slope_per_second"),
        F.max("seconds_to_catch_up").alias("catch_up_seconds"),
        F.max("seconds_to_catch_up_low").alias("catch_up_low"),
        F.max(_catch_up_high()).alias("catch_up_high"),
        *[F.min(_breach())[end].alias(f"breach_{end}") for end in ("seconds", "low", "high")],
        F.min("seconds_to_loss").alias("seconds_to_loss"),
        F.min(_loss())["seconds_to_loss_is_upper_bound"].alias("seconds_to_loss_is_upper_bound"),
        F.min(_loss())["seconds_to_loss_at_latest"].alias("seconds_to_loss_at_latest"),
        F.sum("records_lost").alias("records_lost"),
        F.sum("rewound_records").alias("rewound_records"),
        F.min(seconds_between(F.col("rewound_at"), F.col("as_of"))).alias("rewound_seconds"),
        *[F.sum(name).alias(name) for name in ("lost_at_least", "lost_at_most")],
        F.max(seconds_between(F.col("first_lost_at"), F.col("as_of"))).alias("first_lost_seconds"),
        F.min(seconds_between(F.col("last_lost_at"), F.col("as_of"))).alias("last_lost_seconds"),
        F.max("transaction_seconds").alias("transaction_seconds"),
        F.sum(_held_back()).alias("held_back_records"),
        # Among equals the lowest partition, then the last topic by name: any choice will do that is always the same.
        F.max_by(F.struct("topic", "partition"), F.struct(age, -F.col("partition"), F.col("topic"))).alias("worst"),
        F.collect_set("topic").alias("topics"),
        F.slice(F.collect_set(_named()), 1, 5).alias("owners"),
        F.size(F.collect_set("owner")).alias("owning_members"),
        *[F.count_if(F.array_contains("reasons", str(s))).cast("int").alias(str(s)) for s in sorted(STANDING)],
    )


def places(partition_status: DataFrame) -> DataFrame:
    """One row per group, status, owner, leader and whether they stand still, with the fields of
    :class:`lagwise.domain.causes.Place`."""
    stands = F.arrays_overlap("reasons", F.array(*[F.lit(str(s)) for s in sorted(STANDING)]))
    return partition_status.groupBy(
        *GROUP, "status", "owner", "leader", _named().alias("name"), stands.alias("stands")
    ).agg(F.count("*").cast("int").alias("partitions"))


def _catch_up_high() -> Column:
    """Until when at the latest, in the order of :func:`lagwise.domain.partition_rollup.last_catch_up`."""
    is_expected = F.col("seconds_to_catch_up").isNotNull()
    return F.when(is_expected, F.coalesce("seconds_to_catch_up_high", F.lit(inf)))


def _breach() -> Column:
    """When it is expected, in the order of :func:`lagwise.domain.partition_rollup.soonest_breach`."""
    forecast = F.struct(
        F.col("seconds_to_breach").alias("seconds"),
        F.col("seconds_to_breach_low").alias("low"),
        F.coalesce("seconds_to_breach_high", F.lit(inf)).alias("high"),
    )
    return F.when(F.col("seconds_to_breach").isNotNull(), forecast)


def _held_back() -> Column:
    return F.when(F.col("transaction_seconds").isNotNull(), F.col("high_watermark") - F.col("last_stable"))


def _loss() -> Column:
    """The nearest one, of two at the same moment the one that will not come sooner, then the one with no limit."""
    loss = F.struct("seconds_to_loss", "seconds_to_loss_is_upper_bound", "seconds_to_loss_at_latest")
    return F.when(F.col("seconds_to_loss").isNotNull(), loss)


def _named() -> Column:
    """The owner in the words of :func:`lagwise.domain.evaluation.client_of`."""
    return F.concat(F.lit("client "), "client_id", F.coalesce(F.concat(F.lit(" on host "), "host"), F.lit("")))
