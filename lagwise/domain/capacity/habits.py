"""How groups read within an hour, from rows of `five_minutes` as columns (:mod:`lagwise.domain.verdicts.columns`).

``pair`` is the number of a group-partition, and ``group_topic`` that of a group and a topic. Rows are in order of pair
and time.
"""

import numpy as np

from lagwise.domain.capacity.saturation import (
    CADENCES_AT_WORK,
    CADENCES_OF_BACKLOG,
    LEAST_BACKLOG_SECONDS,
    LEAST_SECONDS_AT_WORK,
)
from lagwise.domain.verdicts.buckets import FIVE_MINUTES_SECONDS, HOUR
from lagwise.domain.verdicts.columns import Array, Columns, or_zero, ratio, runs, seconds_between, start_of, taken


def habits_of(fives: Columns) -> dict[str, Array]:
    """One row for each pair and hour, in this order: ``cadence_seconds`` (null where nothing was committed),
    ``needed_backlog`` (records that must be unread to be a backlog), ``longest_silence_seconds`` (a partition that
    moved within it is at work), ``records`` committed, and ``max_lag``.

    The cadence is that of the liveliest five minutes, so that a standstill does not lengthen it; who commits too rarely
    for that is judged by the whole hour. Cadences shorter than the sampling interval look as long as that.
    """
    moves, backlog = fives["moves"], fives["backlog_seconds"]
    hour = start_of(HOUR, fives["minute"])
    parts = runs(fives["pair"], hour)
    span = np.maximum(FIVE_MINUTES_SECONDS / 2, seconds_between(fives["first_at"], fives["last_at"]))
    peak = parts.max((fives["last_committed"] - fives["first_committed"]) / span)
    is_lively = (moves >= 2) & (backlog > 0)
    lively = parts.min(np.where(is_lively, ratio(backlog, moves), np.inf))
    cadence = np.where(np.isinf(lively), ratio(parts.sum(backlog), parts.sum(moves)), lively)
    known = or_zero(cadence)
    return {
        "pair": parts.first(fives["pair"]),
        "group_topic": parts.first(fives["group_topic"]),
        "hour": parts.first(hour),
        "records": np.maximum(0, parts.last(fives["last_committed"]) - parts.first(fives["first_committed"])),
        "max_lag": parts.max(fives["max_lag"]),
        "cadence_seconds": cadence,
        "needed_backlog": np.maximum(0.0, peak) * np.maximum(LEAST_BACKLOG_SECONDS, CADENCES_OF_BACKLOG * known),
        "longest_silence_seconds": np.maximum(LEAST_SECONDS_AT_WORK, CADENCES_AT_WORK * known),
    }


def had_backlog(habits: Columns) -> Array:
    """Whether there can have been a saturated minute at all: of few, where consumers keep up."""
    return is_backlog(habits, habits["max_lag"])


def is_backlog(habits: Columns, lag: Array) -> Array:
    """Whether so many unread records are a backlog, by the habit of each row."""
    enough: Array = ~np.isnan(habits["cadence_seconds"]) & (lag > 0) & (lag >= habits["needed_backlog"])
    return enough


def hourly_throughput(fives: Columns, habits: Columns) -> dict[str, Array]:
    """One row for each group-topic and hour in which anything was committed: ``records``, and the best five minutes
    (``best_at``, the last of equals) with a rate that was reached at least. A commit at their beginning may be of work
    before it, for a cadence at most."""
    rows = taken(fives, np.lexsort((fives["minute"], fives["group_topic"])))
    parts = runs(rows["group_topic"], rows["minute"])
    cadence = parts.max(or_zero(ratio(rows["backlog_seconds"], rows["moves"])))
    rate = parts.sum(rows["last_committed"] - rows["first_committed"]) / (FIVE_MINUTES_SECONDS + cadence)
    group_topic, minute = parts.first(rows["group_topic"]), parts.first(rows["minute"])
    hour = start_of(HOUR, minute)
    order = np.lexsort((minute, rate, hour, group_topic))
    best = runs(group_topic[order], hour[order])
    of_topic = taken(habits, np.lexsort((habits["hour"], habits["group_topic"])))
    made = {
        "group_topic": best.first(group_topic[order]),
        "hour": best.first(hour[order]),
        # Habits are of the same five minutes, so that their group-topics and hours are the same.
        "records": runs(of_topic["group_topic"], of_topic["hour"]).sum(of_topic["records"]),
        "best_at": best.last(minute[order]),
        "best_rate_per_second": np.maximum(0.0, best.last(rate[order])),
    }
    return taken(made, made["records"] > 0)
