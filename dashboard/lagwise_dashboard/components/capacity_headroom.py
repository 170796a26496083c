"""Which group runs out of capacity first? One row a group and topic, the worst verdict first."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pyarrow as pa
import streamlit as st

from lagwise.domain import humanise
from lagwise_dashboard import literal, words
from lagwise_dashboard.components import tables
from lagwise_dashboard.queries.base import Row
from lagwise_dashboard.report.standing import can_do, enough_until, per_second

_TABLE = "capacity_headroom"


def frame(rows: list[Row]) -> pa.Table:
    """The rows as they are shown."""
    columns: dict[str, list[Any]] = {
        "Verdict": [[words.capacity_look(r["verdict"]).label] for r in rows],
        "Group": [literal.shown(r["group"]) for r in rows],
        "Topic": [literal.shown(r["topic"]) for r in rows],
        "Peak so far": [per_second(r["peak_rate_per_second"]) for r in rows],
        "Can do": [can_do(r) for r in rows],
        "Forecast peak": [per_second(r["forecast_peak_rate_per_second"]) for r in rows],
        "Enough until": [enough_until(r) for r in rows],
        "Confidence": [r["confidence"] for r in rows],
        "Why": [literal.shown(r["sentence"]) for r in rows],
    }
    if len({r["cluster"] for r in rows}) > 1:
        columns["Cluster"] = [literal.shown(r["cluster"]) for r in rows]
    return tables.table(columns)


def show(rows: list[Row], total: int, now: datetime, choose: Callable[[Row], None]) -> None:
    """Draw the table; ``choose`` hears of the row that is clicked."""
    st.subheader("Headroom", anchor=False)
    if not rows:
        st.info(
            "**No verdict on capacity yet.** The analysis works one out for every watched group, a few minutes after "
            "it has seen it. Until then all numbers can be typed in below.",
            icon=":material/hourglass_top:",
        )
        return
    of = f"The first {len(rows):,} of {total:,} verdicts" if len(rows) < total else humanise.plural(total, "verdict")
    oldest = min(r["as_of"] for r in rows)
    st.caption(f"{of}, the oldest {humanise.since(oldest, now)} old. Click a row to choose the group.")

    def clicked() -> None:
        cells = st.session_state[_TABLE].selection.cells
        if cells and cells[0][0] < len(rows):
            choose(rows[cells[0][0]])

    st.dataframe(
        frame(rows),
        key=_TABLE,
        hide_index=True,
        height=tables.height(min(len(rows), 12)),
        row_height=tables.ROW_HEIGHT,
        placeholder=tables.PLACEHOLDER,
        on_select=clicked,
        selection_mode="single-cell",
        alt="Verdicts on capacity, the worst first; select a cell to choose its group",
        column_config={
            "Verdict": tables.badge_column("Verdict", list(words.CAPACITY_LOOKS.values()), width=108),
            "Group": st.column_config.TextColumn(width=160),
            "Topic": st.column_config.TextColumn(width=120),
            "Peak so far": tables.right_column(width=86, help="Messages per second in the busiest minute so far."),
            "Can do": tables.right_column(width=130, help="≥ marks a lower bound: it never had a backlog."),
            "Forecast peak": tables.right_column(width=100, help="In the last week before the horizon."),
            "Enough until": tables.right_column(width=130, help="When the forecast goes above what can be done."),
            "Confidence": st.column_config.TextColumn(width=84),
            "Why": st.column_config.TextColumn(width=620),
            "Cluster": st.column_config.TextColumn(width=66),
        },
    )
