"""How the lag of each partition of a group moved: the picture of a group that has too many of them for a table."""

from datetime import datetime, timedelta

import pyarrow as pa

from lagwise.tables.minutes import FIVE_MINUTES, HOURS, MINUTES
from lagwise.tables.store import Lake
from lagwise_dashboard.queries.base import reads, run

#: With fewer partitions the table says it all.
FEWEST_PARTITIONS = 24
#: Partitions that are drawn at most, those with most lag first; and cells of the whole picture.
MOST_PARTITIONS = 250
MOST_CELLS = 10_000
#: Spans up to these are drawn from the finer buckets.
_MINUTES_UP_TO, _FIVE_MINUTES_UP_TO = timedelta(minutes=90), timedelta(hours=26)


@reads(MINUTES, FIVE_MINUTES, HOURS)
def lags(lake: Lake, cluster: str, group: str, since: datetime, until: datetime, partitions: int) -> pa.Table:
    """The largest lag of each partition and bucket, for the MOST_PARTITIONS partitions with most lag.

    ``line`` counts the partitions in their order from 0 on, ``bucket`` the widths since 1970. ``partitions`` is about
    how many the group has: buckets are as wide as keeps the picture small.
    """
    span = until - since
    if span <= _MINUTES_UP_TO:
        table, step = MINUTES, 60.0
    else:
        table, step = (FIVE_MINUTES, 300.0) if span <= _FIVE_MINUTES_UP_TO else (HOURS, 3600.0)
    columns = MOST_CELLS / max(1, min(partitions, MOST_PARTITIONS))
    width = step * -(-span.total_seconds() // (step * columns))
    return run(
        lake,
        {table: since - timedelta(seconds=width)},
        f"""
        with cells as (
            select topic, partition, floor(epoch(minute) / $width) as bucket, max(max_lag) as lag
            from {table.name}
            where cluster = $cluster and "group" = $group and minute >= $since and minute <= $until
            group by all
        ), most as (
            select topic, partition from cells group by all order by max(lag) desc nulls last, topic, partition
            limit $limit
        )
        select topic, partition, dense_rank() over (order by topic, partition) - 1 as line, bucket::bigint as bucket,
            lag, $width::double as width_seconds
        from cells semi join most using (topic, partition) order by line, bucket
        """,  # noqa: S608 (a name of our own)
        {
            "cluster": cluster,
            "group": group,
            "since": since - timedelta(seconds=width),
            "until": until,
            "width": width,
            "limit": MOST_PARTITIONS,
        },
    )
