"""The members of a group, what each of them owns, and how it does."""

from datetime import datetime

import streamlit as st

from lagwise.domain import humanise
from lagwise.links import parameters
from lagwise_dashboard import context, tables
from lagwise_dashboard.queries import group as queries
from lagwise_dashboard.queries.base import Row
from lagwise_dashboard.queries.listing import ListPage
from lagwise_dashboard.tables import TableColumn
from lagwise_dashboard.widgets import grid, lag_columns, list_view, partition_names

#: Orders of :data:`queries.group.MEMBER_ORDERS` by the title of the column whose heading asks for them.
SORTS = {
    "Status": "status",
    "Client": "client",
    "Host": "host",
    "Owns": "owns",
    "Oldest unread": "age",
    "Lag": "lag",
    "In/s": "in",
    "Out/s": "out",
    "Static id": "static_id",
    "Member id": "id",
}


def show(result: ListPage[Row], row: Row, now: datetime, *, rebalancing: bool) -> None:
    """Draw the members of the group of a row of `group_status`, a page of them.

    While the group is ``rebalancing``, owning nothing means nothing.
    """
    listing, cluster, group = parameters.MEMBER_LIST, row["cluster"], row["group"]
    is_searched = list_view.is_searched(listing)
    st.subheader("Members", anchor=False)
    if not result and not is_searched:
        st.caption(
            "The group has no members." if row["members"] is not None else "Unknown: the group could not be described."
        )
        return
    list_view.search(listing, result, "Client, host or id", "Search the members")
    if not result:
        st.caption("No member matches.")
        return
    idle = result[0]["idle"]
    idle_note = f" {humanise.plural(idle, 'member')} {'owns' if idle == 1 else 'own'} nothing" if idle else ""
    if idle and rebalancing:
        idle_note += ": the group is rebalancing, and partitions are still being assigned."
    elif idle:
        idle_note += ": a partition has one reader, so more members than partitions cannot help."
    st.caption(
        f"{result.counted('member')}{list_view.match_words(result, is_filtered=is_searched)}, as of "
        f"{humanise.clock(result[0]['sampled_at'], now)}." + idle_note
    )
    grid.show(
        columns(result.rows),
        name="members",
        label="Members of the group and what they own",
        about=(cluster, group),
        visible_rows=10,
        sorting=list_view.sorting(listing, SORTS, queries.MEMBER_ORDERS),
        all_rows=lambda: columns(
            queries.members(context.lake(), cluster, group, row["as_of"], result.query.all_rows).rows
        ),
    )
    list_view.pagination(listing, result)


def columns(rows: list[Row]) -> list[TableColumn]:
    """The columns."""
    return [
        tables.statuses("Status", [lag_columns.labels(r["status"]) for r in rows]),
        tables.text("Client", [r["client_id"] for r in rows]),
        tables.text("Host", [(r["host"] or "").removeprefix("/") for r in rows]),
        tables.count("Owns", [r["assigned_partitions"] for r in rows], of="partitions").with_help(
            "How many partitions it owns."
        ),
        tables.text("Partitions", [partition_names.owned(r) for r in rows]),
        lag_columns.oldest_unread(rows, "Of the partitions it owns."),
        lag_columns.lag(rows, "Unread records of the partitions it owns."),
        lag_columns.written(rows, "Written to the partitions it owns. " + lag_columns.WRITTEN_HELP),
        lag_columns.read(rows),
        tables.text("Static id", [r["static_instance_id"] for r in rows]),
        tables.text("Member id", [r["member_id"] for r in rows]),
    ]
