"""A topic's readers, its partitions and their leaders, as tables."""

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime

import streamlit as st

from lagwise.addresses import pages, query
from lagwise.domain import humanise
from lagwise.domain.vocabulary import LossCause
from lagwise_dashboard import address, literal, tables
from lagwise_dashboard.components import grid, lag_columns
from lagwise_dashboard.components.partition_table import QUEUE_HELP
from lagwise_dashboard.components.topic_verdict import used_share
from lagwise_dashboard.queries.base import Row
from lagwise_dashboard.tables import Column

#: How a partition's replicas are: sign and word, never colour alone.
_NO_LEADER, _UNREADABLE, _TOO_FEW, _BEHIND, _WELL, _READABLE = (
    "✕ no leader",
    "✕ unreadable",
    "✕ too few in sync",
    "▲ not all in sync",
    "✓ in sync",
    "✓ readable",
)


def show_readers(rows: list[Row], settings: Row | None, partitions: list[Row], about: tuple[str, str]) -> None:
    """The groups that read the topic. ``about`` are cluster and topic; ``partitions`` of it may have names."""
    st.subheader("Who reads it", anchor=False)
    if not rows:
        st.caption("No watched group has a commit on it or is assigned it.")
        return
    st.caption(f"{humanise.plural(len(rows), 'group')}, those that come nearest to losing records first.")
    shares = [used_share(r, settings) for r in rows]
    names = {p["partition"]: p["label"] for p in partitions}
    columns = [
        tables.statuses("Status", [lag_columns.labels(r["status"]) for r in rows]),
        tables.text("Group", [r["group"] for r in rows]),
        lag_columns.oldest_unread(rows, "Age of the oldest unread record of this topic."),
        tables.share(
            "Of the retention", [None if s is None else min(1.0, s) for s in shares], places=0, bar=True
        ).described("The age of the oldest unread record as a share of the time that the topic keeps records."),
        lag_columns.loss_in(
            "Deleted in",
            rows,
            [r["seconds_to_loss"] if r["loss_cause"] == LossCause.DELETION else None for r in rows],
            "Time until retention deletes unread records, at the earliest. ≤ marks an upper bound.",
        ),
        lag_columns.lag(rows, "Unread records that still exist."),
        lag_columns.written(rows),
        lag_columns.read(rows),
        _slowest(rows, names),
        tables.count("Partitions", [r["partitions"] for r in rows]),
        tables.count("Members", [r["members"] for r in rows]).described("Members that own partitions of this topic."),
    ]
    grid.show(
        tables.without_empty(columns, "Of the retention"),
        name="readers",
        label="Groups that read the topic",
        about=about,
        links=[
            address.href(pages.GROUP, {query.CLUSTER: about[0], query.GROUP: r["group"], query.TOPIC: about[1]})
            for r in rows
        ],
        rows_seen=12,
    )


def _slowest(rows: list[Row], names: Mapping[int, str | None]) -> Column:
    """The partition of each reader that is furthest behind: its number, or what its system calls it."""
    numbers = [r["slowest_partition"] for r in rows]
    if not any(names.values()):
        return tables.number("Slowest partition", numbers)
    return tables.text("Slowest partition", [None if n is None else names.get(n) or n for n in numbers])


def show_partitions(rows: list[Row], settings: Row | None, now: datetime, about: tuple[str, str]) -> None:
    """The partitions, those most written to first, and where they are."""
    st.subheader("Partitions", anchor=False)
    if not rows:
        st.caption("No sample of the last minutes has its watermarks.")
        return
    least = (settings or {}).get("min_isr")
    health = [replicas_in_words(r, least) for r in rows]
    unwell = sum(words not in (_WELL, _READABLE) for words in health)
    replicated = any(r["replicas"] is not None for r in rows)
    st.caption(
        f"{len(rows):,} of {humanise.plural(rows[0]['of'], 'partition')}, the hottest first, as of "
        f"{humanise.clock(rows[0]['sampled_at'], now)}. "
        + (f"**{unwell:,} not in sync.**" if unwell else "All replicas are in sync." if replicated else "")
    )
    total = sum(r["rate_per_second"] or 0.0 for r in rows)
    left, right = st.columns([3, 1])
    with left:
        grid.show(
            _partition_columns(rows, health, total),
            name="topic-partitions",
            label="Partitions of the topic, those most written to first",
            about=about,
            rows_seen=15,
        )
    with right:
        _leaders(rows, total, about)


def _partition_columns(rows: list[Row], health: list[str], total: float) -> list[Column]:
    """The columns; those of which the system reports nothing are left out."""
    found = [
        tables.number("Partition", [r["partition"] for r in rows]),
        tables.text("Queue", [r["label"] for r in rows]).described(QUEUE_HELP),
        tables.rate("In/s", [r["rate_per_second"] for r in rows]).described(
            "Records written per second over the last five minutes."
        ),
        tables.share("Share", [_share(r["rate_per_second"], total) for r in rows], bar=True).described(
            "Of what is written to these partitions."
        ),
        tables.text("Replicas are", [None if words == _READABLE else words for words in health]),
        tables.number("Leader", [r["leader"] for r in rows]).described("Node id."),
        tables.text("In sync", [_nodes(r["isr"]) for r in rows]).described("Node ids of the in-sync replicas."),
        tables.text("Replicas", [_nodes(r["replicas"]) for r in rows]).described("Node ids."),
        tables.offset("Log start", [r["log_start"] for r in rows]).described("Offset of the oldest record."),
        tables.offset("Log end", [r["high_watermark"] for r in rows]).described("High watermark."),
        tables.text("Slowest reader", [r["slowest_group"] for r in rows]),
        tables.duration("Is behind", [r["lag_seconds"] for r in rows]).described(
            "Age of the oldest record that its slowest reader has not read."
        ),
    ]
    return tables.without_empty(found, "Queue", "Replicas are", "In sync", "Replicas")


def _leaders(rows: list[Row], total: float, about: tuple[str, str]) -> None:
    """How many partitions, and how much of the traffic, each broker leads."""
    led: dict[int, list[float]] = defaultdict(list)
    for row in rows:
        if row["leader"] is not None:
            led[row["leader"]].append(row["rate_per_second"] or 0.0)
    nodes = sorted(led)
    columns = [
        tables.number("Broker", nodes).described("Node id."),
        tables.count("Leads", [len(led[node]) for node in nodes], of="partitions").described(
            "Partitions of this topic that it leads."
        ),
        tables.share("Traffic", [_share(sum(led[node]), total) for node in nodes], places=0, bar=True).described(
            "Share of what is written to these partitions."
        ),
    ]
    grid.show(
        columns,
        name="leaders",
        label="Brokers and how many of the topic's partitions they lead",
        about=about,
        rows_seen=15,
    )


def replicas_in_words(row: Row, min_isr: int | None) -> str:
    """Whether a partition's replicas are well: a sign and words. Without a list of replicas nobody knows better."""
    if row["error"] is not None:
        return f"{_UNREADABLE}: {literal.shown(row['error'])}"
    if row["leader"] is None:
        return _NO_LEADER
    if row["replicas"] is None:
        return _READABLE
    in_sync = len(row["isr"] or [])
    if row["isr"] is not None and min_isr is not None and in_sync < min_isr:
        return _TOO_FEW
    return _BEHIND if in_sync < len(row["replicas"] or []) else _WELL


def _share(rate: float | None, total: float) -> float | None:
    return None if rate is None or total <= 0 else rate / total


def _nodes(nodes: list[int] | None) -> str | None:
    return None if nodes is None else ", ".join(map(str, nodes)) or "none"
