"""Snapshots of a small invented cluster, for tests that need no broker."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from lagwise.tables.raw import COMMITS, GROUPS, MEMBERS, SAMPLES, TOPICS, WATERMARKS
from lagwise_collectors.protocol import ErrorTally, Snapshot
from lagwise_collectors.sample_builder import rows_from_columns, samples_row

START = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)
INTERVAL = timedelta(seconds=15)

Commits = Mapping[tuple[str, str, int], int | None]


def sample(
    number: int,
    *,
    commits: Commits | None = None,
    groups: Mapping[str, str | None] | None = None,
    members: Mapping[str, Mapping[str, Sequence[tuple[str, int]]]] | None = None,
    topics: Mapping[str, tuple[str | None, int]] | None = None,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    static: Mapping[str, str] | None = None,
    metadata: Mapping[tuple[str, str, int], str] | None = None,
    leaders: Mapping[str, Sequence[int | None]] | None = None,
    errors: ErrorTally | None = None,
    cluster: str = "shop",
) -> Snapshot:
    """The snapshot of the ``number``-th round.

    ``groups`` is state by name (a state beginning with ! is an error; default: all that have commits, Empty);
    ``members`` what each member owns, by group; ``topics`` id and partitions (an id of None: the topic is unknown);
    ``static`` instance ids by member; ``metadata`` of commits, whose owners then are reported too; ``leaders`` of a
    topic's partitions in their order (None: it has none), which make a topic with the id ``a`` of those without.
    """
    at = START + number * INTERVAL
    commits = commits or {}
    states = groups if groups is not None else {group: "Empty" for group, _, _ in commits}
    named = {"sample_id": str(number), "cluster": cluster, "at": at}
    tables: dict[str, Any] = {}

    def keep(table: Any, columns: Mapping[str, Any]) -> None:
        if len(next(iter(columns.values()))):
            tables[table.name] = rows_from_columns(table, columns, **named)  # type: ignore[arg-type]  # the three of `named`

    keep(
        GROUPS,
        {
            "group": list(states),
            "state": [None if s is None or s.startswith("!") else s for s in states.values()],
            "error": [s[1:] if s is not None and s.startswith("!") else None for s in states.values()],
        },
    )
    flat = [(g, m, owned) for g, by_member in (members or {}).items() for m, owned in by_member.items()]
    keep(
        MEMBERS,
        {
            "group": [g for g, _, _ in flat],
            "member_id": [m for _, m, _ in flat],
            "client_id": [m.split("#")[0] for _, m, _ in flat],
            "host": ["10.0.0.1" for _ in flat],
            "static_instance_id": [(static or {}).get(m) for _, m, _ in flat],
            "assignment": [[{"topic": t, "partitions": [p]} for t, p in owned] for _, _, owned in flat],
            "assigned_partitions": [len(owned) for _, _, owned in flat],
        },
    )
    owners = {(g, t, p): m for g, m, owned in flat for t, p in owned} if metadata else {}
    keep(
        COMMITS,
        {
            "group": [g for g, _, _ in commits],
            "topic": [t for _, t, _ in commits],
            "partition": [p for _, _, p in commits],
            "committed": list(commits.values()),
            "metadata": pa.array([(metadata or {}).get(key) for key in commits], pa.string()).dictionary_encode(),
            "owner": pa.array([owners.get(key) for key in commits], pa.string()).dictionary_encode(),
        },
    )
    led = leaders or {}
    described = {**{topic: ("a", len(its)) for topic, its in led.items()}, **(topics or {})}
    marks = [(t, i, p) for t, (i, count) in described.items() for p in range(count)]
    keep(
        WATERMARKS,
        {
            "topic": [t for t, _, _ in marks],
            "topic_id": [i for _, i, _ in marks],
            "partition": [p for _, _, p in marks],
            "leader": [led[t][p] if t in led else None for t, _, p in marks],
            "replicas": [[1, 2, 3] if t in led and i else None for t, i, _ in marks],
            "error": [None if i else "unknown_topic" for _, i, _ in marks],
        },
    )
    configured = settings or {}
    keep(TOPICS, {"topic": list(configured), **_columns(list(configured.values()))})
    tables[SAMPLES.name] = samples_row(
        sample_id=str(number),
        cluster=cluster,
        system="kafka",
        started_at=at,
        finished_at=at,
        interval_seconds=15,
        wall_seconds=0.1,
        cpu_seconds=0.1,
        errors=errors or ErrorTally(),
        commits_read_at=at,
        watermarks_read_at=at,
    )
    return Snapshot(cluster, str(number), tables)


def _columns(rows: list[Mapping[str, Any]]) -> dict[str, list[Any]]:
    names = {name for row in rows for name in row}
    return {name: [row.get(name) for row in rows] for name in names}
