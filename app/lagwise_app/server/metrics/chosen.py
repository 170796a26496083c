"""Which rows become metrics: those that are fresh, of groups that are selected, within the limits; and their sums."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from lagwise.config.server import MetricsSettings
from lagwise.domain.vocabulary import display_rank
from lagwise_app.server.metrics.name_sets import BURROW_CODES

_CHOSEN = pa.schema({"cluster": pa.string(), "group": pa.string(), "has_partitions": pa.bool_()})
_LEFT_OUT = pa.schema({"kind": pa.string(), "reason": pa.string(), "number": pa.int64()})

#: Tables that metrics are made of, in the order in which they are made: each may rest on those before.
_QUERIES: Mapping[str, str] = {
    "judged_clusters": "select cluster, max(as_of) as as_of from groups group by all order by 1",
    "chosen_groups": 'select groups.* from groups join chosen using (cluster, "group") order by cluster, "group"',
    "chosen_partitions": """
        select partitions.*, burrow_code from partitions join chosen using (cluster, "group")
        left join burrow_codes using (status) where has_partitions
        order by cluster, "group", topic, partition
    """,
    # What a group has left is not its lag; the exporters do not tell it apart.
    "own_partitions": "select * from chosen_partitions where status != 'ghost'",
    "group_topics": """
        select cluster, "group", topic, sum(committed)::bigint as committed, sum(lag)::bigint as lag,
               count(distinct owner) as members, count(owner) as assigned_partitions
        from partitions semi join chosen using (cluster, "group") group by all order by 1, 2, 3
    """,
    "group_sums": """
        select cluster, "group", sum(lag)::bigint as lag, max(lag) as max_lag, max(lag_seconds) as max_lag_seconds
        from partitions semi join chosen using (cluster, "group") group by all order by 1, 2
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
    "fresh_topic_partitions": """
        select * from topic_partitions where sampled_at > $fresh_since
        qualify sum(1) over (order by cluster, topic, partition) <= $max_partitions order by cluster, topic, partition
    """,
    # A sum without a partition that could not be read would go down, and a rate over it would count it anew.
    "topics": """
        select cluster, topic, count(*) as partitions,
               case when count(log_start) = count(*) then sum(log_start)::bigint end as log_start,
               case when count(high_watermark) = count(*) then sum(high_watermark)::bigint end as high_watermark
        from topic_partitions where sampled_at > $fresh_since group by all order by 1, 2
    """,
    "described_groups": """
        select chosen_groups.*, (state = 'Stable')::int as is_stable, 'consumer' as protocol_type,
               coordinated.coordinator, coordinated.assignor
        from chosen_groups left join coordinated using (cluster, "group") order by cluster, "group"
    """,
}
#: Empty tables in place of what was not read.
_EMPTY: Mapping[str, pa.Table] = {
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
    clusters: tuple[str, ...]
    #: The first row in them that is not fresh any more is so at this time.
    fresh_until: datetime


def choose(facts: Mapping[str, pa.Table], settings: MetricsSettings, now: datetime) -> Chosen:
    """The rows of the facts that are to be metrics at ``now``."""
    allowed = timedelta(seconds=settings.stale_after_seconds)
    chosen, left_out = _choose_groups(facts["groups"], facts["partitions"], settings, now - allowed)
    with duckdb.connect(":memory:", config={"threads": 1}) as connection:
        connection.execute("set TimeZone = 'UTC'")
        tables = {**_EMPTY, **facts, "chosen": pa.Table.from_pylist(chosen, schema=_CHOSEN)}
        tables["burrow_codes"] = pa.table(
            {"status": list(map(str, BURROW_CODES)), "burrow_code": [*BURROW_CODES.values()]}
        )
        for name, table in tables.items():
            connection.register(name, table)
        values = {"fresh_since": now - allowed, "max_partitions": settings.max_partitions}
        for name, query in _QUERIES.items():
            needed = {key: value for key, value in values.items() if f"${key}" in query}
            tables[name] = connection.sql(query, params=needed).to_arrow_table()
            connection.register(name, tables[name])
    partitions_of_topics = pc.sum(tables["topics"]["partitions"]).as_py() or 0
    too_many = partitions_of_topics - tables["fresh_topic_partitions"].num_rows
    left_out.append({"kind": "topic_partition", "reason": "limit", "number": too_many})
    tables["left_out"] = pa.Table.from_pylist(left_out, schema=_LEFT_OUT)
    ends = (pc.min(tables["chosen_groups"]["as_of"]), pc.min(tables["fresh_topic_partitions"]["sampled_at"]))
    oldest = min((end.as_py() for end in ends if end.is_valid), default=now)
    clusters = tuple(tables["judged_clusters"]["cluster"].to_pylist())
    return Chosen(tables, clusters, fresh_until=oldest + allowed)


def _choose_groups(
    groups: pa.Table, partitions: pa.Table, settings: MetricsSettings, fresh_since: datetime
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The groups that have metrics, and how many are left out, by why.

    Those in trouble come first, so that a limit never hides them; within a status by name, so that a lag that changes
    moves none of the others across the limit.
    """
    of_group = partitions.group_by(["cluster", "group"]).aggregate([([], "count_all")]).to_pydict()
    counts = dict(zip(zip(of_group["cluster"], of_group["group"], strict=True), of_group["count_all"], strict=True))
    columns = ("cluster", "group", "status", "as_of")
    rows = [
        (cluster, group, status, as_of, counts.get((cluster, group), 0))
        for cluster, group, status, as_of in zip(*(groups[column].to_pylist() for column in columns), strict=True)
        if settings.groups.selects(group)
    ]
    fresh = [row for row in rows if row[3] > fresh_since]
    fresh.sort(key=lambda row: (display_rank(row[2]), row[0], row[1]))
    room, chosen = settings.max_partitions, []
    for cluster, group, _, _, count in fresh[: settings.max_groups]:
        has_partitions = count <= room
        room -= count if has_partitions else 0
        chosen.append({"cluster": cluster, "group": group, "has_partitions": has_partitions})
    without = sum(row[4] for row in fresh) - (settings.max_partitions - room)
    return chosen, [
        {"kind": "group", "reason": "stale", "number": len(rows) - len(fresh)},
        {"kind": "group", "reason": "limit", "number": len(fresh) - len(chosen)},
        {"kind": "group_partition", "reason": "limit", "number": without},
    ]
