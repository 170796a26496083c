"""The pauses that are usual with a group-partition: those of a job that cron starts, of a commit every hour.

A pause lasts from one sample at which the group had got on, because the offset moved or nothing was unread, to the
next.
"""

import numpy as np

from lagwise.domain.verdicts.buckets import last_progress_before, pauses
from lagwise.domain.verdicts.columns import NEVER, Array, Columns, Ranges, picked, ranges_of

#: Shorter pauses show well enough in the mean of an hour …
USUAL_PAUSE_SECONDS = 300.0
#: … and those of a slow collector's interval or two are its own.
INTERVALS_OF_PAUSE = 2.0
#: A pause is usual if one as long came to its end in this many hours of the day …
HOURS_OF_USUAL_PAUSE = 2
#: … and in this share of those in which the group got on: some outages or deployments a day are no rhythm.
SHARE_OF_HOURS = 0.25

#: A pause is usual, too, if so many within the last hour were as long.
PAUSES_OF_HOUR = 3


def pauses_of_hours(hours: Columns, part: Ranges, number: Array, row: Array) -> dict[str, Array]:
    """What the whole hours of days say of usual pauses, for :func:`usual_pause`: ``row`` of ``hours`` belongs to the
    day ``number``, whose hours are its ``part``."""
    since = last_progress_before(hours)
    # A pause across the start of an hour, unless it began before the day.
    across = np.where(since[row] >= part.start[number], pauses(hours, since)[row], np.nan)
    longest = np.fmax(hours["longest_pause_seconds"][row], across)
    got_on = np.bincount(number, hours["first_progress_at"][row] != NEVER, len(part.start))
    is_pause = ~np.isnan(longest)
    number, longest = number[is_pause], longest[is_pause]
    order = np.lexsort((-longest, number))
    number, longest = number[order], longest[order]
    its = ranges_of(np.arange(len(part.start)), number)

    def of_rank(rank: Array) -> Array:
        """Of the longest pauses of each hour the one of this rank, counted from the longest."""
        return picked(longest, its.start + rank - 1, its.sizes >= rank, np.nan)

    alone, with_rest = (
        np.maximum(HOURS_OF_USUAL_PAUSE, np.ceil(SHARE_OF_HOURS * count)).astype(np.int64)
        for count in (got_on, got_on + 1)
    )
    return {
        "usual_pause_seconds": of_rank(alone),
        "usual_pause_at_least": of_rank(with_rest),
        "usual_pause_at_most": of_rank(with_rest - 1),
    }


def usual_pause(buckets: Columns, hour: Ranges, rest: Ranges, days: Columns, interval_seconds: Array) -> Array:
    """The longest pause that is usual; NaN where none is: by the hours of the day, where the ``rest`` of it, the
    buckets since the last whole hour, counts as one more; or by the pauses of the last ``hour``, of which three were as
    long."""
    since = last_progress_before(buckets)
    pause = pauses(buckets, since)
    long = np.flatnonzero(pause >= USUAL_PAUSE_SECONDS)
    reach = np.minimum(hour.start, rest.start)

    def those_in(part: Ranges, begun_from: Array) -> tuple[Array, Array]:
        """The pauses that ended in each part, longest first."""
        case, place = Ranges(np.searchsorted(long, part.start), np.searchsorted(long, part.stop)).rows()
        row = long[place]
        is_whole = since[row] >= begun_from[case]
        case, took = case[is_whole], pause[row[is_whole]]
        order = np.lexsort((-took, case))
        return case[order], took[order]

    def of_rank(rank: int, case: Array, took: Array) -> Array:
        its = ranges_of(np.arange(len(interval_seconds)), case)
        return picked(took, its.start + rank - 1, its.sizes >= rank, np.nan)

    of_rest = of_rank(1, *those_in(rest, reach))
    with_rest = np.fmax(days["usual_pause_at_least"], np.minimum(days["usual_pause_at_most"], of_rest))
    usual = np.where(np.isnan(of_rest), days["usual_pause_seconds"], with_rest)
    usual = np.fmax(usual, of_rank(PAUSES_OF_HOUR, *those_in(hour, hour.start)))
    return np.where(usual >= np.maximum(USUAL_PAUSE_SECONDS, INTERVALS_OF_PAUSE * interval_seconds), usual, np.nan)
