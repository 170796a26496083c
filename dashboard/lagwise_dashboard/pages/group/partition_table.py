"""The partitions of a group, worst first: status, lag, rates and the member that reads them."""

import streamlit as st

from lagwise.domain.vocabulary import UnknownReason
from lagwise.links import parameters
from lagwise_dashboard import address, appearance, escaping, tables, visibility
from lagwise_dashboard.queries import group as queries
from lagwise_dashboard.queries.base import Row
from lagwise_dashboard.queries.listing import ListPage
from lagwise_dashboard.tables import TableColumn
from lagwise_dashboard.widgets import filters, lag_columns, list_view, partition_names
from lagwise_dashboard.widgets.partition_names import PartitionNames

#: Of fewer partitions all are seen at once.
_MIN_FILTERED = 10


def show(row: Row, result: ListPage[Row], names: PartitionNames) -> None:
    """Draw the partitions of the group of a row of `group_status`, a page of them. ``names`` are those that the system
    itself has for them."""
    about, listing = (row["cluster"], row["group"]), parameters.PARTITION_LIST
    statuses, with_lag = address.get(parameters.PARTITION_STATUS), bool(address.get(parameters.WITH_LAG))
    is_filtered = bool(statuses) or with_lag or list_view.is_searched(listing)
    if not result and not is_filtered:
        st.caption(
            "Unknown: the group could not be read."
            if row["reason"] == UnknownReason.UNREADABLE
            else "It has no partitions: nothing is committed and nothing is assigned."
        )
        return
    _filters(row, result)
    if not result:
        st.caption("No partition matches.")
        return
    topics = {*row["topics"], *(r["topic"] for r in result)}
    with_topic = len(topics) > 1
    of = "" if with_topic else f" of **{escaping.markdown(result[0]['topic'])}**"
    match = list_view.match_words(listing, result, is_filtered=is_filtered)
    order = list_view.if_default_order(listing, ", worst first")
    st.caption(f"{result.counted('partition')}{of}{match}{order}.")
    list_view.table(
        listing,
        result,
        lambda rows: columns(rows, names, with_topic=with_topic),
        lambda query: queries.partitions(visibility.lake(), *about, query, statuses, with_lag),
        name="partitions",
        label=f"Partitions of the group{order}",
        orders=queries.PARTITION_ORDERS,
        about=about,
        visible_rows=12,
    )


def _filters(row: Row, result: ListPage[Row]) -> None:
    """A field for text, and the statuses that partitions of the group have, each with its number."""
    counts = {one["status"]: one["partitions"] for one in row["partitions_by_status"] or []}
    chosen = address.get(parameters.PARTITION_STATUS)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        list_view.search(
            parameters.PARTITION_LIST, result.total, "Topic-partition, client or host", "Search the partitions"
        )
        if len(counts) > 1 or chosen:
            filters.statuses("Statuses of partitions", counts, parameters.PARTITION_STATUS)
        if row["partitions"] >= _MIN_FILTERED or address.get(parameters.WITH_LAG):
            st.pills(
                "Partitions with lag",
                ["lag"],
                format_func=lambda _: "Only with lag",
                label_visibility="collapsed",
                **address.bound(parameters.WITH_LAG),
            )


def columns(rows: list[Row], names: PartitionNames, *, with_topic: bool) -> list[TableColumn]:
    """The columns; those that are empty throughout are left out. ``names`` are the system's own for partitions."""
    result = [
        tables.statuses("Status", [_status_cell(r) for r in rows]).sorts_by("worst"),
        tables.text("Topic", [r["topic"] if with_topic else None for r in rows]).sorts_by("topic"),
        tables.number("Partition", [r["partition"] for r in rows]).sorts_by("number"),
        tables.text("Queue", [names.get((r["topic"], r["partition"])) for r in rows]).with_help(
            partition_names.QUEUE_HELP
        ),
        lag_columns.oldest_unread(rows, "Age of the oldest unread record."),
        lag_columns.lag(rows, "Unread records that still exist."),
        lag_columns.written(rows),
        lag_columns.read(rows),
        # The owner of a partition; that of a group is a team.
        tables.text("Member", [_owner(r) for r in rows]).sorts_by("owner"),
        tables.offset("Committed", [r["committed"] for r in rows]).with_help("Committed offset.").sorts_by("committed"),
        tables.duration("Unmoved for", [_unmoved(r) for r in rows])
        .with_help("How long the committed offset has had its value.")
        .sorts_by("unmoved"),
        *lag_columns.log_ends(rows),
        lag_columns.loss_in(
            "Loss in",
            rows,
            [r["seconds_to_loss"] for r in rows],
            "Time until unread records are deleted or the commits expire. ≤ marks an upper bound.",
        ).sorts_by("loss"),
        tables.count("Lost", [r["records_lost"] or None for r in rows], of="records")
        .with_help("Records deleted before they were read.")
        .sorts_by("lost"),
    ]
    return tables.without_empty(result, "Topic", "Queue", "Lost", "Loss in")


def _status_cell(row: Row) -> list[str]:
    """The status, then whatever else holds; for an unknown one the reason in the place of that."""
    held = lag_columns.labels(row["status"], *(r for r in row["reasons"] if r != row["status"]))
    reason = appearance.reason_in_words(row["reason"])
    return [*held, reason] if reason else held


def _unmoved(row: Row) -> float | None:
    """As of the sample, like every other number: since then the group has had no chance to show a commit."""
    if row["committed"] is None or row["committed_since"] is None:
        return None
    return tables.elapsed_seconds(row["committed_since"], row["as_of"])


def _owner(row: Row) -> str | None:
    if row["owner"] is None:
        return "none"
    client, host = row["client_id"], (row["host"] or "").removeprefix("/")
    return " · ".join(filter(None, (client, host))) or str(row["owner"])
