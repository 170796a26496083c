"""From minutes of high watermarks to hours of topics.

:mod:`lagwise.domain.capacity.demand` has the rules.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from lagwise.domain.capacity.demand import LEAST_SECONDS, LOG_WIDTH
from lagwise_spark.columns import TOPIC_PARTITION, hour_of

_TOPIC = ("cluster", "topic")


def topic_hours(ends: DataFrame, gap_seconds: float) -> DataFrame:
    """Rows of `topic_hours` from those of `watermark_minutes`, which must reach back one gap before the first hour that
    is wanted; surplus hours are for the caller to drop."""
    # Brought together once, which is all that the steps below ask for.
    ends = ends.repartition(*_TOPIC)
    order = Window.partitionBy(*TOPIC_PARTITION).orderBy("minute")
    before_at, before = F.lag("last_at").over(order), F.lag("last_high_watermark").over(order)
    hour = hour_of(F.col("minute"))
    is_first = F.coalesce(hour_of(F.lag("minute").over(order)) != hour, F.lit(True))
    since = F.unix_micros("last_at") - F.unix_micros(before_at)
    is_step = F.col("reset_at").isNull() & (since <= int(gap_seconds * 1e6))
    # Whole numbers: sums come out the same in whatever order they are added.
    own = F.unix_micros("last_at") - F.unix_micros("first_at")
    records = F.when(is_step, F.col("last_high_watermark") - before)
    steps = ends.select(
        *_TOPIC,
        "partition",
        "minute",
        hour.alias("hour"),
        is_first.alias("is_first"),
        F.coalesce(records, F.col("last_high_watermark") - F.col("first_high_watermark")).alias("records"),
        F.when(is_step, since).otherwise(own).alias("micros"),
    )
    counts = (F.col("micros") >= int(LEAST_SECONDS * 1e6)) & (F.col("records") >= 0)
    of_topic = Window.partitionBy(*_TOPIC, "hour")
    minutes = (
        steps.groupBy(*_TOPIC, "hour", "minute")
        .agg(
            F.count(F.when(counts, 1)).alias("known"),
            F.count(F.when(F.col("is_first"), 1)).alias("new"),
            F.sum(F.when(counts, F.col("records"))).alias("records"),
            F.max(F.when(counts, F.col("micros"))).alias("micros"),
        )
        .withColumn("partitions", F.sum("new").over(of_topic))
        # A sum over some of the partitions is not what the topic was sent.
        .where(F.col("known") == F.col("partitions"))
        .withColumn("rate", F.col("records") / _seconds(F.col("micros")))
    )
    bucket = F.ceil(F.log("rate") / F.lit(LOG_WIDTH)).cast("int")
    # Of equal ones the first.
    highest = F.min(F.struct((-F.col("rate")).alias("negative"), "minute"))["minute"]
    hours = minutes.groupBy(*_TOPIC, "hour").agg(
        F.max("partitions").cast("int").alias("partitions"),
        F.count("*").cast("int").alias("minutes"),
        F.sum("records").alias("records"),
        _seconds(F.sum("micros")).alias("seconds"),
        F.max("rate").alias("max_rate_per_second"),
        highest.alias("max_at"),
        F.count(F.when(F.col("rate") == 0, 1)).cast("int").alias("zero_minutes"),
        F.sort_array(F.collect_list(F.when(F.col("rate") > 0, bucket))).alias("buckets"),
    )
    counted = F.transform(
        F.array_distinct("buckets"),
        lambda b: F.struct(
            b.alias("bucket"), F.size(F.filter("buckets", lambda other: other == b)).cast("int").alias("minutes")
        ),
    )
    return (
        hours.withColumn("rates", counted).drop("buckets").join(_partition_records(steps, minutes), [*_TOPIC, "hour"])
    )


def _partition_records(steps: DataFrame, minutes: DataFrame) -> DataFrame:
    """The records of each hour by partition, in the minutes that count."""
    counted = steps.join(minutes.select(*_TOPIC, "minute"), [*_TOPIC, "minute"], "left_semi")
    of_partitions = counted.groupBy(*_TOPIC, "hour", "partition").agg(F.sum("records").alias("records"))
    pairs = F.sort_array(F.collect_list(F.struct("partition", "records")))
    return of_partitions.groupBy(*_TOPIC, "hour").agg(pairs.alias("partition_records"))


def _seconds(micros: Column) -> Column:
    return micros / F.lit(1e6)
