"""Unread records that are deleted, and committed offsets that expire: when, and how many are missing."""

import numpy as np

from lagwise.domain.verdicts.columns import NULL, Array, Columns
from lagwise.domain.verdicts.evidence import jumps_in
from lagwise.domain.verdicts.retention import longest_kept_seconds, seconds_to_log_start, seconds_to_truncation
from lagwise.domain.vocabulary import LossCause

#: A partition that lost records goes on losing while the next loss is nearer than this (the shortest trend window).
LOSING_WITHIN_SECONDS = 300.0
#: From this share of the retention on, a lag that grows is told however slowly it does.
SHARE_NEAR_EDGE = 0.9
#: The causes behind the numbers in verdicts; -1 is null.
LOSS_CAUSES = tuple(LossCause)


def loss_of(p: Columns) -> dict[str, Array]:
    """When the unread records are deleted, or offsets expire, and how many records are missing."""
    standing, kept, age = p["stopped"] | p["stalled"], p["retention_seconds"], p["age"]
    consumed = np.where(standing, 0.0, p["consumed"])
    # It was set back to older records while its rate was measured: before that it had them read, and its rate does
    # not say how fast it can.
    was_set_back = p["rewound_seconds"] < p["span_seconds"]
    p = {
        **p,
        "standing": standing,
        "near_edge": p["creeps"] & (age >= SHARE_NEAR_EDGE * kept),
        # Behind for long enough to tell how fast it reads.
        "behind": p["is_measured"] & p["is_visible"] & (age >= p["minimum_span_seconds"]) & ~was_set_back,
    }
    has_lag = p["has_lag"] & (p["committed"] != NULL)
    margin = np.where(has_lag, p["reads_from"] - p["log_start"], 0)
    by_time = seconds_to_deletion(p, kept, p["overtaken_seconds"])
    loses_ground = standing | p["grows"]
    by_size = seconds_to_truncation(margin, jumps_in(p), p["high_watermark"], p["produced"], consumed)
    by_size = np.where(loses_ground & p["retention_is_by_size"], by_size, np.nan)
    by_start = seconds_to_log_start(margin, p, p["log_start_rate_per_second"], p, consumed)
    is_bound = p["lag_seconds_is_lower_bound"]
    by_start = np.where(loses_ground & is_bound & ~np.isnan(kept), by_start, np.nan)
    deletion = np.where(has_lag, np.fmin(np.fmin(by_time, by_size), by_start), np.nan)
    seconds = np.fmin(deletion, p["seconds_to_expiry"])
    is_by_deletion = seconds == deletion
    at_latest = seconds_to_deletion(p, longest_kept_seconds(p), p["overtaken_at_latest_seconds"])
    # About as old as is kept: there the lag need not grow while records are lost, it is cut off. An age is known to
    # within an interval.
    is_at_edge = p["has_lag"] & (age + p["interval_seconds"] >= kept)
    cause = np.where(is_by_deletion, LOSS_CAUSES.index(LossCause.DELETION), LOSS_CAUSES.index(LossCause.EXPIRY))
    return {
        "seconds_to_loss": seconds,
        "loss_cause": np.where(np.isnan(seconds), -1, cause),
        # It may well come sooner.
        "seconds_to_loss_is_upper_bound": is_bound & is_by_deletion & (seconds == by_time) & (seconds > 0),
        "seconds_to_loss_at_latest": np.where(has_lag & is_by_deletion, at_latest, np.nan),
        "records_lost": _records_lost(p, is_at_edge | (seconds <= LOSING_WITHIN_SECONDS)),
    }


def seconds_to_deletion(p: Columns, kept: Array, overtaken: Array) -> Array:
    """When unread records are as old as is kept: of those that are written, where retention overtakes the reader, or
    else, at today's rates, of those to come; NaN is never. ``age`` grows by a second a second for a group that reads
    nothing, by 1 − consumed / produced for one that reads too slowly. Kafka deletes whole segments, whose newest record
    must be past the retention: nobody but the broker knows where they end."""
    age, consumed = p["age"], p["consumed"]
    steady = np.where(np.isnan(p["steady_produce_rate_per_second"]), p["produced"], p["steady_produce_rate_per_second"])
    with np.errstate(divide="ignore", invalid="ignore"):
        growth = np.clip(1 - consumed / steady, 0.0, 1.0)
        to_come = (kept - age) / growth
    goes_on = (p["grows"] | p["near_edge"]) & (steady > 0) & (growth > 0)
    # All that is written is read in time, where that is known, and what is not written yet is kept for so long.
    reads = p["behind"] & (consumed > 0)
    return np.select(
        [np.isnan(kept), age >= kept, p["standing"], p["behind"] & ~np.isnan(overtaken), goes_on & reads, goes_on],
        [np.nan, 0.0, kept - age, overtaken, np.maximum(to_come, kept), to_come],
        np.nan,
    )


def _records_lost(p: Columns, goes_on: Array) -> Array:
    """How many records are missing. A consumer that finds its records deleted goes on with the oldest there are, at
    whose edge it stays: where the loss goes on, between two of them it is what was lost lately.

    What a client had deleted, the group itself may have: Kafka Streams does so with what it has read and committed. Its
    commit is read a moment before the log start, and may be the older one by that; by the next minute it is not.
    """
    committed, earlier = p["committed"] != NULL, p["earlier_log_start"]
    reads = np.where(committed, p["reads_from"], p["log_start"])
    missing = np.maximum(p["log_start"] - reads, 0)
    was_missing = np.where(earlier == NULL, 0, np.maximum(np.minimum(p["log_start"], earlier) - reads, 0))
    lately = np.where(goes_on, p["lost_lately"], 0)
    return np.where(p["is_deleted_by_request"], was_missing, np.where(missing > 0, missing, lately))


def lost_of_day(e: Columns, is_ghost: Array, missing: Array) -> dict[str, Array]:
    """What was lost within a day, of which so much is ``missing`` now. What is missing from earlier days counts."""
    is_told = ~e["is_deleted_by_request"] & ~is_ghost & (e["lost_at_least"] > 0)
    return {
        **{n: np.maximum(np.where(is_told, e[n], 0), missing) for n in ("lost_at_least", "lost_at_most")},
        **{n: np.where(is_told, e[n], NULL) for n in ("first_lost_at", "last_lost_at")},
    }
