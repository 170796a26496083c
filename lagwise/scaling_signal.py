"""What an autoscaler is told about a group: read from the lake, decided by :mod:`lagwise.domain.capacity.scaling`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from lagwise.domain.capacity.scaling import (
    Desired,
    Members,
    ScalingPolicy,
    desired_replicas,
    most_members,
    need_at,
)
from lagwise.domain.vocabulary import REBALANCING_STATES, GroupState
from lagwise.tables.analysis import GROUP_HISTORY, GROUP_STATUS, PARTITION_STATUS
from lagwise.tables.capacity import CAPACITY
from lagwise.tables.membership import ASSIGNMENTS
from lagwise.tables.raw import GROUPS
from lagwise.tables.store import Lake

_TOPICS = """
    select topic, count(*) as partitions, coalesce(sum(produce_rate_per_second), 0) as rate
    from partition_status where cluster = ? and "group" = ? and status != 'ghost' group by topic
"""
_HISTORY = """
    select as_of, lag, produce_rate_per_second as rate from group_history
    where cluster = ? and "group" = ? and as_of >= ? and lag is not null and produce_rate_per_second is not null
    order by as_of
"""
_MEMBERS = """
    select sampled_at as at, member_count as count from groups
    where cluster = ? and "group" = ? and sampled_at >= ? and member_count is not null
