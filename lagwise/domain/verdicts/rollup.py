"""A group's partitions, summed up: what its verdict, the sentence about it and the cause of its trouble are made of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any

import numpy as np

from lagwise.domain.causes import TROUBLE, Place
from lagwise.domain.groups import status_of
from lagwise.domain.lag_forecast import Forecast
from lagwise.domain.loss.records import Lost
from lagwise.domain.partition_rollup import PartitionsInStatus
from lagwise.domain.verdicts.columns import NULL, Array, Columns, Ranges, runs, seconds_between, taken
from lagwise.domain.verdicts.loss import LOSS_CAUSES
from lagwise.domain.verdicts.status import REASONS, STATUSES


@dataclass(frozen=True)
class RollupNames:
    """The names behind the numbers in rows: topics in their order, owners as "client … on host …" (None: not known),
    and by member id."""

    topics: Sequence[str]
    clients: Sequence[str | None]
    members: Sequence[str]


def parts_of(rows: Columns, names: RollupNames) -> dict[int, list[PartitionsInStatus]]:
    """The partitions of each view, summed up by status, reason and cause of the nearest loss.

    ``rows`` are verdicts with what they rest on, named as in `partition_status`, and ``view`` (of a group at a moment)
    and ``client``: what the owner is called. Topics are numbered in the order of their names.
    """
    if not len(rows["view"]):
        return {}
    key = ((rows["view"] * 16 + rows["status"]) * 16 + rows["reason"] + 1) * 4 + rows["loss_cause"] + 1
    order = np.lexsort((rows["partition"], rows["topic"], key))
    rows, key = taken({name: rows[name] for name in _NEEDED}, order), key[order]
    parts = runs(key)
    sums = _sums(parts, rows)
    nearest = _first_by(parts, key, rows["seconds_to_loss"], rows["seconds_to_loss_is_upper_bound"],
                        np.nan_to_num(rows["seconds_to_loss_at_latest"], nan=-1.0))  # fmt: skip
    breach = _first_by(parts, key, rows["seconds_to_breach"], rows["seconds_to_breach_low"],
                       np.nan_to_num(rows["seconds_to_breach_high"], nan=np.inf))  # fmt: skip
    # The oldest unread record; among equals the lowest partition, then the last topic by name.
    worst = _first_by(parts, key, -np.nan_to_num(rows["lag_seconds"]), rows["partition"], -rows["topic"])
    bound = _first_by(parts, key, -np.nan_to_num(rows["lag_seconds"]), ~rows["lag_seconds_is_lower_bound"])
    topics, clients, owners = (_distinct(parts, rows[name]) for name in ("topic", "client", "owner"))
    made: dict[int, list[PartitionsInStatus]] = {}
    for number, (start, stop) in enumerate(zip(parts.start.tolist(), parts.stop.tolist(), strict=True)):
        its = {name: _plain(values[number]) for name, values in sums.items()}
        loss, most = nearest[number], worst[number]
        part = PartitionsInStatus(
            status=STATUSES[rows["status"][start]],
            reason=None if rows["reason"][start] < 0 else REASONS[rows["reason"][start]],
            loss_cause=None if rows["loss_cause"][start] < 0 else LOSS_CAUSES[rows["loss_cause"][start]],
            partitions=stop - start,
            lag_seconds_is_lower_bound=bool(rows["lag_seconds_is_lower_bound"][bound[number]]),
            to_catch_up=_catch_up(its),
            to_breach=_forecast(rows, breach[number], "breach"),
            seconds_to_loss=_at(rows, "seconds_to_loss", loss),
            seconds_to_loss_is_upper_bound=loss >= 0 and bool(rows["seconds_to_loss_is_upper_bound"][loss]),
            seconds_to_loss_at_latest=_at(rows, "seconds_to_loss_at_latest", loss),
            lost=Lost(*(its[name] for name in _LOST)),
            worst_topic=names.topics[rows["topic"][most]],
            worst_partition=int(rows["partition"][most]),
            topics=frozenset(names.topics[topic] for topic in topics[number]),
            owners=frozenset(name for client in clients[number] if client >= 0 and (name := names.clients[client])),
            owning_members=sum(owner >= 0 for owner in owners[number]),
            **{name: its[name] for name in _SAME},
        )
        made.setdefault(int(rows["view"][start]), []).append(part)
    return made


_SAME = (
    "lag", "lag_seconds", "unmoved_seconds", "produce_rate_per_second", "consume_rate_per_second", "commits_seen",
    "lag_slope_per_second", "records_lost", "rewound_records", "rewound_seconds", "transaction_seconds",
    "held_back_records", "stopped", "stalled",
)  # fmt: skip


#: The columns of `partition_status` that :func:`parts_of` and :func:`places_of` add up or compare.
NUMBERS = (
    "committed_since", "leader", "lag", "lag_seconds", "lag_seconds_is_lower_bound", "produce_rate_per_second",
    "consume_rate_per_second", "commits_seen", "lag_slope_per_second", "records_lost", "rewound_records", "rewound_at",
    "transaction_seconds", "high_watermark", "last_stable", "lost_at_least", "lost_at_most", "first_lost_at",
    "last_lost_at", "seconds_to_loss", "seconds_to_loss_is_upper_bound", "seconds_to_loss_at_latest",
    *(f"seconds_to_{what}{end}" for what in ("catch_up", "breach") for end in ("", "_low", "_high")),
)  # fmt: skip
_NEEDED = (
    "view", "status", "reason", "loss_cause", "topic", "partition", "owner", "client", "as_of", "unmoved_seconds",
    "stopped", "stalled", *(name for name in NUMBERS if name not in ("committed_since", "leader")),
)  # fmt: skip
_LOST = ("lost_at_least", "lost_at_most", "first_lost_seconds", "last_lost_seconds")


def _sums(parts: Ranges, rows: Columns) -> dict[str, Array]:
    def total(values: Array) -> Array:
        """The sum of what is known; null where nothing is."""
        is_known = ~np.isnan(values) if values.dtype == np.float64 else values != NULL
        sums = parts.sum(np.where(is_known, values, 0))
        return np.where(parts.sum(is_known.astype(np.int64)) > 0, sums, np.nan if values.dtype == np.float64 else NULL)

    def largest(values: Array) -> Array:
        most = parts.max(np.where(np.isnan(values), -np.inf, values), empty=0)
        return np.where(np.isneginf(most), np.nan, most)

    def smallest(values: Array) -> Array:
        return -largest(-values)

    expected = ~np.isnan(rows["seconds_to_catch_up"])
    high = np.where(expected & np.isnan(rows["seconds_to_catch_up_high"]), np.inf, rows["seconds_to_catch_up_high"])
    is_rewound = rows["rewound_records"] != NULL
    is_held = ~np.isnan(rows["transaction_seconds"])
    held = np.where(is_held, rows["high_watermark"] - rows["last_stable"], 0)
    return {
        "lag": total(rows["lag"]),
        "lag_seconds": largest(rows["lag_seconds"]),
        "unmoved_seconds": largest(rows["unmoved_seconds"]),
        "produce_rate_per_second": total(rows["produce_rate_per_second"]),
        "consume_rate_per_second": total(rows["consume_rate_per_second"]),
        "commits_seen": parts.sum(rows["commits_seen"]),
        "lag_slope_per_second": total(rows["lag_slope_per_second"]),
        "catch_up_seconds": largest(rows["seconds_to_catch_up"]),
        "catch_up_low": largest(rows["seconds_to_catch_up_low"]),
        "catch_up_high": largest(high),
        "records_lost": parts.sum(rows["records_lost"]),
        "rewound_records": parts.sum(np.where(is_rewound, rows["rewound_records"], 0)),
        "rewound_seconds": smallest(np.where(is_rewound, seconds_between(rows["rewound_at"], rows["as_of"]), np.nan)),
        "lost_at_least": parts.sum(rows["lost_at_least"]),
        "lost_at_most": parts.sum(rows["lost_at_most"]),
        "first_lost_seconds": largest(seconds_between(rows["first_lost_at"], rows["as_of"])),
        "last_lost_seconds": smallest(seconds_between(rows["last_lost_at"], rows["as_of"])),
        "transaction_seconds": largest(rows["transaction_seconds"]),
        "held_back_records": parts.sum(held),
        "stopped": parts.sum(rows["stopped"].astype(np.int64)),
        "stalled": parts.sum(rows["stalled"].astype(np.int64)),
    }


def _distinct(parts: Ranges, numbers: Array) -> list[list[int]]:
    """The distinct numbers of each part of the rows, of which each belongs to one."""
    number, row = parts.rows()
    size = int(numbers.max(initial=0)) + 2
    keys = np.unique(number * size + numbers[row] + 1)
    ends = np.searchsorted(keys, np.arange(1, len(parts.start)) * size)
    return [(its % size - 1).tolist() for its in np.split(keys, ends)]


def _first_by(parts: Ranges, key: Array, *by: Array) -> Array:
    """In each part the row that comes first in this order, of those whose first value is known; -1 where none is."""
    order = np.lexsort((*reversed(by), np.isnan(by[0]) if by[0].dtype == np.float64 else np.zeros(len(key)), key))
    first = order[parts.start]
    return np.where(np.isnan(by[0][first].astype(np.float64)), -1, first)


def _plain(value: np.generic) -> Any:
    """A number of Python; None for null."""
    if isinstance(value, np.floating):
        return None if isnan(value) else float(value)
    return None if value == NULL else int(value)


def _at(rows: Columns, name: str, row: int) -> float | None:
    return None if row < 0 else _plain(rows[name][row])


def _catch_up(its: dict[str, Any]) -> Forecast | None:
    """When the last of them has caught up, which is not before any of them has."""
    seconds, low, high = (its[f"catch_up_{end}"] for end in ("seconds", "low", "high"))
    if seconds is None or low is None:
        return None
    return Forecast(seconds, low, None if high is None or high == np.inf else high)


def _forecast(rows: Columns, row: int, what: str) -> Forecast | None:
    if row < 0:
        return None
    seconds, low, high = (_plain(rows[f"seconds_to_{what}{end}"][row]) for end in ("", "_low", "_high"))
    assert seconds is not None
    assert low is not None
    return Forecast(seconds, low, high)


def places_of(
    rows: Columns, parts: Mapping[int, Sequence[PartitionsInStatus]], names: RollupNames
) -> dict[int, list[Place]]:
    """Whose the partitions of each view are and where they lie, of the views that are in trouble. ``parts`` are what
    :func:`parts_of` made of these rows, which have ``leader``, too."""
    troubled = [view for view, its in parts.items() if status_of(its)[0] in TROUBLE]
    chosen = np.isin(rows["view"], np.array(troubled, np.int64))
    its = {name: rows[name][chosen] for name in ("view", "status", "owner", "leader", "client")}
    its["stands"] = (rows["stopped"] | rows["stalled"])[chosen]
    its = taken(its, np.lexsort(list(its.values())[::-1]))
    equal = runs(*its.values())
    made: dict[int, list[Place]] = {}
    for start, count in zip(equal.start.tolist(), equal.sizes.tolist(), strict=True):
        view, status, owner, leader, client, stands = (int(column[start]) for column in its.values())
        place = Place(
            STATUSES[status],
            None if owner < 0 else names.members[owner],
            None if leader == NULL else leader,
            count,
            None if client < 0 else names.clients[client],
            stands=bool(stands),
        )
        made.setdefault(view, []).append(place)
    return made
