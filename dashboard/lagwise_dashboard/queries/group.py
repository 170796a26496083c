"""One group: its verdict, its history, its partitions and members, and its rebalances by hour."""

from datetime import datetime, timedelta

import pyarrow as pa

from lagwise.tables.analysis import GROUP_HISTORY, GROUP_STATUS, PARTITION_STATUS
from lagwise.tables.membership import ASSIGNMENTS, REBALANCE_STATS
from lagwise.tables.raw import GROUPS, MEMBERS
from lagwise.tables.store import Lake
from lagwise.tables.trends import TABLES as TREND_TABLES
from lagwise.tables.trends import in_words, trends
from lagwise_dashboard.queries.base import Row, bucket_seconds, days, first_row, reads, rows, run
from lagwise_dashboard.queries.expressions import LAG_OF_SEVERAL, LAG_ORDERS, WORST_FIRST, WORST_STATUS
from lagwise_dashboard.queries.listing import FIRST_PAGE, ListPage, ListQuery, Orders, page_of

_PLACE = ["topic", "partition"]
#: Of the partitions, by the parameter `partitions_sort` of the address.
PARTITION_ORDERS = Orders(
    {
        "worst": WORST_FIRST,
        **LAG_ORDERS,
        "number": ["partition"],
        "topic": _PLACE,
        "owner": ["client_id", "host", "owner"],
        "committed": ["committed desc"],
        "unmoved": ["case when committed is not null then epoch(as_of) - epoch(committed_since) end desc"],
        "log_start": ["log_start desc"],
        "log_end": ["high_watermark desc"],
        "loss": ["seconds_to_loss"],
        "lost": ["nullif(records_lost, 0) desc"],
    },
    key=_PLACE,
)
#: Of the members, by the parameter `members_sort`.
MEMBER_ORDERS = Orders(
    {
        "owns": ["assigned_partitions desc", "client_id"],
        "status": WORST_FIRST,
        "client": ["client_id"],
        "host": ["host"],
        **LAG_ORDERS,
        "static_id": ["static_instance_id"],
        "id": ["member_id"],
    },
    key=["member_id"],
)
#: How far back the members of a group are looked for: longer than any pause between two samples that still counts.
_RECENT = timedelta(hours=1)


@reads(GROUP_STATUS)
def verdict(lake: Lake, cluster: str, group: str) -> Row | None:
    """The group as it stands; None if there is no such group."""
    return first_row(
        lake,
        {GROUP_STATUS: None},
        'select * from group_status where cluster = $cluster and "group" = $group limit 1',
        {"cluster": cluster, "group": group},
    )


@reads(*TREND_TABLES)
def growth(lake: Lake, cluster: str, group: str, as_of: datetime) -> str:
    """How the group's lag has moved over the last minutes, hour and day, in words; empty where nothing is certain."""
    return in_words(trends(lake, cluster, group, as_of))


@reads(PARTITION_STATUS)
def partitions(
    lake: Lake,
    cluster: str,
    group: str,
    query: ListQuery = FIRST_PAGE,
    statuses: tuple[str, ...] = (),
    with_lag: bool = False,
) -> ListPage[Row]:
    """The group's partitions, worst first where nothing else is asked for; only those of some ``statuses``, where
    given, and only those ``with_lag``. The text is looked for in ``topic-partition`` and in the names of the owner's
    client and host."""
    return page_of(
        lake,
        {PARTITION_STATUS: None},
        """
        select * from partition_status
        where cluster = $cluster and "group" = $group
            and (len($statuses) = 0 or list_contains($statuses, status))
            and (not $with_lag or lag > 0)
            and contains(lower(concat_ws(' ', topic || '-' || partition, client_id, host, owner)), lower($text))
        """,
        {"cluster": cluster, "group": group, "statuses": list(statuses), "with_lag": with_lag, "text": query.text},
        query,
        PARTITION_ORDERS,
    )


@reads(PARTITION_STATUS)
def unknown(lake: Lake, cluster: str, group: str) -> Row:
    """The known ``lag`` of all partitions whose status is unknown, null where none is known; ``as_of`` is the moment of
    the group's partitions, null without any."""
    [result] = rows(
        lake,
        {PARTITION_STATUS: None},
        """
        select max(as_of) as as_of, (sum(lag) filter (status = 'unknown'))::bigint as lag from partition_status
        where cluster = $cluster and "group" = $group
        """,
        {"cluster": cluster, "group": group},
    )
    return result


@reads(PARTITION_STATUS)
def losing(lake: Lake, cluster: str, group: str, cause: str) -> list[Row]:
    """All partitions of the group that lose something by this cause, soonest first: what and when, and how old their
    oldest unread record is."""
    return rows(
        lake,
        {PARTITION_STATUS: None},
        """
        select as_of, cluster, topic, partition, lag_seconds, lag_seconds_is_lower_bound, seconds_to_loss,
            seconds_to_loss_at_latest, seconds_to_loss_is_upper_bound
        from partition_status
        where cluster = $cluster and "group" = $group and loss_cause = $cause and seconds_to_loss is not null
        order by seconds_to_loss, topic, partition
        """,
        {"cluster": cluster, "group": group, "cause": cause},
    )