"""
#: A window begins with what was seen last before it, but not with what is so much older.
_SEEN_BEFORE = timedelta(minutes=5)
#: States in which the number of members says nothing about how many replicas there are.
_UNSETTLED = frozenset({*REBALANCING_STATES, GroupState.DEAD, GroupState.UNKNOWN})


class UnknownGroup(LookupError):
    """Nothing is known of a group of this name."""


class NoAnswer(Exception):
    """No number can be answered for, and an autoscaler that gets none leaves alone what runs. The message says why."""


class StaleData(NoAnswer):
    """What is known is too old to act on."""


class Undecided(NoAnswer):
    """How many replicas there are, or what one of them can do, is not known."""


@dataclass(frozen=True, slots=True)
class Signal:
    """The answer: how many replicas, why, and from what."""

    cluster: str
    group: str
    desired: Desired
    #: Members in the latest sample.
    running: int
    #: The most members within the policy's ``down_after_seconds``: what stays while nothing is to change.
    held: int
    partitions: int
    replica_rate_per_second: float
    as_of: datetime

    def as_document(self) -> dict[str, object]:
        """As plain values for JSON; ``replicas`` is what an autoscaler reads."""
        return {
            "cluster": self.cluster,
            "group": self.group,
            "replicas": self.desired.replicas,
            "why": str(self.desired.why),
            "needed_now": self.desired.needed,
            "running": self.running,
            "held": self.held,
            "partitions": self.partitions,
            "replica_rate_per_second": self.replica_rate_per_second,
            "as_of": self.as_of.isoformat(),
        }


def signal(
    lake: Lake, cluster: str, group: str, policy: ScalingPolicy, now: datetime, *, stale_after_seconds: float
) -> Signal:
    """The answer for one group at ``now``.

    Raises UnknownGroup; StaleData where the last verdict is older than ``stale_after_seconds``; Undecided where how
    many replicas there are or what one of them can do is not known, or a rebalance is under way; and LakeError.
    """
    status = lake.query(
        'select as_of, members, state from group_status where cluster = ? and "group" = ?',
        [cluster, group],
        over=[GROUP_STATUS],
    ).to_pylist()
    if not status:
        raise UnknownGroup(f"no group {group!r} is known in cluster {cluster!r}")
    [row] = status
    age = (now - row["as_of"]).total_seconds()
    if age > stale_after_seconds:
        raise StaleData(f"the last verdict on this group is {age:.0f} s old, more than {stale_after_seconds:.0f} s")
    if row["members"] is None:
        raise Undecided("how many members the group has is not known: its coordinator did not tell")
    if row["state"] in _UNSETTLED:
        raise Undecided(f"the group is {row['state']}: how many members it has is not settled")
    since = now - timedelta(seconds=policy.down_after_seconds) - _SEEN_BEFORE
    seen = lake.query(_MEMBERS, [cluster, group, since], over=[GROUPS], since=since).to_pylist()
    held = most_members([Members(r["at"], r["count"]) for r in seen], now, policy.down_after_seconds)
    if held is None:
        watched = max(((now - r["at"]).total_seconds() for r in seen), default=0.0)
        raise Undecided(
            f"its members have been watched for {watched:.0f} s, less than the {policy.down_after_seconds:.0f} s of "
            "down_after_seconds: those of a deployment that began before are not known"
        )
    topics = lake.query(_TOPICS, [cluster, group], over=[PARTITION_STATUS]).to_pylist()
    known = lake.query(
        'select topic, member_rate_per_second as rate, hottest_share from capacity where cluster = ? and "group" = ?',
        [cluster, group],
        over=[CAPACITY],
    ).to_pylist()
    hottest_shares = {r["topic"]: r["hottest_share"] for r in known}
    partitions, hottest = shared_work(topics, hottest_shares, is_by_topic=_is_by_topic(lake, cluster, group))
    replica_rate = mixed_rate(topics, {r["topic"]: r["rate"] for r in known})
    if replica_rate is None or not partitions:
        raise Undecided(
            "what one replica can do is not known yet: the group neither tells it (docs/probe.md) nor was seen with a "
            "backlog (docs/capacity.md)"
        )
    history = lake.query(_HISTORY, [cluster, group, since], over=[GROUP_HISTORY], since=since).to_pylist()
    needs = [
        need_at(
            policy,
            h["as_of"],
            produce_rate_per_second=max(0.0, h["rate"]),
            lag=float(h["lag"]),
            replica_rate_per_second=replica_rate,
            partitions=partitions,
            hottest_share=hottest,
        )
        for h in history
    ]
    desired = desired_replicas(policy, needs, held, partitions, now)
    if desired is None:
        raise Undecided("how much arrives and waits was not known at any time lately")
    return Signal(cluster, group, desired, row["members"], held, partitions, replica_rate, row["as_of"])


def mixed_rate(topics: Sequence[Mapping[str, Any]], member_rates: Mapping[str, float | None]) -> float | None:
    """What one member does of all topics together, records per second, in the mix in which they arrive now.

    A record of each topic takes its own time: the member's times are added up by their shares of the traffic. None
    where it is not known of a topic that anything arrives on, or of none.
    """
    total, seconds = 0.0, 0.0
    known = [member_rates.get(t["topic"]) for t in topics]
    for topic, rate in zip(topics, known, strict=True):
        if topic["rate"] <= 0:
            continue
        if not rate:
            return None
        total += topic["rate"]
        seconds += topic["rate"] / rate
    if total > 0:
        return total / seconds
    # Nothing arrives at all: any of them will do, the slowest to be careful.
    return min((rate for rate in known if rate), default=None)


def shared_work(
    topics: Sequence[Mapping[str, Any]], hottest_shares: Mapping[str, float | None], *, is_by_topic: bool
) -> tuple[int, float | None]:
    """How many parts the work of all topics comes in, and the share of the greatest; None where nothing arrives.

    Each topic's hottest partition has its share of what arrives on it now; where that is not known its partitions are
    taken as alike. By topic, as the range assignor goes, the first members get the first partitions of each topic, and
    members beyond the largest topic's partitions none; the hottest ones of all topics are then taken to be together.
    """
    total = sum(topic["rate"] for topic in topics)
    parts = [topic["partitions"] for topic in topics]
    hottest = [
        topic["rate"] * max(1 / topic["partitions"], hottest_shares.get(topic["topic"]) or 0.0) for topic in topics
    ]
    if is_by_topic:
        return max(parts, default=0), sum(hottest) / total if total > 0 else None
    return sum(parts), max(hottest) / total if total > 0 else None


def _is_by_topic(lake: Lake, cluster: str, group: str) -> bool:
    assignor = lake.query(
        'select assignor from assignments where cluster = ? and "group" = ?', [cluster, group], over=[ASSIGNMENTS]
    ).to_pylist()
    return bool(assignor) and assignor[0]["assignor"] == "range"
