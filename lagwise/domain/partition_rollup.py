"""A group's partitions, summed up by status: what its verdict and the sentence about it are made of."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf
from typing import TypeVar

from lagwise.domain.forecast import Forecast
from lagwise.domain.loss.records import NOTHING_LOST, Lost
from lagwise.domain.vocabulary import LossCause, Status, UnknownReason

N = TypeVar("N", int, float)


@dataclass(frozen=True, slots=True)
class PartitionsInStatus:
    """Those partitions of a group that share a status (and, where unknown, its reason) and the way in which the
    nearest loss would come, summed up.

    ``worst_*`` is the one with the oldest unread record (``worst_label`` what its system calls it, where that is no
    number), ``unmoved_seconds`` the longest time a committed offset has
    stayed where it is, ``to_catch_up`` when the last of them is expected to have caught up, ``to_breach`` when the
    first of them is expected to breach the objective, ``commits_seen`` how often committed offsets were seen to move
    within the longest window, ``rewound_records`` by how many records they went back in all, ``rewound_seconds`` how
    long ago the last of them did, ``transaction_seconds`` for how long the oldest transaction that hangs has been open
    (None is none) and ``held_back_records`` how many records lie behind such, ``owners`` the distinct "client on host"
    of their owners and ``owning_members`` how many those are (several may be called the same), ``stopped`` and
    ``stalled`` how many of them are that, be it beside a worse status.
    """

    status: Status
    reason: UnknownReason | None
    partitions: int
    lag: int | None = None
    lag_seconds: float | None = None
    lag_seconds_is_lower_bound: bool = False
    unmoved_seconds: float | None = None
    produce_rate_per_second: float | None = None
    consume_rate_per_second: float | None = None
    commits_seen: int = 0
    lag_slope_per_second: float | None = None
    to_catch_up: Forecast | None = None
    to_breach: Forecast | None = None
    seconds_to_loss: float | None = None
    seconds_to_loss_is_upper_bound: bool = False
    seconds_to_loss_at_latest: float | None = None
    loss_cause: LossCause | None = None
    records_lost: int = 0
    rewound_records: int = 0
    rewound_seconds: float | None = None
    lost: Lost = NOTHING_LOST
    transaction_seconds: float | None = None
    held_back_records: int = 0
    worst_topic: str | None = None
    worst_partition: int | None = None
    worst_label: str | None = None
    topics: frozenset[str] = field(default_factory=frozenset)
    owners: frozenset[str] = field(default_factory=frozenset)
    owning_members: int = 0
    stopped: int = 0
    stalled: int = 0


def total(values: Iterable[N | None]) -> N | None:
    """The sum of what is known; None where nothing is."""
    known = [v for v in values if v is not None]
    return sum(known) if known else None


def soonest_breach(forecasts: Iterable[Forecast | None]) -> Forecast | None:
    """The nearest one, of two at the same moment the one that may come sooner; None is none."""
    to_come = [f for f in forecasts if f is not None]
    return min(to_come, key=lambda f: (f.seconds, f.low, inf if f.high is None else f.high), default=None)


def last_catch_up(forecasts: Iterable[Forecast | None]) -> Forecast | None:
    """When the last of them has caught up, which is not before any of them has; None is none that does."""
    to_come = [f for f in forecasts if f is not None]
    if not to_come:
        return None
    highs = [f.high for f in to_come if f.high is not None]
    high = max(highs) if len(highs) == len(to_come) else None
    return Forecast(max(f.seconds for f in to_come), max(f.low for f in to_come), high)


def first_loss(parts: Iterable[PartitionsInStatus]) -> PartitionsInStatus | None:
    """Those with the nearest loss, of two at the same moment the ones whose records are deleted; None is no loss."""
    to_come = [(p.seconds_to_loss, p.loss_cause is LossCause.EXPIRY, p) for p in parts if p.seconds_to_loss is not None]
    return min(to_come, key=lambda one: one[:2])[2] if to_come else None
