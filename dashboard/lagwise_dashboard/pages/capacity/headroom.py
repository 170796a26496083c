"""Which group runs out of capacity first? One row a group and topic, the worst verdict first."""

import math
from datetime import datetime

import streamlit as st

from lagwise.domain import humanise
from lagwise.domain.humanise import significant_rate
from lagwise.links import pages, parameters
from lagwise_dashboard import address, appearance, context, tables
from lagwise_dashboard.queries import capacity as queries
from lagwise_dashboard.queries.base import Row
from lagwise_dashboard.queries.listing import ListPage
from lagwise_dashboard.report.current_capacity import enough_until
from lagwise_dashboard.tables import ColumnKind, TableColumn
from lagwise_dashboard.widgets import list_view

_WHY_WIDTH = 420


def columns(rows: list[Row]) -> list[TableColumn]:
    """The columns of the table."""
    result = [
        tables.badges(
            "Verdict",
            [[appearance.of_capacity_verdict(r["verdict"]).label] for r in rows],
            appearance.CAPACITY_APPEARANCES.values(),
        ).sorts_by("worst"),
        tables.text("Group", [r["group"] for r in rows], width=200).sorts_by("group"),
        tables.text("Topic", [r["topic"] for r in rows], width=160).sorts_by("topic"),
        tables.rate("Peak so far", [r["peak_rate_per_second"] for r in rows], unit="/s")
        .with_help("Messages per second in the busiest minute so far.")
        .sorts_by("peak"),
        tables.rate("Objective takes", [r["planned_objective_rate_per_second"] for r in rows], unit="/s").with_help(
            "The least capacity that keeps the group's lag objective, up to the horizon. Unknown: the peak decides."
        ),
        tables.between(
            "Can do",
            [r["capacity_low_per_second"] for r in rows],
            [r["capacity_high_per_second"] for r in rows],
            formatter=significant_rate,
            of="per_second",
        ).with_help("≥ marks a lower bound: it never had a backlog."),
        tables.rate("Forecast peak", [r["forecast_peak_rate_per_second"] for r in rows], unit="/s")
        .with_help("In the last week before the horizon.")
        .sorts_by("forecast"),
        _enough_until(rows),
        tables.text("Confidence", [r["confidence"] for r in rows]),
        tables.text("Why", [r["sentence"] for r in rows], width=_WHY_WIDTH, wraps=True),
    ]
    if len({r["cluster"] for r in rows}) > 1:
        result.append(tables.text("Cluster", [r["cluster"] for r in rows]).sorts_by("cluster"))
    return result


def _enough_until(rows: list[Row]) -> TableColumn:
    """The days; what lasts beyond the forecast sorts after all of them."""
    shown = [enough_until(r) for r in rows]
    days = [r["enough_until"] for r in rows]
    order = [
        day.timestamp() if day is not None else math.inf if text != humanise.DASH else None
        for day, text in zip(days, shown, strict=True)
    ]
    return TableColumn(
        "Enough until",
        ColumnKind.NUMBER,
        [None if text == humanise.DASH else text for text in shown],
        order,
        {"enough_until": days},
        "When the forecast exceeds what the group can do.",
    )


def show(result: ListPage[Row], now: datetime) -> None:
    """Draw the table."""
    st.subheader("Headroom", anchor=False)
    rows, listing = result.rows, parameters.HEADROOM_LIST
    list_view.search(listing, result, "Group or topic", "Search the verdicts")
    if not rows and list_view.is_searched(listing):
        st.caption("No verdict matches.")
        return
    if not rows:
        st.info(
            "**No verdict on capacity yet.** The analysis produces one for every watched group, a few minutes after it "
            "first sees the group. Until then, enter all numbers below.",
            icon=":material/hourglass_top:",
        )
        return
    st.caption(f"{result.counted('verdict')}, the oldest {humanise.since(rows[0]['oldest'], now)} old.")
    list_view.table(
        listing,
        result,
        columns,
        lambda query: queries.headroom(context.lake(), query),
        name="headroom",
        label="Verdicts on capacity, worst first",
        orders=queries.ORDERS,
        links=[
            address.href(
                pages.CAPACITY,
                {parameters.CLUSTER: r["cluster"], parameters.GROUP: r["group"], parameters.TOPIC: r["topic"]},
            )
            for r in rows
        ],
        visible_rows=8,
    )
