"""How old the oldest unread record is: see :mod:`lagwise.domain.time_lag` for the definition and its reasons.

Between two resets a log only grows, so the high watermarks of its samples and the times of these are each in order:
two arrays of numbers, sorted apart from each other, are its history, and an offset's place in the one is its place in
the other. Structs, one a sample, would say the same and take ten times as long to look through.
"""

from functools import reduce
from itertools import pairwise
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lagwise.domain.history import WINDOWS_SECONDS
from lagwise_spark.columns import TOPIC_PARTITION, bucket_of, minute_of, seconds_between, with_steps
from lagwise_spark.transforms.retention import limits, longest_kept_seconds

#: A log's history has less than 2 to this many samples: two weeks at one every ten seconds.
LONGEST_HISTORY_BITS = 17


def resets(watermark_minutes: DataFrame) -> DataFrame:
    """The few topic-partitions whose log became another one: the minute in which it last did (``reset_minute``), and
    when and in which minute its topic was last re-created (``recreated_at``, ``recreated_minute``, null if never)."""
    recreated = F.col("recreated_at").isNotNull()
    return (
        watermark_minutes.where(F.col("reset_at").isNotNull())
        .groupBy(*TOPIC_PARTITION)
        .agg(
            F.max("minute").alias("reset_minute"),
            F.max("recreated_at").alias("recreated_at"),
            F.max(F.when(recreated, F.col("minute"))).alias("recreated_minute"),
        )
    )


def topic_histories(
    watermark_minutes: DataFrame, known_resets: DataFrame, topics: DataFrame, contexts: DataFrame
) -> DataFrame:
    """One row per topic-partition, about its log since its last reset: ``seen_at`` and ``high_watermarks`` of its
    samples, in order, ``recreated_at``, ``produce_rates``, one per window, ``jump_records`` and
    ``jump_high_watermark``, the fields of :class:`lagwise.domain.loss.retention.Jumps`, ``log_start_rate_per_second``,
    and whether the log ``was_reset``. ``deleted_seconds`` is the age of the newest record that is deleted (null where
    it is not known), ``earlier_log_start`` where the log began at the end of the minute before. ``known_resets`` is
    :func:`resets`. Jumps are looked for where the size of a log is limited."""
    by_size = limits(topics).where("retention_is_by_size").select("cluster", "topic", "retention_is_by_size")
    of_this_log = (
        watermark_minutes.drop("recreated_at")
        .join(F.broadcast(contexts.select("cluster", "as_of")), "cluster")
        .join(F.broadcast(known_resets), list(TOPIC_PARTITION), "left")
        .join(F.broadcast(by_size), ["cluster", "topic"], "left")
        .withColumn("bucket", bucket_of(F.col("minute"), F.col("as_of")))
        .withColumn("age", seconds_between(F.col("bucket"), F.col("as_of")))
        .where(
            (F.col("minute") <= F.col("as_of"))
            & (F.col("reset_minute").isNull() | (F.col("minute") >= F.col("reset_minute")))
        )
    )
    written = [end for window in range(len(WINDOWS_SECONDS)) for end in _written(window)]
    rows = of_this_log.groupBy(*TOPIC_PARTITION).agg(
        # Gathered as they are stored; taken apart here, every number would become an object of its own.
        F.flatten(F.collect_list("points")).alias("points"),
        F.max("recreated_at").alias("recreated_at"),
        F.max("reset_minute").alias("reset_minute"),
        F.max("as_of").alias("as_of"),
        F.max_by("last_log_start", "last_at").alias("_log_start"),
        F.max_by("last_log_start", F.when(F.col("minute") < minute_of(F.col("as_of")), F.col("last_at"))).alias(
            "earlier_log_start"
        ),
        *written,
        # Objects, unlike the points: only of those topics that need them.
        F.sort_array(
            F.flatten(F.collect_list(F.when(F.col("retention_is_by_size"), F.array(_end("first"), _end("last")))))
        ).alias("ends_of_minutes"),
    )
    rows = with_steps(rows, _jumps())
    histories = rows.select(
        *TOPIC_PARTITION,
        "as_of",
        "_log_start",
        "earlier_log_start",
        F.sort_array(F.col("points")["at"]).alias("seen_at"),
        F.sort_array(F.col("points")["high_watermark"]).alias("high_watermarks"),
        "recreated_at",
        F.col("reset_minute").isNotNull().alias("was_reset"),
        "jump_records",
        "jump_high_watermark",
        F.array(*[_produce_rate(i) for i in range(len(WINDOWS_SECONDS))]).alias("produce_rates"),
        _log_start_rate().alias("log_start_rate_per_second"),
    )
    return _with_age_of_deleted(histories)


def _end(which: str) -> Column:
    """The first or the last sample of a minute, in the order of time."""
    ends = {"at": f"{which}_at", "log_start": f"{which}_log_start", "high": f"{which}_high_watermark"}
    return F.struct("bucket", *[F.col(column).alias(name) for name, column in ends.items()])


