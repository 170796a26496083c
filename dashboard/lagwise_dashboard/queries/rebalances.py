"""Rebalances: of every group how many and how long, and of one who was there and what each owned."""

from datetime import datetime, timedelta

from lagwise.tables.membership import REBALANCE_STATS
from lagwise.tables.raw import EVENTS, GROUPS, MEMBERS
from lagwise.tables.store import Lake
from lagwise_dashboard.queries.base import Row, days, reads, rows
from lagwise_dashboard.queries.listing import FIRST_PAGE, ListPage, ListQuery, Orders, page_of

#: Of the groups, by the parameter `rebalanced_sort` of the address.
ORDERS = Orders(
    {
        "storms": [
            "storm_hours desc",
            "coalesce(downtime_seconds, downtime_seconds_at_most) desc",
            "rebalances desc",
        ],
        "group": ['"group"'],
        "rebalances": ["rebalances desc"],
        "downtime": ["coalesce(downtime_seconds_at_most, downtime_seconds) desc"],
        "moved": ["partitions_moved desc"],
        "joined": ["joined desc"],
        "left": ['"left" desc'],
        "last": ["last_at desc"],
        "cluster": ["cluster"],
    },
    key=['"group"', "cluster"],
)
#: Rows of the timeline: periods of one member with one assignment.
MAX_PERIODS = 20_000


@reads(REBALANCE_STATS)
def groups(
    lake: Lake, cluster: str | None, since: datetime, until: datetime, query: ListQuery = FIRST_PAGE
) -> ListPage[Row]:
    """The groups of a cluster (None: of all) that were rebalanced in hours that reach into the span: where nothing else
    is asked for, those with storms first, then by how long nothing was read. ``sentence`` and ``remedy`` are those of
    the newest hour that has a cause; ``stormy`` counts the groups with storms on all pages."""
    return page_of(
        lake,
        {REBALANCE_STATS: days(since - timedelta(hours=1), until)},
        """
        select *, count(*) filter (storm_hours > 0) over () as stormy from (
            select cluster, "group", sum(rebalances)::bigint as rebalances,
                count(*) filter (is_storm) as storm_hours, count(*) as hours, bool_and(exact) as exact,
                sum(downtime_seconds) as downtime_seconds, sum(downtime_seconds_at_most) as downtime_seconds_at_most,
                sum(partitions_moved)::bigint as partitions_moved, sum(joined)::bigint as joined,
                sum("left")::bigint as "left", max(last_at) as last_at,
                arg_max(sentence, hour) filter (cause <> 'continued') as sentence,
                arg_max(remedy, hour) filter (cause <> 'continued') as remedy
            from rebalance_stats
            where last_at >= $since and hour <= $until and contains(lower("group"), lower($text))
                and ($cluster is null or cluster = $cluster)
            group by cluster, "group"
        )
        """,
        {"since": since, "until": until, "cluster": cluster, "text": query.text},
        query,
        ORDERS,
    )


@reads(EVENTS)
def events(
    lake: Lake, cluster: str, group: str, since: datetime, until: datetime, query: ListQuery = FIRST_PAGE
) -> ListPage[Row]:
    """The group's rebalances, newest first. A collector that was killed may have reported the same twice."""
    return page_of(
        lake,
        {EVENTS: days(since, until)},
        """
        select distinct "at", kind, topic, partition, before, after, generation, source, cause, joined, "left", members,
            partitions_moved, duration_seconds
        from events
        where cluster = $cluster and "group" = $group and kind = 'rebalance' and "at" between $since and $until
        """,
        {"cluster": cluster, "group": group, "since": since, "until": until},
        query,
        Orders({"": ['"at" desc']}, key=["generation desc"]),
    )


@reads(GROUPS, MEMBERS)
def periods(lake: Lake, cluster: str, group: str, since: datetime, until: datetime) -> list[Row]:
    """Who was in the group when, from the samples: periods of one member with one assignment, newest first.

    ``from_at`` is its first sample, ``to_at`` its last, or the first in which the member owns something else. A
    period ends where the member is missing from a sample of the group, and where there was none for three of the usual
    distances between two. Samples are kept for a few days only (``lake.retention.raw_days``).
    """
    return rows(
        lake,
        {GROUPS: since, MEMBERS: since},
        """
        with described as (
            select sample_id, sampled_at as group_at, row_number() over (order by sampled_at) as number,
                epoch(sampled_at) - epoch(lag(sampled_at) over (order by sampled_at)) as seconds
            from groups
            where cluster = $cluster and "group" = $group and error is null and sampled_at between $since and $until
        ), usual as (
            select coalesce(median(seconds), 0) as step from described
        ), its as (
            select members.*, number, group_at from members join described using (sample_id)
            where cluster = $cluster and "group" = $group and sampled_at >= $since
        ), marked as (
            select *, coalesce(number - lag(number) over member > 1
                or epoch(group_at) - epoch(lag(group_at) over member) > 3 * usual.step, true) as comes,
                assignment is distinct from lag(assignment) over member as changes
            from its cross join usual window member as (partition by member_id order by number)
        ), numbered as (
            select *, sum((comes or changes)::int) over member as period,
                -- It owned this until its next sample says otherwise, unless it was away in between.
                case when lead(comes) over member then group_at else lead(group_at, 1, group_at) over member end
                    as until_at
            from marked window member as (partition by member_id order by number)
        )
        select member_id, any_value(client_id) as client_id, any_value(host) as host,
            any_value(static_instance_id) as static_instance_id, any_value(assignment) as assignment,
            any_value(assigned_partitions) as assigned_partitions,
            min(group_at) as from_at, max(until_at) as to_at
        from numbered group by member_id, period
        order by to_at desc, from_at desc, member_id limit $limit
        """,
        {"cluster": cluster, "group": group, "since": since, "until": until, "limit": MAX_PERIODS},
    )
