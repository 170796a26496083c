"""The answer to an autoscaler about one group: from memory, decided by :mod:`lagwise.domain.capacity.scaling`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from lagwise.domain.capacity.scaling import (
    Desired,
    ScalingPolicy,
    deciding_loads,
    desired_replicas,
    most_members,
    need_at,
)
from lagwise.domain.vocabulary import REBALANCING_STATES, GroupState
from lagwise_app.scaling.lake_cache import LakeCache, NoAnswer, TopicRate

#: States in which the number of members says nothing about how many replicas there are.
_UNSETTLED = frozenset({*REBALANCING_STATES, GroupState.DEAD, GroupState.UNKNOWN})


class StaleData(NoAnswer):
    """What is known is too old to act on."""


class UndecidedSignal(NoAnswer):
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
    memory: LakeCache, cluster: str, group: str, policy: ScalingPolicy, now: datetime, *, stale_after_seconds: float
) -> Signal:
    """The answer for one group at ``now``.

    Raises UnknownGroup; StaleData where the last verdict is older than ``stale_after_seconds``; Undecided where how
    many replicas there are or what one of them can do is not known, or a rebalance is under way; and NoAnswer where
    the lake has not been read yet.
    """
    known = memory.known(cluster, group, policy.down_after_seconds, now)
    age = (now - known.as_of).total_seconds()
    if age > stale_after_seconds:
        old = f"the last verdict on this group is {age:.0f} s old, more than {stale_after_seconds:.0f} s"
        raise StaleData(f"{old}; {known.trouble}" if known.trouble else old)
    if known.members is None:
        raise UndecidedSignal("the number of members is unknown: the group's coordinator did not report it")
    if known.state in _UNSETTLED:
        raise UndecidedSignal(f"the group is {known.state}: how many members it has is not settled")
    held = most_members(known.seen, now, policy.down_after_seconds)
    if held is None:
        watched = max(((now - seen.at).total_seconds() for seen in known.seen), default=0.0)
        raise UndecidedSignal(
            f"its members have been watched for {watched:.0f} s, less than the {policy.down_after_seconds:.0f} s of "
            "down_after_seconds: those of a deployment that began before are not known"
        )
    hottest_shares = {topic: capacity.hottest_share for topic, capacity in known.capacity.items()}
    partitions, hottest = shared_work(known.topics, hottest_shares, is_by_topic=known.is_by_topic)
    replica_rate = mixed_rate(known.topics, {topic: c.member_rate for topic, c in known.capacity.items()})
    if replica_rate is None or not partitions:
        raise UndecidedSignal(
            "the throughput of one replica is unknown: the group does not measure it (docs/probe.md), and no sample "
            "shows it with a backlog (docs/capacity.md)"
        )
    needs = [
        need_at(policy, load, replica_rate_per_second=replica_rate, partitions=partitions, hottest_share=hottest)
        for load in deciding_loads(policy, known.loads, now)
    ]
    full_with = [c.downstream_full_with for c in known.capacity.values() if c.downstream_full_with is not None]
    desired = desired_replicas(policy, needs, held, partitions, now, downstream_full_with=max(full_with, default=None))
    if desired is None:
        raise UndecidedSignal("no recent sample shows how much arrives and how much waits")
    return Signal(cluster, group, desired, known.members, held, partitions, replica_rate, known.as_of)


def mixed_rate(topics: Sequence[TopicRate], member_rates: Mapping[str, float | None]) -> float | None:
    """What one member does of all topics together, records per second, in the mix in which they arrive now.

    A record of each topic takes its own time: the member's times are added up by their shares of the traffic. None
    where it is not known of a topic that anything arrives on, or of none.
    """
    total, seconds = 0.0, 0.0
    known = [member_rates.get(topic.topic) for topic in topics]
    for topic, rate in zip(topics, known, strict=True):
        if topic.rate <= 0:
            continue
        if not rate:
            return None
        total += topic.rate
        seconds += topic.rate / rate
    if total > 0:
        return total / seconds
    # Nothing arrives at all: any of them will do, the slowest to be careful.
    return min((rate for rate in known if rate), default=None)


def shared_work(
    topics: Sequence[TopicRate], hottest_shares: Mapping[str, float | None], *, is_by_topic: bool
) -> tuple[int, float | None]:
    """How many parts the work of all topics comes in, and the share of the greatest; None where nothing arrives.

    Each topic's hottest partition has its share of what arrives on it now; where that is not known its partitions are
    taken as alike. By topic, as the range assignor goes, the first members get the first partitions of each topic, and
    members beyond the largest topic's partitions none; the hottest ones of all topics are then taken to be together.
    """
    total = sum(topic.rate for topic in topics)
    parts = [topic.partitions for topic in topics]
    hottest = [topic.rate * max(1 / topic.partitions, hottest_shares.get(topic.topic) or 0.0) for topic in topics]
    if is_by_topic:
        return max(parts, default=0), sum(hottest) / total if total > 0 else None
    return sum(parts), max(hottest) / total if total > 0 else None
