"""Who owns what, and whether that is settled, from the latest sample of each group."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lagwise.domain.history import WINDOWS_SECONDS
from lagwise.domain.vocabulary import REBALANCING_STATES, EventKind, GroupState
from lagwise_spark.columns import GROUP, seconds_between

_OF_LATEST = ("state", "type", "member_count", "error", "checkpointed_at", "checkpoint_interval_seconds")


def group_facts(groups: DataFrame, members: DataFrame, events: DataFrame, contexts: DataFrame) -> DataFrame:
    """One row per group of the latest sample.

    ``groups`` reach back over the shortest trend window, ``members`` are those of the latest sample, ``events`` reach
    back as far as they are kept. ``empty_since`` is null where the group has members, or was empty before anyone
    looked. The definition is :mod:`lagwise.domain.ownership`.
    """
    clock = F.broadcast(contexts.select("cluster", "sample_id", "as_of"))
    recent = (
        groups.withColumnRenamed("sample_id", "group_sample_id")
        .join(clock, "cluster")
        .where(seconds_between(F.col("sampled_at"), F.col("as_of")) < WINDOWS_SECONDS[0])
        .withColumn("is_latest", F.col("group_sample_id") == F.col("sample_id"))
        .withColumn("is_unsettled", F.col("state").isin([str(s) for s in REBALANCING_STATES]))
    )
    newest = F.sort_array(F.collect_list(F.struct("sampled_at", "is_unsettled")), asc=False)
    states = recent.groupBy(*GROUP).agg(
        F.count("*").alias("group_samples"),
        F.count_if("is_unsettled").alias("unsettled_samples"),
        newest.alias("_newest"),
        F.max(F.when(F.col("is_latest"), F.struct(*_OF_LATEST))).alias("latest"),
    )
    latest_two = F.slice("_newest", 1, 2)
    per_group = events.where(F.col("group").isNotNull()).join(clock, "cluster").where(F.col("at") <= F.col("as_of"))
    is_recent = seconds_between(F.col("at"), F.col("as_of")) < WINDOWS_SECONDS[0]
    happened = per_group.groupBy(*GROUP).agg(
        F.count_if((F.col("kind") == str(EventKind.REBALANCE)) & is_recent).alias("recent_rebalances"),
        F.max(F.when(F.col("kind") == str(EventKind.STATE_CHANGED), F.struct("at", "after"))).alias("changed"),
    )
    owned = members.groupBy(*GROUP).agg(
        F.count_if(F.col("assigned_partitions") == 0).cast("int").alias("idle_members"),
        F.flatten(F.collect_list(F.transform("assignment", lambda a: a["topic"]))).alias("assigned_topics"),
    )
    is_empty = F.col("latest")["state"] == str(GroupState.EMPTY)
    empty_since = F.when(is_empty & (F.col("changed")["after"] == str(GroupState.EMPTY)), F.col("changed")["at"])
    return (
        states.join(happened, list(GROUP), "left")
        .join(owned, list(GROUP), "left")
        .where(F.col("latest").isNotNull())
        .select(
            *GROUP,
            F.col("latest")["state"].alias("state"),
            F.col("latest")["type"].alias("type"),
            F.col("latest")["member_count"].alias("members"),
            F.col("latest")["error"].alias("group_error"),
            F.coalesce("idle_members", F.lit(0)).alias("idle_members"),
            F.coalesce("assigned_topics", F.array().cast("array<string>")).alias("assigned_topics"),
            (F.forall(latest_two, lambda s: s["is_unsettled"]) & (F.size(latest_two) > 0)).alias("rebalancing_now"),
            F.col("group_samples").cast("int").alias("group_samples"),
            F.least(F.col("unsettled_samples") + F.coalesce("recent_rebalances", F.lit(0)), F.col("group_samples"))
            .cast("int")
            .alias("samples_of_unrest"),
            empty_since.alias("empty_since"),
            F.col("latest")["checkpointed_at"].alias("checkpointed_at"),
            F.col("latest")["checkpoint_interval_seconds"].alias("checkpoint_interval_seconds"),
        )
    )
