"""A topic's readers, its partitions and their leaders, as tables."""

from collections.abc import Mapping
from datetime import datetime

import streamlit as st

from lagwise.domain import humanise
from lagwise.domain.vocabulary import LossCause
from lagwise.links import pages, parameters
from lagwise_dashboard import address, escaping, tables
from lagwise_dashboard.cache import ask
from lagwise_dashboard.context import lake
from lagwise_dashboard.queries import topic as queries
from lagwise_dashboard.queries.base import Row
from lagwise_dashboard.queries.listing import ListPage
from lagwise_dashboard.queries.topic import ReplicasAre, Totals
from lagwise_dashboard.tables import TableColumn
from lagwise_dashboard.widgets import grid, lag_columns, list_view
from lagwise_dashboard.widgets.partition_names import Names
from lagwise_dashboard.widgets.partition_table import QUEUE_HELP
from lagwise_dashboard.widgets.topic_verdict import used_share

#: How a partition's replicas are: sign and word, never colour alone.
_REPLICAS = {
    ReplicasAre.UNREADABLE: "✕ unreadable",
    ReplicasAre.NO_LEADER: "✕ no leader",
    ReplicasAre.TOO_FEW_IN_SYNC: "✕ too few in sync",
    ReplicasAre.NOT_ALL_IN_SYNC: "▲ not all in sync",
    ReplicasAre.READABLE: "✓ readable",
    ReplicasAre.IN_SYNC: "✓ in sync",
}
#: Orders of :mod:`queries.topic` by the title of the column whose heading asks for them.
READER_SORTS = {
    "Status": "status",
    "Group": "group",
    "Oldest unread": "age",
    "Of the retention": "age",
    "Deleted in": "loss",
    "Lag": "lag",
    "In/s": "in",
    "Out/s": "out",
    "Slowest partition": "slowest",
    "Partitions": "partitions",
    "Members": "members",
}
PARTITION_SORTS = {
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


def show_readers(cluster: str, topic: str, settings: Row | None, names: Names) -> None:
    """The groups that read the topic, a page at a time. ``names`` are those that the system has for partitions."""
    its = parameters.READER_LIST
    found = ask(queries.readers, cluster, topic, list_view.asked(its))
    is_searched = list_view.is_searched(its)
    st.subheader("Who reads it", anchor=False)
    if not found and not is_searched:
        st.caption("No watched group has a commit on it or is assigned it.")
        return
    list_view.search(its, found, "Group", "Search the readers")
    if not found:
        st.caption("No group matches.")
        return
    order = list_view.usual(its, ", those that come nearest to losing records first")
    st.caption(f"{found.counted('group')}{list_view.match(found, is_filtered=is_searched)}{order}.")
    grid.show(
        _reader_columns(found.rows, settings, names),
        name="readers",
        label="Groups that read the topic",
        about=(cluster, topic),
        links=[
            address.href(
                pages.GROUP, {parameters.CLUSTER: cluster, parameters.GROUP: r["group"], parameters.TOPIC: topic}
            )
            for r in found
        ],
        rows_seen=12,
        sorting=list_view.sorting(its, READER_SORTS, queries.READER_ORDERS),
        whole=lambda: _reader_columns(queries.readers(lake(), cluster, topic, found.asked.whole).rows, settings, names),
    )
    list_view.pages(its, found)


def _reader_columns(rows: list[Row], settings: Row | None, names: Names) -> list[TableColumn]:
    shares = [used_share(r, settings) for r in rows]
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
        _slowest(rows, {partition: name for (_, partition), name in names.items()}),
        tables.count("Partitions", [r["partitions"] for r in rows]),
        tables.count("Members", [r["members"] for r in rows]).described("Members that own partitions of this topic."),
    ]
    return tables.without_empty(columns, "Of the retention")


def _slowest(rows: list[Row], names: Mapping[int, str]) -> TableColumn:
    """The partition of each reader that is furthest behind: its number, or what its system calls it."""
    numbers = [r["slowest_partition"] for r in rows]
    if not names:
        return tables.number("Slowest partition", numbers)
    return tables.text("Slowest partition", [None if n is None else names.get(n) or n for n in numbers])


def show_partitions(
    cluster: str, topic: str, as_of: datetime, min_isr: int | None, totals: Totals, now: datetime
) -> None:
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
        partition_columns(found.rows, total),
        name="topic-partitions",
        label=f"Partitions of the topic{order}",
        about=(cluster, topic),
        rows_seen=15,
        sorting=list_view.sorting(its, PARTITION_SORTS, queries.PARTITION_ORDERS),
        whole=lambda: partition_columns(
            queries.partitions(lake(), cluster, topic, as_of, min_isr, found.asked.whole).rows, total
        ),
    )
    list_view.pages(its, found)


def partition_columns(rows: list[Row], total: float) -> list[TableColumn]:
    """The columns; those of which the system reports nothing are left out. ``total`` is what is written to all
    partitions per second."""
    replicas = [None if r["replicas_are"] == ReplicasAre.READABLE else replicas_in_words(r) for r in rows]
    found = [
        tables.number("Partition", [r["partition"] for r in rows]),
        tables.text("Queue", [r["label"] for r in rows]).described(QUEUE_HELP),
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
