"""One topic: who reads it, how long it keeps records, how much is written, and where its partitions are."""

from datetime import datetime, timedelta

import pyarrow as pa

from lagwise.domain.vocabulary import DISPLAY_ORDER
from lagwise.tables.analysis import PARTITION_STATUS
from lagwise.tables.minutes import WATERMARK_FIVE_MINUTES, WATERMARK_MINUTES
from lagwise.tables.planning import TOPIC_HOURS
from lagwise.tables.raw import TOPICS, WATERMARKS
from lagwise.tables.schema import Table
from lagwise.tables.store import Lake
from lagwise_dashboard.queries.base import Row, bucket_seconds, days, reads, rows, run

MOST_READERS = 200
MOST_PARTITIONS = 500
#: Over this time up to the newest sample a partition's rate is measured.
_RATE_SPAN = timedelta(minutes=5)
#: A sample is written a moment after it was taken.
_MARGIN = timedelta(minutes=1)
#: Spans up to these are drawn from the finer buckets.
_MINUTES_UP_TO, _FIVE_MINUTES_UP_TO = timedelta(hours=7), timedelta(hours=26)


@reads(PARTITION_STATUS)
def names(lake: Lake, text: str, limit: int) -> list[Row]:
    """Cluster and name of the topics that somebody reads or once read and whose name holds the text, and how many
    groups do; ``of`` counts the topics."""
    return rows(
        lake,
        {PARTITION_STATUS: None},
        """
        select cluster, topic, count(distinct "group") as groups, count(*) over () as "of" from partition_status
        where contains(lower(topic), lower($text))
        group by cluster, topic order by lower(topic), topic, cluster limit $limit
        """,
        {"text": text, "limit": limit},
    )


@reads(PARTITION_STATUS)
def clusters_of(lake: Lake, topic: str) -> list[str]:
    """The clusters in which somebody reads or once read a topic of this name."""
    found = rows(
        lake,
        {PARTITION_STATUS: None},
        "select distinct cluster from partition_status where topic = $topic order by cluster",
        {"topic": topic},
    )
    return [r["cluster"] for r in found]


@reads(TOPICS)
def settings(lake: Lake, cluster: str, topic: str) -> Row | None:
    """The topic's partitions, replication and retention as they were described last; None if they never were."""
    found = rows(
        lake,
        {TOPICS: None},
        "select * from topics where cluster = $cluster and topic = $topic order by sampled_at desc limit 1",
        {"cluster": cluster, "topic": topic},
    )
    return found[0] if found else None


@reads(PARTITION_STATUS)
def readers(lake: Lake, cluster: str, topic: str) -> list[Row]:
    """The groups that read the topic, ghosts last, those that come nearest to losing records first.

    ``status`` is the worst of the group's partitions of this topic; ``partitions`` counts them.
    """
    return rows(
        lake,
        {PARTITION_STATUS: None},
        """
        with its as (
            select *, coalesce(list_position($ranks, status), 99) as rank from partition_status
            where cluster = $cluster and topic = $topic
        ), groups as (
            select "group", arg_min(status, rank) as status, arg_min(reason, rank) as reason, max(as_of) as as_of,
            count(*) as partitions, count(distinct owner) as members, sum(lag)::bigint as lag,
            max(lag_seconds) as lag_seconds,
            arg_max(coalesce(lag_seconds_is_lower_bound, false), lag_seconds) as lag_seconds_is_lower_bound,
            arg_max(partition, lag_seconds) as slowest_partition,
            sum(produce_rate_per_second) as produce_rate_per_second,
            sum(consume_rate_per_second) as consume_rate_per_second,
            min(seconds_to_loss) as seconds_to_loss,
            arg_min(coalesce(seconds_to_loss_is_upper_bound, false), seconds_to_loss)
                as seconds_to_loss_is_upper_bound,
            arg_min(loss_cause, seconds_to_loss) as loss_cause,
            sum(records_lost)::bigint as records_lost
        from its group by "group"
        )
        select * from groups
        order by status = 'ghost', seconds_to_loss nulls last, lag_seconds desc nulls last, lag desc nulls last, "group"
        limit $limit
        """,
        {
            "cluster": cluster,
            "topic": topic,
            "ranks": [str(s) for s in DISPLAY_ORDER],
            "limit": MOST_READERS,
        },
    )


@reads(WATERMARKS, PARTITION_STATUS)
def partitions(lake: Lake, cluster: str, topic: str, as_of: datetime) -> list[Row]:
    """The partitions in the newest samples up to ``as_of``, those most written to first; ``of`` counts them all.

    ``rate_per_second`` is what was written over the last five minutes, or what of them was sampled; null where there
    is one sample only, and where the log went back. ``lag_seconds`` is that of the partition's slowest reader.
    """
    since = as_of - _RATE_SPAN
    return rows(
        lake,
        {WATERMARKS: since, PARTITION_STATUS: None},
        """
        with recent as (
            select partition, topic_id, sampled_at, high_watermark,
                {'leader': leader, 'replicas': replicas, 'isr': isr, 'log_start': log_start,
                 'high_watermark': high_watermark, 'label': label, 'error': error} as told
            from watermarks
            where cluster = $cluster and topic = $topic and sampled_at >= $since and sampled_at <= $until
        ), each as (
            select partition, arg_max(told, sampled_at) as told, max(sampled_at) as sampled_at,
                count(distinct topic_id) < 2 as is_one_topic,
                arg_max(high_watermark, sampled_at) - arg_min(high_watermark, sampled_at) as written,
                epoch(max(sampled_at) filter (high_watermark is not null))
                    - epoch(min(sampled_at) filter (high_watermark is not null)) as seconds
            from recent group by partition
        ), slowest as (
            select partition, max(lag_seconds) as lag_seconds, arg_max("group", lag_seconds) as "group"
            from partition_status where cluster = $cluster and topic = $topic and status <> 'ghost' group by partition
        )
        select partition, told.leader, told.replicas, told.isr, told.log_start, told.high_watermark, told.error,
            told.label, sampled_at, case when is_one_topic and seconds > 0 and written >= 0 then written / seconds end
                as rate_per_second,
            slowest.lag_seconds, slowest."group" as slowest_group, count(*) over () as "of"
        from each left join slowest using (partition)
        order by rate_per_second desc nulls last, partition limit $limit
        """,
        {
            "cluster": cluster,
            "topic": topic,
            "since": since,
            "until": as_of + _MARGIN,
            "limit": MOST_PARTITIONS,
        },
    )


@reads(WATERMARK_MINUTES, WATERMARK_FIVE_MINUTES, TOPIC_HOURS)
def written(lake: Lake, cluster: str, topic: str, since: datetime, until: datetime) -> pa.Table:
    """Records written per second to the whole topic (``at``, ``rate_per_second``), at most 500 points.

    Of a day and less from the log's own end by the minute or five minutes, of more by the hour.
    """
    asked = {"cluster": cluster, "topic": topic, "since": since, "until": until}
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
            asked | {"width": bucket_seconds(since, until, at_least=3600.0)},
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
        asked
        | {
            "before": since - 2 * step,
            "step": step,
            "width": bucket_seconds(since, until, at_least=step.total_seconds()),
        },
    )
