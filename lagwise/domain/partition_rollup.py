"""A group's partitions, summed up by status: what its verdict and the sentence about it are made of."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf
from typing import TypeVar

from lagwise.domain.lag_forecast import Forecast
from lagwise.domain.loss.records import NOTHING_LOST, Lost
from lagwise.domain.vocabulary import LossCause, Status, UnknownReason

N = TypeVar("N", int, float)


@dataclass(frozen=True, slots=True)
class PartitionsInStatus:
    """Those partitions of a group that share a status (and, where unknown, its reason) and the way in which the
    nearest loss would come, summed up. Times in seconds, None where not known."""

    status: Status
    #: Why they are unknown; None for every other status.
    reason: UnknownReason | None
    #: How many they are.
    partitions: int
    #: Sum of their unread records.
    lag: int | None = None
    #: Age of the oldest unread record of any of them.
    lag_seconds: float | None = None
    #: Whether that record is older than the watermark history.
    lag_seconds_is_lower_bound: bool = False
    #: The longest time that a committed offset has stayed where it is.
    unmoved_seconds: float | None = None
    #: Records written per second, in all.
    produce_rate_per_second: float | None = None
    #: Records committed per second, in all.
    consume_rate_per_second: float | None = None
    #: How often committed offsets were seen to move within the longest window.
    commits_seen: int = 0
    #: Growth of their lag in all, records per second.
    lag_slope_per_second: float | None = None
    #: When the last of them is expected to have caught up.
    to_catch_up: Forecast | None = None
    #: When the first of them is expected to breach the objective.
    to_breach: Forecast | None = None
    #: When the nearest loss comes; None is never.
    seconds_to_loss: float | None = None
    #: Whether that loss may come sooner.
    seconds_to_loss_is_upper_bound: bool = False
    #: When that loss comes at the latest.
    seconds_to_loss_at_latest: float | None = None
    #: How that loss comes.
    loss_cause: LossCause | None = None
    #: Records that were deleted before they were read, in all.
    records_lost: int = 0
    #: By how many records their committed offsets went back, in all.
    rewound_records: int = 0
    #: How long ago the last of them went back.
    rewound_seconds: float | None = None
    #: What was lost within a day.
    lost: Lost = NOTHING_LOST
    #: For how long the oldest transaction that hangs has been open; None is none.
    transaction_seconds: float | None = None
    #: How many records lie behind transactions that hang.
    held_back_records: int = 0
    #: Topic of the partition with the oldest unread record.
    worst_topic: str | None = None
    #: Number of that partition.
    worst_partition: int | None = None
    #: What its system calls that partition, where that is no number.
    worst_label: str | None = None
    #: Topics of the partitions.
    topics: frozenset[str] = field(default_factory=frozenset)
    #: Their owners as "client on host", each once.
    owners: frozenset[str] = field(default_factory=frozenset)
    #: How many members own them: several may be called the same.
    owning_members: int = 0
    #: How many of them are stopped, be it with a worse status.
    stopped: int = 0
    #: How many of them are stalled, be it with a worse status.
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
