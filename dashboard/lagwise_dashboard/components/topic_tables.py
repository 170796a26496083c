"""A topic's readers, its partitions and their leaders, as tables."""

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import streamlit as st

from lagwise.domain import humanise
from lagwise.domain.vocabulary import LossCause
from lagwise_dashboard import literal
from lagwise_dashboard.components import tables
from lagwise_dashboard.components.topic_verdict import used_share
from lagwise_dashboard.queries.base import Row

#: How a partition's replicas are: sign and word, never colour alone.
_NO_LEADER, _UNREADABLE, _TOO_FEW, _BEHIND, _WELL, _READABLE = (
    "✕ no leader",
    "✕ unreadable",
    "✕ too few in sync",
    "▲ not all in sync",
    "✓ in sync",
    "✓ readable",
)


def show_readers(rows: list[Row], settings: Row | None, partitions: list[Row]) -> Row | None:
    """The groups that read the topic; the one that was clicked, if one was. ``partitions`` of it may have names."""
    st.subheader("Who reads it", anchor=False)
    if not rows:
        st.caption("No watched group has a commit on it or is assigned it.")
        return None
    st.caption(
        f"{humanise.plural(len(rows), 'group')}, those that come nearest to losing records first. Click a row to open "
        "the group."
    )
    shares = [used_share(r, settings) for r in rows]
    names = {p["partition"]: p["label"] for p in partitions}
    columns: dict[str, list[Any]] = {
        "Status": [tables.badges([r["status"]]) for r in rows],
        "Group": [literal.shown(r["group"]) for r in rows],
        "Oldest unread": [
            humanise.duration(r["lag_seconds"], lower_bound=bool(r["lag_seconds_is_lower_bound"])) for r in rows
        ],
        "Of the retention": [None if s is None else min(100.0, 100 * s) for s in shares],
        "Deleted in": [_deleted_in(r) for r in rows],
        "Lag": [r["lag"] for r in rows],
        "In/s": [humanise.rate(r["produce_rate_per_second"]) for r in rows],
        "Out/s": [humanise.rate(r["consume_rate_per_second"]) for r in rows],
        "Slowest partition": [_named(r["slowest_partition"], names) for r in rows],
        "Partitions": [r["partitions"] for r in rows],
        "Members": [r["members"] for r in rows],
    }
    if all(s is None for s in shares):
        del columns["Of the retention"]
    event: Any = st.dataframe(
        tables.table(columns),
        key="topic_readers",
        hide_index=True,
        height=tables.height(min(len(rows), 12)),
        row_height=tables.ROW_HEIGHT,
        placeholder=tables.PLACEHOLDER,
        on_select="rerun",
        selection_mode="single-cell",
        alt="Groups that read the topic; select a cell to open its group",
        column_config={
            "Status": tables.status_column(width=128),
            "Group": st.column_config.TextColumn(width=220),
            "Oldest unread": tables.right_column(help="Of this topic. ≥ marks a lower bound."),
            "Of the retention": st.column_config.ProgressColumn(
                min_value=0, max_value=100, format="%.0f %%", color="auto-inverse",
                help="The age of the oldest unread record as a share of the time that the topic keeps records.",
            ),
            "Deleted in": tables.right_column(help="Time until retention deletes unread records, at the earliest."),
            "Lag": st.column_config.NumberColumn(format="localized", help="Unread records that still exist."),
            "In/s": tables.right_column(help=tables.WRITTEN_HELP),
            "Out/s": tables.right_column(help=tables.READ_HELP),
            "Slowest partition": tables.right_column(),
            "Members": st.column_config.NumberColumn(help="Members that own partitions of this topic."),
        },
    )  # fmt: skip
    cells = event.selection.cells
    return rows[cells[0][0]] if cells and cells[0][0] < len(rows) else None


def _named(partition: int | None, names: Mapping[int, str | None]) -> str:
    """What the partition is called: by its system, or its number."""
    return humanise.DASH if partition is None else literal.shown(names.get(partition) or str(partition))


