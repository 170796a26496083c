"""When a group-partition last began to move in another way: after an outage, a leap of the log start, a rewind, or a
leap of the offset towards the end.

What came before says nothing about what comes after it: an hour of standstill is no rhythm of commits, and a trend that
begins before a restart is a trend of two things. Windows do not reach back across a change.
"""

from typing import NamedTuple

import numpy as np

from lagwise.domain.verdicts.buckets import FIVE_MINUTES, MINUTE, last_progress, last_progress_before
from lagwise.domain.verdicts.columns import (
    MICROS,
    NEVER,
    NULL,
    Array,
    Columns,
    Ranges,
    is_first,
    last_index,
    micros,
    picked,
    runs,
    seconds_between,
    start_of,
)

#: Minutes older than this are merged into five: only the longest window reaches back to them.
COARSE_AFTER_SECONDS = 900.0
#: A pause this long, in which nothing was read although there was something to read, may be an outage …
OUTAGE_SECONDS = 120.0
#: … if it is this many of the cadences of the other commits, which are at least so many …
CADENCES_OF_OUTAGE = 4.0
COMMITS_BESIDE_OUTAGE = 2
#: … and not two other pauses within the hour, nor a usual one, are longer than this share of it.
SHARE_OF_OUTAGE = 0.5
#: What is lost, or rewound, in one bucket is a leap if it is this share of all within the hour: who reads at the edge
#: of what is kept loses a little all the time.
SHARE_OF_LEAP = 0.5
#: Lag leapt if it dropped by at least this share of itself within a bucket …
SHARE_OF_LAG = 0.5
#: … the squared steps of that bucket are more than this share of all within the hour …
SHARE_OF_SQUARES = 0.5
#: … of so many steps or more …
STEPS_OF_HOUR = 20
#: … and at least this share of the squared drop, which is at least this share of them: one or two steps made it, no
#: catching up, and no batch that was written and read again.
SHARE_OF_DROP = 0.5


class Changes(NamedTuple):
    """When each case last changed, and when its last outage ended; null for never."""

    changed_at: Array
    resumed_at: Array


def coarse_until(as_of: Array) -> Array:
    """Before this time buckets are of five minutes: what lies in the last quarter of an hour never is, nor what shares
    five minutes with it."""
    return start_of(FIVE_MINUTES, as_of - micros(COARSE_AFTER_SECONDS))


def bucket_of(at: Array, as_of: Array) -> Array:
    """Start of the bucket that a time falls into as seen at ``as_of``."""
    return at - at % _length(at, as_of)


def next_bucket(at: Array, as_of: Array) -> Array:
    """Start of the bucket after the one that a time falls into as seen at ``as_of``; of null it is long ago."""
    known = np.where(at == NULL, 0, at)
    return np.where(at == NULL, NULL, bucket_of(known, as_of) + _length(known, as_of))


def _length(at: Array, as_of: Array) -> Array:
    return np.where(at < coarse_until(as_of), FIVE_MINUTES, MINUTE)


def changes(buckets: Columns, hour: Ranges, days: Columns, usual_pause_seconds: Array, as_of: Array) -> Changes:
    """The last change of each case within its ``hour``: the buckets of the longest window. ``days`` are their whole
    hours (:func:`lagwise.domain.verdicts.windows.whole_hours`)."""
    resumed_at = _resumed_at(buckets, hour, _rhythm_of(days), usual_pause_seconds, as_of)
    leaps = [
        _leapt_at(buckets, hour, amount, at, as_of)
        for amount, at in (("lost_at_least", "last_lost_at"), ("rewound_records", "rewound_at"))
    ]
    leaps.append(_skipped_at(buckets, hour, as_of))
    return Changes(np.maximum.reduce([resumed_at, *leaps]), resumed_at)


def _rhythm_of(days: Columns) -> tuple[Array, Array]:
    """How often the offset moved in the whole hours of a day, and for how many seconds there was something to commit:
    without the standstill with which they end, which may be the outage itself."""
    stands = np.nan_to_num(seconds_between(days["last_progress_at"], days["last_at"]))
    return days["moves"], days["backlog_seconds"] - stands


