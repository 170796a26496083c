"""The groups that read a topic, as a table."""

from collections.abc import Mapping

import streamlit as st

from lagwise.domain.vocabulary import LossCause
from lagwise.links import pages, parameters
from lagwise_dashboard import address, tables
from lagwise_dashboard.cache import ask
from lagwise_dashboard.context import lake
from lagwise_dashboard.queries import topic as queries
from lagwise_dashboard.queries.base import Row
from lagwise_dashboard.tables import TableColumn
from lagwise_dashboard.widgets import grid, lag_columns, list_view
from lagwise_dashboard.widgets.partition_names import PartitionNames

#: Orders of :data:`queries.topic.READER_ORDERS` by the title of the column whose heading asks for them.
SORTS = {
    "Status": "status",
    "Group": "group",
    "Oldest unread": "age",
    "Retention used": "age",
    "Deleted in": "loss",
    "Lag": "lag",
    "In/s": "in",
    "Out/s": "out",
    "Slowest partition": "slowest",
    "Partitions": "partitions",
    "Members": "members",
}


def show(cluster: str, topic: str, settings: Row | None, names: PartitionNames) -> None:
    """The groups that read the topic, a page at a time. ``names`` are those that the system has for partitions."""
    listing = parameters.READER_LIST
    result = ask(queries.readers, cluster, topic, list_view.query(listing))
    is_searched = list_view.is_searched(listing)
    st.subheader("Readers", anchor=False)
    if not result and not is_searched:
        st.caption("No watched group has commits on it or is assigned to it.")
        return
    list_view.search(listing, result, "Group", "Search the readers")
    if not result:
        st.caption("No group matches.")
        return
    order = list_view.if_default_order(listing, ", those that come nearest to losing records first")
    st.caption(f"{result.counted('group')}{list_view.match_words(result, is_filtered=is_searched)}{order}.")
    grid.show(
        _columns(result.rows, settings, names),
        name="readers",
        label="Groups that read the topic",
        about=(cluster, topic),
        links=[
            address.href(
                pages.GROUP, {parameters.CLUSTER: cluster, parameters.GROUP: r["group"], parameters.TOPIC: topic}
            )
            for r in result
        ],
        visible_rows=12,
        sorting=list_view.sorting(listing, SORTS, queries.READER_ORDERS),
        all_rows=lambda: _columns(queries.readers(lake(), cluster, topic, result.query.all_rows).rows, settings, names),
    )
    list_view.pagination(listing, result)


def _columns(rows: list[Row], settings: Row | None, names: PartitionNames) -> list[TableColumn]:
    shares = [lag_columns.used_share(r, settings) for r in rows]
    columns = [
        tables.statuses("Status", [lag_columns.labels(r["status"]) for r in rows]),
        tables.text("Group", [r["group"] for r in rows]),
        lag_columns.oldest_unread(rows, "Age of the oldest unread record of this topic."),
        tables.share(
            "Retention used", [None if s is None else min(1.0, s) for s in shares], places=0, bar=True
        ).with_help("The age of the oldest unread record as a share of the time that the topic keeps records."),
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
        tables.count("Members", [r["members"] for r in rows]).with_help("Members that own partitions of this topic."),
    ]
    return tables.without_empty(columns, "Retention used")


def _slowest(rows: list[Row], names: Mapping[int, str]) -> TableColumn:
    """The partition of each reader that is furthest behind: its number, or what its system calls it."""
    numbers = [r["slowest_partition"] for r in rows]
    if not names:
        return tables.number("Slowest partition", numbers)
    return tables.text("Slowest partition", [None if n is None else names.get(n) or n for n in numbers])
