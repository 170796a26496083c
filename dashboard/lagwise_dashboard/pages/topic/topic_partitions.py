"""The partitions of a topic and the brokers that lead them, as tables."""

from datetime import datetime

import streamlit as st

from lagwise.domain import humanise
from lagwise.links import parameters
from lagwise_dashboard import escaping, tables
from lagwise_dashboard.cache import ask
from lagwise_dashboard.context import lake
from lagwise_dashboard.queries import topic as queries
from lagwise_dashboard.queries.base import Row
from lagwise_dashboard.queries.listing import ListPage
from lagwise_dashboard.queries.topic import ReplicasAre, Totals
from lagwise_dashboard.tables import TableColumn
from lagwise_dashboard.widgets import grid, list_view, partition_names

#: How a partition's replicas are: sign and word, never colour alone.
_REPLICAS = {
    ReplicasAre.UNREADABLE: "✕ unreadable",
    ReplicasAre.NO_LEADER: "✕ no leader",
    ReplicasAre.TOO_FEW_IN_SYNC: "✕ too few in sync",
    ReplicasAre.NOT_ALL_IN_SYNC: "▲ not all in sync",
    ReplicasAre.READABLE: "✓ readable",
    ReplicasAre.IN_SYNC: "✓ in sync",
}
#: Orders of :data:`queries.topic.PARTITION_ORDERS` by the title of the column whose heading asks for them.
SORTS = {
    "Partition": "number",
    "In/s": "in",
    "Share": "in",
    "Replicas are": "replicas",
    "Leader": "leader",
    "Log start": "log_start",
    "Log end": "log_end",
    "Slowest reader": "reader",
    "Is behind": "behind",
}


def show(cluster: str, topic: str, as_of: datetime, min_isr: int | None, totals: Totals, now: datetime) -> None:
    """The partitions, a page at a time, and where they are. ``totals`` are those of all of them."""
    st.subheader("Partitions", anchor=False)
    if not totals.partitions or totals.sampled_at is None:
        st.caption("No sample of the last minutes has its watermarks.")
        return
    its = parameters.TOPIC_PARTITION_LIST
    found = ask(queries.partitions, cluster, topic, as_of, min_isr, list_view.asked(its))
    is_searched = list_view.is_searched(its)
    list_view.search(its, found, "Number, “leader 2”, or reader", "Search the partitions")
    match, order = list_view.match(found, is_filtered=is_searched), list_view.usual(its, ", the hottest first")
    st.caption(
        f"{found.counted('partition')}{match}{order}, as of {humanise.clock(totals.sampled_at, now)}. "
        + (
            f"**{totals.unwell:,} not in sync.**"
            if totals.unwell
            else "All replicas are in sync."
            if totals.replicated
            else ""
        )
    )
    left, right = st.columns([3, 1])
    with left:
        if found:
            _partitions(cluster, topic, found, totals, order, as_of, min_isr)
    with right:
        _leaders(totals, (cluster, topic))


def _partitions(
    cluster: str, topic: str, found: ListPage[Row], totals: Totals, order: str, as_of: datetime, min_isr: int | None
) -> None:
    its = parameters.TOPIC_PARTITION_LIST
    total = totals.rate_per_second or 0.0
    grid.show(
        columns(found.rows, total),
        name="topic-partitions",
        label=f"Partitions of the topic{order}",
        about=(cluster, topic),
        rows_seen=15,
        sorting=list_view.sorting(its, SORTS, queries.PARTITION_ORDERS),
        whole=lambda: columns(
            queries.partitions(lake(), cluster, topic, as_of, min_isr, found.asked.whole).rows, total
        ),
    )
    list_view.pages(its, found)


def columns(rows: list[Row], total: float) -> list[TableColumn]:
    """The columns; those of which the system reports nothing are left out. ``total`` is what is written to all
    partitions per second."""
    replicas = [None if r["replicas_are"] == ReplicasAre.READABLE else replicas_in_words(r) for r in rows]
    found = [
        tables.number("Partition", [r["partition"] for r in rows]),
        tables.text("Queue", [r["label"] for r in rows]).described(partition_names.QUEUE_HELP),
        tables.rate("In/s", [r["rate_per_second"] for r in rows]).described(
            "Records written per second over the last five minutes."
        ),
        tables.share("Share", [_share(r["rate_per_second"], total) for r in rows], bar=True).described(
            "Of what is written to the topic."
        ),
        tables.text("Replicas are", replicas),
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


def _leaders(totals: Totals, about: tuple[str, str]) -> None:
    """How many partitions, and how much of the traffic, each broker leads."""
    rows, total = totals.leaders, totals.rate_per_second or 0.0
    columns = [
        tables.number("Broker", [r["leader"] for r in rows]).described("Node id."),
        tables.count("Leads", [r["partitions"] for r in rows], of="partitions").described(
            "Partitions of this topic that it leads."
        ),
        tables.share("Traffic", [_share(r["rate_per_second"], total) for r in rows], places=0, bar=True).described(
            "Share of what is written to the topic."
        ),
    ]
    grid.show(
        columns,
        name="leaders",
        label="Brokers and how many of the topic's partitions they lead",
        about=about,
        rows_seen=15,
    )


def replicas_in_words(row: Row) -> str:
    """How a partition's replicas are: a sign and words."""
    said = _REPLICAS[row["replicas_are"]]
    return said if row["error"] is None else f"{said}: {escaping.shown(row['error'])}"


def _share(rate: float | None, total: float) -> float | None:
    return None if rate is None or total <= 0 else rate / total


def _nodes(nodes: list[int] | None) -> str | None:
    return None if nodes is None else ", ".join(map(str, nodes)) or "none"
