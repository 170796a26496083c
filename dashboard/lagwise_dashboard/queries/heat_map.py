"""How the lag of each partition of a group moved: the heat map of a group that has too many of them for a table."""

from datetime import datetime, timedelta

import pyarrow as pa

from lagwise.tables.minutes import FIVE_MINUTES, HOURS, MINUTES
from lagwise.tables.store import Lake
from lagwise_dashboard.queries.base import reads, run

#: With fewer partitions the table says it all.
MIN_PARTITIONS = 24
#: Rows that a screen has room for. A group with more partitions shows the worst ones, and the others in ranges.
MAX_ROWS = 40
WORST_ROWS, RANGE_ROWS = 30, 10
MAX_COLUMNS = 250
#: Spans up to these are drawn from the finer buckets.
_MINUTES_UP_TO, _FIVE_MINUTES_UP_TO = timedelta(minutes=90), timedelta(hours=26)


@reads(MINUTES, FIVE_MINUTES, HOURS)
def lags(lake: Lake, cluster: str, group: str, since: datetime, until: datetime) -> pa.Table:
    """The cells of the heat map: the largest lag of each row and bucket, in records; null where it is unknown.

    Up to MAX_ROWS partitions have a row each, in the order of topics and numbers. Of more, the WORST_ROWS with the
    largest lag in the span come first, the worst on top; all others follow in RANGE_ROWS ranges of about equal size, in
    the order of topics and numbers. ``line`` counts the rows from 0 on. ``partitions`` is how many are in a row, which
    goes from ``topic`` and ``partition`` to ``last_topic`` and ``last_partition``; ``bucket`` counts the widths since
    1970.
    """
    span = until - since
    if span <= _MINUTES_UP_TO:
        table, step = MINUTES, 60.0
    else:
        table, step = (FIVE_MINUTES, 300.0) if span <= _FIVE_MINUTES_UP_TO else (HOURS, 3600.0)
    width = step * -(-span.total_seconds() // (step * MAX_COLUMNS))
    return run(
        lake,
        {table: since - timedelta(seconds=width)},
        f"""
        with cells as (
            select topic, partition, floor(epoch(minute) / $width) as bucket, max(max_lag) as lag
            from {table.name}
            where cluster = $cluster and "group" = $group and minute >= $since and minute <= $until
            group by all
        ), largest as (
            select topic, partition, max(lag) as lag from cells group by all
        ), ranked as (
            select topic, partition, count(*) over () as known,
                row_number() over (order by lag desc nulls last, topic, partition) as place
            from largest
        ), parted as (
            select *, known > $most and place > $worst as in_range from ranked
        ), lines as (
            select topic, partition, case
                when in_range then
                    $worst - 1 + ntile($ranges) over (partition by in_range order by topic, partition)
                when known > $most then place - 1
                else row_number() over (order by topic, partition) - 1
            end as line
            from parted
        ), named as (
            select line, count(*) as partitions, min((topic, partition)) as first, max((topic, partition)) as last
            from lines group by line
        )
        select line, bucket::bigint as bucket, max(lag) as lag, partitions, first[1] as topic, first[2] as partition,
            last[1] as last_topic, last[2] as last_partition, $width::double as width_seconds
        from cells join lines using (topic, partition) join named using (line)
        group by line, bucket, partitions, first, last order by line, bucket
        """,  # noqa: S608 (a name of our own)
        {
            "cluster": cluster,
            "group": group,
            "since": since - timedelta(seconds=width),
            "until": until,
            "width": width,
            "most": MAX_ROWS,
            "worst": WORST_ROWS,
            "ranges": RANGE_ROWS,
        },
    )
