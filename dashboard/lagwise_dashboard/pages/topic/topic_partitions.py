"""The partitions of a topic and the brokers that lead them, as tables."""

from datetime import datetime

import streamlit as st

from lagwise.links import parameters
from lagwise_dashboard import escaping, tables, time_zone
from lagwise_dashboard.cache import ask
from lagwise_dashboard.queries import topic as queries
from lagwise_dashboard.queries.base import Row
from lagwise_dashboard.queries.topic import ReplicaState, TopicTotals
from lagwise_dashboard.tables import TableColumn
from lagwise_dashboard.visibility import lake
from lagwise_dashboard.widgets import grid, lag_columns, list_view, partition_names

#: How a partition's replicas are: sign and word, never colour alone.
_REPLICAS = {
    ReplicaState.UNREADABLE: "✕ unreadable",
    ReplicaState.NO_LEADER: "✕ no leader",
    ReplicaState.TOO_FEW_IN_SYNC: "✕ too few in sync",
    ReplicaState.NOT_ALL_IN_SYNC: "▲ not all in sync",
    ReplicaState.READABLE: "✓ readable",
    ReplicaState.IN_SYNC: "✓ in sync",
}


def show(cluster: str, topic: str, as_of: datetime, min_isr: int | None, totals: TopicTotals, now: datetime) -> None:
    """The partitions, a page at a time, and where they are. ``totals`` are those of all of them."""
    st.subheader("Partitions", anchor=False)
    if not totals.partitions or totals.sampled_at is None:
        st.caption("No watermarks in the samples of the last minutes.")
        return
    listing = parameters.TOPIC_PARTITION_LIST
    arguments = (cluster, topic, as_of, min_isr)
    result = ask(queries.partitions, *arguments, list_view.query(listing))
    list_view.search(listing, result.total, "Number, “leader 2”, or reader", "Search the partitions")
    match = list_view.match_words(listing, result)
    order = list_view.if_default_order(listing, ", hottest first")
    replicas = "All replicas are in sync." if totals.replicated else ""
    if totals.out_of_sync:
        replicas = f"**{totals.out_of_sync:,} not in sync.**"
    st.caption(
        f"{result.counted('partition')}{match}{order}, as of {time_zone.clock_markdown(totals.sampled_at, now)}. "
        f"{replicas}"
    )
    total = totals.rate_per_second or 0.0
    left, right = st.columns([3, 1])
    with left:
        if result:
            list_view.table(
                listing,
                result,
                lambda rows: columns(rows, total),
                lambda query: queries.partitions(lake(), *arguments, query),
                name="topic-partitions",
                label=f"Partitions of the topic{order}",
                orders=queries.PARTITION_ORDERS,
                about=(cluster, topic),
                visible_rows=15,
            )
    with right:
        grid.show(
            _leader_columns(totals.leaders, total),
            name="leaders",
            label="Brokers and how many of the topic's partitions they lead",
            about=(cluster, topic),
            visible_rows=15,
        )


def columns(rows: list[Row], total: float) -> list[TableColumn]:
    """The columns; those of which the system reports nothing are left out. ``total`` is what is written to all
    partitions per second."""
    replicas = [None if r["replica_state"] == ReplicaState.READABLE else replica_state_words(r) for r in rows]
    result = [
        tables.number("Partition", [r["partition"] for r in rows]).sorts_by("number"),
        tables.text("Queue", [r["label"] for r in rows]).with_help(partition_names.QUEUE_HELP),
        tables.rate("In/s", [r["rate_per_second"] for r in rows])
        .with_help("Records written per second over the last five minutes.")
        .sorts_by("in"),
        tables.share("Share", [_share(r["rate_per_second"], total) for r in rows], bar=True)
        .with_help("Of what is written to the topic.")
        .sorts_by("in"),
        tables.text("Replica state", replicas).sorts_by("replicas"),
        tables.number("Leader", [r["leader"] for r in rows]).with_help("Node id.").sorts_by("leader"),
        tables.text("In sync", [_nodes(r["isr"]) for r in rows]).with_help("Node ids of the in-sync replicas."),
        tables.text("Replicas", [_nodes(r["replicas"]) for r in rows]).with_help("Node ids."),
        *lag_columns.log_ends(rows),
        tables.text("Slowest reader", [r["slowest_group"] for r in rows]).sorts_by("reader"),
        tables.duration("Lag time", [r["lag_seconds"] for r in rows])
        .with_help("Age of the oldest record that its slowest reader has not read.")
        .sorts_by("behind"),
    ]
    return tables.without_empty(result, "Queue", "Replica state", "In sync", "Replicas")


def _leader_columns(rows: list[Row], total: float) -> list[TableColumn]:
    """How many partitions, and how much of the traffic, each broker leads."""
    return [
        tables.number("Broker", [r["leader"] for r in rows]).with_help("Node id."),
        tables.count("Leads", [r["partitions"] for r in rows], of="partitions").with_help(
            "Partitions of this topic that it leads."
        ),
        tables.share("Traffic", [_share(r["rate_per_second"], total) for r in rows], places=0, bar=True).with_help(
            "Share of what is written to the topic."
        ),
    ]


def replica_state_words(row: Row) -> str:
    """How a partition's replicas are: a sign and words."""
    said = _REPLICAS[row["replica_state"]]
    return said if row["error"] is None else f"{said}: {escaping.visible(row['error'])}"


def _share(rate: float | None, total: float) -> float | None:
    return None if rate is None or total <= 0 else rate / total


def _nodes(nodes: list[int] | None) -> str | None:
    return None if nodes is None else ", ".join(map(str, nodes)) or "none"
