"""One group: its verdict, its history, its partitions and members, and what happened to it."""

from datetime import datetime, timedelta

import pyarrow as pa

from lagwise.domain.vocabulary import DISPLAY_ORDER
from lagwise.tables.analysis import GROUP_HISTORY, GROUP_STATUS, PARTITION_STATUS, STATUS_CHANGES
from lagwise.tables.membership import ASSIGNMENTS, REBALANCE_STATS
from lagwise.tables.raw import EVENTS, GROUPS, MEMBERS, WATERMARKS
from lagwise.tables.store import Lake
from lagwise.tables.trends import TABLES as TREND_TABLES
from lagwise.tables.trends import in_words, trends
from lagwise_dashboard.queries.base import Row, bucket_seconds, days, reads, rows, run

MOST_PARTITIONS = 500
MOST_MEMBERS = 500
MOST_EVENTS = 200
#: How far back the members of a group are looked for: longer than any pause between two samples that still counts.
_RECENT = timedelta(hours=1)
#: A partition's own name does not change; the newest samples have it.
_LABELLED = timedelta(minutes=5)


@reads(GROUP_STATUS)
def verdict(lake: Lake, cluster: str, group: str) -> Row | None:
    """The group as it stands; None if there is no such group."""
    found = rows(
        lake,
        {GROUP_STATUS: None},
        'select * from group_status where cluster = $cluster and "group" = $group limit 1',
        {"cluster": cluster, "group": group},
    )
    return found[0] if found else None


@reads(*TREND_TABLES)
def growth(lake: Lake, cluster: str, group: str, as_of: datetime) -> str:
    """How the group's lag has moved over the last minutes, hour and day, in words; empty where nothing can be told."""
    return in_words(trends(lake, cluster, group, as_of))


@reads(PARTITION_STATUS)
def partitions(lake: Lake, cluster: str, group: str) -> list[Row]:
    """The group's partitions, worst first, at most MOST_PARTITIONS; ``of`` counts them all, ``unknown_lag`` sums the
    known lag of all whose status is unknown (null where none is known)."""
    return rows(
        lake,
        {PARTITION_STATUS: None},
        """
        select *, count(*) over () as "of",
            (sum(lag) filter (status = 'unknown') over ())::bigint as unknown_lag
        from partition_status
        where cluster = $cluster and "group" = $group
        order by list_position($ranks, status) nulls last, lag_seconds desc nulls last, lag desc nulls last,
            topic, partition
        limit $limit
        """,
        {"cluster": cluster, "group": group, "ranks": [str(s) for s in DISPLAY_ORDER], "limit": MOST_PARTITIONS},
    )


@reads(GROUP_HISTORY)
def history(lake: Lake, cluster: str, group: str, since: datetime, until: datetime) -> pa.Table:
    """The group's line in the charts: at most 500 buckets with their largest lag, mean rates and worst status.

    ``at`` is the time of the last tick of the bucket. Buckets without a tick are missing: a gap in the chart.
    """
    return run(
        lake,
        {GROUP_HISTORY: since},
        """
        select max(as_of) as "at",
            max(lag_seconds) as lag_seconds,
            coalesce(bool_or(lag_seconds_is_lower_bound), false) as lag_seconds_is_lower_bound,
            max(lag) as lag,
            avg(produce_rate_per_second) as produce_rate_per_second,
            avg(consume_rate_per_second) as consume_rate_per_second,
            arg_min(status, coalesce(list_position($ranks, status), 99)) as status
        from group_history
        where cluster = $cluster and "group" = $group and as_of between $since and $until
        group by floor(epoch(as_of) / $width)
        order by "at"
        """,
        {
            "cluster": cluster,
            "group": group,
            "since": since,
            "until": until,
            "ranks": [str(s) for s in DISPLAY_ORDER],
            "width": bucket_seconds(since, until),
        },
    )


@reads(STATUS_CHANGES)
def changes(lake: Lake, cluster: str, group: str, since: datetime, until: datetime) -> list[Row]:
    """Changes of the whole group's status, newest first."""
    return rows(
        lake,
        {STATUS_CHANGES: days(since, until)},
        """
        select "at", before, after, reason from status_changes
        where cluster = $cluster and "group" = $group and topic is null and "at" between $since and $until
        order by "at" desc limit $limit
        """,
        {"cluster": cluster, "group": group, "since": since, "until": until, "limit": MOST_EVENTS},
    )


@reads(EVENTS)
def events(
    lake: Lake, cluster: str, group: str, topics: tuple[str, ...], since: datetime, until: datetime
) -> list[Row]:
    """What happened to the group or to a topic it reads, newest first. A collector that was killed may have told the
    same twice."""
    return rows(
        lake,
        {EVENTS: days(since, until)},
        """
        select distinct "at", kind, "group", topic, partition, before, after, generation, cause, joined, "left",
            partitions_moved, duration_seconds
        from events
        where cluster = $cluster and "at" between $since and $until
            and ("group" = $group or ("group" is null and list_contains($topics, topic)))
        order by "at" desc limit $limit
        """,
        {
            "cluster": cluster,
            "group": group,
            "topics": list(topics),
            "since": since,
            "until": until,
            "limit": MOST_EVENTS,
        },
    )


