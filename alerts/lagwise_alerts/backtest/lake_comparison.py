"""What groups that got worse in the past are compared with for shared incidents, from the lake.

The history of statuses has the groups that were well. Which members a group had, and which broker led a partition, only
the samples say, and these are kept for days.
"""

from bisect import bisect_right
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import cached_property

import pyarrow as pa

from lagwise.domain.correlation import GroupKey, GroupTraits, ThingKind
from lagwise.domain.vocabulary import Status
from lagwise.tables.analysis import GROUP_HISTORY, PARTITION_STATUS, STATUS_CHANGES
from lagwise.tables.raw import COMMITS, GROUPS, MEMBERS, WATERMARKS
from lagwise.tables.schema import Table
from lagwise.tables.store import Lake
from lagwise_alerts.evaluate.group_facts import Group
from lagwise_alerts.evaluate.group_traits import LEADERS_SQL, MEMBERS_LOOKBACK, MEMBERS_SQL, traits_by_group
from lagwise_alerts.model import AlertKind, AlertSubject, ClusterView, GroupCondition

#: What groups may share that only samples say, and the table whose rows show that the sample is still there. (That of
#: groups for their members: a cluster may have had none.)
KINDS_BY_TABLE = ((WATERMARKS, (ThingKind.BROKER,)), (GROUPS, (ThingKind.HOST, ThingKind.CLIENT_ID)))

#: By name. A status that only a newer version knows counts as unknown.
STATUSES = {status.value: status for status in Status}

#: The statuses of the groups that no rule can match, from when to when.
_RUNS = """
with others as (
    select cluster, "group", as_of, status, status is distinct from lag(status) over its as is_new
    from group_history anti join wanted using (cluster, "group")
    where as_of >= ? and as_of < ?
    window its as (partition by cluster, "group" order by as_of)
),
numbered as (
    select *, count(*) filter (where is_new) over (
        partition by cluster, "group" order by as_of rows unbounded preceding
    ) as number
    from others
)
select cluster, "group", any_value(status) as status, min(as_of) as first_at, max(as_of) as last_at
from numbered group by cluster, "group", number order by first_at
"""
_MEMBERS = 'select cluster, "group", host, client_id, sampled_at from members where sampled_at >= ? and sampled_at < ?'
#: The partitions of the newest sample of each cluster, with their leaders.
_SAMPLED = """
with listed as (
    select cluster, "group", topic, partition from commits where sampled_at >= $since and sampled_at < $until
    qualify sampled_at = max(sampled_at) over (partition by cluster)
),
led as (
    select cluster, topic, partition, arg_max(leader, sampled_at) as leader from watermarks
    where sampled_at >= $since and sampled_at < $until
    group by all
)
select cluster, "group", topic, partition, leader from listed join led using (cluster, topic, partition)
"""
#: The statuses of partitions: those that they had got before, and each change from then on.
_PARTITION_CHANGES = """
select cluster, "group", topic, partition, max("at") as "at", arg_max(after, "at") as after from status_changes
where topic is not null and "at" < $since
group by all
union all
select cluster, "group", topic, partition, "at", after from status_changes
where topic is not null and "at" >= $since and "at" < $until
"""
#: The sampled partitions with the statuses that they had got by then.
_JUDGED = """
with judged as (
    select cluster, "group", topic, partition, arg_max(after, "at") as status from changes
    where "at" < ?
    group by all
)
select cluster, "group", leader, coalesce(status, '') as status
from sampled left join judged using (cluster, "group", topic, partition)
"""
_FIRST_SAMPLED = """
select cluster, min(sampled_at) as first_at from {table} where sampled_at >= ? and sampled_at < ? group by cluster
"""
#: A sample says which partitions there are for as many of its intervals, and for so long at least.
_SAMPLE_INTERVALS = 3
_SAMPLE_COUNTS = timedelta(minutes=2)
#: What is of the moment itself was known at it.
_INSTANT = timedelta(microseconds=1)


