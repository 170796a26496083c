"""How each partition of a group moved, and how they spread: of many partitions some in rows of their own, the others in
ranges."""

from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from lagwise.links.parameters import PartitionMeasure
from lagwise.tables.minutes import FIVE_MINUTES, HOURS, MINUTES, WATERMARK_FIVE_MINUTES, WATERMARK_MINUTES
from lagwise.tables.schema import Table
from lagwise.tables.store import Lake
from lagwise_dashboard.queries.base import ScanLimit, reads, run

#: Of one partition the group's own chart says it all.
MIN_PARTITIONS = 2
#: Rows that a screen has room for. A group with more partitions shows the worst ones, and the others in ranges.
MAX_ROWS = 40
WORST_ROWS, RANGE_ROWS = 30, 10
MAX_COLUMNS = 250
#: Spans up to these are drawn from the finer buckets.
_MINUTES_UP_TO, _FIVE_MINUTES_UP_TO = timedelta(minutes=90), timedelta(hours=26)
#: So long before the span a record may have been written that is unread in it; older ones have that age at least.
_LOOK_BACK = timedelta(days=2)
_TABLES = (MINUTES, FIVE_MINUTES, HOURS, WATERMARK_MINUTES, WATERMARK_FIVE_MINUTES)

_POINTS = """
    points as (
        select topic, partition, floor(epoch(minute) / $width)::bigint as bucket, max(max_lag) as lag,
            max(last_at) as "at", arg_max(last_committed, last_at) as committed, arg_max(last_lag, last_at) as last_lag
        from {table}
        where cluster = $cluster and "group" = $group and minute >= $since and minute <= $until
        group by all
    )"""
#: Each measure as the column ``value`` of ``cells``, from ``points``.
_MEASURES = {
    PartitionMeasure.LAG: "cells as (select topic, partition, bucket, lag::double as value from points)",
    # One record more on both sides: no lag is a multiple of a median of zero.
    PartitionMeasure.RELATIVE: """
    cells as (
        select topic, partition, bucket, (lag + 1) / (1 + median(lag) over (partition by bucket)) as value
        from points
    )""",
    # The record at the committed offset was written between the last time at which the log ended at or before it, and
    # the next: in between, records are taken to be written evenly.
    PartitionMeasure.AGE: """
    ends as (
        select topic, partition, last_high_watermark as log_end, max(last_at) as "at" from (
            select topic, partition, last_high_watermark, last_at from watermark_minutes
            where cluster = $cluster and minute >= $looked_back
            union all by name
            select topic, partition, last_high_watermark, last_at from watermark_five_minutes
            where cluster = $cluster and minute >= $looked_back
        ) semi join points using (topic, partition)
        where last_high_watermark is not null
        group by topic, partition, last_high_watermark
    ), steps as (
        select *, lead(log_end) over log as next_end, lead("at") over log as next_at from ends
        window log as (partition by topic, partition order by log_end)
    ), known as (
        select topic, partition, min("at") as first_at from ends group by topic, partition
    ), cells as (
        select points.topic, points.partition, points.bucket, case
            when points.last_lag = 0 then 0.0
            when points.last_lag is null or points.committed is null or points."at" < known.first_at then null
            when steps.log_end is null then epoch(points."at") - epoch(known.first_at)
            else greatest(0.0, epoch(points."at") - epoch(steps."at") - coalesce(
                (points.committed - steps.log_end) / (steps.next_end - steps.log_end)
                    * (epoch(steps.next_at) - epoch(steps."at")), 0.0))
        end as value
        from points
        asof left join steps on points.topic = steps.topic and points.partition = steps.partition
            and points.committed >= steps.log_end
        left join known on points.topic = known.topic and points.partition = known.partition
    )""",
}
_CELLS = f"""
    , largest as (
        select topic, partition, max(value) as value from cells group by all
    ), ranked as (
        select topic, partition, count(*) over () as known,
            row_number() over (order by value desc nulls last, topic, partition) as place
        from largest
    ), parted as (
        select *, known > {MAX_ROWS} and place > {WORST_ROWS} as in_range from ranked
    ), lines as (
        select topic, partition, case
            when in_range then
                {WORST_ROWS} - 1 + ntile({RANGE_ROWS}) over (partition by in_range order by topic, partition)
            when known > {MAX_ROWS} then place - 1
            else row_number() over (order by topic, partition) - 1
        end as line
        from parted
    ), named as (
        select line, count(*) as partitions, min((topic, partition)) as first, max((topic, partition)) as last
        from lines group by line
    )
    select line, bucket, max(value) as value, partitions, first[1] as topic, first[2] as partition,
        last[1] as last_topic, last[2] as last_partition, $width::double as width_seconds
    from cells join lines using (topic, partition) join named using (line)
    group by line, bucket, partitions, first, last order by line, bucket
"""  # noqa: S608 (numbers of our own)
_SPREAD = """
    select to_timestamp((bucket + 0.5) * $width) as "at", median, high, first[1] as worst, first[2] as worst_topic,
        first[3] as worst_partition
    from (
        select bucket, median(value) as median, quantile_cont(value, 0.95) as high,
            max((value, topic, partition)) filter (value is not null) as first
        from cells group by bucket
    ) order by bucket
"""


