"""How many replicas a group should have right now, for an autoscaler that asks every few seconds.

It goes by rates, not by the backlog alone: a lag that neither grows nor matters is no reason for a replica, and how
fast a replica works decides how many it takes. Each moment gives two counts: what is needed at the target utilisation
(``up``) and what would be needed if replicas could only be used a good deal less than that (``down``). Replicas are
added when more are needed all through a short while, and taken away when even the careful count was lower all through a
long one. In between nothing changes: that is the hysteresis, and a rebalance is spared.

What runs is taken from the past as well, as the most members of the long while: during a deployment or after a crash
there are fewer for some minutes, and an autoscaler that knows only that removes the replicas that are just starting.

The terms of the demand are those of :func:`lagwise.domain.sizing.formulas.demand_rate_per_second`, the windows those of
Kubernetes' horizontal pod autoscaler (``stabilizationWindowSeconds``).
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TypeVar

from lagwise.domain.sizing.formulas import busiest_share, demand_rate_per_second, meets, required_rate_per_second
from lagwise.domain.sizing.ranges import OutOfRange, check_count, check_number
from lagwise.domain.sizing.workload import DEFAULT_CATCH_UP_SECONDS, DEFAULT_TARGET_UTILISATION

#: More replicas than this are not asked for.
MAX_REPLICAS = 100_000


class Why(StrEnum):
    """Why this many replicas."""

    #: What runs is what is needed.
    STEADY = "steady"
    #: More are needed, and have been for the whole of the short window.
    MORE_NEEDED = "more_needed"
    #: Fewer are needed, and have been for the whole of the long window.
    FEWER_NEEDED = "fewer_needed"
    #: More or fewer are needed, but not for long enough yet.
    WAITING = "waiting"
    #: More would be needed, but what the consumers wait for is full: more of them would not help.
    DOWNSTREAM_FULL = "downstream_full"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingPolicy:
    """What an autoscaler is to aim at. A bad value raises OutOfRange."""

    #: Never fewer than this, 0 where a group without traffic and without lag may be switched off.
    min_replicas: int = 1
    #: Never more than this, besides the number of partitions.
    max_replicas: int = MAX_REPLICAS
    #: How much of the capacity the demand may use.
    target_utilisation: float = DEFAULT_TARGET_UTILISATION
    #: Replicas are taken away only if the rest would be used so much less than ``target_utilisation`` (0 … 1).
    slack: float = 0.15
    #: Time in which the lag must be gone.
    catch_up_seconds: float = DEFAULT_CATCH_UP_SECONDS
    #: For so long more must be needed before any is added.
    up_after_seconds: float = 60.0
    #: For so long fewer must be needed before any is taken away.
    down_after_seconds: float = 900.0

    def __post_init__(self) -> None:
        check_count("min_replicas", self.min_replicas, 0, MAX_REPLICAS)
        check_count("max_replicas", self.max_replicas, max(1, self.min_replicas), MAX_REPLICAS)
        check_number("target_utilisation", self.target_utilisation, 0.01, 1.0, "a number from 0.01 to 1")
        check_number("slack", self.slack, 0.0, 0.9, "a number from 0 to 0.9")
        check_number("catch_up_seconds", self.catch_up_seconds, 1.0, 30 * 86_400.0, "from 1 second to 30 days")
        check_number("up_after_seconds", self.up_after_seconds, 0.0, 86_400.0, "from 0 to 1 day")
        check_number("down_after_seconds", self.down_after_seconds, 0.0, 86_400.0, "from 0 to 1 day")
        if self.down_after_seconds < self.up_after_seconds:
            raise OutOfRange("down_after_seconds", "at least up_after_seconds", self.down_after_seconds)

    def within_limits(self, replicas: int, partitions: int) -> int:
        """As many, but not more than ``partitions`` or the most allowed; and not fewer than the least, even so."""
        return max(self.min_replicas, min(replicas, partitions, self.max_replicas))


@dataclass(frozen=True, slots=True)
class Load:
    """What arrived per second, and how many records waited, at one moment."""

    at: datetime
    produce_rate_per_second: float
    lag: float


@dataclass(frozen=True, slots=True)
class Need:
    """Replicas needed at one moment: ``up`` at the target utilisation, ``down`` (not fewer) with slack below it."""

    at: datetime
    up: int
    down: int


@dataclass(frozen=True, slots=True)
class Members:
    """Members of the group at one moment."""

    at: datetime
    count: int


_Moment = TypeVar("_Moment", Load, Need, Members)


@dataclass(frozen=True, slots=True)
class Desired:
    """The replicas to have now. ``needed`` is the count of the newest moment by itself."""

    replicas: int
    why: Why
    needed: int


def replicas_needed(
    policy: ScalingPolicy,
    *,
    produce_rate_per_second: float,
    lag: float,
    replica_rate_per_second: float,
    partitions: int,
    hottest_share: float | None = None,
    utilisation: float | None = None,
) -> int:
    """The fewest replicas that carry the traffic and work off the lag in time; the policy's limits are kept.

    A replica more counts only if it takes something off the busiest one: with twelve partitions, seven replicas do no
    more than six. More replicas than ``partitions`` are never asked for, whatever the lag; where even those are not
    enough, as many as there are partitions. ``hottest_share`` is the hottest partition's share of the traffic, None
    takes it as even. Rates are records per second.
    """
    check_number("replica_rate_per_second", replica_rate_per_second, 1e-9, 1e12, "a number above 0")
    check_count("partitions", partitions, 1, 1_000_000)
    demand = demand_rate_per_second(
        produce_rate_per_second, lag=lag, catch_up_seconds=policy.catch_up_seconds, restart_seconds=0.0
    )
    if demand == 0.0:
        return policy.min_replicas
    required = required_rate_per_second(demand, policy.target_utilisation if utilisation is None else utilisation)
    hottest = max(1.0 / partitions, min(1.0, hottest_share or 0.0))
    most = min(partitions, policy.max_replicas)

    def enough(replicas: int) -> bool:
        return meets(replica_rate_per_second / busiest_share(partitions, replicas, hottest), required)

    low, high = 1, most
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle + 1, high)
    if not enough(low):
        # Where nothing is enough, those that take nothing off the busiest replica would only cost.
        return max(policy.min_replicas, _fewest_as_good(partitions, most))
    return max(policy.min_replicas, low)


def _fewest_as_good(partitions: int, replicas: int) -> int:
    """The fewest replicas of which none holds more partitions than with this many."""
    held = -(-partitions // replicas)
    return -(-partitions // held)


def need_at(
    policy: ScalingPolicy,
    load: Load,
    *,
    replica_rate_per_second: float,
    partitions: int,
    hottest_share: float | None = None,
) -> Need:
    """The two counts of one moment."""

    def needed(utilisation: float) -> int:
        return replicas_needed(
            policy,
            produce_rate_per_second=load.produce_rate_per_second,
            lag=load.lag,
            replica_rate_per_second=replica_rate_per_second,
            partitions=partitions,
            hottest_share=hottest_share,
            utilisation=utilisation,
        )

    target = policy.target_utilisation
    return Need(load.at, up=needed(target), down=needed(max(0.01, target - policy.slack)))


def deciding_loads(policy: ScalingPolicy, loads: Sequence[Load], now: datetime) -> list[Load]:
    """The few loads whose needs give the same answer (:func:`desired_replicas`) as those of all loads would.

    More demand never needs fewer replicas. So the least demand of the short window and the greatest of the long one
    decide, with what held when each window began, without which it would not be whole, and the newest.
    """
    past = sorted((load for load in loads if load.at <= now), key=lambda load: load.at)
    if not past:
        return []

    def demand(load: Load) -> float:
        return load.produce_rate_per_second + load.lag / policy.catch_up_seconds

    chosen = [past[-1]]
    for seconds, extreme in ((policy.up_after_seconds, min), (policy.down_after_seconds, max)):
        if window := _all_through(past, now, seconds):
            chosen += [window[0], extreme(window, key=demand)]
    return list(dict.fromkeys(chosen))


def most_members(seen: Sequence[Members], now: datetime, seconds: float) -> int | None:
    """The most members within the window that ends now; None where they were not watched all through it, for then a
    deployment may have begun unseen."""
    return max((members.count for members in _all_through(seen, now, seconds)), default=None)


def desired_replicas(
    policy: ScalingPolicy,
    needs: Sequence[Need],
    held: int,
    partitions: int,
    now: datetime,
    *,
    downstream_full_with: int | None = None,
) -> Desired | None:
    """The replicas to have at ``now``, from the needs of the past and how many are held.

    ``held`` are the most members within ``down_after_seconds`` (:func:`most_members`). None without any need: what a
    replica can do is not known. A window that the needs do not cover yet, as after a start, is not over: nothing is
    added or taken away before it has been seen as a whole. Every answer is within the policy's limits and partitions.
    With ``downstream_full_with`` replicas what they wait for was full: none is added beyond them.
    """
    check_count("held", held, 0, 1_000_000)
    known = sorted((need for need in needs if need.at <= now), key=lambda need: need.at)
    if not known:
        return None
    newest = known[-1].up
    least, most = _all_through(known, now, policy.up_after_seconds), _all_through(known, now, policy.down_after_seconds)
    replicas, why = held, Why.STEADY
    if least and min(need.up for need in least) > held:
        replicas, why = min(need.up for need in least), Why.MORE_NEEDED
        if downstream_full_with is not None and replicas > (most_useful := max(held, downstream_full_with)):
            replicas, why = most_useful, Why.DOWNSTREAM_FULL
    elif most and max(need.down for need in most) < held:
        replicas, why = max(need.down for need in most), Why.FEWER_NEEDED
    elif newest > held or known[-1].down < held:
        why = Why.WAITING
    return Desired(policy.within_limits(replicas, partitions), why, newest)


def _all_through(moments: Sequence[_Moment], now: datetime, seconds: float) -> list[_Moment]:
    """Those of a window that ends now, with the one that held at its beginning; empty where that is not known."""
    start = now - timedelta(seconds=seconds)
    past = sorted((moment for moment in moments if moment.at <= now), key=lambda moment: moment.at)
    first = bisect_right(past, start, key=lambda moment: moment.at) - 1
    return past[first:] if first >= 0 else []