def _is_end_of_bucket(end: Column, index: Column) -> Column:
    """Which of them :func:`lagwise.domain.time_lag.ends_of` tells: a bucket may be five minutes."""
    before, after = (F.get("ends_of_minutes", index + step)["bucket"] for step in (-1, 1))
    return ~before.eqNullSafe(end["bucket"]) | ~after.eqNullSafe(end["bucket"])


def _jumps() -> dict[str, Column]:
    """:func:`lagwise.domain.loss.retention.jumps_of`; null where the log start was never seen to jump."""
    levels, steps = F.col("_levels"), F.greatest(F.size("_levels") - 1, F.lit(0))
    below, above = F.slice(levels, F.lit(1), steps), F.slice(levels, F.lit(2), steps)
    before_last = F.filter("_ends", lambda end: end["log_start"] == F.get("_levels", F.size("_levels") - 2))
    sizes = F.sort_array(F.zip_with(below, above, lambda a, b: b - a))
    return {
        "_ends": F.filter("ends_of_minutes", _is_end_of_bucket),
        "_levels": F.sort_array(F.array_distinct(F.col("_ends")["log_start"])),
        "_has_jumped": F.size("_levels") > 1,
        "_sizes": F.when(F.col("_has_jumped"), sizes),
        "jump_records": F.get("_sizes", F.floor((F.size("_sizes") - 1) / 2).cast("int")),
        "jump_high_watermark": F.when(F.col("_has_jumped"), F.array_max(before_last["high"])),
    }


def _written(window: int) -> list[Column]:
    """The first and the last high watermark and log start within a window, and their times."""
    is_within = F.col("age") < WINDOWS_SECONDS[window]
    first_at, last_at = F.when(is_within, F.col("first_at")), F.when(is_within, F.col("last_at"))
    return [
        F.min(first_at).alias(f"first_at_{window}"),
        F.min_by("first_high_watermark", first_at).alias(f"first_{window}"),
        F.max(last_at).alias(f"last_at_{window}"),
        F.max_by("last_high_watermark", last_at).alias(f"last_{window}"),
        F.min_by("first_log_start", first_at).alias(f"first_log_start_{window}"),
        F.max_by("last_log_start", last_at).alias(f"last_log_start_{window}"),
    ]


def _produce_rate(window: int) -> Column:
    """Records per second from a window's first sample to its last, null where they are one."""
    span = seconds_between(F.col(f"first_at_{window}"), F.col(f"last_at_{window}"))
    return F.when(span > 0, (F.col(f"last_{window}") - F.col(f"first_{window}")) / span)


def _log_start_rate() -> Column:
    """:func:`lagwise.domain.time_lag.log_start_rate_of`."""
    longest = len(WINDOWS_SECONDS) - 1
    marks = [*(F.col(f"first_log_start_{window}") for window in range(longest, -1, -1)), F.col("last_log_start_0")]
    moved_throughout = reduce(and_, (a < b for a, b in pairwise(marks)))
    span = seconds_between(F.col(f"first_at_{longest}"), F.col("last_at_0"))
    return F.when(moved_throughout, (marks[-1] - marks[0]) / span)


def _count_not_above(ordered: str, value: Column) -> Column:
    """How many items of an array in ascending order are at most ``value``, by halving: a history of days has tens of
    thousands of items, and Spark offers only to look at each."""
    steps = F.array(*[F.lit(1 << bit) for bit in reversed(range(LONGEST_HISTORY_BITS))])

    def step(count: Column, more: Column) -> Column:
        # Beyond the end there is null, which is not at most anything.
        return count + F.when(F.get(ordered, count + more - 1) <= value, more).otherwise(0)

    return F.aggregate(steps, F.lit(0), step)


def with_age(rows: DataFrame) -> DataFrame:
    """Add ``lag_seconds`` and ``lag_seconds_is_lower_bound`` to rows that have ``lag``, ``position``, ``as_of`` and the
    columns of :func:`topic_histories`; null where the lag is, or where there is no history. And ``overtaken_seconds``
    and ``overtaken_at_latest_seconds``, where the rows have the rate at which the group reads and how long records are
    kept (:func:`limits`)."""
    looked_for = F.col("lag") > 0
    seconds = (
        F.when(F.col("lag").isNull() | ~_has_history(), F.lit(None).cast("double"))
        .when(~looked_for | F.col("_b").isNull(), F.lit(0.0))
        .otherwise(_seconds_since_written(F.col("position")))
    )
    overtaken = _overtaken("overtaken_seconds", F.col("retention_seconds"))
    overtaken |= _overtaken("overtaken_at_latest_seconds", longest_kept_seconds())
    staged = with_steps(
        rows,
        _neighbours(F.col("position"), looked_for)
        | {
            "lag_seconds": seconds,
            "lag_seconds_is_lower_bound": F.coalesce(
                looked_for & F.col("_b").isNotNull() & F.col("_a").isNull(), F.lit(False)
            ),
            "_reads": _rate_while_behind(),
            **overtaken,
        },
    )
    helpers = [name for name in overtaken if name.startswith("_")]
    return staged.drop(*_NEIGHBOURS, *helpers, "_reads", "seen_at", "high_watermarks")


