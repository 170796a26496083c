"""What happened to groups and topics, as the likely cause of a backlog is found from it: the driver reads `events`."""

from collections import defaultdict
from collections.abc import Collection
from datetime import datetime
from typing import Any

from lagwise.domain.vocabulary import LEADER_EVENTS, EventKind
from lagwise.domain.what_changed.happenings import TopicEvent
from lagwise.tables.raw import EVENTS
from lagwise.tables.store import Lake
from lagwise_spark.jobs.behind import Group

Row = dict[str, Any]

_OF_TOPICS = (EventKind.PARTITIONS_ADDED, EventKind.CONFIG_CHANGED, *sorted(LEADER_EVENTS))


def happenings_of(
    lake: Lake, groups: Collection[Group], since: datetime
) -> tuple[defaultdict[Group, list[Row]], defaultdict[tuple[str, str], list[TopicEvent]]]:
    """Rebalances of these groups by cluster and group, and events of topics by cluster and topic, in order of time.
    Distinct: a collector that was killed between writing and noting it down tells the same events again."""
    kinds = [EventKind.REBALANCE, *_OF_TOPICS] if groups else _OF_TOPICS
    rows = lake.query(
        """
        select distinct on (cluster, kind, "group", topic, "at", generation, cause) * from events
        where "at" >= ? and list_contains(?::varchar[], kind) order by cluster, "at"
        """,
        [since, [str(kind) for kind in kinds]],
        over=[EVENTS],
        since=since,
    ).to_pylist()
    rebalances: defaultdict[Group, list[Row]] = defaultdict(list)
    events: defaultdict[tuple[str, str], list[TopicEvent]] = defaultdict(list)
    for row in rows:
        if row["kind"] == EventKind.REBALANCE and (row["cluster"], row["group"]) in groups:
            rebalances[row["cluster"], row["group"]].append(row)
        elif row["kind"] != EventKind.REBALANCE and row["topic"] is not None:
            told = (row[name] or "" for name in ("before", "after", "cause"))
            event = TopicEvent(row["at"], EventKind(row["kind"]), row["topic"], *told)
            events[row["cluster"], row["topic"]].append(event)
    return rebalances, events
