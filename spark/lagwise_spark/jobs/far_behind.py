"""History for readers that are far behind: how old their oldest unread record is lies hours, days or weeks back.

Of all that history, the few rows are taken that say it: for each offset somebody has to read next, the one before it
and the one after it, and those between which the log start jumped. Their number depends on how many readers are far
behind and not on how far. They are looked up by DuckDB, which reads the few columns of a week that tell in less time
than Spark needs to start its jobs: so a round does not take longer the longer the history is.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from lagwise.domain.verdicts.windows import LOOKBACK_SECONDS
from lagwise.tables.analysis import PARTITION_STATUS
from lagwise.tables.minutes import WATERMARK_FIVE_MINUTES
from lagwise.tables.raw import COMMITS, WATERMARKS
from lagwise.tables.schema import TIMESTAMP
from lagwise.tables.store import Lake
from lagwise_spark.jobs.progress import News

#: Readers whose oldest unread record is older may soon need what is before the look-back.
FAR_BEHIND_SECONDS = LOOKBACK_SECONDS - 600
#: So far back, every sample of the watermarks is used; before that, the first and the last of every five minutes.
DENSE_HISTORY = timedelta(hours=6)

#: Group-partitions whose oldest unread record was old at the last round, what they read next now, and when that record
#: was written (null where that is before all history).
_FAR_BEHIND = """
    select cluster, topic, partition, greatest(c.committed, c.next_record, w.log_start) as position,
           case when not s.lag_seconds_is_lower_bound then s.as_of - to_seconds(s.lag_seconds) end as written_at
    from partition_status s
    join commits c using (cluster, "group", topic, partition)
    join watermarks w using (cluster, topic, partition)
    where (s.lag_seconds >= ? or s.lag_seconds_is_lower_bound)
      and c.sample_id in (select unnest(?)) and w.sample_id in (select unnest(?))
      and coalesce(c.committed, c.next_record) is not null and w.log_start is not null
"""

#: The rows around each position and each jump of the log start, of the log as it is since it became another one.
_TELLING = """
    with history as not materialized (  -- narrow columns are sooner read again than held
        select cluster, topic, partition, minute, first_high_watermark, last_log_start, reset_at
        from watermark_five_minutes join ends using (cluster) semi join positions using (cluster, topic, partition)
        where minute >= $start and minute < until
    ), resets as (
        select cluster, topic, partition, max(minute) as reset from history where reset_at is not null group by all
    ), of_this_log as (
        select h.* from history h left join resets r using (cluster, topic, partition)
        where r.reset is null or h.minute >= r.reset
    ), brackets as (
        select cluster, topic, partition, position, max(minute) filter (first_high_watermark <= position) as a,
               min(minute) filter (first_high_watermark > position) as b
        from of_this_log join positions using (cluster, topic, partition) group by all
    ), levels as (
        select cluster, topic, partition, last_log_start, min(minute) as a, max(minute) as b
        from of_this_log group by all
    ), told as (
        select cluster, topic, partition, unnest([a, b]) as minute from brackets
        union select cluster, topic, partition, unnest([a, b]) from levels
        union select cluster, topic, partition, reset from resets
    )
    -- in two halves: the points of the older one are not even read
    select {columns}, points from watermark_five_minutes join ends using (cluster)
    semi join told using (cluster, topic, partition, minute)
    where minute >= $dense and minute >= until - to_seconds($dense_seconds)
    union all
    select {columns}, [{{'at': first_at, 'high_watermark': first_high_watermark}},
                       {{'at': last_at, 'high_watermark': last_high_watermark}}]
    from watermark_five_minutes join ends using (cluster) semi join told using (cluster, topic, partition, minute)
    where minute >= $start and minute < until - to_seconds($dense_seconds)
"""


def older_history(lake: Lake, news: Sequence[News], days: int, sampled_from: datetime) -> pa.Table | None:
    """Rows of the watermarks' history from before the look-back of each cluster that tell the age of what is read next,
    for those that were far behind at the last round, from their commits and watermarks in the latest samples, all taken
    at or after ``sampled_from``. None where there are none, which is usual. Raises LakeError."""
    if not _anybody(lake):
        return None
    ids = [n.latest_id for n in news]
    until = {n.cluster: n.as_of - timedelta(seconds=LOOKBACK_SECONDS) for n in news}
    far = lake.query(
        _FAR_BEHIND,
        [FAR_BEHIND_SECONDS, ids, ids],
        over=[PARTITION_STATUS, COMMITS, WATERMARKS],
        since=sampled_from,
    )
    if far.num_rows == 0:
        return None
    # Nothing is read from before the oldest record that anybody still has to read.
    start = min(until.values()) - timedelta(days=days)
    if far["written_at"].null_count == 0:
        start = max(start, pc.min(far["written_at"]).as_py() - timedelta(minutes=10))
    return telling_rows(lake, far.drop_columns("written_at"), start, until)


def _anybody(lake: Lake) -> bool:
    """Whether any reader was far behind at the last round."""
    sql = "select 1 from partition_status where lag_seconds >= ? or lag_seconds_is_lower_bound limit 1"
    return bool(lake.query(sql, [FAR_BEHIND_SECONDS], over=[PARTITION_STATUS]).num_rows)


def telling_rows(lake: Lake, positions: pa.Table, start: datetime, until: Mapping[str, datetime]) -> pa.Table:
    """Those rows of `watermark_five_minutes` from ``start`` until the time of their cluster, around each ``position``
    and around each jump of the log start, of the topic-partitions that ``positions`` has any of, and those in which a
    log became another one."""
    ends = pa.table({"cluster": list(until), "until": pa.array(until.values(), TIMESTAMP)})
    schema = WATERMARK_FIVE_MINUTES.without_day
    return (
        lake.query(
            _TELLING.format(columns=", ".join(name for name in schema.names if name != "points")),
            {
                "start": start,
                "dense": min(until.values()) - DENSE_HISTORY,  # so that older files' points are not read
                "dense_seconds": DENSE_HISTORY.total_seconds(),
            },
            over=[WATERMARK_FIVE_MINUTES],
            since=start,
            given={"positions": positions, "ends": ends},
        )
        .select(schema.names)
        .cast(schema)
    )