@reads(*_TABLES)
def cells(
    lake: Lake, cluster: str, group: str, since: datetime, until: datetime, measure: PartitionMeasure
) -> pa.Table:
    """The cells of the heat map: the largest ``value`` of each row and bucket; null where it is unknown. By ``measure``
    that is the largest lag in records, the age of the oldest unread record at the end of the bucket in seconds (at
    least so much, where that was written before all that is kept of the log's end), or how many times the median of the
    group's partitions the lag is, with one record added to both.

    Up to MAX_ROWS partitions have a row each, in the order of topics and numbers. Of more, the WORST_ROWS with the
    largest value in the span come first, the worst on top; all others follow in RANGE_ROWS ranges of about equal size,
    in the order of topics and numbers. ``line`` counts the rows from 0 on. ``partitions`` is how many are in a row,
    which goes from ``topic`` and ``partition`` to ``last_topic`` and ``last_partition``; ``bucket`` counts the widths
    since 1970.
    """
    return _run(lake, cluster, group, since, until, measure, _CELLS)


@reads(*_TABLES)
def spread(
    lake: Lake, cluster: str, group: str, since: datetime, until: datetime, measure: PartitionMeasure
) -> pa.Table:
    """How the partitions spread over time, by a measure as in :func:`cells`: the ``median``, the value that 95 % of the
    known partitions do not exceed (``high``) and the ``worst``, at the middle of each bucket (``at``). ``worst_topic``
    and ``worst_partition`` are that of the worst; of several the last one in the order of topics and numbers."""
    return _run(lake, cluster, group, since, until, measure, _SPREAD)


def _run(
    lake: Lake, cluster: str, group: str, since: datetime, until: datetime, measure: PartitionMeasure, select: str
) -> pa.Table:
    span = until - since
    if span <= _MINUTES_UP_TO:
        table, step = MINUTES, 60.0
    else:
        table, step = (FIVE_MINUTES, 300.0) if span <= _FIVE_MINUTES_UP_TO else (HOURS, 3600.0)
    width = step * -(-span.total_seconds() // (step * MAX_COLUMNS))
    since -= timedelta(seconds=width)
    tables: dict[Table, ScanLimit] = {table: since}
    parameters: dict[str, Any] = {"cluster": cluster, "group": group, "since": since, "until": until, "width": width}
    if measure is PartitionMeasure.AGE:
        looked_back = since - _LOOK_BACK
        tables |= dict.fromkeys((WATERMARK_MINUTES, WATERMARK_FIVE_MINUTES), looked_back)
        parameters |= {"looked_back": looked_back}
    return run(
        lake,
        tables,
        f"with {_POINTS.format(table=table.name)}, {_MEASURES[measure]} {select}",
        parameters,
    )