def _rate_while_behind() -> Column:
    """:func:`lagwise.domain.loss.race.rate_while_behind`; null where nothing is read."""
    rate, age = F.col("consume_rate_per_second"), F.col("lag_seconds")
    return F.when((rate > 0) & (age > 0), rate * F.greatest(F.lit(1.0), F.col("span_seconds") / age))


def _overtaken(name: str, kept: Column) -> dict[str, Column]:
    """:func:`lagwise.domain.loss.race.seconds_to_overtaking` of an unread record younger than ``kept``. Only where
    the last record might be read too late if it were as old as the first, which is rare, are those between them
    looked at."""
    begin, age = F.col("position"), F.col("lag_seconds")
    last = F.size("high_watermarks") - 1

    def age_of(index: Column) -> Column:
        return F.greatest(F.lit(0.0), seconds_between(F.get("seen_at", index), F.col("as_of")))

    def read_after(offset: Column) -> Column:
        return (offset - begin) / F.col("_reads")

    def is_late(index: Column) -> Column:
        return age_of(index) + read_after(F.get("high_watermarks", index)) > kept

    may_be_late = (F.col("lag") > 0) & (age + read_after(F.get("high_watermarks", last)) > kept) & (age <= kept)
    late = F.get(F.filter(F.sequence(F.col("_not_above"), last), is_late), F.lit(0))
    index, is_first = F.col(f"_{name}_index"), F.col(f"_{name}_index") == F.col("_not_above")
    before, after = F.col(f"_{name}_before"), F.col(f"_{name}_after")
    ages = before["age"], after["age"]
    read_at = [point["age"] + read_after(point["offset"]) for point in (before, after)]
    share = (kept - read_at[0]) / (read_at[1] - read_at[0])
    return {
        f"_{name}_index": F.when(may_be_late, late),
        f"_{name}_before": F.struct(
            F.when(is_first, begin).otherwise(F.get("high_watermarks", index - 1)).alias("offset"),
            F.when(is_first, age).otherwise(age_of(index - 1)).alias("age"),
        ),
        f"_{name}_after": F.struct(F.get("high_watermarks", index).alias("offset"), age_of(index).alias("age")),
        name: F.when(index.isNotNull(), kept - ages[0] - share * (ages[1] - ages[0])),
    }


def _with_age_of_deleted(histories: DataFrame) -> DataFrame:
    """Add ``deleted_seconds``, the age of the record before the log start: null where it is older than the history."""
    newest = F.col("_log_start") - 1
    is_known = F.col("_a").isNotNull() & F.col("_b").isNotNull()
    steps = _neighbours(newest, F.lit(True)) | {"deleted_seconds": F.when(is_known, _seconds_since_written(newest))}
    return with_steps(histories, steps).drop(*_NEIGHBOURS, "_log_start", "as_of")


def with_last_stable_age(rows: DataFrame) -> DataFrame:
    """Add ``last_stable_seconds``, the age of the record at the last stable offset, to rows that have ``as_of`` and the
    columns of :func:`topic_histories`; null where there is none, or no history."""
    last_stable = F.col("last_stable")
    looked_for = last_stable < F.col("high_watermark")
    seconds = F.when(looked_for & F.col("_b").isNotNull(), _seconds_since_written(last_stable))
    return with_steps(rows, _neighbours(last_stable, looked_for) | {"last_stable_seconds": seconds}).drop(*_NEIGHBOURS)


_NEIGHBOURS = ("_not_above", "_a_at", "_a", "_b_at", "_b")


def _has_history() -> Column:
    return F.col("seen_at").isNotNull() & (F.size("seen_at") > 0)


def _neighbours(position: Column, looked_for: Column) -> dict[str, Column]:
    """The samples between which the log reached an offset: the last one that had not passed it, and the next."""
    after, before = F.col("_not_above"), F.col("_not_above") - 1
    return {
        "_not_above": F.when(looked_for, _count_not_above("high_watermarks", position)),
        "_a_at": F.get("seen_at", before),
        "_a": F.get("high_watermarks", before),
        "_b_at": F.get("seen_at", after),
        "_b": F.get("high_watermarks", after),
    }


def _seconds_since_written(position: Column) -> Column:
    """The age of the record at an offset from its neighbours, a lower bound where there is only the later one."""
    share = (position - F.col("_a")) / (F.col("_b") - F.col("_a"))
    between = seconds_between(F.col("_a_at"), F.col("_b_at"))
    exact = seconds_between(F.col("_a_at"), F.col("as_of")) - share * between
    bound = seconds_between(F.col("_b_at"), F.col("as_of"))
    return F.greatest(F.lit(0.0), F.coalesce(exact, bound))
