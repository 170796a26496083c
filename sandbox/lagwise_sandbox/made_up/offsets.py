"""The offsets of a made-up group, minute by minute: what arrived, and how far its consumers came.

Consumers are a fluid: a member does its share of the group's capacity whenever it has records, the oldest first. The
same minute is the same in every run.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from lagwise_sandbox.made_up.groups import MadeUpGroup

Array = np.ndarray[Any, Any]

MINUTES_OF_DAY, MINUTES_OF_WEEK = 24 * 60, 7 * 24 * 60
#: The past that is there when the cluster appears: five weeks. It ends at this time of the week (Wednesday, 18:00),
#: whenever that is: the day's busy hours are over, and whoever fell behind in them has caught up.
PAST_MINUTES = 5 * MINUTES_OF_WEEK
ENDS_AT_MINUTE_OF_WEEK = 2 * MINUTES_OF_DAY + 18 * 60

#: The busiest time of the day; how narrow the day's peak is; what arrives in the dead of night, as a share of the peak.
_BUSIEST_HOUR, _NARROWNESS, _NIGHT = 13.0, 2.0, 0.25
#: Of a working day's traffic, by day of the week from Monday on.
_DAYS = np.array([1.0, 0.97, 0.98, 0.99, 1.04, 0.7, 0.6])
#: Minutes differ by about this share.
_NOISE = 0.04
#: Growth is slower by 1/e after so many days, as that of most things that grow.
_GROWTH_FADES_DAYS = 60.0
#: How far capacities differ from minute to minute.
_UNEVENNESS = 0.03
#: When a group is stopped (day of the week, minute of the day), and for how long.
_STOPPED_AT = ((0, 10 * 60 + 30), (3, 10 * 60), (5, 11 * 60))
_STOPPED_MINUTES = 45
#: A campaign: how many there are a day, how long each is, and how many times the peak it sends.
_BURSTS_PER_DAY, _BURST_MINUTES, _BURST_FACTOR = 0.7, 4, 2.5
#: The hottest partition gets this much more than an equal share.
_SKEW = 0.03
#: A commit tells of what was read so many seconds before, at most.
_COMMITTED_WITHIN_SECONDS = 1.5


@dataclass(frozen=True, slots=True)
class Offsets:
    """Offsets at the end of each minute, by partition and minute; ``is_running`` by minute."""

    high_watermarks: Array
    committed: Array
    is_running: Array


def offsets_of(group: MadeUpGroup, minutes: int) -> Offsets:
    """The offsets of a group in the first so many minutes of its past, and of what follows."""
    arrivals = np.cumsum(rates_of(group, minutes)) * 60.0
    shares = partition_shares(group.partitions)
    is_running = running(group, minutes)
    pace = 1.0 + _UNEVENNESS * _random(group, "pace").standard_normal(minutes)
    able = np.cumsum(np.where(is_running, group.capacity_per_second * 60.0 * pace, 0.0)) / group.members
    since_read = _random(group, "commits").random((minutes, group.partitions)) * _COMMITTED_WITHIN_SECONDS / 60.0
    minute = np.arange(minutes, dtype=np.float64)
    committed = np.empty((group.partitions, minutes))
    for its in partitions_of_members(group):
        share = shares[its].sum()
        # What a queue has let through: the least, over all times so far, of what had arrived by then and what could be
        # done since.
        gone = able + np.minimum.accumulate(np.minimum(arrivals * share - able, 0.0))
        # Up to when everything that arrived has been read; it was committed a moment ago.
        read_until = np.interp(gone, arrivals * share, minute)
        for partition in its:
            until = read_until - np.where(is_running, since_read[:, partition], 0.0)
            at = np.interp(until, minute, arrivals) * shares[partition]
            committed[partition] = np.maximum.accumulate(at)
    high = arrivals * shares[:, None]
    return Offsets(high.astype(np.int64), np.minimum(committed, high).astype(np.int64), is_running)


def rates_of(group: MadeUpGroup, minutes: int) -> Array:
    """What arrives, records per second, by minute."""
    random = _random(group, "traffic")
    noise = np.exp(_NOISE * random.standard_normal(minutes))
    rates = group.peak_per_second * shape(minutes) * trend(group, minutes) * noise
    return rates + (_bursts(group, minutes) if group.has_bursts else 0.0)


def shape(minutes: int) -> Array:
    """Traffic by the minute of the week, as a share of an ordinary working day's busiest time."""
    of_week = (np.arange(minutes) - PAST_MINUTES + 1 + ENDS_AT_MINUTE_OF_WEEK) % MINUTES_OF_WEEK
    angle = 2.0 * math.pi * (of_week / 60.0 - _BUSIEST_HOUR) / 24.0
    return _DAYS[of_week // MINUTES_OF_DAY] * (_NIGHT + (1.0 - _NIGHT) * np.exp(_NARROWNESS * (np.cos(angle) - 1.0)))


def trend(group: MadeUpGroup, minutes: int) -> Array:
    """What arrives, as a multiple of what arrives at the end of the past."""
    days = (np.arange(minutes) - PAST_MINUTES) / MINUTES_OF_DAY
    return 1.0 + group.growth_per_day * _GROWTH_FADES_DAYS * (1.0 - np.exp(-days / _GROWTH_FADES_DAYS))


def running(group: MadeUpGroup, minutes: int) -> Array:
    """Whether the group runs, by minute."""
    if not group.is_stopped_sometimes:
        return np.ones(minutes, bool)
    of_week = (np.arange(minutes) - PAST_MINUTES + 1 + ENDS_AT_MINUTE_OF_WEEK) % MINUTES_OF_WEEK
    starts = np.array([day * MINUTES_OF_DAY + minute for day, minute in _STOPPED_AT])
    is_stopped: Array = ((of_week[:, None] - starts) % MINUTES_OF_WEEK < _STOPPED_MINUTES).any(axis=1)
    return ~is_stopped


def partition_shares(partitions: int) -> Array:
    """The share of a topic's records that each partition gets."""
    weights: Array = 1.0 + np.linspace(_SKEW, -_SKEW, partitions)
    shares: Array = weights / weights.sum()
    return shares


def partitions_of_members(group: MadeUpGroup) -> list[Array]:
    """The partitions of each member."""
    return np.array_split(np.arange(group.partitions), group.members)


def _bursts(group: MadeUpGroup, minutes: int) -> Array:
    begins = _random(group, "bursts").random(minutes) < _BURSTS_PER_DAY / MINUTES_OF_DAY
    is_burst = np.convolve(begins, np.ones(_BURST_MINUTES))[:minutes] > 0
    return np.where(is_burst, _BURST_FACTOR * group.peak_per_second, 0.0)


def _random(group: MadeUpGroup, purpose: str) -> np.random.Generator:
    """The same numbers in every run. More of them begin with the same ones."""
    return np.random.default_rng(list(f"{group.group} {purpose}".encode()))
