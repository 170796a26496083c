"""The groups that read a topic, as a table."""

from collections.abc import Mapping

import streamlit as st

from lagwise.domain.vocabulary import LossCause
from lagwise.links import pages, parameters
from lagwise_dashboard import address, tables
from lagwise_dashboard.cache import ask
from lagwise_dashboard.queries import topic as queries
from lagwise_dashboard.queries.base import Row
from lagwise_dashboard.tables import TableColumn
from lagwise_dashboard.visibility import lake
from lagwise_dashboard.widgets import lag_columns, list_view
from lagwise_dashboard.widgets.partition_names import PartitionNames


def show(cluster: str, topic: str, settings: Row | None, names: PartitionNames) -> None:
    """The groups that read the topic, a page at a time. ``names`` are those that the system has for partitions."""
    listing = parameters.READER_LIST
    result = ask(queries.readers, cluster, topic, list_view.query(listing))
    st.subheader("Readers", anchor=False)
    none = "No watched group has commits on this topic or is assigned to it."
    if not list_view.has_rows(listing, result, "group", "Group", none):
        return
    order = list_view.if_default_order(listing, ", closest to losing records first")
    st.caption(f"{result.counted('group')}{list_view.match_words(listing, result)}{order}.")
    list_view.table(
        listing,
        result,
        lambda rows: columns(rows, settings, names),
        lambda query: queries.readers(lake(), cluster, topic, query),
        name="readers",
        label="Groups that read the topic",
        orders=queries.READER_ORDERS,
        about=(cluster, topic),
        links=address.hrefs(
            pages.GROUP,
            ({parameters.CLUSTER: cluster, parameters.GROUP: row["group"], parameters.TOPIC: topic} for row in result),
        ),
        visible_rows=12,
    )


def columns(rows: list[Row], settings: Row | None, names: PartitionNames) -> list[TableColumn]:
    """The columns. ``settings`` are the topic's."""
    shares = [lag_columns.used_share(r, settings) for r in rows]
    result = [
        lag_columns.statuses(rows).sorts_by("status"),
        tables.text("Group", [r["group"] for r in rows]).sorts_by("group"),
        lag_columns.oldest_unread(rows, "Age of the oldest unread record of this topic."),
        tables.share("Retention used", [None if s is None else min(1.0, s) for s in shares], places=0, bar=True)
        .with_help("Age of the oldest unread record as a share of the time that the topic keeps records.")
        .sorts_by("age"),
        lag_columns.loss_in(
            "Deleted in",
            rows,
            [r["seconds_to_loss"] if r["loss_cause"] == LossCause.DELETION else None for r in rows],
            "Time until retention deletes unread records, at the earliest. ≤ marks an upper bound.",
        ).sorts_by("loss"),
        lag_columns.lag(rows, "Unread records that still exist."),
        lag_columns.written(rows),
        lag_columns.read(rows),
        _slowest(rows, {partition: name for (_, partition), name in names.items()}).sorts_by("slowest"),
        tables.count("Partitions", [r["partitions"] for r in rows]).sorts_by("partitions"),
        tables.count("Members", [r["members"] for r in rows])
        .with_help("Members that own partitions of this topic.")
        .sorts_by("members"),
    ]
    return tables.without_empty(result, "Retention used")


def _slowest(rows: list[Row], names: Mapping[int, str]) -> TableColumn:
    """The partition of each reader that is furthest behind: its number, or what its system calls it."""
    numbers = [r["slowest_partition"] for r in rows]
    if not names:
        return tables.number("Slowest partition", numbers)
    return tables.text("Slowest partition", [None if n is None else names.get(n) or n for n in numbers])
