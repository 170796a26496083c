"""One topic: who reads it, how long it keeps records, how much is written, and where its partitions are."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

import pyarrow as pa

from lagwise.tables.analysis import PARTITION_STATUS
from lagwise.tables.capacity import TOPIC_HOURS
from lagwise.tables.minutes import WATERMARK_FIVE_MINUTES, WATERMARK_MINUTES
from lagwise.tables.raw import TOPICS, WATERMARKS
from lagwise.tables.schema import Table
from lagwise.tables.store import Lake
from lagwise_dashboard.queries.base import Row, bucket_seconds, days, first_column, first_row, reads, rows, run
from lagwise_dashboard.queries.expressions import FIRST_LOSS, LAG_OF_SEVERAL, LAG_ORDERS, STATUS_RANK, rank
from lagwise_dashboard.queries.listing import FIRST_PAGE, ListPage, ListQuery, Orders, page_of

#: Of the readers, by the parameter `readers_sort` of the address.
READER_ORDERS = Orders(
    {
        "loss": ["status = 'ghost'", "seconds_to_loss", "lag_seconds desc", "lag desc"],
        "status": ["rank"],
        "group": ['"group"'],
        **LAG_ORDERS,
        "slowest": ["slowest_partition"],
        "partitions": ["partitions desc"],
        "members": ["members desc"],
    },
    key=['"group"'],
)
#: Of the partitions, by the parameter `topic_partitions_sort`.
PARTITION_ORDERS = Orders(
    {
        "in": ["rate_per_second desc"],
        "number": ["partition"],
        "replicas": ["replicas_rank"],
        "leader": ["leader"],
        "log_start": ["log_start desc"],
        "log_end": ["high_watermark desc"],
        "reader": ["slowest_group"],
        "behind": ["lag_seconds desc"],
    },
    key=["partition"],
)
#: A partition's own name does not change; the newest samples have it.
_LABEL_SPAN = timedelta(minutes=5)
#: Over this time up to the newest sample a partition's rate is measured.
_RATE_SPAN = timedelta(minutes=5)
#: Spans up to these are drawn from the finer buckets.
_MINUTES_UP_TO, _FIVE_MINUTES_UP_TO = timedelta(hours=7), timedelta(hours=26)


class ReplicaState(StrEnum):
    """How a partition's replicas are, worst first. Without a list of replicas no more is known than that it can be
    read."""

    UNREADABLE = "unreadable"
    NO_LEADER = "no_leader"
    TOO_FEW_IN_SYNC = "too_few_in_sync"
    NOT_ALL_IN_SYNC = "not_all_in_sync"
    READABLE = "readable"
    IN_SYNC = "in_sync"


@dataclass(frozen=True, slots=True)
class TopicTotals:
    """Totals over the partitions of a topic."""

    partitions: int
    #: Records written per second to the partitions whose rate is known; None where no rate is known.
    rate_per_second: float | None
    #: Log end less log start, summed over the partitions where both are known; None where none is known.
    offsets_kept: int | None
    #: Partitions that are unreadable, have no leader, or have replicas that are not in sync.
    out_of_sync: int
    #: Whether the replicas of any partition are known.
    replicated: bool
    sampled_at: datetime | None
    #: Rows of ``leader`` (a node id), ``partitions`` and ``rate_per_second``, ordered by node id.
    leaders: list[Row]


@reads(PARTITION_STATUS)
def names(lake: Lake, query: ListQuery) -> ListPage[Row]:
    """Cluster and name of the topics that somebody reads or once read and whose name holds the text, and how many
    groups do."""
    return page_of(
        lake,
        {PARTITION_STATUS: None},
        """
        select cluster, topic, count(distinct "group") as groups from partition_status
        where contains(lower(topic), lower($text)) group by cluster, topic
        """,
        {"text": query.text},
        query,
        Orders({"": ["lower(topic)"]}, key=["topic", "cluster"]),
    )


@reads(PARTITION_STATUS)
def clusters_of(lake: Lake, topic: str) -> list[str]:
    """The clusters in which somebody reads or once read a topic of this name."""
    return first_column(
        lake,
        {PARTITION_STATUS: None},
        "select distinct cluster from partition_status where topic = $topic order by cluster",
        {"topic": topic},
    )


@reads(TOPICS)
def settings(lake: Lake, cluster: str, topic: str) -> Row | None:
    """The topic's partitions, replication and retention as they were described last; None if they never were."""
    return first_row(
        lake,
        {TOPICS: None},
        "select * from topics where cluster = $cluster and topic = $topic order by sampled_at desc limit 1",
        {"cluster": cluster, "topic": topic},
    )


