"""What holds a text in its name: groups, topics, partitions, members and their hosts, of all clusters.

Each kind has the one of exactly this name first, and then the worst first. Texts are compared letter by letter: nothing
in them is a pattern.
"""

import re
from datetime import datetime, timedelta

from lagwise.tables.analysis import GROUP_STATUS, PARTITION_STATUS
from lagwise.tables.raw import GROUPS, MEMBERS
from lagwise.tables.store import Lake
from lagwise_dashboard.queries.base import Row, Tables, first_column, reads, rows
from lagwise_dashboard.queries.expressions import WORST_FIRST, WORST_STATUS
from lagwise_dashboard.queries.listing import ListPage, ListQuery, Orders, page_of

#: How far before the newest verdict the newest sample of a cluster is looked for.
_RECENT = timedelta(hours=1)
#: The text ends like the name of a partition, ``orders-7``.
_PARTITION = re.compile(r"-[0-9]+$")
_ORDERS = Orders({"": ["lower(name) <> lower($text)", *WORST_FIRST]}, key=["lower(name)", "name", "cluster"])
_ORDERS_IN_GROUPS = Orders(dict(_ORDERS), key=[*_ORDERS.key, '"group"'])
#: How far behind the worst of several partitions is.
_WORST = f"{WORST_STATUS}, max(lag_seconds) as lag_seconds, max(lag) as lag"


@reads(GROUP_STATUS)
def groups(lake: Lake, text: str, limit: int) -> ListPage[Row]:
    """Groups: ``cluster``, ``name`` and ``status``."""
    return _first(
        lake,
        {GROUP_STATUS: None},
        """select cluster, "group" as name, status, lag_seconds, lag from group_status
            where contains(lower("group"), lower($text))""",
        text,
        limit,
    )


@reads(PARTITION_STATUS)
def topics(lake: Lake, text: str, limit: int) -> ListPage[Row]:
    """Topics that somebody reads or once read: ``cluster``, ``name``, how many ``groups`` do, and the worst ``status``
    among them."""
    return _first(
        lake,
        {PARTITION_STATUS: None},
        f"""select cluster, topic as name, count(distinct "group") as groups, {_WORST} from partition_status
            where contains(lower(topic), lower($text)) group by cluster, topic""",  # noqa: S608 (our own constants)
        text,
        limit,
    )


@reads(PARTITION_STATUS)
def partitions(lake: Lake, text: str, limit: int) -> ListPage[Row]:
    """Partitions, where the text ends as their names do, which are a topic's name, a hyphen and a number: ``cluster``,
    ``name``, ``topic``, ``partition``, how many ``groups`` read it, and the worst ``status`` among them."""
    if not _PARTITION.search(text):
        return ListPage([], 0, ListQuery(text))
    return _first(
        lake,
        {PARTITION_STATUS: None},
        f"""select cluster, topic || '-' || partition as name, topic, partition, count(distinct "group") as groups,
                {_WORST}
            from partition_status
            where contains(lower(topic || '-' || partition), lower($text)) and not contains(lower(topic), lower($text))
            group by cluster, topic, partition""",  # noqa: S608 (our own constants)
        text,
        limit,
    )


#: The members in some samples, and the worst status of the partitions that each owns.
_MEMBERS = f"""
    with owned as (
        select cluster, "group", owner as member_id, {_WORST} from partition_status
        where owner is not null group by cluster, "group", owner
    ), its as (
        select cluster, "group", member_id, client_id, static_instance_id, ltrim(host, '/') as host, status,
            lag_seconds, owned.lag
        from members left join owned using (cluster, "group", member_id)
        where sampled_at >= $since and list_contains($samples, sample_id)
    )
"""  # noqa: S608 (our own constants)


@reads(GROUP_STATUS, PARTITION_STATUS, GROUPS, MEMBERS)
def members(lake: Lake, text: str, limit: int) -> ListPage[Row]:
    """Members by client id, static instance id or member id: ``cluster``, ``group``, ``member_id``, ``name`` (the one
    of the three that holds the text, in this order), ``host``, and the worst ``status`` of the partitions that it owns,
    null without any."""
    return _of_members(
        lake,
        """
        select *, case
            when contains(lower(client_id), lower($text)) then client_id
            when contains(lower(static_instance_id), lower($text)) then static_instance_id
            when contains(lower(member_id), lower($text)) then member_id
        end as name
        from its where name is not null
        """,
        text,
        limit,
    )


@reads(GROUP_STATUS, PARTITION_STATUS, GROUPS, MEMBERS)
def hosts(lake: Lake, text: str, limit: int) -> ListPage[Row]:
    """Hosts and the groups that have members there: ``cluster``, ``group``, ``name``, how many ``members``, and the
    worst ``status`` of the partitions that these own, null without any."""
    return _of_members(
        lake,
        f"""
        select cluster, "group", host as name, count(*) as members, {_WORST} from its
        where contains(lower(host), lower($text)) group by cluster, "group", host
        """,  # noqa: S608 (our own constants)
        text,
        limit,
    )


def _of_members(lake: Lake, matching: str, text: str, limit: int) -> ListPage[Row]:
    """What a statement finds in ``its``: the members in the newest sample of each cluster."""
    query = ListQuery(text, page_rows=limit)
    as_of = first_column(lake, {GROUP_STATUS: None}, "select max(as_of) from group_status")[0]
    samples = _newest_samples(lake, as_of - _RECENT) if as_of else []
    if not samples:
        return ListPage([], 0, query)
    since = min(one["sampled_at"] for one in samples)
    arguments = {"text": text, "since": since, "samples": [one["sample_id"] for one in samples]}
    tables: Tables = {MEMBERS: since, PARTITION_STATUS: None}
    return page_of(lake, tables, _MEMBERS + matching, arguments, query, _ORDERS_IN_GROUPS)


def _newest_samples(lake: Lake, since: datetime) -> list[Row]:
    """The newest sample of each cluster since a time: its ``sample_id``, and when its first group was described."""
    return rows(
        lake,
        {GROUPS: since},
        """
        with newest as (
            select arg_max(sample_id, sampled_at) as sample_id from groups where sampled_at >= $since group by cluster
        )
        select sample_id, min(sampled_at) as sampled_at from groups semi join newest using (sample_id)
        where sampled_at >= $since group by sample_id
        """,
        {"since": since},
    )


def _first(lake: Lake, tables: Tables, matching: str, text: str, limit: int) -> ListPage[Row]:
    return page_of(lake, tables, matching, {"text": text}, ListQuery(text, page_rows=limit), _ORDERS)