def _resumed_at(
    buckets: Columns, hour: Ranges, of_day: tuple[Array, Array], usual_pause_seconds: Array, as_of: Array
) -> Array:
    """When the last outage ended; ``of_day`` are the moves of the day, and its seconds with something to commit."""
    ended_at = np.full(len(as_of), NULL)
    since = last_progress_before(buckets)
    progress, resumed = last_progress(buckets), buckets["first_progress_at"]
    first_of_pair = last_index(is_first(buckets["pair"]))
    began = np.where(since >= 0, picked(progress, since, since >= 0), buckets["first_at"][first_of_pair])
    long = np.flatnonzero((resumed != NEVER) & (resumed - began >= micros(OUTAGE_SECONDS)))
    of_case = Ranges(np.searchsorted(long, hour.start), np.searchsorted(long, hour.stop))
    case, place = of_case.rows()
    row = long[place]
    # What happened before the hour began is not looked at.
    is_within = since[row] >= hour.start[case]
    began_at = np.where(is_within, began[row], hour.first(buckets["first_at"])[case])
    # A collector that saw nothing for a while saw no outage either.
    its_bucket = Ranges(hour.start[case], hour.stop[case]).bisect_left(
        buckets["minute"], bucket_of(resumed[row], as_of[case])
    )
    stood_until = picked(buckets["last_at"], its_bucket - 1, its_bucket > hour.start[case])
    took = np.where(stood_until == NULL, 0.0, (np.where(stood_until == NULL, 0, stood_until) - began_at) / MICROS)
    is_long = took >= OUTAGE_SECONDS
    case, row, took = case[is_long], row[is_long], took[is_long]
    if not len(case):
        return ended_at
    count = len(as_of)
    last = hour.max(progress)
    stands = np.where(last == NULL, 0.0, (as_of - np.where(last == NULL, as_of, last)) / MICROS)
    others = hour.sum(buckets["moves"]) - np.bincount(case, minlength=count)
    seconds = hour.sum(buckets["backlog_seconds"]) - np.bincount(case, took, count) - stands
    # An outage may fill the hour: the day still knows how often it committed.
    is_of_day = others < COMMITS_BESIDE_OUTAGE
    others, seconds = (np.where(is_of_day, day, its) for day, its in zip(of_day, (others, seconds), strict=True))
    with np.errstate(divide="ignore", invalid="ignore"):
        cadence = np.maximum(0.0, seconds) / others
    is_outage = (
        (others[case] >= COMMITS_BESIDE_OUTAGE)
        & (took >= CADENCES_OF_OUTAGE * cadence[case])
        & (_second_other(case, took) <= SHARE_OF_OUTAGE * took)
        & ~(usual_pause_seconds[case] > SHARE_OF_OUTAGE * took)
    )
    np.maximum.at(ended_at, case[is_outage], resumed[row[is_outage]])
    return ended_at


def _second_other(case: Array, took: Array) -> Array:
    """Of each pause the second longest other one of its case; 0 where there is none. The cases are in order."""
    order = np.lexsort((-took, case))
    case, took = case[order], took[order]
    rank = np.arange(len(case)) - last_index(is_first(case))
    # Of the two longest that is the third, of all others the second.
    place = np.arange(len(case)) - rank + np.where(rank < 2, 2, 1)
    is_there = (place < len(case)) & (case[np.minimum(place, len(case) - 1)] == case)
    made = np.empty(len(case))
    made[order] = picked(took, place, is_there, 0.0)
    return made


def _leapt_at(buckets: Columns, hour: Ranges, amount: str, at: str, as_of: Array) -> Array:
    """When the last bucket with a loss, or a rewind, had one, where that was most of what the hour saw."""
    last_at = hour.max(buckets[at])
    begins = np.where(last_at == NULL, NULL, bucket_of(np.where(last_at == NULL, 0, last_at), as_of))
    in_bucket = hour.since(hour.bisect_left(buckets["minute"], begins)).sum(buckets[amount])
    return np.where((last_at != NULL) & (in_bucket >= SHARE_OF_LEAP * hour.sum(buckets[amount])), last_at, NULL)


def _skipped_at(buckets: Columns, hour: Ranges, as_of: Array) -> Array:
    """Start of the bucket in which most of the lag went at once: somebody set the offset to the end, or deleted records
    and the group went on behind them, between two samples that show neither a loss nor a rewind."""
    skipped_at = np.full(len(as_of), NULL)
    case, row = hour.rows()
    bucket = bucket_of(buckets["minute"][row], as_of[case])
    its = runs(case, bucket)
    of, begins, squares = its.first(case), its.first(bucket), its.sum(buckets["sum_dlag_dlag"][row])
    is_most = ~is_first(of) & (hour.sum(buckets["steps"]) >= STEPS_OF_HOUR)[of]
    is_most &= squares > SHARE_OF_SQUARES * hour.sum(buckets["sum_dlag_dlag"])[of]
    most = np.flatnonzero(is_most)
    lag = its.last(buckets["last_lag"][row])
    drop = (lag[most - 1] - lag[most]).astype(np.float64)
    share = drop * drop / squares[most]
    is_leap = (drop > 0) & (drop >= SHARE_OF_LAG * lag[most - 1])
    is_leap &= (share <= 1 / SHARE_OF_DROP) & (share >= SHARE_OF_DROP)
    leaps = most[is_leap]
    skipped_at[of[leaps]] = begins[leaps]
    return skipped_at
