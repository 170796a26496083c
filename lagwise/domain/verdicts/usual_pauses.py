"""The pauses that are usual with a group-partition: those of a job that cron starts, of a commit every hour.

A pause lasts from one sample at which the group had got on, because the offset moved or nothing was unread, to the
next.
"""

import numpy as np

from lagwise.domain.verdicts.buckets import LONG_PAUSE_SECONDS, last_progress, last_progress_before, pauses
from lagwise.domain.verdicts.columns import MICROS, NEVER, NULL, Array, Columns, Ranges, picked, ranges_of

#: The pauses of a slow collector's interval or two are its own.
INTERVALS_OF_PAUSE = 2.0
#: A pause is usual if one as long came to its end in this many hours of the day …
HOURS_OF_USUAL_PAUSE = 2
#: … and in this share of those in which the group got on: some outages or deployments a day are no rhythm.
SHARE_OF_HOURS = 0.25
#: Two long pauses are two outages: from so many on they may be a rhythm. A pause is usual, too, if so many within the
#: last hour were as long.
PAUSES_OF_RHYTHM = 3
#: Two are enough if they are so long that a day holds no three of them.
RARE_PAUSE_SECONDS = 6 * 3600.0


def pauses_of_hours(hours: Columns, part: Ranges, number: Array, row: Array) -> dict[str, Array]:
    """What the whole hours of days say of usual pauses, for :func:`usual_pause`: ``row`` of ``hours`` belongs to the
    day ``number``, whose hours are its ``part``."""
    since = last_progress_before(hours)
    # A pause across the start of an hour, unless it began before the day.
    across = np.where(since[row] >= part.start[number], pauses(hours, since)[row], np.nan)
    longest = np.fmax(hours["longest_pause_seconds"][row], across)
    count = np.bincount(number, hours["long_pauses"][row] + (across >= LONG_PAUSE_SECONDS), len(part.start))
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
        np.maximum(HOURS_OF_USUAL_PAUSE, np.ceil(SHARE_OF_HOURS * hours_of_progress)).astype(np.int64)
        for hours_of_progress in (got_on, got_on + 1)
    )
    return {
        "usual_pause_seconds": of_rank(alone),
        "usual_pause_at_least": of_rank(with_rest),
        "usual_pause_at_most": of_rank(with_rest - 1),
        "long_pauses": count.astype(np.int64),
        "last_progress_at": part.max(last_progress(hours)),
    }


def usual_pause(buckets: Columns, hour: Ranges, rest: Ranges, days: Columns, interval_seconds: Array) -> Array:
    """The longest pause that is usual; NaN where none is: by the hours of the day, where the ``rest`` of it, the
    buckets since the last whole hour, counts as one more, and which have shown three long pauses, or two very long
    ones; or by the pauses of the last ``hour``, of which three were as long."""
    since = last_progress_before(buckets)
    pause = pauses(buckets, since)
    long = np.flatnonzero(pause >= LONG_PAUSE_SECONDS)

    def those_in(part: Ranges) -> tuple[Array, Array]:
        """The long pauses within each part, with their cases."""
        case, place = Ranges(np.searchsorted(long, part.start), np.searchsorted(long, part.stop)).rows()
        row = long[place]
        is_whole = since[row] >= part.start[case]
        return case[is_whole], pause[row[is_whole]]

    def of_rank(rank: int, case: Array, took: Array) -> Array:
        """Of the pauses of each case the one of this rank, counted from the longest."""
        order = np.lexsort((-took, case))
        its = ranges_of(np.arange(len(interval_seconds)), case[order])
        return picked(took[order], its.start + rank - 1, its.sizes >= rank, np.nan)

    # The first pause that ended in the rest began in the whole hours.
    ended, began = rest.min(buckets["first_progress_at"]), days["last_progress_at"]
    is_pause = (ended != NEVER) & (began != NULL)
    first = np.where(is_pause, np.where(is_pause, ended, 0) - np.where(is_pause, began, 0), 0) / MICROS
    is_long = first >= LONG_PAUSE_SECONDS
    case, took = those_in(rest)
    case, took = np.append(case, np.flatnonzero(is_long)), np.append(took, first[is_long])
    of_rest = of_rank(1, case, took)
    with_rest = np.fmax(days["usual_pause_at_least"], np.minimum(days["usual_pause_at_most"], of_rest))
    usual = np.where(np.isnan(of_rest), days["usual_pause_seconds"], with_rest)
    count = days["long_pauses"] + np.bincount(case, minlength=len(interval_seconds))
    usual = np.where((count >= PAUSES_OF_RHYTHM) | (usual >= RARE_PAUSE_SECONDS), usual, np.nan)
    usual = np.fmax(usual, of_rank(PAUSES_OF_RHYTHM, *those_in(hour)))
    return np.where(usual >= np.maximum(LONG_PAUSE_SECONDS, INTERVALS_OF_PAUSE * interval_seconds), usual, np.nan)
