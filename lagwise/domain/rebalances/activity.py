"""What the rebalances of a group by hour amount to: how many, how long, who comes and goes, why, and what helps.

Every rebalance costs time in which some or all partitions are not read, and makes the next owner read again what
was read but not committed. One now and then is a deployment; many are a storm that feeds itself: members that are slow
because they rebalance are removed for being slow.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import zip_longest

from lagwise.domain.partition_rollup import total
from lagwise.domain.rebalances.clients import DEPARTURES_OF_CHURN, brief_stays, churning_of
from lagwise.domain.rebalances.explanation import CONTINUED, RebalanceExplanation, Setup, explain_rebalances
from lagwise.domain.rebalances.model import Rebalance
from lagwise.domain.vocabulary import RebalanceCause

#: A storm is at least so many rebalances within STORM_WINDOW in which a client left more than once, or more than one
#: came and left.
REBALANCES_OF_STORM = 5
#: The time within which rebalances are judged together.
STORM_WINDOW = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class RebalanceStats:
    """The rebalances of a group within an hour."""

    #: How many.
    rebalances: int
    #: How much of the hour they took; overlapping ones count once. None where no duration is known, as in classic
    #: groups.
    downtime_seconds: float | None
    #: The downtime, with the time since the last commit on the moved partitions where the duration is not known:
    #: nothing was read for longer than that.
    downtime_seconds_at_most: float | None
    #: Partitions that changed owners; None where not known.
    partitions_moved: int | None
    #: Members that joined.
    joined: int
    #: Members that left or were removed.
    left: int
    #: Clients that left at least twice, the most frequent first.
    churning: tuple[str, ...]
    #: Whether they are a storm: see REBALANCES_OF_STORM.
    is_storm: bool
    #: Whether all were read from the offsets topic: samples may have missed some.
    exact: bool
    #: When the last one ended.
    last_at: datetime
    #: Why the group rebalanced.
    finding: RebalanceExplanation


@dataclass(frozen=True, slots=True)
class Hour:
    """The rebalances of a group that fell into an hour, and those that its cause is concluded from.

    What belongs together is judged together, in the hour in which it ends: the rebalances of an hour's last
    STORM_WINDOW are ``judged`` with the next hour, if that follows within such a window.
    """

    counted: tuple[Rebalance, ...]
    judged: tuple[Rebalance, ...]
    #: The rebalances of the next hour, which may have been under way in this one.
    following: tuple[Rebalance, ...] = ()


def by_hour(rebalances: Iterable[Rebalance]) -> dict[datetime, Hour]:
    """A group's rebalances by the start of their hour (UTC)."""
    counted: dict[datetime, list[Rebalance]] = {}
    for rebalance in sorted(rebalances, key=lambda r: r.at):
        counted.setdefault(hour_of(rebalance.at), []).append(rebalance)
    judged = {start: list(its) for start, its in counted.items()}
    for start in list(counted):
        following = counted.get(start + timedelta(hours=1))
        if following is not None:
            goes_on = [r for r in counted[start] if following[0].at - r.at < STORM_WINDOW]
            judged[start] = judged[start][: len(judged[start]) - len(goes_on)]
            judged[start + timedelta(hours=1)][:0] = goes_on
    return {
        start: Hour(tuple(its), tuple(judged[start]), tuple(counted.get(start + timedelta(hours=1), ())))
        for start, its in counted.items()
    }


def hour_of(at: datetime) -> datetime:
    """The start of the hour (UTC)."""
    return at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def stats_of_hour(hour: Hour, setup: Setup) -> RebalanceStats:
    """Sum up an hour with at least one rebalance. Raises ValueError for none."""
    if not hour.counted:
        raise ValueError("there is no rebalance to sum up")
    goes_on = hour.counted[-1] not in hour.judged
    counted, seen = _counted_once(hour.counted), _counted_once(hour.judged)
    # One that was seen before it had ended is reported again when it has.
    lasting = [r for r in counted if r.cause is not RebalanceCause.UNFINISHED or (r is counted[-1] and not goes_on)]
    under_way, start = (*lasting, *hour.following), hour_of(hour.counted[0].at)
    churning, is_storm = churning_of(seen), _is_storm(seen)
    stays = sorted(stay.until - stay.since for stay in brief_stays(seen))
    return RebalanceStats(
        rebalances=len(lasting),
        downtime_seconds=_covered_seconds(start, ((r.at, r.duration_seconds) for r in under_way)),
        downtime_seconds_at_most=_covered_seconds(
            start,
            ((r.at, r.uncommitted_seconds if r.duration_seconds is None else r.duration_seconds) for r in under_way),
        ),
        partitions_moved=total(r.partitions_moved for r in counted),
        joined=sum(len(r.joined) for r in counted),
        left=sum(len(r.left) for r in counted),
        churning=churning,
        is_storm=is_storm,
        exact=all(r.exact for r in counted),
        last_at=counted[-1].at,
        finding=explain_rebalances(seen, setup, churning=churning, brief_stays=stays, is_storm=is_storm)
        if seen
        else CONTINUED,
    )


def _covered_seconds(start: datetime, spans: Iterable[tuple[datetime, float | None]]) -> float | None:
    """How much of the hour from ``start`` on is covered by spans that end at these moments and last so long; None where
    none is known of it. What lies before the hour is counted in the hour before, if that has a rebalance, too."""
    covered, until, end_of_hour = timedelta(), start, start + timedelta(hours=1)
    known = sorted((at - timedelta(seconds=lasted), at) for at, lasted in spans if lasted is not None)
    known = [(begin, end) for begin, end in known if begin < end_of_hour]
    if not known:
        return None
    for begin, end in known:
        covered += max(timedelta(), min(end, end_of_hour) - max(begin, until))
        until = max(until, end)
    return covered.total_seconds()


def _counted_once(seen: Sequence[Rebalance]) -> list[Rebalance]:
    """Members that an unfinished rebalance and the next one both name are left to the latter."""
    found = []
    for rebalance, following in zip_longest(seen, seen[1:]):
        if rebalance.cause is RebalanceCause.UNFINISHED and following is not None:
            left = [client for client in rebalance.left if client not in following.left]
            joined = [client for client in rebalance.joined if client not in following.joined]
            rebalance = replace(rebalance, left=left, joined=joined)
        found.append(rebalance)
    return found


def _is_storm(seen: Sequence[Rebalance]) -> bool:
    """Whether within some window there are many rebalances, and they are not just everybody going and coming once."""
    stays = brief_stays(seen)
    for first in seen:
        window = [r for r in seen if first.at <= r.at < first.at + STORM_WINDOW]
        membership_is_stable = not any(r.joined or r.left for r in window)
        comes_and_goes = (
            churning_of(window)
            or len([s for s in stays if s.since >= first.at and s.until <= window[-1].at]) >= DEPARTURES_OF_CHURN
        )
        if len(window) >= REBALANCES_OF_STORM and (membership_is_stable or comes_and_goes):
            return True
    return False