def show_partitions(rows: list[Row], settings: Row | None, now: datetime) -> None:
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
        st.dataframe(
            tables.table(_partition_columns(rows, health, total)),
            key="topic_partitions",
            hide_index=True,
            height=tables.height(min(len(rows), 15)),
            row_height=tables.ROW_HEIGHT,
            placeholder=tables.PLACEHOLDER,
            alt="Partitions of the topic, those most written to first",
            column_config={
                "Partition": st.column_config.NumberColumn(format="%d"),
                "Queue": tables.queue_column(),
                "In/s": tables.right_column(help="Records written per second over the last five minutes."),
                "Share": st.column_config.ProgressColumn(
                    min_value=0, max_value=100, format="%.1f %%", help="Of what is written to these partitions."
                ),
                "Leader": st.column_config.NumberColumn(format="%d", help="Node id."),
                "In sync": st.column_config.TextColumn(help="Node ids of the in-sync replicas."),
                "Replicas": st.column_config.TextColumn(help="Node ids."),
                "Log": st.column_config.TextColumn(help="Log start and high watermark."),
                "Is behind": tables.right_column(help="Age of the oldest record that its slowest reader has not read."),
            },
        )
    with right:
        _leaders(rows, total)


def _partition_columns(rows: list[Row], health: list[str], total: float) -> dict[str, list[Any]]:
    """The columns by name; those of which the system tells nothing are left out."""
    columns: dict[str, list[Any]] = {
        "Partition": [r["partition"] for r in rows],
        "Queue": [literal.shown(r["label"]) or None for r in rows],
        "In/s": [humanise.rate(r["rate_per_second"]) for r in rows],
        "Share": [_share(r["rate_per_second"], total) for r in rows],
        "Replicas are": health,
        "Leader": [r["leader"] for r in rows],
        "In sync": [_nodes(r["isr"]) for r in rows],
        "Replicas": [_nodes(r["replicas"]) for r in rows],
        "Log": [f"{_offset(r['log_start'])} … {_offset(r['high_watermark'])}" for r in rows],
        "Slowest reader": [literal.shown(r["slowest_group"]) or None for r in rows],
        "Is behind": [humanise.duration(r["lag_seconds"]) for r in rows],
    }
    for name in ("Queue", "In sync", "Replicas"):
        if not any(columns[name]):
            del columns[name]
    if all(words == _READABLE for words in health):
        del columns["Replicas are"]
    return columns


def _leaders(rows: list[Row], total: float) -> None:
    """How many partitions, and how much of the traffic, each broker leads."""
    led: dict[int, list[float]] = defaultdict(list)
    for row in rows:
        if row["leader"] is not None:
            led[row["leader"]].append(row["rate_per_second"] or 0.0)
    st.dataframe(
        tables.table(
            {
                "Broker": sorted(led),
                "Leads": [len(led[node]) for node in sorted(led)],
                "Traffic": [_share(sum(led[node]), total) for node in sorted(led)],
            }
        ),
        key="topic_leaders",
        hide_index=True,
        height=tables.height(min(len(led), 15)),
        row_height=tables.ROW_HEIGHT,
        placeholder=tables.PLACEHOLDER,
        alt="Brokers and how many of the topic's partitions they lead",
        column_config={
            "Broker": st.column_config.NumberColumn(format="%d", help="Node id."),
            "Leads": st.column_config.NumberColumn(help="Partitions of this topic that it leads."),
            "Traffic": st.column_config.ProgressColumn(
                min_value=0, max_value=100, format="%.0f %%", help="Share of what is written to these partitions."
            ),
        },
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


def _deleted_in(row: Row) -> str:
    if row["loss_cause"] != LossCause.DELETION:
        return humanise.DASH
    return humanise.loss_in(row["seconds_to_loss"], upper_bound=bool(row["seconds_to_loss_is_upper_bound"]))


def _share(rate: float | None, total: float) -> float | None:
    return None if rate is None or total <= 0 else 100 * rate / total


def _nodes(nodes: list[int] | None) -> str | None:
    return None if nodes is None else ", ".join(map(str, nodes)) or "none"


def _offset(offset: int | None) -> str:
    return humanise.DASH if offset is None else str(offset)
