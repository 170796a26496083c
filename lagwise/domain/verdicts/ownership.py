"""Who owns what, and whether that is settled."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lagwise.domain.verdicts.columns import (
    NULL,
    Array,
    Columns,
    Ranges,
    micros,
    picked,
    ranges_of,
    seconds_between,
    taken,
)
from lagwise.domain.verdicts.windows import WINDOWS_SECONDS
from lagwise.domain.vocabulary import READING_STATES, REBALANCING_STATES, SHARE, WITHOUT_PROTOCOL, Engine, GroupState


@dataclass(frozen=True)
class Names:
    """The names behind the numbers in the columns state, type and error of groups; -1 is null."""

    states: Sequence[str]
    types: Sequence[str]
    errors: Sequence[str]


@dataclass(frozen=True)
class Membership:
    """What samples say of groups.

    Attributes:
        names: the names of states, types and errors.
        groups: group, at, sample, state, type, error, members (null: not described), checkpointed_at,
            checkpoint_interval_seconds; in order of group and time.
        events: group, at, is_rebalance, is_change (of the group's state), is_empty (that is Empty since); in order of
            group, time, and the name of the state after a change.
        members: sample, group, partitions (number of those that a member owns).
        assigned: sample, group, topic: topics of which any partition is assigned to a member.
    """

    names: Names
    groups: Columns
    events: Columns
    members: Columns
    assigned: Columns


def are_in(names: Sequence[str], wanted: frozenset[str], numbers: Array) -> Array:
    """Whether each of these numbers is that of a wanted name; null is not."""
    return np.array([name in wanted for name in names] + [False])[numbers]


def group_facts(known: Membership, views: Columns) -> dict[str, Array]:
    """What the latest sample says of each group, and how settled it has been, at a moment each: the columns of the
    result. A view whose group the sample does not show has ``is_there`` False.

    ``views``: group, as_of, and the ``sample`` that is the latest at that moment.
    """
    rows, as_of = known.groups, views["as_of"]
    recent_from = as_of - micros(WINDOWS_SECONDS[0]) + 1
    of_group = ranges_of(views["group"], rows["group"])
    recent = Ranges(of_group.bisect_left(rows["at"], recent_from), of_group.bisect_right(rows["at"], as_of))
    is_there = recent.last(rows["sample"], -1) == views["sample"]
    is_unsettled = are_in(known.names.states, frozenset(REBALANCING_STATES), rows["state"])
    latest_two = Ranges(np.maximum(recent.start, recent.stop - 2), recent.stop)
    unsettled = recent.sum(is_unsettled.astype(np.int64))
    happened = ranges_of(views["group"], known.events["group"])
    happened = Ranges(happened.start, happened.bisect_right(known.events["at"], as_of))
    lately = Ranges(happened.bisect_left(known.events["at"], recent_from), happened.stop)
    rebalances = lately.sum(known.events["is_rebalance"].astype(np.int64))

    last_unrest = np.maximum(
        recent.max(np.where(is_unsettled, rows["at"], NULL)),
        lately.max(np.where(known.events["is_rebalance"], known.events["at"], NULL)),
    )

    def latest(name: str, null: float | int = NULL) -> Array:
        return picked(rows[name], recent.stop - 1, is_there, null)

    state, type_ = latest("state", -1), latest("type", -1)
    described = described_by(known.names, state, type_)
    return described | {
        "is_there": is_there,
        "state": state,
        "type": type_,
        "error": latest("error", -1),
        # Null where the group could not be described.
        "members": latest("members"),
        # Members that own no partition.
        "idle_members": _idle_members(known.members, views),
        # Whether it was rebalancing in its latest two samples (in its only one, if there is one).
        "rebalancing_now": is_there & (latest_two.sum(is_unsettled.astype(np.int64)) == latest_two.sizes),
        # In how many of ``group_samples``, those of the shortest window, it was rebalancing, or had since the previous.
        "samples_of_unrest": np.where(is_there, np.minimum(unsettled + rebalances, recent.sizes), 0),
        # For how long it has not been seen to; null where it was not within that window.
        "settled_seconds": seconds_between(np.where(is_there, last_unrest, NULL), as_of),
        "group_samples": np.where(is_there, recent.sizes, 0),
        # When a group without members lost its last one; null where it has members, or that was not seen.
        "empty_since": np.where(described["is_empty"], _empty_since(known.events, happened), NULL),
        # When its Flink job last completed a checkpoint, or started where it has completed none, and how often it does.
        "checkpointed_at": latest("checkpointed_at"),
        "checkpoint_interval_seconds": latest("checkpoint_interval_seconds", np.nan),
    }


def described_by(names: Names, state: Array, type_: Array) -> dict[str, Array]:
    """What the state and the type of a group say."""
    unknown = frozenset({GroupState.UNKNOWN, *REBALANCING_STATES})
    return {
        "is_empty": are_in(names.states, frozenset({GroupState.EMPTY}), state),
        # Its state says who owns what.
        "is_settled": (state >= 0) & ~are_in(names.states, unknown, state),
        # It reads all that it is to read.
        "is_reading": are_in(names.states, frozenset(READING_STATES), state),
        "is_without_protocol": are_in(names.types, WITHOUT_PROTOCOL, type_),
        # What it has read is not kept as commits, and does not expire as these do.
        "is_share": are_in(names.types, frozenset({SHARE}), type_),
        "is_flink": are_in(names.types, frozenset({Engine.FLINK}), type_),
    }


def _empty_since(events: Columns, happened: Ranges) -> Array:
    """When the state last changed, if that was to Empty."""
    index = np.maximum.accumulate(np.where(events["is_change"], np.arange(len(events["at"])), -1))
    last = picked(index, happened.stop - 1, ~happened.is_empty, -1)
    is_empty = picked(events["is_empty"], last, last >= happened.start, False)
    return picked(events["at"], last, is_empty)


def _idle_members(members: Columns, views: Columns) -> Array:
    idle = taken(members, members["partitions"] == 0)
    keys, counts = np.unique(_key(idle["sample"], idle["group"]), return_counts=True)
    part = ranges_of(_key(views["sample"], views["group"]), keys)
    return part.first(counts, 0)


def is_assigned(assigned: Columns, views: Columns) -> tuple[Array, Array]:
    """Whether any partition of the topic, and any partition at all, is assigned to a member of the group: ``views`` are
    of a sample, a group and a topic."""
    groups, number = np.unique(_key(assigned["sample"], assigned["group"]), return_inverse=True)
    wanted = _key(views["sample"], views["group"])
    place = np.minimum(np.searchsorted(groups, wanted), max(0, len(groups) - 1))
    has_any = groups[place] == wanted if len(groups) else np.zeros(len(wanted), bool)
    topics = max(int(rows["topic"].max(initial=-1)) for rows in (assigned, views)) + 1
    return has_any & np.isin(place * topics + views["topic"], number * topics + assigned["topic"]), has_any


def _key(sample: Array, group: Array) -> Array:
    return (sample.astype(np.int64) << 32) | group
