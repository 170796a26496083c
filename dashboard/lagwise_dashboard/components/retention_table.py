"""What will be lost, as a table: one row a group, topic and cause."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import streamlit as st

from lagwise.domain import humanise
from lagwise.domain.vocabulary import LossCause
from lagwise_dashboard import literal
from lagwise_dashboard.components import tables
from lagwise_dashboard.components.partition_names import Names
from lagwise_dashboard.queries.base import Row

_CAUSES = {LossCause.DELETION: "records deleted", LossCause.EXPIRY: "commits expire"}


def show(rows: list[Row], now: datetime, names: Mapping[str, Names], *, with_cluster: bool) -> Row | None:
    """Draw the table; the row that was clicked, if one was. ``names`` are those of partitions, by cluster."""
    columns: dict[str, list[Any]] = {
        "Status": [tables.badges([r["status"]]) for r in rows],
        "In": [in_words(r, now) for r in rows],
        "At": [humanise.clock(at(r), now) if r["seconds_to_loss"] > 0 else "now" for r in rows],
        "At the latest": [_at_latest(r, now) for r in rows],
        "Group": [literal.shown(r["group"]) for r in rows],
        "Topic": [literal.shown(r["topic"]) for r in rows],
        "What": [_CAUSES.get(r["loss_cause"], literal.shown(r["loss_cause"])) for r in rows],
        "Unread": [r["lag"] for r in rows],
        "Oldest unread": [
            humanise.duration(r["lag_seconds"], lower_bound=bool(r["lag_seconds_is_lower_bound"])) for r in rows
        ],
        "Kept for": [kept_for(r) for r in rows],
        "In/s": [humanise.rate(r["produce_rate_per_second"]) for r in rows],
        "Out/s": [humanise.rate(r["consume_rate_per_second"]) for r in rows],
        "Lost already": [_lost(r) for r in rows],
        "Partitions": [r["partitions"] for r in rows],
        "Soonest": _soonest(rows, names),
    }
    if with_cluster:
        columns["Cluster"] = [literal.shown(r["cluster"]) for r in rows]
    for name in ("At the latest", "Lost already"):
        if not any(columns[name]):
            del columns[name]
    event: Any = st.dataframe(
        tables.table(columns),
        key="retention_losses",
        hide_index=True,
        height=tables.height(len(rows)),
        row_height=tables.ROW_HEIGHT,
        placeholder=tables.PLACEHOLDER,
        on_select="rerun",
        selection_mode="single-cell",
        alt="What will be lost, the soonest first; select a cell to open its group",
        column_config={
            "Status": tables.status_column(width=128),
            "In": tables.right_column(help="Time until the first loss. ≤ marks an upper bound: it may come sooner."),
            "At": st.column_config.TextColumn(help="The same as a time: at the earliest."),
            "At the latest": st.column_config.TextColumn(
                help="Whole segments are deleted, which delays a deletion by age by up to segment.ms of records."
            ),
            "Group": st.column_config.TextColumn(width=200),
            "What": st.column_config.TextColumn(
                help="**records deleted**: retention deletes what is unread. **commits expire**: the broker forgets "
                "where a group without members was."
            ),
            "Unread": st.column_config.NumberColumn(
                format="localized", help="Unread records of the partitions that lose something."
            ),
            "Oldest unread": tables.right_column(help="≥ marks a lower bound: it is older than the history kept."),
            "Kept for": st.column_config.TextColumn(help="The topic's retention: time and size of a partition."),
            "In/s": tables.right_column(help=tables.WRITTEN_HELP),
            "Out/s": tables.right_column(help=tables.READ_HELP),
            "Lost already": tables.right_column(
                help="Records deleted before they were read, within a day or missing now."
            ),
            "Partitions": st.column_config.NumberColumn(help="Partitions that lose something."),
            "Soonest": tables.right_column(help="The partition that loses something first."),
        },
    )
    cells = event.selection.cells
    return rows[cells[0][0]] if cells and cells[0][0] < len(rows) else None


def at(row: Row) -> datetime:
    """When the first loss comes."""
    moment: datetime = row["as_of"] + timedelta(seconds=row["seconds_to_loss"])
    return moment


def in_words(row: Row, now: datetime) -> str:
    """The time that is left from now on, not from the sample on: a clock that stood still would be believed."""
    left = 0.0 if row["seconds_to_loss"] <= 0 else max(1.0, (at(row) - now).total_seconds())
    return humanise.loss_in(left, upper_bound=bool(row["seconds_to_loss_is_upper_bound"]))


def _at_latest(row: Row, now: datetime) -> str | None:
    seconds = row["seconds_to_loss_at_latest"]
    return None if seconds is None else humanise.clock(row["as_of"] + timedelta(seconds=seconds), now)


def _soonest(rows: list[Row], names: Mapping[str, Names]) -> list[Any]:
    """Numbers of partitions, which sort as such; names, where a system has its own."""
    if not any(names.values()):
        return [r["partition"] for r in rows]
    called = (names[r["cluster"]].get((r["topic"], r["partition"]), str(r["partition"])) for r in rows)
    return [literal.shown(name) for name in called]


def _lost(row: Row) -> str | None:
    low, high = row["lost_at_least"], row["lost_at_most"]
    if not low:
        return None
    return humanise.count(low) if low == high or high is None else f"{humanise.count(low)} to {humanise.count(high)}"


def kept_for(row: Row) -> str | None:
    """A topic's retention in a cell: ``7 d``, ``2 h, 1.00 GB``, ``for ever``; None where it is not known."""
    if row["retention_ms"] is None:
        return None
    limits = [humanise.duration(row["retention_ms"] / 1000)] if row["retention_ms"] >= 0 else []
    limits += [humanise.size(row["retention_bytes"])] if (row["retention_bytes"] or -1) >= 0 else []
    return ", ".join(limits) or "for ever"
