"""Everything that is known of each group-partition at its cluster's latest sample, in one row.

The columns are the fields of :class:`lagwise.domain.status.Evidence`, which says what they mean, and what the tables
show beside the verdict.
"""

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lagwise.domain.history import INTERVALS_PER_WINDOW, LOOKBACK_SECONDS
from lagwise.domain.log_history import SHARE_OF_LIMIT
from lagwise.domain.vocabulary import WITHOUT_PROTOCOL, GroupState, UnknownReason
from lagwise_spark.columns import GROUP, GROUP_PARTITION, TOPIC_PARTITION, seconds_between, with_steps
from lagwise_spark.transforms.buckets import is_held_back, lag_expression, reads_from
from lagwise_spark.transforms.pace import DAY, window_index
from lagwise_spark.transforms.retention import limits
from lagwise_spark.transforms.time_lag import with_age, with_last_stable_age


@dataclass(frozen=True, slots=True)
class Known:
    """The inputs. ``contexts`` has one row per cluster: what is its latest sample and what verdicts go by.

    ``commits``, ``watermarks`` and ``members`` are those of the latest sample; ``pace``, ``histories`` and
    ``group_facts`` come from the transforms of those names; ``topics`` is the topics' newest configuration;
    ``previous`` the status rows of the round before, or empty; ``objectives`` the lag objectives of groups that have
    one of their own, None where none has.
    """

    contexts: DataFrame
    commits: DataFrame
    watermarks: DataFrame
    members: DataFrame
    pace: DataFrame
    histories: DataFrame
    group_facts: DataFrame
    topics: DataFrame
    previous: DataFrame
    objectives: DataFrame | None = None


def evidence(known: Known) -> DataFrame:
    """One row per group-partition that is committed to, is owned, or was committed to within the history."""
    ends = known.watermarks.select(
        *TOPIC_PARTITION, "log_start", "high_watermark", "last_stable", "leader", F.lit(True).alias("has_row_of_ends")
    )
    before = known.previous.select(
        *GROUP_PARTITION,
        F.col("committed").alias("previous_committed"),
        F.col("committed_since").alias("previous_committed_since"),
        F.col("log_start").alias("previous_log_start"),
        F.col("jump_records").alias("previous_jump_records"),
        F.col("jump_high_watermark").alias("previous_jump_high_watermark"),
        F.col("status").alias("previous_status"),
        F.col("reason").alias("previous_reason"),
        F.col("since").alias("previous_since"),
    )
    present = known.commits.select(
        *GROUP_PARTITION, "committed", "next_record", "committed_at", "owner", F.lit(True).alias("is_present")
    )
    # The wide rows of the histories come last: what is joined after them would have to move them.
    rows = (
        present.join(known.pace, list(GROUP_PARTITION), "full")
        .join(before, list(GROUP_PARTITION), "left")
        .join(F.broadcast(known.contexts.drop("sample_id", "gap_seconds", "open_from")), "cluster")
        .transform(lambda rows: _with_own_objectives(rows, known.objectives))
        .join(F.broadcast(known.group_facts), list(GROUP), "left")
        .join(F.broadcast(limits(known.topics)), ["cluster", "topic"], "left")
        .join(F.broadcast(_clients(known.members)), [*GROUP, "owner"], "left")
        .join(ends, list(TOPIC_PARTITION), "left")
        .join(known.histories, list(TOPIC_PARTITION), "left")
    )
    rows = with_last_stable_age(rows).withColumns(
        {
            "lag": F.coalesce(lag_expression(is_held_back()), F.when(_has_nothing_to_commit(), F.lit(0))),
            "position": F.greatest(reads_from(), "log_start"),
            "window": F.coalesce("window", window_index(INTERVALS_PER_WINDOW * F.col("interval_seconds"))),
            # What a group-partition without a history, or a group that is gone, has none of.
            "samples": F.coalesce("samples", F.lit(0)),
            "span_seconds": F.coalesce("span_seconds", F.lit(0.0)),
            "trend_is_measurable": F.coalesce("trend_is_measurable", F.lit(True)),
            "rebalancing_now": F.coalesce("rebalancing_now", F.lit(False)),
            "samples_of_unrest": F.coalesce("samples_of_unrest", F.lit(0)),
            "group_samples": F.coalesce("group_samples", F.lit(0)),
        }
    )
    rows = with_age(rows).withColumns(_jumps())
    measured = F.get("produce_rates", F.least("window", F.size("produce_rates") - 1))
    # The watermarks of a day are not kept together: on it, what was read and what the lag grew by was produced.
    of_day = F.greatest(F.lit(0.0), F.col("consume_rate_per_second") + F.col("lag_slope_per_second"))
    is_told = F.col("consume_rate_per_second").isNotNull() & F.col("lag_slope_per_second").isNotNull()
    produce_rate = F.when((F.col("window") == DAY) & is_told, of_day).otherwise(measured)
    # Nulls are left out of the least.
    of_hour = F.when(F.col("window") != DAY, F.get("produce_rates", F.size("produce_rates") - 1))
    steady = F.when(F.col("produce_rate_per_second").isNotNull(), F.least("produce_rate_per_second", of_hour))
    rates = {"produce_rate_per_second": produce_rate, "steady_produce_rate_per_second": steady}
    return with_steps(rows, rates | _derived()).drop("produce_rates")


