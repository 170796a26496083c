"""The answer to an autoscaler about one group: from the cache, decided by :mod:`lagwise.domain.capacity.scaling`."""

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
    """The last verdict is too old to act on."""


class UndecidedSignal(NoAnswer):
    """The number of replicas, or the capacity of one, is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """The answer: how many replicas, and why."""

    cluster: str
    group: str
    desired: Desired
    #: Members in the latest sample.
    running: int
    #: The maximum of members within the policy's ``down_after_seconds``: what stays while nothing has to change.
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
    cache: LakeCache, cluster: str, group: str, policy: ScalingPolicy, now: datetime, *, stale_after_seconds: float
) -> Signal:
    """The answer for one group at ``now``.

    Raises UnknownGroup; StaleData where the last verdict is older than ``stale_after_seconds``; UndecidedSignal where
    the number of replicas or the capacity of one is unknown, or a rebalance is under way; and NoAnswer where the lake
    has not been read yet.
    """
    known = cache.inputs_of(cluster, group, policy.down_after_seconds, now)
    age = (now - known.as_of).total_seconds()
    if age > stale_after_seconds:
        old = f"the last verdict on this group is {age:.0f} s old, more than {stale_after_seconds:.0f} s"
        raise StaleData(f"{old}; {known.read_error}" if known.read_error else old)
    if known.members is None:
        raise UndecidedSignal("the number of members is unknown: the group's coordinator did not report it")
    if known.state in _UNSETTLED:
        raise UndecidedSignal(f"the group is {known.state}: its number of members is not settled")
    held = most_members(known.member_counts, now, policy.down_after_seconds)
    if held is None:
        watched = max(((now - seen.at).total_seconds() for seen in known.member_counts), default=0.0)
        raise UndecidedSignal(
            f"its members have been watched for {watched:.0f} s, less than down_after_seconds "
            f"({policy.down_after_seconds:.0f} s): a deployment may have begun earlier"
        )
    hottest_shares = {topic: capacity.hottest_share for topic, capacity in known.capacity.items()}
    work = divided_work(known.topics, hottest_shares, is_by_topic=known.is_by_topic)
    replica_rate = mixed_rate(known.topics, {topic: c.member_rate for topic, c in known.capacity.items()})
    if replica_rate is None or not work.units:
        raise UndecidedSignal(
            "the throughput of one replica is unknown: the group does not measure it (docs/probe.md), and no sample "
            "shows it with a backlog (docs/capacity.md)"
        )
    needs = [
        need_at(
            policy, load, replica_rate_per_second=replica_rate, partitions=work.units, hottest_share=work.hottest_share
        )
        for load in deciding_loads(policy, known.loads, now)
    ]
    full_with = [c.downstream_full_with for c in known.capacity.values() if c.downstream_full_with is not None]
    desired = desired_replicas(policy, needs, held, work.units, now, downstream_full_with=max(full_with, default=None))
    if desired is None:
        raise UndecidedSignal("no recent sample shows the incoming rate and the lag")
    return Signal(
        cluster=cluster,
        group=group,
        desired=desired,
        running=known.members,
        held=held,
        partitions=work.units,
        replica_rate_per_second=replica_rate,
        as_of=known.as_of,
    )


def mixed_rate(topics: Sequence[TopicRate], member_rates: Mapping[str, float | None]) -> float | None:
    """Records per second that one member handles of all topics together, in the current mix of traffic.

    A record of each topic takes its own time: the times are weighted by the topics' shares of the traffic. None where
    the rate for a topic with traffic, or for every topic, is unknown.
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
    # Without any traffic the slowest topic is the careful choice.
    return min((rate for rate in known if rate), default=None)


@dataclass(frozen=True, slots=True)
class DividedWork:
    """How the work of all topics can be divided among members."""

    #: The maximum of members that have work.
    units: int
    #: Share of the traffic in the largest unit; None without traffic.
    hottest_share: float | None


def divided_work(
    topics: Sequence[TopicRate], hottest_shares: Mapping[str, float | None], *, is_by_topic: bool
) -> DividedWork:
    """How the work can be divided, at the current rates.

    The partitions of a topic count as alike where the share of its hottest one is unknown. By topic, as with the range
    assignor, the first members get the first partitions of every topic, and members beyond the largest topic's
    partitions get none. The hottest partitions of all topics then count as being on one member.
    """
    total = sum(topic.rate for topic in topics)
    partitions = [topic.partitions for topic in topics]
    hottest = [topic.rate * max(1 / topic.partitions, hottest_shares.get(topic.topic) or 0.0) for topic in topics]
    if is_by_topic:
        return DividedWork(max(partitions, default=0), sum(hottest) / total if total > 0 else None)
    return DividedWork(sum(partitions), max(hottest) / total if total > 0 else None)
