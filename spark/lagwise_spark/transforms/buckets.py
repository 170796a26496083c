"""From raw samples to minutes: sufficient statistics per group-partition, watermark history per topic-partition.

Each is made in two steps, because what a sample changed can only be told in the order of time, and what a minute
holds cannot depend on it: first every sample is compared with the one before, then minutes are sums.
"""

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from lagwise.domain.lag import TRANSACTION_HANGS_AFTER_SECONDS
from lagwise_spark.columns import GROUP_PARTITION, TOPIC_PARTITION, minute_of, seconds_between


def with_lag(commits: DataFrame, watermarks: DataFrame) -> DataFrame:
    """Commits with the watermarks read right after them, and ``lag`` (null where it cannot be known).

    The rules are those of :mod:`lagwise.domain.lag`. Topic ids become numbers, because every commit carries one.
    """
    key = ["cluster", "sample_id", "topic", "partition"]
    topic_number = F.when(F.col("topic_id").isNotNull(), F.xxhash64("topic_id")).alias("topic_number")
    ends = watermarks.select(*key, "log_start", "high_watermark", "last_stable", topic_number)
    joined = commits.join(ends, key, "left")
    return joined.withColumn("lag", lag_expression())


def is_held_back() -> Column:
    """:func:`lagwise.domain.lag.is_held_back`, from the columns of its arguments' names."""
    committed, last_stable, high = F.col("committed"), F.col("last_stable"), F.col("high_watermark")
    hangs = F.col("last_stable_seconds") >= TRANSACTION_HANGS_AFTER_SECONDS
    return F.coalesce((committed <= last_stable) & (last_stable < high) & hangs, F.lit(False))


def lag_expression(is_held: Column | None = None) -> Column:
    """Unread records that still exist, from the columns committed, next_record, log_start, high_watermark and
    last_stable, and from whether a transaction that hangs holds some back (where that was looked at)."""
    committed, last_stable, high = F.col("committed"), F.col("last_stable"), F.col("high_watermark")
    is_waiting = last_stable.isNotNull() & (committed <= last_stable)
    if is_held is not None:
        is_waiting &= ~is_held
    end = F.when(is_waiting, F.least(last_stable, high)).otherwise(high)
    position = F.greatest(reads_from(), F.col("log_start"))
    known = committed.isNotNull() & F.col("log_start").isNotNull() & high.isNotNull() & (committed <= high)
    return F.when(known, F.greatest(end - position, F.lit(0)))


def reads_from() -> Column:
    """The offset of the next record, as far as it was looked up, from the columns committed and next_record."""
    return F.greatest("committed", "next_record")


def commit_minutes(samples_with_lag: DataFrame, contexts: DataFrame) -> DataFrame:
    """Rows of `minutes` from samples with their lag.

    A sample's step from its predecessor counts in the sample's own minute, so the samples must reach back at least
    one gap before the first minute that is wanted; surplus minutes are for the caller to drop.
    """
    return minutes_of_steps(commit_steps(samples_with_lag, contexts))


def commit_steps(samples_with_lag: DataFrame, contexts: DataFrame) -> DataFrame:
    """Samples whose lag is known, each with the known one before it (``previous_*``) and with ``dt``, the seconds
    since then: null where there is a gap or another topic of the same name between the two, which makes no step."""
    order = Window.partitionBy(*GROUP_PARTITION).orderBy("sampled_at")
    known = (
        samples_with_lag.where(F.col("lag").isNotNull())
        .join(F.broadcast(contexts.select("cluster", "gap_seconds")), "cluster")
        .select(
            *GROUP_PARTITION,
            "sampled_at",
            "committed",
            "log_start",
            reads_from().alias("reads_from"),
            "high_watermark",
            "lag",
            "topic_number",
            "gap_seconds",
        )
        .withColumns(
            {
                "previous_at": F.lag("sampled_at").over(order),
                "previous_committed": F.lag("committed").over(order),
                "previous_lag": F.lag("lag").over(order),
                "previous_log_start": F.lag("log_start").over(order),
                "previous_reads_from": F.lag("reads_from").over(order),
                "previous_high_watermark": F.lag("high_watermark").over(order),
                "is_other_topic": _differs_from_last_known("topic_number", order),
                "minute": minute_of(F.col("sampled_at")),
            }
        )
    )
    seconds = seconds_between(F.col("previous_at"), F.col("sampled_at"))
    is_step = (seconds <= F.col("gap_seconds")) & ~F.col("is_other_topic")
    return known.withColumn("dt", F.when(is_step, seconds))


def _differs_from_last_known(name: str, order: WindowSpec) -> Column:
    earlier = F.last(name, ignorenulls=True).over(order.rowsBetween(Window.unboundedPreceding, -1))
    return F.coalesce(earlier != F.col(name), F.lit(False))


