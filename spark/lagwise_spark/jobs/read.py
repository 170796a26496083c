"""What the driver reads for a round: rows of small tables, and which samples there are."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType

import pyarrow as pa
import pyarrow.compute as pc

from lagwise.domain.vocabulary import ROCKETMQ
from lagwise.tables.raw import EVENTS, GROUPS, MEMBERS, SAMPLES, TOPICS, WATERMARKS
from lagwise.tables.schema import Table
from lagwise.tables.store import Lake
from lagwise_spark.jobs.progress import MISDATED, News, latest_from, micros_of
from lagwise_spark.tasks.lake_files import LakeFiles


@dataclass(frozen=True, slots=True)
class FinishedSample:
    """A sample that was written completely: the rest of a torn write is not data."""

    cluster: str
    sample_id: str
    started_at: datetime
    finished_at: datetime


def files_of_finished(lake: Lake, table: Table, samples: Sequence[FinishedSample]) -> list[str]:
    """The files of a raw table that hold these samples, and maybe others."""
    start, end = min(s.started_at for s in samples) - MISDATED, max(s.finished_at for s in samples) + MISDATED
    return lake.files(table, since=start, until=end)


def files_of(
    lake: Lake,
    times: Mapping[Table, tuple[datetime, datetime]],
    others: Mapping[Table, Sequence[str]] = MappingProxyType({}),
    kept: Iterable[Table] = (),
) -> LakeFiles:
    """The files of tables that hold rows whose clock lies in [start, end), with what is wanted of them; ``others`` are
    read whatever the time. Workers keep those of the tables in ``kept`` for the next time."""
    paths = {table.name: lake.files(table, since=since, until=until) for table, (since, until) in times.items()}
    return LakeFiles(
        lake.uri,
        lake.storage_options,
        paths | {table.name: files for table, files in others.items()},
        {table.name: (micros_of(since), micros_of(until)) for table, (since, until) in times.items()},
        frozenset(table.name for table in kept),
    )


def finished_samples(lake: Lake, start: datetime, end: datetime | None = None) -> list[FinishedSample]:
    """The samples of all clusters that were written completely and overlap [start, end)."""
    sql = """
        select distinct cluster, sample_id, started_at, finished_at from samples
        where finished_at >= ? and started_at < coalesce(?::timestamptz, 'infinity')
        order by cluster, sample_id
    """
    # Rows of `samples` are dated by when the run began.
    rows = lake.query(sql, [start, end], over=[SAMPLES], since=start - timedelta(hours=1))
    return [FinishedSample(**row) for row in rows.to_pylist()]


def around(samples: Sequence[FinishedSample], start: datetime, end: datetime) -> list[FinishedSample]:
    """Those that overlap [start, end), and the last one before: after an outage it is the one to compare with. None
    where none is after it."""
    inside = [s for s in samples if s.finished_at >= start and s.started_at < end]
    before = [s for s in samples if s.finished_at < start]
    last = [max(before, key=lambda s: s.finished_at)] if before and inside else []
    return [*last, *inside]


def last_finished_sample(lake: Lake, cluster: str, before: datetime) -> list[FinishedSample]:
    """A cluster's last sample that was finished before this time, however long ago; none or one."""
    sql = """
        select cluster, sample_id, started_at, finished_at from samples
        where cluster = ? and finished_at < ? order by finished_at desc limit 1
    """
    # Usually it is not long ago; only if not, all there are have to be looked through.
    for since in (before - timedelta(days=1), None):
        rows = lake.query(sql, [cluster, before], over=[SAMPLES], since=since, until=before)
        if rows.num_rows:
            return [FinishedSample(**row) for row in rows.to_pylist()]
    return []


def recent_groups(lake: Lake, news: Sequence[News], window_seconds: float) -> pa.Table:
    """Rows of `groups` over the window that ends with each cluster's latest sample."""
    start = min(n.as_of for n in news) - timedelta(seconds=window_seconds)
    rows = lake.read(GROUPS, since=start)
    return rows.filter(pc.greater_equal(rows["sampled_at"], start))


def latest_members(lake: Lake, news: Sequence[News]) -> pa.Table:
    """Rows of `members` of each cluster's latest sample."""
    rows = lake.read(MEMBERS, since=latest_from(news))
    return rows.filter(pc.is_in(rows["sample_id"], pa.array([n.latest_id for n in news])))


def labels(
    lake: Lake, news: Sequence[News], places: Iterable[tuple[str, str, int]]
) -> dict[tuple[str, str | None, int | None], str]:
    """What RocketMQ calls these partitions, where they are its own."""
    clusters = {n.cluster for n in news if n.system == ROCKETMQ}
    named = sorted({place for place in places if place[0] in clusters})
    if not named:
        return {}
    cluster, topic, partition = zip(*named, strict=True)
    rows = lake.query(
        """
        select distinct cluster, topic, partition, label
        from watermarks semi join named using (cluster, topic, partition)
        where sample_id in (select unnest(?::varchar[])) and label is not null
        """,
        [[n.latest_id for n in news]],
        over=[WATERMARKS],
        since=latest_from(news),
        given={"named": pa.table({"cluster": cluster, "topic": topic, "partition": partition})},
    ).to_pylist()
    return {(row["cluster"], row["topic"], row["partition"]): row["label"] for row in rows}


def telling_events(lake: Lake, news: Sequence[News], window_seconds: float) -> pa.Table:
    """The events that verdicts go by: each group's last change of state, however long ago, and the rebalances of the
    window that ends with its cluster's latest sample. Columns that nobody looks at are null."""
    clock = pa.table({"cluster": [n.cluster for n in news], "as_of": [n.as_of for n in news]})
    # Distinct: a collector that was killed between writing and noting it down tells the same events again.
    rebalances = lake.query(
        """
        select distinct events.* from events join clock using (cluster)
        where kind = 'rebalance' and "at" <= as_of and "at" >= as_of - to_seconds(?)
        """,
        [window_seconds],
        over=[EVENTS],
        since=min(n.as_of for n in news) - timedelta(seconds=window_seconds),
        given={"clock": clock},
    )
    changes = lake.query(
        """
        select cluster, "group", 'state_changed' as kind, max("at") as "at", arg_max("after", "at") as "after"
        from events join clock using (cluster)
        where kind = 'state_changed' and "at" <= as_of and "group" is not null
        group by cluster, "group"
        """,
        over=[EVENTS],
        given={"clock": clock},
    )
    return pa.concat_tables([typed(EVENTS, rebalances), typed(EVENTS, changes)])


def newest_topics(lake: Lake) -> pa.Table:
    """The newest row of each topic."""
    sql = "select * from topics qualify row_number() over (partition by cluster, topic order by sampled_at desc) = 1"
    return typed(TOPICS, lake.query(sql, over=[TOPICS]))


def typed(table: Table, rows: pa.Table) -> pa.Table:
    """Rows as the table declares them, without the partition column; columns that are missing are null."""
    schema = table.without_day
    for field in schema:
        if field.name not in rows.column_names:
            rows = rows.append_column(field.name, pa.nulls(rows.num_rows, field.type))
    return rows.select(schema.names).cast(schema)
