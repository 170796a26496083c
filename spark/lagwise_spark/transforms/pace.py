"""From minutes to how a group-partition moves: cadence, rewinds, trend of its lag, rate of its commits.

The definitions are those of :mod:`lagwise.domain.history` and :mod:`lagwise.domain.trend`. Buckets are merged in two
steps: first into a few slots of age (a cheap sum of many rows), then the slots into the windows (few rows).
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lagwise.domain.history import CADENCES_PER_WINDOW, DAY_SECONDS, INTERVALS_PER_WINDOW, WINDOWS_SECONDS
from lagwise.domain.trend import MINIMUM_SAMPLES, RANDOM_WALK, T_99, TELLING_SAMPLES
from lagwise_spark.columns import (
    GROUP_PARTITION,
    STATISTICS,
    TOPIC_PARTITION,
    bucket_of,
    seconds_between,
    shifted_statistics,
    whole_hours_from,
    whole_hours_until,
    with_steps,
)

#: Slot i holds what belongs to window i but not to a shorter one; the last slot holds what is older than all.
OLDER = len(WINDOWS_SECONDS)
#: Index of the window of a day, which is made in another way: of the whole hours' row and of what came after them.
DAY = len(WINDOWS_SECONDS)

#: What was lost: see the columns of `minutes`.
LOST = ("lost_at_least", "lost_at_most", "first_lost_at", "last_lost_at")

_ENDS = ("first_at", "first_committed", "last_at", "last_committed")


def age_slot(age_seconds: Column) -> Column:
    """Index of the shortest window that holds a bucket of this age."""
    slot = F.lit(OLDER)
    for index in reversed(range(OLDER)):
        slot = F.when(age_seconds < WINDOWS_SECONDS[index], F.lit(index)).otherwise(slot)
    return slot


def window_index(needed_seconds: Column) -> Column:
    """Index of the shortest window that is at least this long; more than ``DAY`` where none is."""
    window = F.lit(DAY + 1)
    for index, length in reversed(list(enumerate((*WINDOWS_SECONDS, DAY_SECONDS)))):
        window = F.when(needed_seconds <= length, F.lit(index)).otherwise(window)
    return window


def pace(minutes: DataFrame, days: DataFrame, resets: DataFrame, contexts: DataFrame) -> DataFrame:
    """One row per group-partition: see the columns of the last select. ``minutes`` may be of five where they are that
    old; ``days`` is :func:`lagwise_spark.transforms.day.whole_hours`. ``resets`` is
    :func:`lagwise_spark.transforms.time_lag.resets`: only what came after its topic's re-creation tells of a
    partition."""
    recreated = resets.where(F.col("recreated_minute").isNotNull()).select(*TOPIC_PARTITION, "recreated_minute")
    slots = _slots(minutes, recreated, contexts)
    before = _before_the_last_hours(days, recreated, contexts)
    return _trend(_chosen(_windows(slots.unionByName(before, allowMissingColumns=True)), contexts))


def _before_the_last_hours(days: DataFrame, recreated: DataFrame, contexts: DataFrame) -> DataFrame:
    """The whole hours' row, as a slot that belongs to the day alone."""
    now = contexts.select("cluster", "as_of", whole_hours_until(F.col("as_of")).alias("until"))
    rows = (
        days.join(F.broadcast(now), ["cluster", "until"])
        .join(F.broadcast(recreated), list(TOPIC_PARTITION), "left")
        .where(F.col("recreated_minute").isNull() | (F.col("recreated_minute") < F.col("until")))
    )
    shifted = shifted_statistics(seconds_between(F.col("as_of"), whole_hours_from(F.col("until"))))
    return rows.select(
        *GROUP_PARTITION,
        F.lit(OLDER).alias("slot"),
        F.lit(True).alias("is_of_day"),
        *[expression.alias(name) for name, expression in shifted.items()],
        *_ENDS,
        *LOST,
        "usual_pause_seconds",
    )