class LakeComparison:
    """Groups and traits of the moments of a time range. ``wanted`` are the groups that a rule may match.

    All methods raise LakeError where the lake cannot be read.
    """

    def __init__(
        self, lake: Lake, since: datetime, until: datetime, wanted: pa.Table, topics: Mapping[Group, tuple[str, ...]]
    ) -> None:
        self._lake = lake
        self._since = since
        self._until = until
        self._wanted = wanted
        self._topics = topics

    def others(self, judged: Mapping[str, datetime], clusters: Mapping[str, ClusterView]) -> tuple[GroupCondition, ...]:
        """The groups that no rule can match, as their clusters were judged at these times."""
        found = []
        for group, (starts, runs) in self._runs.items():
            as_of = judged.get(group[0])
            number = bisect_right(starts, as_of) - 1 if as_of is not None else -1
            if as_of is None or number < 0 or runs[number][1] < as_of:
                continue
            status, _ = runs[number]
            found.append(
                GroupCondition(
                    subject=AlertSubject(AlertKind.GROUP, *group),
                    as_of=as_of,
                    valid_for_seconds=clusters[group[0]].valid_for_seconds,
                    status=status,
                    reason=None,
                    since=starts[number],
                    sentence="",
                    topics=self._topics.get(group, ()),
                )
            )
        return tuple(found)

    @cached_property
    def _runs(self) -> dict[Group, tuple[list[datetime], list[tuple[Status, datetime]]]]:
        """Of each group, when it got which status, and until when it had it."""
        found: dict[Group, tuple[list[datetime], list[tuple[Status, datetime]]]] = {}
        rows = self._lake.query(
            _RUNS,
            [self._since, self._until],
            over=[GROUP_HISTORY],
            since=self._since,
            given={"wanted": self._wanted},
        )
        for row in rows.to_pylist():
            starts, runs = found.setdefault((row["cluster"], row["group"]), ([], []))
            starts.append(row["first_at"])
            runs.append((STATUSES.get(row["status"], Status.UNKNOWN), row["last_at"]))
        return found

    @cached_property
    def _partition_changes(self) -> pa.Table:
        """Which statuses partitions had at the beginning, and each change of them. Read once: the lake keeps changes
        for months, and every moment that asks needs them."""
        span = {"since": self._since, "until": self._until + _INSTANT}
        return self._lake.query(_PARTITION_CHANGES, span, over=[STATUS_CHANGES], until=span["until"])

    def traits(self, now: datetime, interval_seconds: float) -> dict[GroupKey, GroupTraits]:
        """The traits of groups at a moment, as the alerts would have read them. ``interval_seconds`` is the longest
        between two samples of a cluster."""
        start, until = now - MEMBERS_LOOKBACK, now + _INSTANT
        members = self._lake.query(_MEMBERS, [start, until], over=[MEMBERS], since=start, until=until)
        sampled = now - max(_SAMPLE_COUNTS, timedelta(seconds=_SAMPLE_INTERVALS * interval_seconds))
        partitions = self._lake.query(
            _SAMPLED, {"since": sampled, "until": until}, over=[COMMITS, WATERMARKS], since=sampled, until=until
        )
        given = {"sampled": partitions, "changes": self._partition_changes}
        judged = self._lake.query(_JUDGED, [until], over=[], given=given)
        leaders = self._lake.query(LEADERS_SQL, over=[], given={PARTITION_STATUS.name: judged})
        hosts = self._lake.query(MEMBERS_SQL, [start], over=[], given={MEMBERS.name: members})
        return traits_by_group(leaders.to_pylist(), hosts.to_pylist())


def sampled_since(lake: Lake, table: Table, since: datetime, until: datetime) -> dict[str, datetime]:
    """The first sample of each cluster in a time range of which this table has rows. Raises LakeError."""
    sql = _FIRST_SAMPLED.format(table=table.name)
    rows = lake.query(sql, [since, until], over=[table], since=since, until=until).to_pylist()
    return {row["cluster"]: row["first_at"] for row in rows}