@reads(PARTITION_STATUS)
def readers(lake: Lake, cluster: str, topic: str, query: ListQuery = FIRST_PAGE) -> ListPage[Row]:
    """The groups that read the topic; where nothing else is asked for, ghosts last, those that come nearest to losing
    records first.

    ``status`` is the worst of the group's partitions of this topic; ``partitions`` counts them.
    """
    return page_of(
        lake,
        {PARTITION_STATUS: None},
        f"""
        with its as (
            select *, coalesce({STATUS_RANK}, 99) as rank from partition_status
            where cluster = $cluster and topic = $topic
        )
        select "group", arg_min(status, rank) as status, arg_min(reason, rank) as reason, min(rank) as rank,
            max(as_of) as as_of, count(*) as partitions, count(distinct owner) as members,
            {LAG_OF_SEVERAL}, arg_max(partition, lag_seconds) as slowest_partition,
            {FIRST_LOSS}, arg_min(loss_cause, seconds_to_loss) as loss_cause,
            sum(records_lost)::bigint as records_lost
        from its where contains(lower("group"), lower($text)) group by "group"
        """,  # noqa: S608 (our own constants)
        {"cluster": cluster, "topic": topic, "text": query.text},
        query,
        READER_ORDERS,
    )


_PARTITIONS = """
    with recent as (
        select partition, topic_id, sampled_at, high_watermark,
            {'leader': leader, 'replicas': replicas, 'isr': isr, 'log_start': log_start,
             'high_watermark': high_watermark, 'label': label, 'error': error} as newest
        from watermarks
        where cluster = $cluster and topic = $topic
            -- A sample is written a moment after it was taken.
            and sampled_at >= $as_of - $span and sampled_at <= $as_of + interval 1 minute
    ), each as (
        select partition, arg_max(newest, sampled_at) as newest, max(sampled_at) as sampled_at,
            count(distinct topic_id) < 2 as is_one_topic,
            arg_max(high_watermark, sampled_at) - arg_min(high_watermark, sampled_at) as written,
            epoch(max(sampled_at) filter (high_watermark is not null))
                - epoch(min(sampled_at) filter (high_watermark is not null)) as seconds
        from recent group by partition
    )
    select partition, newest.leader, newest.replicas, newest.isr, newest.log_start, newest.high_watermark, newest.error,
        newest.label, sampled_at,
        case when is_one_topic and seconds > 0 and written >= 0 then written / seconds end as rate_per_second,
        case
            when newest.error is not null then 'unreadable'
            when newest.leader is null then 'no_leader'
            when newest.replicas is null then 'readable'
            when len(newest.isr) < $min_isr then 'too_few_in_sync'
            when coalesce(len(newest.isr), 0) < len(newest.replicas) then 'not_all_in_sync'
            else 'in_sync'
        end as replica_state
    from each
"""


@reads(WATERMARKS, PARTITION_STATUS)
def partitions(
    lake: Lake, cluster: str, topic: str, as_of: datetime, min_isr: int | None, query: ListQuery = FIRST_PAGE
) -> ListPage[Row]:
    """The partitions in the newest samples up to ``as_of``, those most written to first where nothing else is asked
    for. ``min_isr`` is how many replicas must be in sync, where that is known: ``replica_state`` goes by it.

    ``rate_per_second`` is what was written over the last five minutes, or what of them was sampled; null where there
    is one sample only, and where the log went back. ``lag_seconds`` is that of the partition's slowest reader. The text
    is looked for in the name of that, in ``leader ID`` and in the queue's name; a number is the partition's.
    """
    return page_of(
        lake,
        {WATERMARKS: as_of - _RATE_SPAN, PARTITION_STATUS: None},
        f"""
        with its as ({_PARTITIONS}), slowest as (
            select partition, max(lag_seconds) as lag_seconds, arg_max("group", lag_seconds) as slowest_group
            from partition_status where cluster = $cluster and topic = $topic and status <> 'ghost' group by partition
        )
        select *, {rank("replica_state", ReplicaState)} as replicas_rank
        from its left join slowest using (partition)
        where $text = '' or partition::varchar = $text
            or contains(lower(concat_ws(' ', 'leader ' || leader, label, slowest_group)), lower($text))
        """,  # noqa: S608 (our own constants)
        {
            "cluster": cluster,
            "topic": topic,
            "as_of": as_of,
            "span": _RATE_SPAN,
            "min_isr": min_isr,
            "text": query.text,
        },
        query,
        PARTITION_ORDERS,
    )


