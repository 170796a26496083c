"""The status rules as column expressions: :func:`lagwise.domain.status.judge`, row by row the same.

That module is the definition and says why; the contract test of ``tests/contract`` holds the two together.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lagwise.domain import status as rules
from lagwise.domain.loss.deletion import SHARE_NEAR_EDGE
from lagwise.domain.loss.retention import ROUNDING
from lagwise.domain.vocabulary import (
    READING_STATES,
    REBALANCING_STATES,
    WITHOUT_PROTOCOL,
    Engine,
    GroupState,
    LossCause,
    Status,
    UnknownReason,
)
from lagwise.tables.analysis import PARTITION_STATUS
from lagwise_spark.columns import seconds_between, with_steps
from lagwise_spark.transforms.buckets import is_held_back, reads_from
from lagwise_spark.transforms.retention import longest_kept_seconds

#: When the lag is gone or the objective is missed, with the ends of the confidence interval.
FORECASTS = tuple(f"seconds_to_{what}{end}" for what in ("catch_up", "breach") for end in ("", "_low", "_high"))


def judge(evidence: DataFrame) -> DataFrame:
    """Rows of `partition_status` from evidence, and ``previous_status`` beside them (null where there was none)."""
    judged = with_steps(evidence, _premises() | _holds() | _numbers() | _verdict())
    is_known = ~F.col("_is_blind")
    nobody_reads = is_known & (F.col("_stopped") | F.col("_stalled"))
    unsettled = F.col("previous_status").isNull() | (F.col("previous_status") != F.col("status"))
    shown = {
        "since": F.when(unsettled, F.col("as_of")).otherwise(F.col("previous_since")),
        "lag_seconds_is_lower_bound": is_known & F.col("lag_seconds_is_lower_bound"),
        "consume_rate_per_second": F.when(nobody_reads, F.lit(0.0)).otherwise(F.col("consume_rate_per_second")),
        "transaction_seconds": F.when(is_known & is_held_back(), F.col("last_stable_seconds")),
        "seconds_to_loss_is_upper_bound": is_known & F.col("seconds_to_loss_is_upper_bound"),
        "rewound_records": F.when(is_known & F.col("_rewound"), F.col("rewound_records")),
        "rewound_at": F.when(is_known & F.col("_rewound"), F.col("rewound_at")),
        "records_lost": _shown_lost(is_known),
        **_lost_of_day(is_known),
        **{
            name: F.when(is_known, F.col(name))
            for name in (
                "lag",
                "lag_seconds",
                "seconds_to_loss",
                "seconds_to_loss_at_latest",
                "loss_cause",
                *FORECASTS,
            )
        },
    }
    columns = [column.name for column in PARTITION_STATUS.columns]
    return judged.select(*[shown.get(name, F.col(name)).alias(name) for name in columns], "previous_status")


def _shown_lost(is_known: Column) -> Column:
    return F.when(is_known, F.col("records_lost")).otherwise(F.lit(0)).cast("long")


def _lost_of_day(is_known: Column) -> dict[str, Column]:
    """:func:`lagwise.domain.loss.deletion.lost_of_day`; of a ghost nothing is told."""
    is_told = ~F.col("deleted_by_request") & ~F.coalesce(F.col("_blind") == str(Status.GHOST), F.lit(False))
    is_told &= F.col("lost_at_least") > 0
    numbers = {
        name: F.greatest(F.when(is_told, F.col(name)), _shown_lost(is_known))
        for name in ("lost_at_least", "lost_at_most")
    }
    return numbers | {name: F.when(is_told, F.col(name)) for name in ("first_lost_at", "last_lost_at")}


def _cadence() -> Column:
    return F.coalesce(F.col("commit_cadence_seconds"), F.lit(0.0))


def _telling_seconds(minimum: Column) -> Column:
    rhythm_is_known = F.col("commits_seen") >= rules.COMMITS_OF_RHYTHM
    unseen = (
        F.when(rhythm_is_known, F.lit(0.0))
        .when(_is_without_protocol(), F.lit(rules.UNSEEN_SIMPLE_AFTER_SECONDS))
        .otherwise(F.lit(rules.UNSEEN_AFTER_SECONDS))
    )
    return F.greatest(minimum, unseen, rules.TELLING_CADENCES * _cadence())


def _telling_standstill_seconds(minimum: Column) -> Column:
    is_rare = F.col("_produced") * F.col("interval_seconds") < 1
    may_be_committed = F.col("owner").isNotNull() | _is_without_protocol()
    rhythm_is_sure = F.col("commits_seen") >= rules.COMMITS_OF_RHYTHM_IF_RARE
    unsure = F.when(rhythm_is_sure, F.lit(0.0)).otherwise(F.lit(rules.UNSEEN_AFTER_SECONDS))
    if_rare = F.greatest(unsure, rules.CADENCE_IF_RARE * rules.TELLING_CADENCES * _cadence())
    return F.greatest(_telling_seconds(minimum), F.when(is_rare & may_be_committed, if_rare))


def _is_without_protocol() -> Column:
    return F.coalesce(F.col("type").isin(*sorted(WITHOUT_PROTOCOL)), F.lit(False))


def _is_read_by_a_job() -> Column:
    return F.coalesce(F.col("type") == str(Engine.FLINK), F.lit(False)) & F.col("owner").isNotNull()


def _is_held_up() -> Column:
    """:func:`lagwise.domain.status.is_held_up`, of what nothing was ever committed on."""
    due = F.greatest(F.lit(rules.UNSEEN_AFTER_SECONDS), rules.TELLING_CADENCES * F.col("checkpoint_interval_seconds"))
    is_due = F.col("checkpoint_interval_seconds").isNotNull() & (F.col("checkpoint_age_seconds") >= due)
    return _is_read_by_a_job() & F.coalesce(is_due, F.lit(False))


def _premises() -> dict[str, Column]:
    has_left_topic = (
        F.coalesce(F.col("state").isin(*sorted(READING_STATES)), F.lit(False))
        & F.col("group_is_assigned")
        & ~F.col("topic_is_assigned")
    )
    ghost = F.col("committed").isNotNull() & has_left_topic & (F.col("unmoved_seconds") >= rules.GHOST_AFTER_SECONDS)
    no_ends = F.col("high_watermark").isNull() | F.col("log_start").isNull()
    blind = (
        F.when(ghost, F.lit(str(Status.GHOST)))
        .when(~F.col("readable"), F.lit(str(UnknownReason.UNREADABLE)))
        .when(
            F.col("committed").isNull() & F.col("lag").isNull(),
            F.when(F.col("ever_committed"), F.lit(str(UnknownReason.EXPIRED)))
            .when(
                _is_read_by_a_job() & F.col("checkpoint_interval_seconds").isNull(),
                F.lit(str(UnknownReason.NOT_COMMITTING)),
            )
            .when(_is_held_up(), F.lit(str(Status.STALLED)))
            .otherwise(F.lit(str(UnknownReason.NO_COMMIT))),
        )
        .when(no_ends, F.lit(str(UnknownReason.UNREADABLE)))
        .when(F.col("recreated"), F.lit(str(UnknownReason.RECREATED)))
        .when(F.col("committed") > F.col("high_watermark"), F.lit(str(UnknownReason.OUT_OF_RANGE)))
    )
    unrest, samples = F.col("samples_of_unrest"), F.col("group_samples")
    least_change = F.greatest(F.lit(1.0), rules.TREND_SHARE_OF_LAG * F.col("lag"))
    one_percent = rules.TREND_SHARE_OF_PRODUCE_RATE * F.col("_produced")
    late = F.when(F.col("lag_seconds_is_lower_bound"), 0.0).otherwise(rules.CADENCES_OF_PATIENCE * _cadence())
    return {
        "_has_left_topic": has_left_topic,
        "_blind": blind,
        "_is_blind": F.col("_blind").isNotNull(),
        "_has_lag": F.coalesce(F.col("lag") > 0, F.lit(False)),
        "_age": F.coalesce(F.col("lag_seconds"), F.lit(0.0)),
        "_produced": F.coalesce(F.col("produce_rate_per_second"), F.lit(0.0)),
        "_consumed": F.coalesce(F.col("consume_rate_per_second"), F.lit(0.0)),
        "_band": F.greatest(one_percent, F.try_divide(least_change, F.col("span_seconds"))),
        "_visible": F.col("_has_lag") & (F.col("_age") > F.col("interval_seconds") + late),
        "_measured": F.col("lag_slope_per_second").isNotNull()
        & (F.col("span_seconds") >= _telling_seconds(F.col("minimum_span_seconds"))),
        "_unrest": F.col("rebalancing_now")
        | ((unrest >= rules.REBALANCES_OF_UNREST) & (unrest >= rules.SHARE_OF_UNREST * samples)),
    }


def _holds() -> dict[str, Column]:
    has_lag, age, band = F.col("_has_lag"), F.col("_age"), F.col("_band")

    def stands_for(minimum_seconds: float) -> Column:
        return F.col("standstill_seconds") >= _telling_standstill_seconds(F.lit(minimum_seconds))

    having_no_owner_is_telling = (
        F.col("state").isNotNull()
        & ~F.coalesce(F.col("state"), F.lit("")).isin(str(GroupState.UNKNOWN), *sorted(map(str, REBALANCING_STATES)))
        & ~F.col("rebalancing_now")
        & ~F.col("_has_left_topic")
    )
    is_unowned = F.col("owner").isNull() & having_no_owner_is_telling & stands_for(rules.STOPPED_AFTER_SECONDS)
    is_unsettled = F.col("_unrest") & ~F.col("_has_left_topic") & stands_for(rules.UNSETTLED_AFTER_SECONDS)
    stopped = has_lag & (is_unowned | is_unsettled)
    stalled = has_lag & ~stopped & F.col("owner").isNotNull() & stands_for(rules.STALLED_AFTER_SECONDS)
    tells = F.col("_measured") & F.col("_visible") & F.col("longer_slope").isNotNull()
    slope, longer = F.col("lag_slope_per_second"), F.col("longer_slope")
    grows = tells & (
        ((F.col("lag_slope_low_per_second") > band) & (longer > band)) | ((F.col("longer_low") > band) & (slope > band))
    )
    shrinks = tells & (
        (F.col("lag_slope_high_per_second") < -band) | ((F.col("longer_high") < -band) & (slope < -band))
    )
    creeps = tells & (F.col("lag_slope_low_per_second") > 0) & (longer > 0)
    was_set_back = seconds_between(F.col("rewound_at"), F.col("as_of")) < F.col("span_seconds")
    behind = F.col("_measured") & F.col("_visible") & (age >= F.col("minimum_span_seconds"))
    patience = F.greatest(F.col("lag_objective_seconds"), rules.CADENCES_OF_PATIENCE * _cadence())
    lagging = (
        (F.col("_measured") | ~F.col("trend_is_measurable"))
        & ~F.col("_grows")
        & ~F.col("_shrinks")
        & has_lag
        & (age > patience)
        & ~F.coalesce(F.col("drained_seconds") <= patience, F.lit(False))
    )
    return {
        "_stopped": stopped,
        "_stalled": stalled,
        "_grows": F.coalesce(grows, F.lit(False)),
        "_shrinks": F.coalesce(shrinks, F.lit(False)),
        "_near_edge": F.coalesce(creeps & (age >= SHARE_NEAR_EDGE * F.col("retention_seconds")), F.lit(False)),
        "_behind": F.coalesce(behind, F.lit(False)) & ~F.coalesce(was_set_back, F.lit(False)),
        "_lagging": lagging,
        "_rewound": F.coalesce(F.col("committed") < F.col("rewound_from"), F.lit(False)),
    }


def _numbers() -> dict[str, Column]:
    standing = F.col("_stopped") | F.col("_stalled")
    age, retention = F.col("_age"), F.col("retention_seconds")
    consumed = F.when(standing, F.lit(0.0)).otherwise(F.col("_consumed"))
    at_latest = _by_age(longest_kept_seconds(), F.col("overtaken_at_latest_seconds"), standing)
    losing_ground = standing | F.col("_grows")
    by_size = F.when(losing_ground & F.col("retention_is_by_size"), _seconds_to_truncation(consumed))
    is_bound, margin = F.col("lag_seconds_is_lower_bound"), reads_from() - F.col("log_start")
    of_log = F.when(F.col("log_start") > 0, F.try_divide(F.col("high_watermark") - F.col("log_start"), retention))
    approach = F.coalesce("log_start_rate_per_second", of_log) - consumed
    by_log_start = F.when(
        losing_ground & is_bound & retention.isNotNull() & (approach > 0), F.greatest(margin, F.lit(0)) / approach
    )
    is_by_age = (F.col("seconds_to_loss") == F.col("_by_time")) & (F.col("seconds_to_loss") > 0)
    is_by_deletion = F.col("seconds_to_loss") == F.col("_seconds_to_deletion")
    by_what = F.when(is_by_deletion, F.lit(str(LossCause.DELETION))).otherwise(F.lit(str(LossCause.EXPIRY)))
    is_at_edge = F.col("_has_lag") & F.coalesce(age + F.col("interval_seconds") >= retention, F.lit(False))
    goes_on_losing = is_at_edge | (F.col("seconds_to_loss") <= rules.LOSING_WITHIN_SECONDS)
    lately = F.when(F.col("deleted_by_request"), F.lit(0)).otherwise(F.coalesce("lost_lately", F.lit(0)))
    lost = F.when((_lost_by_now() == 0) & goes_on_losing, lately).otherwise(_lost_by_now())
    return {
        "_by_time": _by_age(retention, F.col("overtaken_seconds"), standing),
        "_seconds_to_deletion": F.when(F.col("_has_lag"), F.least("_by_time", by_log_start, by_size)),
        "seconds_to_loss": F.least("_seconds_to_deletion", "seconds_to_expiry"),
        "loss_cause": F.when(F.col("seconds_to_loss").isNotNull(), by_what),
        "seconds_to_loss_is_upper_bound": is_bound & is_by_deletion & is_by_age,
        "seconds_to_loss_at_latest": F.when(F.col("_has_lag") & is_by_deletion, at_latest),
        "_at_risk": F.coalesce(F.col("seconds_to_loss") <= F.col("risk_horizon_seconds"), F.lit(False)),
        "records_lost": lost,
        "_losing_data": F.coalesce(F.col("records_lost") > 0, F.lit(False)),
        **_forecasts(standing),
    }


def _by_age(kept: Column, overtaken: Column, standing: Column) -> Column:
    """:func:`lagwise.domain.loss.deletion.by_age`."""
    age, consumed = F.col("_age"), F.col("_consumed")
    steady = F.coalesce("steady_produce_rate_per_second", "_produced")
    growth = F.least(F.lit(1.0), F.greatest(F.lit(0.0), 1 - F.try_divide(consumed, steady)))
    to_come = (kept - age) / growth
    goes_on = (F.col("_grows") | F.col("_near_edge")) & (steady > 0) & (growth > 0)
    return (
        F.when(age >= kept, F.lit(0.0))
        .when(standing, kept - age)
        .when(F.col("_behind") & overtaken.isNotNull(), overtaken)
        .when(goes_on & F.col("_behind") & (consumed > 0), F.greatest(to_come, kept))
        .when(goes_on, to_come)
    )


def _lost_by_now() -> Column:
    """:func:`lagwise.domain.loss.deletion.lost_by_now`."""
    missing = F.greatest(F.col("log_start") - reads_from(), F.lit(0))
    was_missing = F.greatest(F.least("log_start", "earlier_log_start") - reads_from(), F.lit(0))
    of_request = F.when(F.col("earlier_log_start").isNotNull(), was_missing).otherwise(F.lit(0))
    return F.when(F.col("deleted_by_request"), of_request).otherwise(missing)


def _seconds_to_truncation(consumed: Column) -> Column:
    """:func:`lagwise.domain.loss.retention.seconds_to_truncation`."""
    margin, produced = reads_from() - F.col("log_start"), F.col("_produced")
    since = F.greatest(F.col("high_watermark") - F.col("jump_high_watermark"), F.lit(0))
    share_read, size = consumed / produced, F.greatest("jump_records", since)
    # A double, which a huge lag cannot overflow.
    number = F.floor((margin - share_read * since) / (size * (1 - share_read)) + ROUNDING).cast("double") + 1
    seconds = (F.greatest(number, F.lit(1.0)) * size - since) / produced
    return F.when(F.col("jump_records").isNotNull() & (consumed < produced), seconds)


def _forecasts(standing: Column) -> dict[str, Column]:
    """The formulas of :mod:`lagwise.domain.lag_forecast`."""
    slope, low, high = (F.col(f"lag_slope_{name}per_second") for name in ("", "low_", "high_"))
    shrinks = F.col("_shrinks") & (slope < 0)
    left = F.col("lag_objective_seconds") - F.col("_age")
    gets_so_old = F.coalesce(F.col("retention_seconds") > F.col("lag_objective_seconds"), F.lit(True))
    grows = F.col("_grows") & (F.col("_produced") > 0) & (slope > 0)

    def breach(of: Column) -> Column:
        older_per_second = F.least(F.lit(1.0), of / F.col("_produced"))
        return F.when((left > 0) & gets_so_old, F.when(standing, left).when(grows & (of > 0), left / older_per_second))

    return {
        "seconds_to_catch_up": F.when(shrinks, F.col("lag") / -slope),
        "seconds_to_catch_up_low": F.when(shrinks, F.col("lag") / -low),
        "seconds_to_catch_up_high": F.when(shrinks & (high < 0), F.col("lag") / -high),
        "seconds_to_breach": breach(slope),
        "seconds_to_breach_low": breach(high),
        "seconds_to_breach_high": breach(low),
    }


#: Worst first, as :class:`Status` declares them.
_HELD = (
    (Status.LOSING_DATA, "_losing_data"),
    (Status.AT_RISK, "_at_risk"),
    (Status.STOPPED, "_stopped"),
    (Status.STALLED, "_stalled"),
    (Status.REWOUND, "_rewound"),
    (Status.FALLING_BEHIND, "_grows"),
    (Status.LAGGING, "_lagging"),
    (Status.CATCHING_UP, "_shrinks"),
)


def _verdict() -> dict[str, Column]:
    unknown = F.lit(str(Status.UNKNOWN))
    # What is blind and has a status all the same: a ghost, and what a job reads that is held up.
    has_status = F.col("_blind").isin(str(Status.GHOST), str(Status.STALLED))
    status = F.when(has_status, F.col("_blind")).when(F.col("_is_blind"), unknown)
    is_bad = F.lit(False)
    for word, held in _HELD[:-1]:
        status = status.when(F.col(held), F.lit(str(word)))
        is_bad = is_bad | F.col(held)
    has_commit = F.col("committed").isNotNull()
    few = (has_commit & (F.col("samples") < rules.MINIMUM_SAMPLES)) | (
        F.col("_visible") & ((F.col("trend_is_measurable") & ~F.col("_measured")) | F.col("lag_seconds_is_lower_bound"))
    )
    status = (
        status.when(F.col("_unrest"), unknown)
        .when(F.col("_shrinks"), F.lit(str(Status.CATCHING_UP)))
        .when(few, unknown)
        .otherwise(F.lit(str(Status.OK)))
    )
    reason = (
        F.when(F.col("_is_blind"), F.when(~has_status, F.col("_blind")))
        .when(is_bad, F.lit(None).cast("string"))
        .when(F.col("_unrest"), F.lit(str(UnknownReason.REBALANCING)))
        .when(~F.col("_shrinks") & few, F.lit(str(UnknownReason.TOO_FEW_SAMPLES)))
    )
    return {"reason": reason, "status": status, "reasons": _reasons()}


def _reasons() -> Column:
    status = F.col("status")
    held = F.filter(
        F.array(*[F.when(F.col(column), F.lit(str(word))) for word, column in _HELD]), lambda word: word.isNotNull()
    )
    alone = F.array(status)
    completed = F.when(status == str(Status.UNKNOWN), F.concat(held, alone)).otherwise(held)
    return F.when(F.col("_is_blind") | (F.size(held) == 0), alone).otherwise(completed)
