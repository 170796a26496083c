"""Which minutes were saturated (:mod:`lagwise.domain.capacity.saturation`), from rows of `minutes` as columns
(:mod:`lagwise.domain.verdicts.columns`).

``habit`` is the number of a row of :func:`lagwise.domain.capacity.habits.habits_of`: that of a group-partition in an
hour. Names are numbers.
"""

import numpy as np

from lagwise.domain.capacity.habits import is_backlog
from lagwise.domain.capacity.saturation import LONGEST_TURN_SECONDS
from lagwise.domain.verdicts.buckets import together
from lagwise.domain.verdicts.columns import (
    MICROS,
    NULL,
    Array,
    Columns,
    as_floats,
    is_first,
    last_index,
    picked,
    ranges_of,
    runs,
    seconds_between,
    taken,
)


def ownership_of(seen: Columns) -> dict[str, Array]:
    """From when until when each member owned a partition within an hour, in order of habit: ``since`` and ``until``.

    ``seen``: habit, minute, member (name), member_id, of each partition of each member in the minutes in which members
    were looked at. Between two of these the member owned it, too.
    """
    names = ("habit", "member", "member_id")
    rows = taken(seen, np.lexsort((seen["minute"], *(seen[name] for name in reversed(names)))))
    parts = runs(*(rows[name] for name in names))
    return {
        **{name: parts.first(rows[name]) for name in names},
        "since": parts.first(rows["minute"]),
        "until": parts.last(rows["minute"]),
    }


def owners_of(minutes: Columns, ownership: Columns) -> Array:
    """The row of its ownership in each minute; -1 where no member owned the partition, or more than one."""
    row, place = ranges_of(minutes["habit"], ownership["habit"]).rows()
    at = minutes["minute"][row]
    owned = (ownership["since"][place] <= at) & (at <= ownership["until"][place])
    row, place = row[owned], place[owned]
    owner = np.full(len(minutes["minute"]), -1)
    owner[row] = place
    return np.where(np.bincount(row, minlength=len(owner)) == 1, owner, -1)


def least_lag(minutes: Columns) -> Array:
    """No sample of a minute had less lag than this: the smallest of n numbers is at least their mean less √(n−1)
    standard deviations (Samuelson's inequality); both are there to be had, the smallest itself is not."""
    mean = minutes["sum_lag"] / minutes["samples"]
    variance = np.maximum(0.0, minutes["sum_lag_lag"] / minutes["samples"] - mean * mean)
    least: Array = mean - np.sqrt((minutes["samples"] - 1) * variance)
    return least


def saturated_minutes(minutes: Columns, habits: Columns, ownership: Columns) -> dict[str, Array]:
    """Saturated minutes of groups (``member`` is -1) and of their members, by ``group_topic``, with the fields of
    :class:`lagwise.domain.capacity.saturation.SaturatedMinute`. Rebalances are not considered yet.

    ``minutes`` are in order of habit and time. A group must have all those of its topic and hour: what it reads is
    saturated as a whole or not at all. A name of a member stands for all members of that name.
    """
    habit = taken(habits, minutes["habit"])
    is_read = (minutes["moves"] > 0) | (minutes["sum_lag"] > 0)
    owner = owners_of(minutes, ownership)
    is_saturated = is_backlog(habit, least_lag(minutes)) & _is_at_work(minutes, habit, ownership, owner)
    # A sum of random numbers tells which partitions it is of, in whatever order (Zobrist hashing).
    marks = np.random.default_rng(0).integers(np.iinfo(np.int64).max, size=len(habits["pair"]))
    rows = {
        "group_topic": habit["group_topic"],
        "owner_name": picked(ownership["member"], owner, owner >= 0, -1),
        "member_id": picked(ownership["member_id"], owner, owner >= 0, -1),
        "minute": minutes["minute"],
        "moved_at": np.where(is_read, minutes["last_moved_at"], NULL),
        "committed": minutes["last_committed"],
        "lag": np.where(is_read, minutes["last_lag"], 0),
        "cadence_seconds": np.where(is_read, habit["cadence_seconds"], 0.0),
        "partitions": marks[minutes["habit"]],
        "is_read": is_read,
        "is_spoilt": (is_read & ~is_saturated) | (minutes["rewound_from"] != NULL),
    }
    of_members = taken(rows, owner >= 0)
    nobody = np.full(len(owner), -1)
    return together(
        _summed({**its, "member": member}) for its, member in ((of_members, of_members["owner_name"]), (rows, nobody))
    )


def _is_at_work(minutes: Columns, habit: Columns, ownership: Columns, owner: Array) -> Array:
    """Whether each partition moved lately, or waits for its turn while its owner works on another one."""
    moved = last_index(minutes["last_moved_at"] != NULL)
    moved_at = picked(minutes["last_moved_at"], moved, moved >= last_index(is_first(minutes["habit"])))
    silence, longest = seconds_between(moved_at, minutes["last_at"]), habit["longest_silence_seconds"]
    owned = np.flatnonzero(owner >= 0)
    keys = [values[owned] for values in (habit["group_topic"], minutes["minute"])]
    keys.append(ownership["member_id"][owner[owned]])
    order = np.lexsort(keys)
    of_owner = runs(*(key[order] for key in keys))
    number, place = of_owner.rows()
    its_moved_at = np.full(len(owner), NULL)
    its_moved_at[owned[order[place]]] = of_owner.max(moved_at[owned[order]])[number]
    comes_back = (silence <= LONGEST_TURN_SECONDS) | _moves_again(minutes, ownership, owner)
    waits = comes_back & (seconds_between(its_moved_at, minutes["last_at"]) <= longest)
    at_work: Array = (silence <= longest) | waits
    return at_work


def _moves_again(minutes: Columns, ownership: Columns, owner: Array) -> Array:
    """Whether each partition moves in a later minute of the hour that the same member owns."""
    number, is_owned = np.arange(len(owner)), owner >= 0
    latest = np.full(len(ownership["member_id"]), -1)
    moves = is_owned & (minutes["last_moved_at"] != NULL)
    np.maximum.at(latest, owner[moves], number[moves])
    moves_again: Array = picked(latest, owner, is_owned, -1) > number
    return moves_again


def _summed(rows: Columns) -> dict[str, Array]:
    """The minutes of each ``member`` in which something was read, and nothing was that is not saturated."""
    names = ("group_topic", "member", "minute", "owner_name", "member_id")
    rows = taken(rows, np.lexsort([rows[name] for name in reversed(names)]))
    keys = [rows[name] for name in names]
    parts = runs(*keys[:3])
    members = parts.sum((is_first(*keys) & (rows["member_id"] >= 0)).astype(np.int64))
    made = {
        **{name: parts.first(rows[name]) for name in ("group_topic", "member")},
        "start": parts.first(rows["minute"]) / MICROS,
        "moved_at": as_floats(parts.max(rows["moved_at"])) / MICROS,
        **{name: parts.sum(rows[name]) for name in ("committed", "lag", "partitions")},
        "cadence_seconds": parts.max(rows["cadence_seconds"]),
        "members": np.where(members > 0, members, NULL),
    }
    was_read, spoilt = (parts.sum(rows[name].astype(np.int64)) for name in ("is_read", "is_spoilt"))
    return taken(made, (was_read > 0) & (spoilt == 0))
