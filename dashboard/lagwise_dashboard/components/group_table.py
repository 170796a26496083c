"""The table of groups: one row a group, made to be read at a glance and clicked."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pyarrow as pa
import streamlit as st

from lagwise.domain import humanise
from lagwise.domain.vocabulary import REBALANCING_STATES, Status
from lagwise_dashboard import literal
from lagwise_dashboard.components import tables
from lagwise_dashboard.queries.base import Row

#: Columns whose heading sorts the list, and the order that a click on it asks for (:data:`queries.overview.ORDERS`).
SORTS: dict[str, str] = {
    "Status": "worst",
    "Group": "name",
    "Oldest unread": "age",
    "Lag": "records",
    "In/s": "in",
    "Out/s": "out",
    "Since": "since",
}
#: Pixels of the sentence: with what stands before "In/s", a row is as wide as the page in a window of 1,280.
_WHY_WIDTH = 432
_NO_VERDICT = frozenset({Status.OK, Status.GHOST, Status.UNKNOWN})


def frame(rows: list[Row], now: datetime, *, with_cluster: bool) -> pa.Table:
    """The rows as they are shown: humanised, outside names made visible, unknown values null."""
    columns: dict[str, list[Any]] = {
        "Status": [tables.badges([r["status"]]) for r in rows],
        "Group": [literal.shown(r["group"]) for r in rows],
        "Why": [literal.shown(r["sentence"]) for r in rows],
        "Oldest unread": [
            humanise.duration(r["lag_seconds"], lower_bound=bool(r["lag_seconds_is_lower_bound"])) for r in rows
        ],
        "Last hour": [r["trend"] for r in rows],
        "Lag": [humanise.count(r["lag"]) for r in rows],
        "Caught up in": [catch_up(r) for r in rows],
        "Since": [humanise.since(r["since"], now) for r in rows],
        "In/s": [humanise.rate(r["produce_rate_per_second"]) for r in rows],
        "Out/s": [humanise.rate(r["consume_rate_per_second"]) for r in rows],
        "Worst partition": [worst_partition(r) for r in rows],
        "Members": [members(r) for r in rows],
    }
    if with_cluster:
        columns["Cluster"] = [literal.shown(r["cluster"]) for r in rows]
    return tables.table(columns)


def show(rows: list[Row], now: datetime, *, key: str, with_cluster: bool, on_select: Callable[[], None]) -> Row | None:
    """Draw the table; the row that was clicked, if one was. ``on_select`` hears of clicks on headings, too."""
    row_height = tables.wrapped_height((r["sentence"] for r in rows), _WHY_WIDTH)
    event: Any = st.dataframe(
        frame(rows, now, with_cluster=with_cluster),
        key=key,
        hide_index=True,
        height=tables.height(len(rows), row_height),
        row_height=row_height,
        placeholder=tables.PLACEHOLDER,
        on_select=on_select,
        selection_mode=["single-cell", "single-column"],
        alt="Consumer groups, the worst first; select a cell to open its group",
        column_config={
            "Status": tables.status_column(width=128),
            "Group": st.column_config.TextColumn(width=150),
            "Why": st.column_config.TextColumn(width=_WHY_WIDTH, help="The verdict in one sentence."),
            "Oldest unread": tables.right_column(
                width=96,
                help="Age of the oldest record the group has not read. ≥ marks a lower bound: it is older than the "
                "history that was kept.",
            ),
            "Last hour": st.column_config.AreaChartColumn(
                width=90,
                y_min=0,
                color="gray",
                help="Age of the oldest unread record over the last hour of data (or since the first, where "
                "that is less than an hour ago), each group on its own scale.",
            ),
            "Lag": tables.right_column(width=60, help="Unread records; unknown partitions and ghosts left out."),
            "Caught up in": tables.right_column(
                width=96, help="Time until the lag is gone at today's rates; never, where it does not shrink."
            ),
            "Since": tables.right_column(width=86, help="How long the status has been shown."),
            "In/s": tables.right_column(width=54, help=tables.WRITTEN_HELP),
            "Out/s": tables.right_column(width=54, help=tables.READ_HELP),
            "Worst partition": st.column_config.TextColumn(
                width=117, help="By status, then by age of its oldest unread record."
            ),
            "Members": st.column_config.TextColumn(
                width=129, help="Members, idle ones among them, and the group's state."
            ),
            "Cluster": st.column_config.TextColumn(width=66),
        },
    )  # fmt: skip
    cells = event.selection.cells
    return rows[cells[0][0]] if cells and cells[0][0] < len(rows) else None


def catch_up(row: Row) -> str:
    """Time until the lag is gone, ``never``, or a dash where there is nothing to catch up with or nothing known."""
    if row["seconds_to_catch_up"] is not None:
        return humanise.duration(row["seconds_to_catch_up"])
    return "never" if row["lag"] and row["status"] not in _NO_VERDICT else humanise.DASH


def worst_partition(row: Row) -> str | None:
    """``topic-partition``, as Kafka's own tools write it."""
    topic, partition = row["worst_topic"], row["worst_partition"]
    return None if topic is None else f"{literal.shown(topic)}-{partition}"


def members(row: Row) -> str:
    """``3 · Stable``, ``10 (2 idle) · Stable``, ``5 · rebalancing``."""
    if row["members"] is None:
        return literal.shown(row["state"]) or humanise.DASH
    idle = f" ({row['idle_members']} idle)" if row["idle_members"] else ""
    state = "rebalancing" if row["state"] in REBALANCING_STATES else literal.shown(row["state"]) or "state unknown"
    return f"{row['members']:,}{idle} · {state}"