@reads(GROUP_HISTORY)
def history(lake: Lake, cluster: str, group: str, since: datetime, until: datetime) -> pa.Table:
    """The group's line in the charts: at most 400 buckets with their largest lag, mean rates and worst status.

    ``at`` is the time of the last tick of the bucket. Buckets without a tick are missing: a gap in the chart.
    """
    return run(
        lake,
        {GROUP_HISTORY: days(since, until)},
        f"""
        select max(as_of) as "at",
            max(lag_seconds) as lag_seconds,
            coalesce(bool_or(lag_seconds_is_lower_bound), false) as lag_seconds_is_lower_bound,
            max(lag) as lag,
            avg(produce_rate_per_second) as produce_rate_per_second,
            avg(consume_rate_per_second) as consume_rate_per_second,
            {WORST_STATUS}
        from group_history
        where cluster = $cluster and "group" = $group and as_of between $since and $until
        group by floor(epoch(as_of) / $width)
        order by "at"
        """,  # noqa: S608 (our own constants)
        {"cluster": cluster, "group": group, "since": since, "until": until, "width": bucket_seconds(since, until)},
    )


@reads(REBALANCE_STATS)
def rebalances(
    lake: Lake, cluster: str, group: str, since: datetime, until: datetime, query: ListQuery = FIRST_PAGE
) -> ListPage[Row]:
    """The hours in which the group was rebalanced, newest first, as far as they reach into the span."""
    return page_of(
        lake,
        {REBALANCE_STATS: days(since - timedelta(hours=1), until)},
        """
        select * from rebalance_stats
        where cluster = $cluster and "group" = $group and last_at >= $since and hour <= $until
        """,
        {"cluster": cluster, "group": group, "since": since, "until": until},
        query,
        Orders({"": ["hour desc"]}),
    )


@reads(ASSIGNMENTS)
def assignment(lake: Lake, cluster: str, group: str) -> Row | None:
    """How even the group's assignment is and what the assignors would change; None where it is not settled."""
    return first_row(
        lake,
        {ASSIGNMENTS: None},
        'select * from assignments where cluster = $cluster and "group" = $group limit 1',
        {"cluster": cluster, "group": group},
    )


@reads(GROUPS, MEMBERS, PARTITION_STATUS)
def members(lake: Lake, cluster: str, group: str, as_of: datetime, query: ListQuery = FIRST_PAGE) -> ListPage[Row]:
    """The members in the newest sample of the hour before ``as_of``, those that own most first, and how each does: over
    the partitions it owns the worst ``status``, sums, and the oldest unread, judged at ``as_of``. ``idle`` counts those
    on all pages that own nothing, whatever their names.

    A group that was sampled without members has none, however many it had before. The text is looked for in the names
    of client and host and in the ids.
    """
    since = as_of - _RECENT
    limit = days(since, as_of + timedelta(minutes=5))
    return page_of(
        lake,
        {GROUPS: limit, MEMBERS: limit, PARTITION_STATUS: None},
        f"""
        with newest as (
            select arg_max(sample_id, sampled_at) as sample_id from groups
            where cluster = $cluster and "group" = $group and sampled_at between $since and $as_of
        ), per_owner as (
            select owner as member_id, max(as_of) as as_of, {WORST_STATUS}, {LAG_OF_SEVERAL}
            from partition_status where cluster = $cluster and "group" = $group and owner is not null group by owner
        ), its as (
            select member_id, client_id, host, static_instance_id, assignment, assigned_partitions, sampled_at,
                -- Members that read everything each have a lag of their own.
                coalesce(members.lag, per_owner.lag) as lag, as_of, status, lag_seconds, lag_seconds_is_lower_bound,
                produce_rate_per_second, consume_rate_per_second,
                count(*) filter (coalesce(assigned_partitions, 0) = 0) over () as idle
            from members semi join newest using (sample_id) left join per_owner using (member_id)
            where cluster = $cluster and "group" = $group and sampled_at >= $since
        )
        select * from its
        where contains(lower(concat_ws(' ', client_id, host, static_instance_id, member_id)), lower($text))
        """,  # noqa: S608 (our own constants)
        {"cluster": cluster, "group": group, "since": since, "as_of": as_of, "text": query.text},
        query,
        MEMBER_ORDERS,
    )


@reads(GROUPS)
def description(lake: Lake, cluster: str, group: str, as_of: datetime) -> Row:
    """How the group consumes by its newest sample until ``as_of``: ``type``, ``source`` of its offsets,
    ``unacknowledged`` messages and ``subscriptions``, null where that is not known. Empty if it has not been sampled
    lately."""
    since = as_of - _RECENT
    result = first_row(
        lake,
        {GROUPS: days(since, as_of + timedelta(minutes=5))},
        """
        select type, source, unacknowledged, subscriptions from groups
        where cluster = $cluster and "group" = $group and sampled_at between $since and $as_of
        order by sampled_at desc limit 1
        """,
        {"cluster": cluster, "group": group, "since": since, "as_of": as_of},
    )
    return result or {}