@reads(REBALANCE_STATS)
def rebalances(lake: Lake, cluster: str, group: str, since: datetime, until: datetime) -> list[Row]:
    """The hours in which the group was rebalanced, newest first, as far as they reach into the span."""
    return rows(
        lake,
        {REBALANCE_STATS: days(since - timedelta(hours=1), until)},
        """
        select * from rebalance_stats
        where cluster = $cluster and "group" = $group and last_at >= $since and hour <= $until
        order by hour desc limit $limit
        """,
        {"cluster": cluster, "group": group, "since": since, "until": until, "limit": MOST_EVENTS},
    )


@reads(ASSIGNMENTS)
def assignment(lake: Lake, cluster: str, group: str) -> Row | None:
    """How even the group's assignment is and what the assignors would change; None where it is not settled."""
    found = rows(
        lake,
        {ASSIGNMENTS: None},
        'select * from assignments where cluster = $cluster and "group" = $group limit 1',
        {"cluster": cluster, "group": group},
    )
    return found[0] if found else None


@reads(GROUPS, MEMBERS)
def members(lake: Lake, cluster: str, group: str, as_of: datetime) -> list[Row]:
    """The members in the newest sample of the hour before ``as_of``, those that own most first.

    ``of`` counts them all.

    A group that was sampled without members has none, however many it had before.
    """
    since = as_of - _RECENT
    limit = days(since, as_of + timedelta(minutes=5))
    return rows(
        lake,
        {GROUPS: limit, MEMBERS: limit},
        """
        with newest as (
            select arg_max(sample_id, sampled_at) as sample_id from groups
            where cluster = $cluster and "group" = $group and sampled_at between $since and $as_of
        )
        select member_id, client_id, host, static_instance_id, assignment, assigned_partitions, lag, sampled_at,
            count(*) over () as "of"
        from members semi join newest using (sample_id)
        where cluster = $cluster and "group" = $group and sampled_at >= $since
        order by assigned_partitions desc, client_id, member_id
        limit $limit
        """,
        {"cluster": cluster, "group": group, "since": since, "as_of": as_of, "limit": MOST_MEMBERS},
    )


@reads(PARTITION_STATUS)
def standings(lake: Lake, cluster: str, group: str) -> dict[str, Row]:
    """How each member does, by member id: over the partitions it owns the worst status, sums, and the oldest unread."""
    found = rows(
        lake,
        {PARTITION_STATUS: None},
        """
        select owner, max(as_of) as as_of, arg_min(status, coalesce(list_position($ranks, status), 99)) as status,
            sum(lag)::bigint as lag,
            max(lag_seconds) as lag_seconds,
            arg_max(coalesce(lag_seconds_is_lower_bound, false), lag_seconds) as lag_seconds_is_lower_bound,
            sum(produce_rate_per_second) as produce_rate_per_second,
            sum(consume_rate_per_second) as consume_rate_per_second
        from partition_status where cluster = $cluster and "group" = $group and owner is not null group by owner
        """,
        {"cluster": cluster, "group": group, "ranks": [str(s) for s in DISPLAY_ORDER]},
    )
    return {row["owner"]: row for row in found}


@reads(GROUPS)
def description(lake: Lake, cluster: str, group: str, as_of: datetime) -> Row:
    """How the group consumes by its newest sample until ``as_of``: ``type``, ``source`` of its offsets,
    ``unacknowledged`` messages and ``subscriptions``, null where that is not known. Empty if it has not been sampled
    lately."""
    since = as_of - _RECENT
    found = rows(
        lake,
        {GROUPS: days(since, as_of + timedelta(minutes=5))},
        """
        select type, source, unacknowledged, subscriptions from groups
        where cluster = $cluster and "group" = $group and sampled_at between $since and $as_of
        order by sampled_at desc limit 1
        """,
        {"cluster": cluster, "group": group, "since": since, "as_of": as_of},
    )
    return found[0] if found else {}


@reads(WATERMARKS)
def labels(lake: Lake, cluster: str, topics: tuple[str, ...], as_of: datetime) -> dict[tuple[str, int], str]:
    """What the system itself calls partitions of these topics, by topic and partition, where it has names for them."""
    found = rows(
        lake,
        {WATERMARKS: days(as_of - _LABELLED, as_of + timedelta(minutes=5))},
        """
        select topic, partition, arg_max(label, sampled_at) as label from watermarks
        where cluster = $cluster and list_contains($topics, topic) and sampled_at >= $since and label is not null
        group by topic, partition
        """,
        {"cluster": cluster, "topics": list(topics), "since": as_of - _LABELLED},
    )
    return {(row["topic"], row["partition"]): row["label"] for row in found}
