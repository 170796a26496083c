"""Rebalances: of every group how many and how long, and of one who was there and what each owned."""

from datetime import datetime, timedelta

from lagwise.tables.membership import REBALANCE_STATS
from lagwise.tables.raw import EVENTS, GROUPS, MEMBERS
from lagwise.tables.store import Lake
from lagwise_dashboard.queries.base import Row, days, first_column, reads, rows
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
#: Widths of the bins of a rate. The narrowest is taken that makes at most _MAX_BINS of a span.
_BIN_WIDTHS = tuple(
    timedelta(seconds=seconds)
    for seconds in (
        1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400, 604_800
    )
)  # fmt: skip
_MAX_BINS = 100
#: The last entry of a list of names that was shortened: how many there are beyond those that it names.
_MORE_NAMES = r"^… and (\d+) more$"


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


def bin_width(since: datetime, until: datetime) -> timedelta:
    """The width of the bins of :func:`rates` over a span."""
    return next((width for width in _BIN_WIDTHS if (until - since) / width <= _MAX_BINS), _BIN_WIDTHS[-1])


@reads(EVENTS)
def rates(lake: Lake, cluster: str, group: str, since: datetime, until: datetime) -> list[Row]:
    """The group's rebalances by bins of :func:`bin_width`, oldest first; bins without any are left out.

    ``at`` is the beginning of a bin, a whole multiple of the width, so that bins stay where they are while the span
    moves on. The first is counted from its beginning, although the span begins within it. ``joined`` and ``left`` are
    members, each time they did so; ``cause`` is the most frequent one, null where none is known.
    """
    width = bin_width(since, until)
    return rows(
        lake,
        {EVENTS: days(since - width, until)},
        """
        with its as (
            select distinct "at", generation, cause, joined, "left" from events
            where cluster = $cluster and "group" = $group and kind = 'rebalance' and "at" <= $until
                and "at" >= to_timestamp(floor(epoch($since::timestamptz) / $width) * $width)
        ), counted as (
            select *,
                len(joined) + coalesce(try_cast(regexp_extract(joined[-1], $more, 1) as bigint) - 1, 0) as came,
                len("left") + coalesce(try_cast(regexp_extract("left"[-1], $more, 1) as bigint) - 1, 0) as went
            from its
        )
        select to_timestamp(floor(epoch("at") / $width) * $width) as "at", count(*) as rebalances,
            coalesce(sum(came), 0)::bigint as joined, coalesce(sum(went), 0)::bigint as "left",
            mode(cause order by cause) as cause
        from counted group by floor(epoch("at") / $width) order by 1
        """,
        {
            "cluster": cluster, "group": group, "since": since, "until": until, "width": width.total_seconds(),
            "more": _MORE_NAMES,
        },
    )  # fmt: skip


@reads(REBALANCE_STATS)
def last_at(lake: Lake, cluster: str, group: str, since: datetime) -> datetime | None:
    """When the group was rebalanced last, in the hours since then; None where it was not."""
    found: list[datetime | None] = first_column(
        lake,
        {REBALANCE_STATS: since},
        'select max(last_at) from rebalance_stats where cluster = $cluster and "group" = $group and hour >= $since',
        {"cluster": cluster, "group": group, "since": since},
    )
    return found[0]


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
