"""History for readers that are far behind: how old their oldest unread record is lies hours, days or weeks back.

Of all that history, the few rows are taken that say it: for each offset somebody has to read next, the one before it
and the one after it, and those between which the log start jumped. Their number depends on how many readers are far
behind and not on how far.
"""

from datetime import datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from lagwise.domain.history import LOOKBACK_SECONDS
from lagwise.tables.analysis import PARTITION_STATUS
from lagwise.tables.minutes import WATERMARK_FIVE_MINUTES
from lagwise.tables.store import Lake
from lagwise_spark.columns import GROUP_PARTITION, TOPIC_PARTITION
from lagwise_spark.frames import frame, materialised
from lagwise_spark.jobs import read
from lagwise_spark.transforms.buckets import reads_from

#: So far back, every sample of the watermarks is used; before that, the first and the last of every five minutes.
DENSE_HISTORY = timedelta(hours=6)


def older_history(
    session: SparkSession, lake: Lake, end: datetime, days: int, commits: DataFrame, watermarks: DataFrame
) -> DataFrame | None:
    """Rows of the watermarks' history before ``end`` that tell the age of what is read next, for those that were far
    behind at the last round, from their latest commits and watermarks. None where there are none, which is usual."""
    far = _far_behind(lake, LOOKBACK_SECONDS - 600)
    if far.num_rows == 0:
        return None
    # Nothing is read from before the oldest record that anybody still has to read.
    start = end - timedelta(days=days)
    if far["written_at"].null_count == 0:
        start = max(start, pc.min(far["written_at"]).as_py() - timedelta(minutes=10))
    theirs = F.broadcast(frame(session, far.drop_columns("written_at")))
    positions = (
        commits.join(theirs, list(GROUP_PARTITION), "semi")
        .join(watermarks.select(*TOPIC_PARTITION, "log_start"), list(TOPIC_PARTITION))
        .select(*TOPIC_PARTITION, F.greatest(reads_from(), "log_start").alias("position"))
        .where(F.col("position").isNotNull())
        .distinct()
    )
    rows = read.since(session, lake, WATERMARK_FIVE_MINUTES, start, read.steady(end) + read.STEADY_FOR)
    is_dense = F.col("minute") >= F.lit(read.steady(end - DENSE_HISTORY))
    # Written as two halves: the points of the older one are then not even read.
    thinned = rows.where(~is_dense).withColumn("points", F.array(_point("first"), _point("last")))
    return materialised(telling_rows(rows.where(is_dense).unionByName(thinned), materialised(positions)))


def _point(which: str) -> Column:
    return F.struct(F.col(f"{which}_at").alias("at"), F.col(f"{which}_high_watermark").alias("high_watermark"))


def _far_behind(lake: Lake, seconds: float) -> pa.Table:
    """Group-partitions whose oldest unread record was older than this at the last round, and when it was written
    (``written_at``, null where that is before all history)."""
    sql = """
        select cluster, "group", topic, partition,
               case when not lag_seconds_is_lower_bound then as_of - to_seconds(lag_seconds) end as written_at
        from partition_status
        where lag_seconds >= ? or lag_seconds_is_lower_bound
    """
    return lake.query(sql, [seconds], over=[PARTITION_STATUS])


def telling_rows(history: DataFrame, positions: DataFrame) -> DataFrame:
    """Those rows of `watermark_five_minutes` around each ``position`` and around each jump of the log start, of the
    topic-partitions that ``positions`` has any of, and those in which a log became another one."""
    history = history.join(F.broadcast(positions.select(*TOPIC_PARTITION).distinct()), list(TOPIC_PARTITION), "semi")
    resets = materialised(
        history.where(F.col("reset_at").isNotNull()).groupBy(*TOPIC_PARTITION).agg(F.max("minute").alias("reset"))
    )
    of_this_log = history.join(F.broadcast(resets), list(TOPIC_PARTITION), "left").where(
        F.col("reset").isNull() | (F.col("minute") >= F.col("reset"))
    )
    is_before = F.col("first_high_watermark") <= F.col("position")
    brackets = (
        of_this_log.join(F.broadcast(positions), list(TOPIC_PARTITION))
        .groupBy(*TOPIC_PARTITION, "position")
        .agg(
            F.max(F.when(is_before, F.col("minute"))).alias("a"), F.min(F.when(~is_before, F.col("minute"))).alias("b")
        )
    )
    levels = of_this_log.groupBy(*TOPIC_PARTITION, "last_log_start").agg(
        F.min("minute").alias("a"), F.max("minute").alias("b")
    )
    kept = [rows.select(*TOPIC_PARTITION, F.explode(F.array("a", "b")).alias("minute")) for rows in (brackets, levels)]
    told = kept[0].union(kept[1]).union(resets).distinct()
    return history.join(F.broadcast(materialised(told)), [*TOPIC_PARTITION, "minute"], "semi")
