"""`assignments`: a row per settled group, made by the driver when something changed, and now and then for its rates.

Comparing assignors costs the more the more partitions a group has, so a round looks only at so many of them; whose row
is oldest comes first.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from lagwise.domain.assignment.rows import assignment_rows
from lagwise.domain.vocabulary import SHARING_TYPES, STREAMS, EventKind, GroupState
from lagwise.tables.analysis import PARTITION_STATUS
from lagwise.tables.membership import ASSIGNMENTS
from lagwise.tables.raw import EVENTS, GROUPS, MEMBERS, TOPICS
from lagwise.tables.store import Lake
from lagwise_spark.jobs.progress import News, latest_from

Row = Mapping[str, Any]
Group = tuple[str, str]

#: Rates change all the time, and with them who carries how much: a row is made anew after this time.
REFRESH = timedelta(minutes=5)
#: … and sooner where they were not known: those of a group that was just seen for the first time soon will be.
REFRESH_WITHOUT_RATES = timedelta(minutes=1)
#: Partitions, summed over groups, whose assignment one round looks at (one group is always looked at).
MOST_PARTITIONS = 5_000


def assign(lake: Lake, news: Sequence[News]) -> int:
    """Bring the table up to date, as far as one round may; how many rows were made."""
    as_of = {n.cluster: n.as_of for n in news}
    before: dict[Group, Row] = {(r["cluster"], r["group"]): r for r in lake.read(ASSIGNMENTS).to_pylist()}
    settled = {(r["cluster"], r["group"]): r for r in _settled(lake, news)}
    rebalanced = _rebalanced(lake, news)

    def is_due(group: Group) -> bool:
        row = before.get(group)
        if row is None or rebalanced.get(group, row["as_of"]) > row["as_of"]:
            return True
        refresh = REFRESH if row["busiest_share"] is not None else REFRESH_WITHOUT_RATES
        return bool(as_of[group[0]] - row["as_of"] >= refresh)

    def urgency(group: Group) -> tuple[datetime, Group]:
        row = before.get(group)
        return (as_of[group[0]] - timedelta(days=1) if row is None else row["as_of"]), group

    due: list[Group] = []
    partitions = 0
    for group in sorted(filter(is_due, settled), key=urgency):
        partitions += settled[group]["partitions"]
        if due and partitions > MOST_PARTITIONS:
            break
        due.append(group)
    made = _made(lake, news, [settled[group] for group in due])
    kept = [row for group, row in before.items() if group in settled and group not in made]
    if made or len(kept) < len(before):
        lake.replace(ASSIGNMENTS, ASSIGNMENTS.from_rows([*kept, *made.values()]))
    return len(made)


def _made(lake: Lake, news: Sequence[News], groups: Sequence[Row]) -> dict[Group, dict[str, Any]]:
    if not groups:
        return {}
    start = latest_from(news)
    found: dict[Group, dict[str, Any]] = {}
    for n in news:
        names = [row["group"] for row in groups if row["cluster"] == n.cluster]
        if not names:
            continue
        members = lake.query(
            'select * from members where sample_id = ? and "group" in (select unnest(?::varchar[]))',
            [n.latest_id, names],
            over=[MEMBERS],
            since=start,
        ).to_pylist()
        rates = lake.query(
            """select topic, partition, max(produce_rate_per_second) as rate from partition_status
               where cluster = ? and "group" in (select unnest(?::varchar[])) group by all""",
            [n.cluster, names],
            over=[PARTITION_STATUS],
        ).to_pylist()
        counts = lake.query(
            "select topic, arg_max(partitions, sampled_at) as partitions from topics where cluster = ? group by all",
            [n.cluster],
            over=[TOPICS],
        ).to_pylist()
        rows = assignment_rows(
            n.cluster,
            n.as_of,
            [row for row in groups if row["cluster"] == n.cluster],
            members,
            {row["topic"]: row["partitions"] for row in counts},
            {(row["topic"], row["partition"]): row["rate"] for row in rates},
        )
        found |= {(row["cluster"], row["group"]): row for row in rows}
    return found


def _settled(lake: Lake, news: Sequence[News]) -> list[Row]:
    """Groups of the latest samples that are stable and have members, with how many partitions these own. Groups whose
    members have partitions in common are left out, and streams groups, whose partitions come with tasks and state."""
    rows: list[Row] = lake.query(
        """select g.cluster, g."group", any_value(g.state) as state, any_value(g.assignor) as assignor,
                  any_value(g.type) as type, sum(m.assigned_partitions)::bigint as partitions
           from groups g join members m using (sample_id, cluster, "group")
           where g.sample_id in (select unnest(?::varchar[])) and g.state = ? and g.error is null
             and not list_contains(?::varchar[], coalesce(g.type, '')) group by all""",
        [[n.latest_id for n in news], str(GroupState.STABLE), sorted({*SHARING_TYPES, STREAMS})],
        over=[GROUPS, MEMBERS],
        since=latest_from(news),
    ).to_pylist()
    return rows


def _rebalanced(lake: Lake, news: Sequence[News]) -> dict[Group, datetime]:
    """When each group was last rebalanced, of those that were lately."""
    start = min(n.as_of for n in news) - 2 * REFRESH
    rows = lake.query(
        """select cluster, "group", max("at") as "at" from events
           where kind = ? and "at" >= ? and "group" is not null group by all""",
        [str(EventKind.REBALANCE), start],
        over=[EVENTS],
        since=start,
    ).to_pylist()
    return {(row["cluster"], row["group"]): row["at"] for row in rows}
