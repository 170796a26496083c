"""Whether a partition that stands still only waits for its turn.

A consumer that works through what it fetched of one partition before it turns to the next leaves the others untouched
for minutes, however fast it reads. What such a partition shows is what one shows that hangs; what its owner does
elsewhere tells them apart.
"""

import numpy as np

from lagwise.domain.verdicts.buckets import MINUTE_SECONDS, pauses
from lagwise.domain.verdicts.columns import (
    MICROS,
    NEVER,
    Array,
    Columns,
    Ranges,
    next_index,
    or_zero,
    picked,
    ranges_of,
    seconds_between,
    taken,
)

#: Shorter absences are not seen in minutes …
ABSENCE_SECONDS = float(MINUTE_SECONDS)
#: … and those of no more than so many sampling intervals are what sampling makes of none.
INTERVALS_OF_ABSENCE = 2.0
#: Who takes turns stays with no partition for longer than this, and so has come back to one within this time.
TURN_SECONDS = 300.0
#: A turn is overdue after so many of the longest absences: it would have come a second time.
ABSENCES_OF_PATIENCE = 2.0
#: Who has only begun to take turns has come back to none. Where more than this share of what an owner is to read has
#: not been touched for as long as one partition, that one waits with the others, for up to ``TURN_SECONDS``.
SHARE_OF_WAITING = 0.5


def absence_seconds(buckets: Columns, since: Array, hour: Ranges, lately: Ranges, interval_seconds: Array) -> Array:
    """Of each case the longest time without progress that ended ``lately``, in the minutes of ``TURN_SECONDS``, as far
    as it lies within the ``hour``; 0 where none was long enough to tell.

    ``since`` is :func:`lagwise.domain.verdicts.buckets.last_progress_before` of the buckets.
    """
    first = next_index(buckets["first_progress_at"] != NEVER)
    first = picked(first, hour.start, ~hour.is_empty, len(since))
    # What came before the hour is not looked at.
    is_late = (first >= lately.start) & (first < hour.stop)
    resumed = picked(buckets["first_progress_at"], first, is_late, 0)
    of_first = np.where(is_late, resumed - np.where(is_late, hour.first(buckets["first_at"]), 0), 0) / MICROS
    others = lately.since(np.where(is_late, first + 1, lately.start)).max(or_zero(pauses(buckets, since)), empty=0)
    longest = np.maximum(of_first, others)
    tells = (longest >= ABSENCE_SECONDS) & (longest > INTERVALS_OF_ABSENCE * interval_seconds)
    return np.where(tells, longest, 0.0)


def awaits_turn(owned: Columns, asked: Columns) -> Array:
    """Whether each of the group-partitions that are ``asked`` about may only wait for its turn: its owner has moved on
    another since this one stands, and lately; and it has come back to one after at least half as long, or has left most
    of them for as long, but for no longer than a turn may take.

    ``owned`` are all that these owners have at the moment, or more. Both have ``owner_now``, a number of the owner in
    the group at the moment (-1 is none), and standstill_seconds; ``owned`` has seen_moving_at (null: never), is_unread
    and absence_seconds; ``asked`` has as_of, interval_seconds, and stalled_after_seconds: how long an owner may do
    nothing at all.
    """
    stands = asked["standstill_seconds"]
    order = np.argsort(owned["owner_now"], kind="stable")
    its = ranges_of(asked["owner_now"], owned["owner_now"][order])
    idle_seconds = seconds_between(its.max(owned["seen_moving_at"][order]), asked["as_of"])
    reads_on = (idle_seconds < stands) & (idle_seconds < asked["stalled_after_seconds"])
    absence = its.max(owned["absence_seconds"][order], empty=0)
    unread = taken({name: owned[name] for name in ("owner_now", "standstill_seconds")}, owned["is_unread"])
    unread = taken(unread, np.lexsort((unread["standstill_seconds"], unread["owner_now"])))
    to_read = ranges_of(asked["owner_now"], unread["owner_now"])
    # What was read at the latest sample stands for no time at all.
    shortest = np.maximum(stands - asked["interval_seconds"], np.nextafter(0.0, 1.0))
    waiting = to_read.stop - to_read.bisect_left(unread["standstill_seconds"], shortest)
    is_one_of_many = waiting > SHARE_OF_WAITING * to_read.sizes
    may_come = (stands <= ABSENCES_OF_PATIENCE * absence) | (is_one_of_many & (stands <= TURN_SECONDS))
    return (asked["owner_now"] >= 0) & reads_on & may_come