def minutes_of_steps(steps: DataFrame) -> DataFrame:
    """Rows of `minutes` from the rows of :func:`commit_steps`."""
    t = seconds_between(F.col("minute"), F.col("sampled_at"))
    y = F.col("lag").cast("double")
    dt, is_step = F.col("dt"), F.col("dt").isNotNull()
    dlag = F.when(is_step, (F.col("lag") - F.col("previous_lag")).cast("double"))
    moved = F.col("committed") != F.col("previous_committed")
    log_went_back = F.col("high_watermark") < F.col("previous_high_watermark")
    went_back = is_step & (F.col("committed") < F.col("previous_committed")) & ~log_went_back
    at_least, at_most = _lost_in_step()
    lost_at = F.when(at_least > 0, F.col("sampled_at"))
    return steps.groupBy(*GROUP_PARTITION, "minute").agg(
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
        F.coalesce(F.sum(dlag * dlag), F.lit(0.0)).alias("sum_dlag_dlag"),
        F.count(F.when(is_step & moved, 1)).cast("int").alias("moves"),
        F.max(F.when(moved, F.col("sampled_at"))).alias("last_moved_at"),
        F.coalesce(F.sum(F.when(F.col("previous_lag") > 0, dt)), F.lit(0.0)).alias("backlog_seconds"),
        F.max(F.when(F.col("lag") == 0, F.col("sampled_at"))).alias("last_drained_at"),
        F.min(F.when(moved | (F.col("lag") == 0), F.col("sampled_at"))).alias("first_progress_at"),
        F.max(F.when(went_back, F.col("previous_committed"))).alias("rewound_from"),
        F.sum(F.when(went_back, F.col("previous_committed") - F.col("committed"))).alias("rewound_records"),
        F.max(F.when(went_back, F.col("sampled_at"))).alias("rewound_at"),
        F.sum(F.when(at_least > 0, at_least)).alias("lost_at_least"),
        F.sum(F.when(at_most > 0, at_most)).alias("lost_at_most"),
        F.min(lost_at).alias("first_lost_at"),
        F.max(lost_at).alias("last_lost_at"),
    )


def _lost_in_step() -> tuple[Column, Column]:
    """:func:`lagwise.domain.loss.records.lost_in_step`; what is not known is null, and left out of the greatest."""
    log_start, reads_from = F.col("log_start"), F.col("reads_from")
    before = F.when(~F.col("is_other_topic"), F.col("previous_log_start"))
    read_before = F.when(~F.col("is_other_topic"), F.col("previous_reads_from"))
    at_least = F.greatest(log_start - F.greatest(reads_from, F.when(before > read_before, before)), F.lit(0))
    return at_least, F.greatest(at_least, log_start - F.greatest(before, read_before))


def watermark_minutes(watermarks: DataFrame) -> DataFrame:
    """Rows of `watermark_minutes` from raw watermarks, which must reach back one sample before the first minute."""
    return minutes_of_watermarks(watermark_changes(watermarks))


def watermark_changes(watermarks: DataFrame) -> DataFrame:
    """Readable watermarks, each with whether it shows another log than the one before: ``is_other_topic`` (the topic
    was re-created), ``is_reset`` (that, or the log had gone back)."""
    order = Window.partitionBy(*TOPIC_PARTITION).orderBy("sampled_at")
    went_back = F.coalesce(F.lag("high_watermark").over(order) > F.col("high_watermark"), F.lit(False))
    return (
        watermarks.where(F.col("high_watermark").isNotNull() & F.col("log_start").isNotNull())
        .select(*TOPIC_PARTITION, "sampled_at", "topic_id", "log_start", "high_watermark")
        .withColumns(
            {
                "minute": minute_of(F.col("sampled_at")),
                "is_other_topic": _differs_from_last_known("topic_id", order),
                "went_back": went_back,
            }
        )
        .withColumn("is_reset", F.col("is_other_topic") | F.col("went_back"))
        .drop("went_back")
    )


def minutes_of_watermarks(changes: DataFrame) -> DataFrame:
    """Rows of `watermark_minutes` from the rows of :func:`watermark_changes`. What a minute held before its last
    reset is another log, and left out."""
    at = F.col("sampled_at")
    rows = changes.groupBy(*TOPIC_PARTITION, "minute").agg(
        F.max_by("topic_id", at).alias("topic_id"),
        F.max(F.when(F.col("is_reset"), at)).alias("reset_at"),
        F.max(F.when(F.col("is_other_topic"), at)).alias("recreated_at"),
        F.sort_array(F.collect_list(F.struct(at.alias("at"), "high_watermark", "log_start"))).alias("ends"),
    )
    since_reset = F.filter("ends", lambda p: p["at"] >= F.col("reset_at"))
    rows = rows.withColumn("ends", F.when(F.col("reset_at").isNull(), F.col("ends")).otherwise(since_reset))
    first, last = F.get("ends", F.lit(0)), F.get("ends", F.size("ends") - 1)
    return rows.select(
        *TOPIC_PARTITION,
        "minute",
        "topic_id",
        first["log_start"].alias("first_log_start"),
        last["log_start"].alias("last_log_start"),
        first["high_watermark"].alias("first_high_watermark"),
        last["high_watermark"].alias("last_high_watermark"),
        first["at"].alias("first_at"),
        last["at"].alias("last_at"),
        "reset_at",
        "recreated_at",
        F.transform("ends", lambda p: F.struct(p["at"].alias("at"), p["high_watermark"].alias("high_watermark"))).alias(
            "points"
        ),
    )