@reads(WATERMARKS)
def totals(lake: Lake, cluster: str, topic: str, as_of: datetime, min_isr: int | None) -> TopicTotals:
    """All partitions of :func:`partitions` together."""
    arguments = {"cluster": cluster, "topic": topic, "as_of": as_of, "span": _RATE_SPAN, "min_isr": min_isr}
    tables = {WATERMARKS: as_of - _RATE_SPAN}
    [result] = rows(
        lake,
        tables,
        f"""
        select count(*) as partitions, sum(rate_per_second) as rate_per_second,
            sum(high_watermark - log_start)::bigint as offsets_kept,
            count(*) filter (replica_state not in ('in_sync', 'readable')) as out_of_sync,
            coalesce(bool_or(replicas is not null), false) as replicated, max(sampled_at) as sampled_at
        from ({_PARTITIONS})
        """,  # noqa: S608 (our own constants)
        arguments,
    )
    leaders = rows(
        lake,
        tables,
        f"""
        select leader, count(*) as partitions, coalesce(sum(rate_per_second), 0) as rate_per_second
        from ({_PARTITIONS}) where leader is not null group by leader order by leader
        """,  # noqa: S608 (our own constants)
        arguments,
    )
    return TopicTotals(**result, leaders=leaders)


@reads(WATERMARK_MINUTES, WATERMARK_FIVE_MINUTES, TOPIC_HOURS)
def written(lake: Lake, cluster: str, topic: str, since: datetime, until: datetime) -> pa.Table:
    """Records written per second to the whole topic (``at``, ``rate_per_second``), at most 400 points.

    Of a day and less from the log's own end by the minute or five minutes, of more by the hour.
    """
    arguments = {"cluster": cluster, "topic": topic, "since": since, "until": until}
    if until - since > _FIVE_MINUTES_UP_TO:
        return run(
            lake,
            {TOPIC_HOURS: days(since, until)},
            """
            select max(hour) + interval 1 hour as "at", sum(records) / sum(seconds) as rate_per_second
            from topic_hours
            where cluster = $cluster and topic = $topic and hour between $since and $until and seconds > 0
            group by floor(epoch(hour) / $width) order by "at"
            """,
            arguments | {"width": bucket_seconds(since, until, at_least=3600.0)},
        )
    is_fine = until - since <= _MINUTES_UP_TO
    table: Table = WATERMARK_MINUTES if is_fine else WATERMARK_FIVE_MINUTES
    step = timedelta(minutes=1 if is_fine else 5)
    return run(
        lake,
        {table: since - 2 * step},
        f"""
        with steps as (
            select minute, last_high_watermark - lag(last_high_watermark) over its as records,
                epoch(last_at) - epoch(lag(last_at) over its) as seconds
            from {table.name}
            where cluster = $cluster and topic = $topic and minute >= $before and minute <= $until
            window its as (partition by partition order by minute)
        ), minutes as (
            select minute, sum(records / seconds) as rate from steps
            where minute >= $since and seconds > 0 and records >= 0 group by minute
        )
        select max(minute) + $step as "at", avg(rate) as rate_per_second
        from minutes group by floor(epoch(minute) / $width) order by "at"
        """,  # noqa: S608 (a name of our own)
        arguments
        | {
            "before": since - 2 * step,
            "step": step,
            "width": bucket_seconds(since, until, at_least=step.total_seconds()),
        },
    )


@reads(WATERMARKS)
def partition_labels(lake: Lake, cluster: str, topics: tuple[str, ...], as_of: datetime) -> dict[tuple[str, int], str]:
    """What the system itself calls partitions of these topics, by topic and partition, where it has names for them."""
    result = rows(
        lake,
        {WATERMARKS: days(as_of - _LABEL_SPAN, as_of + timedelta(minutes=5))},
        """
        select topic, partition, arg_max(label, sampled_at) as label from watermarks
        where cluster = $cluster and list_contains($topics, topic) and sampled_at >= $since and label is not null
        group by topic, partition
        """,
        {"cluster": cluster, "topics": list(topics), "since": as_of - _LABEL_SPAN},
    )
    return {(row["topic"], row["partition"]): row["label"] for row in result}
