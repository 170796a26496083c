"""What an autoscaler is told about a group: read from the lake, decided by :mod:`lagwise.domain.capacity.scaling`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from lagwise.domain.capacity.scaling import Desired, Need, ScalingPolicy, desired_replicas, need_at
from lagwise.tables.analysis import GROUP_HISTORY, GROUP_STATUS, PARTITION_STATUS
from lagwise.tables.capacity import CAPACITY
from lagwise.tables.membership import ASSIGNMENTS
from lagwise.tables.store import Lake

_TOPICS = """
    select topic, coalesce(sum(produce_rate_per_second), 0) as rate
    from partition_status where cluster = ? and "group" = ? and status != 'ghost' group by topic
"""
#: What members can share: each partition by itself, or, where an assignor hands out the topics one by one, the same way
#: every time, the partitions of equal number of all topics together.
_SHARED = """
    with shared as (
        select coalesce(sum(produce_rate_per_second), 0) as rate from partition_status
        where cluster = ? and "group" = ? and status != 'ghost'
        group by partition, case when ? then null else topic end
    )
    select count(*) as partitions, max(rate) / nullif(sum(rate), 0) as hottest_share from shared
"""
_HISTORY = """
    select as_of, lag, produce_rate_per_second as rate from group_history
    where cluster = ? and "group" = ? and as_of >= ? and lag is not null and produce_rate_per_second is not null
    order by as_of
"""


class UnknownGroup(LookupError):
    """Nothing is known of a group of this name."""


class StaleData(Exception):
    """What is known is too old to act on."""


@dataclass(frozen=True, slots=True)
class Signal:
    """The answer: how many replicas, why, and from what."""

    cluster: str
    group: str
    desired: Desired
    running: int
    partitions: int
    replica_rate_per_second: float | None
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
            "partitions": self.partitions,
            "replica_rate_per_second": self.replica_rate_per_second,
            "as_of": self.as_of.isoformat(),
        }


def signal(
    lake: Lake, cluster: str, group: str, policy: ScalingPolicy, now: datetime, *, stale_after_seconds: float
) -> Signal:
    """The answer for one group at ``now``.

    Raises UnknownGroup, StaleData where the last verdict is older than ``stale_after_seconds`` (an autoscaler that gets
    an error leaves alone what runs, which is right while nobody knows), and LakeError.
    """
    status = lake.query(
        'select as_of, members, type from group_status where cluster = ? and "group" = ?',
        [cluster, group],
        over=[GROUP_STATUS],
    ).to_pylist()
    if not status:
        raise UnknownGroup(f"no group {group!r} is known in cluster {cluster!r}")
    [row] = status
    age = (now - row["as_of"]).total_seconds()
    if age > stale_after_seconds:
        raise StaleData(f"the last verdict on this group is {age:.0f} s old, more than {stale_after_seconds:.0f} s")
    topics = lake.query(_TOPICS, [cluster, group], over=[PARTITION_STATUS]).to_pylist()
    rates = lake.query(
        'select topic, member_rate_per_second as rate from capacity where cluster = ? and "group" = ?',
        [cluster, group],
        over=[CAPACITY],
    ).to_pylist()
    running = row["members"] or 0
    partitions, hottest = _shared(lake, cluster, group)
    replica_rate = mixed_rate(topics, {r["topic"]: r["rate"] for r in rates})
    needs: list[Need] = []
    if replica_rate is not None and partitions:
        since = now - timedelta(seconds=policy.down_after_seconds) - timedelta(minutes=5)
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
    desired = desired_replicas(policy, needs, running, now)
    return Signal(cluster, group, desired, running, partitions, replica_rate, row["as_of"])


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


def _shared(lake: Lake, cluster: str, group: str) -> tuple[int, float | None]:
    """How many parts the work comes in, and the share of the greatest; None where nothing arrives.

    The range assignor gives the first members the first partitions of each topic, so that members beyond the largest
    topic's partitions get none.
    """
    assignor = lake.query(
        'select assignor from assignments where cluster = ? and "group" = ?', [cluster, group], over=[ASSIGNMENTS]
    ).to_pylist()
    by_topic = bool(assignor) and assignor[0]["assignor"] == "range"
    [row] = lake.query(_SHARED, [cluster, group, by_topic], over=[PARTITION_STATUS]).to_pylist()
    return row["partitions"], row["hottest_share"]
