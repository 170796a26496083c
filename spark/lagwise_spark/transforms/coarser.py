"""Minutes merged by five, and these by the hour: rows of the same shape, for what lies further back in a window."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from lagwise.tables.minutes import WATERMARK_FIVE_MINUTES
from lagwise_spark.columns import (
    GROUP_PARTITION,
    STATISTICS,
    TOPIC_PARTITION,
    five_minutes_of,
    hour_of,
    seconds_between,
    shifted_statistics,
)


def five_minutes(minutes: DataFrame) -> DataFrame:
    """Rows of `five_minutes` from those of `minutes`."""
    return _merged(minutes, five_minutes_of(F.col("minute")))


def hours(minutes: DataFrame) -> DataFrame:
    """Rows of `hours` from those of `minutes` or of `five_minutes`."""
    # Across the start of the hour it is told with the day, which knows the hour before.
    is_of_hour = hour_of(last_progress()) == hour_of(F.col("minute"))
    rows = minutes.withColumn("pause", F.when(is_of_hour, pause_before()))
    return _merged(rows, hour_of(F.col("minute")), F.max("pause").alias("longest_pause_seconds"))


def last_progress() -> Column:
    """When the group had last got on before each bucket, as its earlier ones tell."""
    before = Window.partitionBy(*GROUP_PARTITION).orderBy("minute").rowsBetween(Window.unboundedPreceding, -1)
    return F.max(F.greatest("last_moved_at", "last_drained_at")).over(before)


def pause_before() -> Column:
    """The seconds without progress that ended in each bucket and began in an earlier one."""
    return seconds_between(last_progress(), F.col("first_progress_at"))


def _merged(minutes: DataFrame, bucket: Column, *more: Column) -> DataFrame:
    rows = minutes.withColumn("bucket", bucket)
    return (
        rows.groupBy(*GROUP_PARTITION, "bucket")
        .agg(
            *merged_statistics(F.col("bucket")),
            F.max_by("last_lag", "last_at").alias("last_lag"),
            F.max("max_lag").alias("max_lag"),
            F.sum("moves").cast("int").alias("moves"),
            F.max("last_moved_at").alias("last_moved_at"),
            F.sum("backlog_seconds").alias("backlog_seconds"),
            F.max("last_drained_at").alias("last_drained_at"),
            F.max("rewound_from").alias("rewound_from"),
            F.sum("rewound_records").alias("rewound_records"),
            F.max("rewound_at").alias("rewound_at"),
            *lost_together(),
            F.min("first_progress_at").alias("first_progress_at"),
            *more,
        )
        .withColumnRenamed("bucket", "minute")
    )


def lost_together() -> list[Column]:
    """Aggregates: what was lost in a stretch of time."""
    return _lost(F.col("lost_at_most"))


def lost_in_stretches() -> list[Column]:
    """Aggregates: :func:`lagwise.domain.loss.records.of_stretches`, each of which is a row."""
    return _lost(F.when(F.col("lost_at_least") > 0, F.col("lost_at_most")))


def _lost(at_most: Column) -> list[Column]:
    return [
        F.sum("lost_at_least").alias("lost_at_least"),
        F.sum(at_most).alias("lost_at_most"),
        F.min("first_lost_at").alias("first_lost_at"),
        F.max("last_lost_at").alias("last_lost_at"),
    ]


def merged_statistics(origin: Column) -> list[Column]:
    """Aggregates: the additive statistics with ``origin`` as the start of t, and the first and the last sample."""
    shifted = shifted_statistics(seconds_between(origin, F.col("minute")))
    counts = ("samples", "steps")
    return [
        *[F.sum(shifted[name]).cast("int" if name in counts else "double").alias(name) for name in STATISTICS],
        F.min("first_at").alias("first_at"),
        F.max("last_at").alias("last_at"),
        F.min_by("first_committed", "first_at").alias("first_committed"),
        F.max_by("last_committed", "last_at").alias("last_committed"),
    ]


def watermark_five_minutes(minutes: DataFrame) -> DataFrame:
    """Rows of `watermark_five_minutes` from those of `watermark_minutes`. As there, what came before the last reset is
    another log, and left out."""
    whole = [column.name for column in WATERMARK_FIVE_MINUTES.columns if column.name not in TOPIC_PARTITION]
    rows = minutes.withColumn("five_minutes", five_minutes_of(F.col("minute")))
    gathered = rows.groupBy(*TOPIC_PARTITION, "five_minutes").agg(
        F.sort_array(F.collect_list(F.struct("minute", *[name for name in whole if name != "minute"]))).alias("all"),
        F.max(F.when(F.col("reset_at").isNotNull(), F.col("minute"))).alias("reset_minute"),
        F.max("reset_at").alias("reset_at"),
        F.max("recreated_at").alias("recreated_at"),
    )
    since_reset = F.filter("all", lambda m: m["minute"] >= F.col("reset_minute"))
    kept = gathered.withColumn(
        "of_this_log", F.when(F.col("reset_minute").isNull(), F.col("all")).otherwise(since_reset)
    )
    first = F.get("of_this_log", F.lit(0))
    last = F.get("of_this_log", F.size("of_this_log") - 1)
    return kept.select(
        *TOPIC_PARTITION,
        F.col("five_minutes").alias("minute"),
        last["topic_id"].alias("topic_id"),
        *_ends(first, last, "log_start"),
        *_ends(first, last, "high_watermark"),
        *_ends(first, last, "at"),
        "reset_at",
        "recreated_at",
        F.flatten(F.transform("of_this_log", lambda m: m["points"])).alias("points"),
    )


def _ends(first: Column, last: Column, name: str) -> list[Column]:
    return [first[f"first_{name}"].alias(f"first_{name}"), last[f"last_{name}"].alias(f"last_{name}")]