def _with_own_objectives(rows: DataFrame, objectives: DataFrame | None) -> DataFrame:
    if objectives is None:
        return rows
    own = F.coalesce("own_lag_objective_seconds", "lag_objective_seconds")
    rows = rows.join(F.broadcast(objectives), list(GROUP), "left").withColumn("lag_objective_seconds", own)
    return rows.drop("own_lag_objective_seconds")


def _was_committed() -> Column:
    return (
        F.col("moved_at").isNotNull()
        | F.col("previous_committed").isNotNull()
        | (F.coalesce("previous_reason", F.lit("")) == str(UnknownReason.EXPIRED))
    )


def _has_nothing_to_commit() -> Column:
    """:func:`lagwise.domain.status.has_nothing_to_commit`; null where it cannot be known."""
    is_empty = F.col("log_start") == F.col("high_watermark")
    return is_empty & F.col("owner").isNotNull() & F.col("committed").isNull() & ~_was_committed()


def _clients(members: DataFrame) -> DataFrame:
    return members.select(*GROUP, F.col("member_id").alias("owner"), "client_id", "host")


def _jumps() -> dict[str, Column]:
    """The jumps of the log start. Segments may last for longer than the look-back: where it has not jumped since the
    round before, in the same log, that one's are still the last."""
    stands = (F.col("log_start") == F.col("previous_log_start")) & ~F.coalesce("was_reset", F.lit(False))
    has_jumped = F.col("jump_records").isNotNull()
    return {
        name: F.when(has_jumped | ~stands, F.col(name)).otherwise(F.col(f"previous_{name}"))
        for name in ("jump_records", "jump_high_watermark")
    }


def _derived() -> dict[str, Column]:
    """What follows from the joined columns alone."""
    same_commit = F.coalesce(F.col("previous_committed") == F.col("committed"), F.lit(False))
    was_moving = F.coalesce(F.col("was_seen_moving"), F.lit(False))
    moved_at = F.coalesce(
        F.when(same_commit & ~was_moving, F.least("moved_at", "previous_committed_since")),
        F.col("moved_at"),
        F.col("as_of"),
    )
    assigned = F.coalesce(F.col("assigned_topics"), F.array().cast("array<string>"))
    before = F.coalesce("previous_reason", F.lit(""))
    still_recreated = same_commit & (before == str(UnknownReason.RECREATED))
    may_expire = F.col("state") == str(GroupState.EMPTY)
    was_a_group = ~F.coalesce(F.col("type").isin(*sorted(WITHOUT_PROTOCOL)), F.lit(False))
    last_commit = F.coalesce("committed_at", "committed_since")
    counted_from = F.when(was_a_group, F.greatest("empty_since", last_commit)).otherwise(F.col("committed_at"))
    expires_in = F.col("offsets_retention_seconds") - seconds_between(counted_from, F.col("as_of"))
    has_lag = F.coalesce(F.col("lag") > 0, F.lit(False))
    # :func:`lagwise.domain.log_history.is_deleted_by_request`, where null is no.
    is_young = F.col("deleted_seconds") < F.least(SHARE_OF_LIMIT * F.col("retention_seconds"), F.lit(LOOKBACK_SECONDS))
    is_limited = F.col("retention_seconds").isNotNull()
    by_request = F.col("retention_is_known") & ~F.col("retention_is_by_size") & (~is_limited | is_young)
    has_history = F.col("was_reset").isNotNull()
    # That nothing could be read is no sign of life.
    undrained = F.when(~is_held_back(), seconds_between(F.col("drained_at"), F.col("as_of")))
    # A null is left out of the least: an age that is a lower bound says nothing.
    age = F.when(~F.col("lag_seconds_is_lower_bound"), F.coalesce("lag_seconds", F.lit(0.0)))
    standstill = F.least("unmoved_seconds", age, "drained_seconds")
    has_watermarks = F.col("high_watermark").isNotNull() & F.col("log_start").isNotNull()
    # Where nothing is committed and nobody looked for the ends, there is nothing that could not be read.
    nothing_to_read = F.col("committed").isNull() & F.col("has_row_of_ends").isNull()
    closed_backlog = F.greatest(F.lit(0.0), F.col("backlog_seconds") - F.col("standstill_seconds"))
    return {
        "committed_since": moved_at,
        "unmoved_seconds": seconds_between(F.col("committed_since"), F.col("as_of")),
        "readable": F.col("group_error").isNull() & (has_watermarks | nothing_to_read),
        "commits_seen": F.coalesce("moves", F.lit(0)),
        "drained_seconds": undrained,
        "standstill_seconds": F.when(has_lag, standstill).otherwise(0.0),
        # Nulls are left out of the greatest.
        "commit_cadence_seconds": F.greatest(
            F.when(F.col("commits_seen") > 0, closed_backlog / F.col("commits_seen")), "usual_pause_seconds"
        ),
        "ever_committed": _was_committed(),
        "deleted_by_request": F.coalesce(by_request & has_history, F.lit(False)),
        "recreated": F.coalesce(F.col("committed_since") < F.col("recreated_at"), F.lit(False)) | still_recreated,
        "topic_is_assigned": F.array_contains(assigned, F.col("topic")),
        "group_is_assigned": F.size(assigned) > 0,
        "checkpoint_age_seconds": seconds_between(F.col("checkpointed_at"), F.col("as_of")),
        "seconds_to_expiry": F.when(may_expire & expires_in.isNotNull(), F.greatest(expires_in, F.lit(0.0))),
    }