def _slots(minutes: DataFrame, recreated: DataFrame, contexts: DataFrame) -> DataFrame:
    aged = (
        minutes.join(F.broadcast(contexts.select("cluster", "as_of")), "cluster")
        .join(F.broadcast(recreated), list(TOPIC_PARTITION), "left")
        .withColumns(
            {
                "age": seconds_between(F.col("minute"), F.col("as_of")),
                "bucket": bucket_of(F.col("minute"), F.col("as_of")),
            }
        )
        .where(F.col("age") >= 0)
        .withColumns(
            {
                "is_same_log": F.coalesce(F.col("bucket") > F.col("recreated_minute"), F.lit(True)),
                "slot": age_slot(seconds_between(F.col("bucket"), F.col("as_of"))),
                "is_of_day": F.col("minute") >= whole_hours_until(F.col("as_of")),
            }
        )
    )

    def of_same_log(value: Column) -> Column:
        return F.when(F.col("is_same_log"), value)

    # Times move to a common origin, `as_of`: t becomes t − age.
    shifted = shifted_statistics(-F.col("age"))
    return aged.groupBy(*GROUP_PARTITION, "slot", "is_of_day").agg(
        *[F.sum(of_same_log(expression)).alias(name) for name, expression in shifted.items()],
        # Not a minimum of structs: Spark can only sort for that, and these are millions of rows.
        F.min(of_same_log(F.col("first_at"))).alias("first_at"),
        F.min_by("first_committed", of_same_log(F.col("first_at"))).alias("first_committed"),
        F.max(of_same_log(F.col("last_at"))).alias("last_at"),
        F.max_by("last_committed", of_same_log(F.col("last_at"))).alias("last_committed"),
        F.min("first_at").alias("first_seen_at"),
        F.sum("moves").alias("moves"),
        F.sum("backlog_seconds").alias("backlog_seconds"),
        F.max("last_moved_at").alias("last_moved_at"),
        F.max("last_drained_at").alias("last_drained_at"),
        F.max(of_same_log(F.col("rewound_from"))).alias("rewound_from"),
        F.sum(of_same_log(F.col("rewound_records"))).alias("rewound_records"),
        F.max(of_same_log(F.col("rewound_at"))).alias("rewound_at"),
        F.sum(of_same_log(F.col("lost_at_least"))).alias("lost_at_least"),
        F.sum(of_same_log(F.col("lost_at_most"))).alias("lost_at_most"),
        F.min(of_same_log(F.col("first_lost_at"))).alias("first_lost_at"),
        F.max(of_same_log(F.col("last_lost_at"))).alias("last_lost_at"),
    )


def _windows(slots: DataFrame) -> DataFrame:
    def within(window: int, value: Column) -> Column:
        return F.when(F.col("is_of_day") if window == DAY else F.col("slot") <= window, value)

    lookback = OLDER - 1
    aggregates = [
        F.coalesce(F.sum(within(lookback, F.col("moves"))), F.lit(0)).cast("int").alias("moves"),
        # As :func:`lagwise.domain.history.whole_micros`.
        F.round(F.coalesce(F.sum(within(lookback, F.col("backlog_seconds"))), F.lit(0.0)), 6).alias("backlog_seconds"),
        F.max(within(lookback, F.col("rewound_from"))).alias("rewound_from"),
        F.sum(within(lookback, F.col("rewound_records"))).alias("rewound_records"),
        F.max(within(lookback, F.col("rewound_at"))).alias("rewound_at"),
        F.sum(within(0, F.col("lost_at_least"))).alias("lost_lately"),
        # :func:`lagwise.domain.loss.records.of_stretches`: a row is a stretch, or the sum of those of the whole hours.
        F.sum(within(DAY, F.col("lost_at_least"))).alias("lost_at_least"),
        F.sum(within(DAY, F.when(F.col("lost_at_least") > 0, F.col("lost_at_most")))).alias("lost_at_most"),
        F.min(within(DAY, F.col("first_lost_at"))).alias("first_lost_at"),
        F.max(within(DAY, F.col("last_lost_at"))).alias("last_lost_at"),
        F.max("last_moved_at").alias("last_moved_at"),
        F.max("last_drained_at").alias("last_drained_at"),
        F.min("first_seen_at").alias("first_seen_at"),
        F.max("usual_pause_seconds").alias("usual_pause_seconds"),
    ]
    for window in range(DAY + 1):
        aggregates += [F.sum(within(window, F.col(name))).alias(f"{name}_{window}") for name in STATISTICS]
        aggregates += [
            F.min(within(window, F.col("first_at"))).alias(f"first_at_{window}"),
            F.min_by("first_committed", within(window, F.col("first_at"))).alias(f"first_committed_{window}"),
            F.max(within(window, F.col("last_at"))).alias(f"last_at_{window}"),
            F.max_by("last_committed", within(window, F.col("last_at"))).alias(f"last_committed_{window}"),
        ]
    # A group-partition that only earlier hours tell of is not there any more.
    return slots.groupBy(*GROUP_PARTITION).agg(*aggregates).where(F.col("first_seen_at").isNotNull())


