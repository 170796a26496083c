"""Which rows become metrics: those that are fresh, of groups that are selected, within the limits; and their sums."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import duckdb
import pyarrow as pa

from lagwise.config import Config
from lagwise.config.server import MetricsSettings
from lagwise.domain.vocabulary import display_rank
from lagwise.tables.capacity import CAPACITY
from lagwise.tables.raw import SAMPLES
from lagwise.tables.rounds import TICKS
from lagwise_app.server.metrics.limits import stale_after_seconds, watched_clusters
from lagwise_app.server.metrics.name_sets import BURROW_CODES

_CHOSEN = pa.schema({"cluster": pa.string(), "group": pa.string(), "has_partitions": pa.bool_()})
_LIMITS = pa.schema(
    {
        "cluster": pa.string(),
        "stale_after_seconds": pa.float64(),
        "fresh_since": pa.timestamp("us", "UTC"),
        "is_watched": pa.bool_(),
    }
)
_LEFT_OUT = pa.schema({"kind": pa.string(), "reason": pa.string(), "number": pa.int64()})

#: Tables that metrics are made of, in the order in which they are made: each may rest on those before.
_QUERIES: Mapping[str, str] = {
    # A cluster without groups is judged as well: the newest round says how far it has got.
    "judged_clusters": """
        with read as (select unnest(progress) as one from rounds),
        found as (
            select cluster, max(as_of) as as_of from groups group by all
            union all
            select one.cluster, one.read_until from read
            where one.cluster not in (select cluster from groups) and one.read_until is not null
        )
        select cluster, as_of, as_of > fresh_since as is_fresh from found join limits using (cluster) order by 1
    """,
    "watched_clusters": "select * from limits where is_watched order by cluster",
    "kminion": """
        select cluster, version, (lake_readable = 1 and coalesce(is_fresh, false))::int as is_up
        from limits cross join build left join judged_clusters using (cluster) order by 1
    """,
    "fresh_collections": """
        select collections.* from collections join limits using (cluster) where finished_at > fresh_since order by 1
    """,
    "chosen_groups": 'select groups.* from groups join chosen using (cluster, "group") order by cluster, "group"',
    "chosen_partitions": """
        select partitions.*, burrow_code from partitions join chosen using (cluster, "group")
        left join burrow_codes using (status) where has_partitions
        order by cluster, "group", topic, partition
    """,
    # The address as Kafka's Java client writes it, which is that exporter's.
    "owned_partitions": """
        select chosen_partitions.*, coalesce(owner, 'unknown') as consumer_id,
               coalesce(client_id, 'unknown') as known_client_id,
               case when host is null then 'unknown' when system = 'kafka' then '/' || ltrim(host, '/')
                    else host end as member_host
        from chosen_partitions left join (select cluster, system from collections) using (cluster)
        order by cluster, "group", topic, partition
    """,
    # A sum without a partition whose commit should be known, and is not, would go down, and a rate over it would count
    # it anew. A partition without any commit so far has none that could be known.
    "summed_partitions": """
        select partitions.*,
               status = 'unknown' and coalesce(reason, '') not in ('no_commit', 'not_committing') as is_unknown
        from partitions semi join chosen using (cluster, "group")
    """,
    "group_topics": """
        select cluster, "group", topic,
               case when not bool_or(is_unknown and committed is null) then sum(committed)::bigint end as committed,
               case when not bool_or(is_unknown and lag is null) then sum(lag)::bigint end as lag,
               count(distinct owner) as members, count(owner) as assigned_partitions
        from summed_partitions group by all order by 1, 2, 3
    """,
    "group_sums": """
        select cluster, "group",
               case when not bool_or(is_unknown and lag is null) then sum(lag)::bigint end as lag,
               max(lag) as max_lag, max(lag_seconds) as max_lag_seconds
        from summed_partitions group by all order by 1, 2
    """,
    "burrow_groups": """
        select cluster, "group", group_sums.lag, least(burrow_code, 3) as burrow_code
        from chosen_groups join burrow_codes using (status) left join group_sums using (cluster, "group")
        order by cluster, "group"
    """,
    "chosen_capacity": """
        select capacity.* from capacity semi join chosen using (cluster, "group")
        order by cluster, "group", topic
    """,
    "every_fresh_topic_partition": """
        select topic_partitions.* from topic_partitions join limits using (cluster) where sampled_at > fresh_since
    """,
    # Rows of one topic are peers: they are counted, and cut off, together.
    "fresh_topic_partitions": """
        select * from every_fresh_topic_partition
        qualify sum(1) over (order by cluster, topic) <= $max_partitions order by cluster, topic, partition
    """,
    # A sum without a partition that could not be read would go down, and a rate over it would count it anew.
    "topics": """
        select cluster, topic, count(*) as partitions,
               case when count(log_start) = count(*) then sum(log_start)::bigint end as log_start,
               case when count(high_watermark) = count(*) then sum(high_watermark)::bigint end as high_watermark
        from every_fresh_topic_partition group by all order by 1, 2
    """,
    "described_groups": """
        select chosen_groups.*, (state = 'Stable')::int as is_stable, 'consumer' as protocol_type,
               coordinated.coordinator, coordinated.assignor
        from chosen_groups left join coordinated using (cluster, "group") order by cluster, "group"
    """,
    # When each fresh row becomes stale.
    "ends": """
        with fresh as (
            select cluster, as_of as moment from chosen_groups union all
            select cluster, as_of from judged_clusters union all
            select cluster, finished_at from fresh_collections union all
            select cluster, sampled_at from fresh_topic_partitions
        )
        select min(moment + ($now - fresh_since)) as first_end
        from fresh join limits using (cluster) where moment > fresh_since
    """,
}


def _empty(of: pa.Schema, *columns: str, **others: pa.DataType) -> pa.Table:
    return pa.schema([*(of.field(column) for column in columns), *others.items()]).empty_table()


#: Empty tables in place of what was not read.
_EMPTY: Mapping[str, pa.Table] = {
    "collections": _empty(
        SAMPLES.arrow,
        "cluster",
        "system",
        "finished_at",
        "interval_seconds",
        "wall_seconds",
        wall_ms=pa.float64(),
        errors=pa.int64(),
    ),
    "capacity": _empty(
        CAPACITY.arrow,
        "cluster",
        "group",
        "topic",
        "verdict",
        "demand_per_second",
        "capacity_low_per_second",
        "enough_until",
    ),
    "rounds": _empty(TICKS.arrow, "finished_at", "wall_seconds", "group_partitions", "progress"),
    "topic_partitions": pa.schema(
        {
            "cluster": pa.string(),
            "topic": pa.string(),
            "partition": pa.int32(),
            "sampled_at": pa.timestamp("us", "UTC"),
            **dict.fromkeys(("log_start", "high_watermark"), pa.int64()),
            **dict.fromkeys(
                ("leader", "replicas", "isr", "is_preferred", "is_under_replicated"),
                pa.int32(),
            ),
        }
    ).empty_table(),
    "coordinated": pa.schema(
        {"cluster": pa.string(), "group": pa.string(), "coordinator": pa.int32(), "assignor": pa.string()}
    ).empty_table(),
}


@dataclass(frozen=True, slots=True)
class Chosen:
    """The tables that metrics are made of."""

    tables: Mapping[str, pa.Table]
    #: Every cluster that is known, be it without groups.
    clusters: tuple[str, ...]
    #: The first row in them that is not fresh any more is so at this time.
    fresh_until: datetime


def choose(facts: Mapping[str, pa.Table], config: Config, now: datetime) -> Chosen:
    """The rows of the facts that are to be metrics at ``now``."""
    settings, facts = config.server.metrics, {**_EMPTY, **facts}
    limits, watched = stale_after_seconds(config, facts), watched_clusters(config, facts)
    fresh_since = {cluster: now - timedelta(seconds=seconds) for cluster, seconds in limits.items()}
    chosen, left_out = _choose_groups(facts["groups"], facts["partitions"], settings, fresh_since)
    with duckdb.connect(":memory:", config={"threads": 1}) as connection:
        connection.execute("set TimeZone = 'UTC'")
        tables = {**facts, "chosen": pa.Table.from_pylist(chosen, schema=_CHOSEN)}
        tables["limits"] = pa.Table.from_pylist(
            [
                {
                    "cluster": cluster,
                    "stale_after_seconds": seconds,
                    "fresh_since": fresh_since[cluster],
                    "is_watched": cluster in watched,
                }
                for cluster, seconds in limits.items()
            ],
            schema=_LIMITS,
        )
        tables["burrow_codes"] = pa.table(
            {"status": list(map(str, BURROW_CODES)), "burrow_code": [*BURROW_CODES.values()]}
        )
        for name, table in tables.items():
            connection.register(name, table)
        values = {"now": now, "max_partitions": settings.max_partitions}
        for name, query in _QUERIES.items():
            needed = {key: value for key, value in values.items() if f"${key}" in query}
            tables[name] = connection.sql(query, params=needed).to_arrow_table()
            connection.register(name, tables[name])
    too_many = tables["every_fresh_topic_partition"].num_rows - tables["fresh_topic_partitions"].num_rows
    left_out.append(
        {"kind": "topic_partition", "reason": "limit", "number": too_many if settings.max_partitions else 0}
    )
    tables["left_out"] = pa.Table.from_pylist(left_out, schema=_LEFT_OUT)
    first_end = tables["ends"]["first_end"][0].as_py()
    return Chosen(tables, tuple(limits), first_end or now + timedelta(seconds=settings.stale_after_seconds))


def _choose_groups(
    groups: pa.Table, partitions: pa.Table, settings: MetricsSettings, fresh_since: Mapping[str, datetime]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The groups that have metrics, and how many are left out, by why.

    Those in trouble come first, so that a limit never hides them; within a status by name, so that a lag that changes
    moves none of the others across the limit. None that comes after one whose partitions do not fit has partitions.
    """
    of_group = partitions.group_by(["cluster", "group"]).aggregate([([], "count_all")]).to_pydict()
    counts = dict(zip(zip(of_group["cluster"], of_group["group"], strict=True), of_group["count_all"], strict=True))
    columns = ("cluster", "group", "status", "as_of")
    rows = [
        (cluster, group, status, as_of, counts.get((cluster, group), 0))
        for cluster, group, status, as_of in zip(*(groups[column].to_pylist() for column in columns), strict=True)
        if settings.groups.selects(group)
    ]
    fresh = [row for row in rows if row[3] > fresh_since[row[0]]]
    fresh.sort(key=lambda row: (display_rank(row[2]), row[0], row[1]))
    chosen: list[dict[str, Any]] = []
    so_far = with_metrics = 0
    for cluster, group, _, _, count in fresh[: settings.max_groups]:
        so_far += count
        has_partitions = so_far <= settings.max_partitions
        with_metrics += count if has_partitions else 0
        chosen.append({"cluster": cluster, "group": group, "has_partitions": has_partitions})
    # What is switched off is not left out.
    without = sum(row[4] for row in fresh) - with_metrics if settings.max_partitions else 0
    return chosen, [
        {"kind": "group", "reason": "stale", "number": len(rows) - len(fresh)},
        {"kind": "group", "reason": "limit", "number": len(fresh) - len(chosen)},
        {"kind": "group_partition", "reason": "limit", "number": without},
    ]
