"""How old the oldest unread record is: see :mod:`lagwise.domain.time_lag` for the definition and its reasons.

The history of a topic-partition is an array of minutes, each with its own few points, so that an offset is found by
looking through the minutes and then through the points of one of them.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lagwise.domain.history import WINDOWS_SECONDS
from lagwise_spark.columns import TOPIC_PARTITION, seconds_between, with_steps


def topic_histories(watermark_minutes: DataFrame, contexts: DataFrame) -> DataFrame:
    """One row per topic-partition: ``history`` (minutes since its last reset, oldest first), ``recreated_at``,
    ``log_start_rate_per_second`` over the longest window, and ``produce_rates``, one per window. Before its last reset
    it was another log, which tells nothing of this one."""
    aged = (
        watermark_minutes.join(F.broadcast(contexts.select("cluster", "as_of")), "cluster")
        .withColumn("age", seconds_between(F.col("minute"), F.col("as_of")))
        .where(F.col("age") >= 0)
    )
    minute = F.struct(
        "minute",
        "age",
        "first_at",
        "last_at",
        "first_high_watermark",
        "last_high_watermark",
        "first_log_start",
        "last_log_start",
        "points",
    )
    rows = aged.groupBy(*TOPIC_PARTITION).agg(
        F.sort_array(F.collect_list(minute)).alias("history"),
        F.max(F.when(F.col("reset_at").isNotNull(), F.col("minute"))).alias("reset_minute"),
        F.max("recreated_at").alias("recreated_at"),
    )
    since_reset = F.filter("history", lambda h: h["minute"] >= F.col("reset_minute"))
    rows = rows.withColumn("history", F.when(F.col("reset_minute").isNull(), F.col("history")).otherwise(since_reset))
    longest = len(WINDOWS_SECONDS) - 1
    rows = with_steps(rows, {f"_minutes_{index}": _within(window) for index, window in enumerate(WINDOWS_SECONDS)})
    return rows.select(
        *TOPIC_PARTITION,
        "history",
        "recreated_at",
        _rate(f"_minutes_{longest}", "log_start").alias("log_start_rate_per_second"),
        F.array(*[_rate(f"_minutes_{i}", "high_watermark") for i in range(len(WINDOWS_SECONDS))]).alias(
            "produce_rates"
        ),
    )


def _within(window: float) -> Column:
    """The minutes of ``history`` that belong to a window."""
    return F.filter("history", lambda h: h["age"] < window)


def _rate(minutes: str, name: str) -> Column:
    """Growth per second from the first sample of an array of minutes to the last, null where they are one."""
    first, last = F.get(minutes, F.lit(0)), F.get(minutes, F.size(minutes) - 1)
    span = seconds_between(first["first_at"], last["last_at"])
    grown = F.greatest(last[f"last_{name}"] - first[f"first_{name}"], F.lit(0)).cast("double")
    return F.when(span > 0, grown / span)


def with_age(rows: DataFrame) -> DataFrame:
    """Add ``lag_seconds`` and ``lag_seconds_is_lower_bound`` to rows that have ``lag``, ``position``, ``history`` and
    ``as_of``; null where the lag is, or where there is no history."""
    position = F.col("position")
    looked_for = F.col("lag") > 0
    minutes_before = F.size(F.filter("history", lambda h: h["last_high_watermark"] <= position))
    points_before = F.size(F.filter("_points", lambda p: p["high_watermark"] <= position))
    a_point = F.get("_points", F.col("_points_before") - 1)
    b_point = F.get("_points", F.col("_points_before"))
    between = seconds_between(F.col("_a_at"), F.col("_b_at"))
    share = (position - F.col("_a")) / (F.col("_b") - F.col("_a"))
    exact = seconds_between(F.col("_a_at"), F.col("as_of")) - share * between
    bound = seconds_between(F.col("_b_at"), F.col("as_of"))
    has_history = F.col("history").isNotNull() & (F.size("history") > 0)
    seconds = (
        F.when(F.col("lag").isNull() | ~has_history, F.lit(None).cast("double"))
        .when(~looked_for | F.col("_b").isNull(), F.lit(0.0))
        .otherwise(F.greatest(F.lit(0.0), F.coalesce(exact, bound)))
    )
    staged = with_steps(
        rows,
        {
            "_minutes_before": F.when(looked_for, minutes_before),
            "_before": F.get("history", F.col("_minutes_before") - 1),
            "_points": F.get("history", F.col("_minutes_before"))["points"],
            "_points_before": F.when(F.col("_points").isNotNull(), points_before),
            "_a_at": F.coalesce(a_point["at"], F.col("_before")["last_at"]),
            "_a": F.coalesce(a_point["high_watermark"], F.col("_before")["last_high_watermark"]),
            "_b_at": b_point["at"],
            "_b": b_point["high_watermark"],
            "lag_seconds": seconds,
            "lag_seconds_is_lower_bound": F.coalesce(
                looked_for & F.col("_b").isNotNull() & F.col("_a").isNull(), F.lit(False)
            ),
        },
    )
    return staged.drop("_minutes_before", "_before", "_points", "_points_before", "_a_at", "_a", "_b_at", "_b")