def _chosen(windows: DataFrame, contexts: DataFrame) -> DataFrame:
    """Pick the window that suits the cadence, and the next longer one."""
    rhythm = F.when(F.col("moves") > 0, F.col("backlog_seconds") / F.col("moves")).otherwise(0.0)
    rhythm = F.greatest(rhythm, "usual_pause_seconds")
    needed = F.greatest(INTERVALS_PER_WINDOW * F.col("interval_seconds"), CADENCES_PER_WINDOW * rhythm)

    hour = OLDER - 1

    def at(name: str, index: Column) -> Column:
        picked = F.col(f"{name}_{hour}")
        for i in (*range(hour), DAY):
            picked = F.when(index == i, F.col(f"{name}_{i}")).otherwise(picked)
        return picked

    judged = F.col("window")
    # The hour and the day are each confirmed by themselves.
    longer = F.when(judged < hour, judged + 1).otherwise(judged)
    return (
        windows.join(F.broadcast(contexts.select("cluster", "interval_seconds")), "cluster")
        .withColumn("window", window_index(needed))
        .select(
            *GROUP_PARTITION,
            "moves",
            "backlog_seconds",
            "rewound_from",
            "rewound_records",
            "rewound_at",
            "lost_lately",
            *LOST,
            "usual_pause_seconds",
            F.coalesce("last_moved_at", "first_seen_at").alias("moved_at"),
            F.col("last_drained_at").alias("drained_at"),
            F.col("last_moved_at").isNotNull().alias("was_seen_moving"),
            (judged <= DAY).alias("trend_is_measurable"),
            F.when(judged <= DAY, judged).otherwise(hour).alias("window"),
            *[at(name, judged).alias(name) for name in STATISTICS],
            *[at(name, longer).alias(f"longer_{name}") for name in STATISTICS],
            *[at(name, judged).alias(name) for name in _ENDS],
        )
    )


def _trend(chosen: DataFrame) -> DataFrame:
    span = F.coalesce(seconds_between(F.col("first_at"), F.col("last_at")), F.lit(0.0))
    consumed = (F.col("last_committed") - F.col("first_committed")).cast("double")
    slope, margin = slope_and_margin("")
    longer_slope, longer_margin = slope_and_margin("longer_")
    measurable = F.col("trend_is_measurable")
    steps = {
        "lag_slope_per_second": F.when(measurable, slope),
        "margin": margin,
        "longer_slope": F.when(measurable, longer_slope),
        "longer_margin": longer_margin,
        "span_seconds": span,
    }
    return with_steps(chosen, steps).select(
        *GROUP_PARTITION,
        "moves",
        "backlog_seconds",
        "rewound_from",
        "rewound_records",
        "rewound_at",
        "lost_lately",
        *LOST,
        "usual_pause_seconds",
        "moved_at",
        "drained_at",
        "was_seen_moving",
        "trend_is_measurable",
        "window",
        F.coalesce("samples", F.lit(0)).cast("int").alias("samples"),
        "span_seconds",
        F.when(F.col("span_seconds") > 0, F.greatest(consumed, F.lit(0.0)) / F.col("span_seconds")).alias(
            "consume_rate_per_second"
        ),
        "lag_slope_per_second",
        (F.col("lag_slope_per_second") - F.col("margin")).alias("lag_slope_low_per_second"),
        (F.col("lag_slope_per_second") + F.col("margin")).alias("lag_slope_high_per_second"),
        "longer_slope",
        (F.col("longer_slope") - F.col("longer_margin")).alias("longer_low"),
        (F.col("longer_slope") + F.col("longer_margin")).alias("longer_high"),
    )


def slope_and_margin(prefix: str) -> tuple[Column, Column]:
    """The formulas of :func:`lagwise.domain.trend.trend_of` over the columns with this prefix; null for its None."""

    def c(name: str) -> Column:
        return F.col(prefix + name)

    n = c("samples").cast("double")
    s_tt = c("sum_tt") - c("sum_t") * c("sum_t") / n
    s_tl = c("sum_t_lag") - c("sum_t") * c("sum_lag") / n
    s_ll = c("sum_lag_lag") - c("sum_lag") * c("sum_lag") / n
    enough = (c("samples") >= MINIMUM_SAMPLES) & (c("steps") >= 1) & (s_tt > 0)
    slope = F.when(enough, s_tl / s_tt)
    residuals = F.greatest(F.lit(0.0), s_ll - slope * s_tl)
    successive = F.greatest(
        F.lit(0.0),
        c("sum_dlag_dlag") - 2 * slope * c("sum_dt_dlag") + slope * slope * c("sum_dt_dt"),
    )
    independent = residuals / (n - 2) / s_tt
    is_correlated = (n < TELLING_SAMPLES) | (successive / c("steps") * n < 2 * residuals * (1 + 2 / n))
    drift = c("sum_dt_dlag") / c("sum_dt_dt")
    squared_steps = F.greatest(F.lit(0.0), c("sum_dlag_dlag") - drift * c("sum_dt_dlag"))
    random_walk = RANDOM_WALK / n * squared_steps / F.greatest(F.lit(1), c("steps") - 1) / (c("sum_dt_dt") / c("steps"))
    variance = F.when(is_correlated, F.greatest(independent, random_walk)).otherwise(independent)
    quantiles = F.array(*[F.lit(q) for q in T_99])
    quantile = F.get(quantiles, F.least(c("samples").cast("int") - 2, F.lit(len(T_99))) - 1)
    return slope, F.when(enough, quantile * F.sqrt(variance))
