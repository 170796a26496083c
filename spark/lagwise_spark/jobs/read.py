"""What a tick reads: big tables through Spark, small ones through the driver."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lagwise.domain.history import LOOKBACK_SECONDS
from lagwise.tables.analysis import PARTITION_STATUS, WATERMARK_MINUTES
from lagwise.tables.raw import EVENTS, GROUPS, MEMBERS, SAMPLES, TOPICS
from lagwise.tables.schema import Table
from lagwise.tables.store import Lake
from lagwise_spark.frames import frame
from lagwise_spark.jobs.progress import News

#: So far back, every minute of the watermarks' history is used; before that, every tenth.
DENSE_HISTORY = timedelta(hours=6)

#: Queries over a stretch of time that ends now are the same for so long.
STEADY_FOR = timedelta(minutes=5)


def since(session: SparkSession, lake: Lake, table: Table, start: datetime, end: datetime | None = None) -> DataFrame:
    """Rows of a large table whose clock lies in [start, end), other days' and hours' files left unread.

    Some rows a little older than ``start`` come too, for the caller to drop by a column: a time in a filter becomes a
    constant of the compiled query, and one that changed with every round would have every round compile it anew.
    """
    clock = F.col(str(table.clock))
    steady = start - (start - datetime.min.replace(tzinfo=start.tzinfo)) % STEADY_FOR
    rows = session.read.format("delta").load(lake.location(table))
    rows = rows.where((F.col("day") >= F.lit(steady.date())) & (clock >= F.lit(steady)))
    if end is not None:
        rows = rows.where((F.col("day") <= F.lit(end.date())) & (clock < F.lit(end)))
    return rows.drop("day")


def of_samples(session: SparkSession, lake: Lake, table: Table, ids: Sequence[str], start: datetime) -> DataFrame:
    """Rows of a raw table that belong to the samples with these ids, taken at or after ``start``. The ids are named one
    by one because the files' statistics then tell which few of them hold any."""
    rows = session.read.format("delta").load(lake.location(table))
    return rows.where((F.col("day") >= F.lit(start.date())) & F.col("sample_id").isin(list(ids))).drop("day")


def finished_samples(lake: Lake, start: datetime, end: datetime | None = None) -> list[str]:
    """Ids of the samples that were written completely and overlap [start, end): the rest of a torn write is not
    data."""
    sql = """
        select distinct sample_id from samples
        where finished_at >= ? and started_at < coalesce(?::timestamptz, 'infinity')
        order by sample_id
    """
    rows = lake.query(sql, [start, end], over=[SAMPLES], days=_days_from(start - timedelta(days=1)))
    return [str(sample_id) for sample_id in rows["sample_id"].to_pylist()]


def recent_groups(lake: Lake, news: Sequence[News], window_seconds: float) -> pa.Table:
    """Rows of `groups` over the window that ends with each cluster's latest sample."""
    start = min(n.as_of for n in news) - timedelta(seconds=window_seconds)
    sql = "select * from groups where sampled_at >= ?"
    return _typed(GROUPS, lake.query(sql, [start], over=[GROUPS], days=_days_from(start)))


def latest_members(lake: Lake, news: Sequence[News]) -> pa.Table:
    """Rows of `members` of each cluster's latest sample."""
    start = min(n.as_of for n in news) - timedelta(minutes=10)
    sql = "select * from members where sample_id in (select unnest(?::varchar[]))"
    return _typed(MEMBERS, lake.query(sql, [[n.latest_id for n in news]], over=[MEMBERS], days=_days_from(start)))


def kept_events(lake: Lake) -> pa.Table:
    """The events that verdicts go by, as far back as they are kept: rebalances and changes of state."""
    # Distinct: a collector that was killed between writing and noting it down tells the same events again.
    sql = "select distinct * from events where kind in ('rebalance', 'state_changed')"
    return _typed(EVENTS, lake.query(sql, over=[EVENTS]))


def newest_topics(lake: Lake) -> pa.Table:
    """The newest row of each topic."""
    sql = "select * from topics qualify row_number() over (partition by cluster, topic order by sampled_at desc) = 1"
    return _typed(TOPICS, lake.query(sql, over=[TOPICS]))


def far_behind(lake: Lake, seconds: float) -> pa.Table:
    """Topic-partitions on which some group's oldest unread record was older than this at the last round."""
    sql = """
        select distinct cluster, topic, partition from partition_status
        where lag_seconds >= ? or lag_seconds_is_lower_bound
    """
    return lake.query(sql, [seconds], over=[PARTITION_STATUS])


def older_history(session: SparkSession, lake: Lake, end: datetime, days: int) -> DataFrame | None:
    """Rows of `watermark_minutes` before ``end``, for those topic-partitions whose readers are that far behind.

    None where there are none, which is the usual case. Beyond some hours every tenth minute is enough.
    """
    wanted = far_behind(lake, LOOKBACK_SECONDS - 600)
    if wanted.num_rows == 0:
        return None
    rows = since(session, lake, WATERMARK_MINUTES, end - timedelta(days=days), end)
    recent = F.col("minute") >= F.lit(end - DENSE_HISTORY)
    return rows.where(recent | (F.minute("minute") % 10 == 0)).join(
        F.broadcast(frame(session, wanted)), ["cluster", "topic", "partition"], "semi"
    )


def _days_from(start: datetime) -> tuple[str, str]:
    return start.date().isoformat(), "9999-12-31"


def _typed(table: Table, rows: pa.Table) -> pa.Table:
    """Rows as the table declares them, without the partition column."""
    schema = pa.schema([f for f in table.arrow if f.name != "day"])
    return rows.select(schema.names).cast(schema)
