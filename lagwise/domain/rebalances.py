"""What the rebalances of a group within an hour amount to: how many, how long, who comes and goes, why, and what helps.

Every rebalance costs time in which some or all partitions are read by nobody, and makes the next owner read again what
was read but not committed. One now and then is a deployment; many are a storm that feeds itself: members that are slow
because they rebalance are thrown out for being slow.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import zip_longest

from lagwise.domain.parts import total
from lagwise.domain.rebalance_words import Finding, Setup, explain_rebalances
from lagwise.domain.vocabulary import RebalanceCause

#: A storm is at least so many rebalances within STORM_WINDOW …
REBALANCES_OF_STORM = 5
STORM_WINDOW = timedelta(minutes=15)
#: … of which some client has gone at least so often, or so many have come and gone: in a deployment everybody who goes
#: had long been there, and who comes stays.
DEPARTURES_OF_CHURN = 2


@dataclass(frozen=True, slots=True)
class Rebalance:
    """One rebalance, as a row of `raw/events` tells it. ``joined``, ``left`` and ``failed`` are "client (host)"."""

    at: datetime
    cause: RebalanceCause | None = None
    exact: bool = False
    joined: Sequence[str] = ()
    left: Sequence[str] = ()
    failed: Sequence[str] = ()
    members: int | None = None
    partitions_moved: int | None = None
    duration_seconds: float | None = None
    uncommitted_seconds: float | None = None
    silent_seconds: float | None = None
    session_timeout_seconds: float | None = None
    poll_interval_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class RebalanceStats:
    """The rebalances of a group within a stretch of time.

    ``downtime_seconds`` is the sum of their durations, None where none of them is known. Classic groups do not tell
    them: ``downtime_seconds_at_most`` takes the time since the last commit on what changed hands where the duration is
    not known, in which nobody can have read for longer than that. ``churning`` are the clients that went at least
    twice, the one that went most often first. ``exact`` is whether all of them were read from the offsets topic: from
    samples some may have been missed.
    """

    rebalances: int
    downtime_seconds: float | None
    downtime_seconds_at_most: float | None
    partitions_moved: int | None
    joined: int
    left: int
    churning: tuple[str, ...]
    is_storm: bool
    exact: bool
    last_at: datetime
    finding: Finding


def stats_of(rebalances: Iterable[Rebalance], setup: Setup) -> RebalanceStats:
    """Sum up at least one rebalance of a group. Raises ValueError for none."""
    seen = _told_once(sorted(rebalances, key=lambda r: r.at))
    if not seen:
        raise ValueError("there is no rebalance to sum up")
    # One that was seen before it had ended is told again when it has.
    ended = [r for r in seen if r.cause is not RebalanceCause.UNFINISHED]
    number = len(ended) + (seen[-1].cause is RebalanceCause.UNFINISHED)
    lasting = [r for r in seen if r in ended or r is seen[-1]]
    departures = Counter(client for r in seen for client in r.left)
    churning = tuple(
        client for client, times in sorted(departures.items(), key=lambda c: (-c[1], c[0])) if _churns(times)
    )
    is_storm = _is_storm(seen)
    return RebalanceStats(
        rebalances=number,
        downtime_seconds=total(r.duration_seconds for r in lasting),
        downtime_seconds_at_most=total(
            r.uncommitted_seconds if r.duration_seconds is None else r.duration_seconds for r in lasting
        ),
        partitions_moved=total(r.partitions_moved for r in seen),
        joined=sum(len(r.joined) for r in seen),
        left=departures.total(),
        churning=churning,
        is_storm=is_storm,
        exact=all(r.exact for r in seen),
        last_at=seen[-1].at,
        finding=explain_rebalances(seen, setup, churning=churning, brief_stays=_brief_stays(seen), is_storm=is_storm),
    )


def _told_once(seen: Sequence[Rebalance]) -> list[Rebalance]:
    """Members that an unfinished rebalance tells of, and the next one tells again, are left to the latter."""
    told = []
    for rebalance, following in zip_longest(seen, seen[1:]):
        if rebalance.cause is RebalanceCause.UNFINISHED and following is not None:
            left = [client for client in rebalance.left if client not in following.left]
            joined = [client for client in rebalance.joined if client not in following.joined]
            rebalance = replace(rebalance, left=left, joined=joined)
        told.append(rebalance)
    return told


def _churns(times: int) -> bool:
    return times >= DEPARTURES_OF_CHURN


def _is_storm(seen: Sequence[Rebalance]) -> bool:
    """Whether within some window there are many rebalances, and they are not just everybody going and coming once."""
    for first in seen:
        window = [r for r in seen if first.at <= r.at < first.at + STORM_WINDOW]
        departures = Counter(client for r in window for client in r.left)
        nobody_changes = not any(r.joined or r.left for r in window)
        comes_and_goes = any(map(_churns, departures.values())) or _churns(len(_brief_stays(window)))
        if len(window) >= REBALANCES_OF_STORM and (nobody_changes or comes_and_goes):
            return True
    return False


def _brief_stays(seen: Iterable[Rebalance]) -> list[timedelta]:
    """How long those stayed who came and went within a STORM_WINDOW. A member that gets a new name with every start, as
    a pod does, can be told from others by nothing else."""
    came: dict[str, datetime] = {}
    stays = []
    for rebalance in seen:
        for client in rebalance.left:
            since = came.pop(client, None)
            if since is not None and rebalance.at - since < STORM_WINDOW:
                stays.append(rebalance.at - since)
        came |= dict.fromkeys(rebalance.joined, rebalance.at)
    return stays
