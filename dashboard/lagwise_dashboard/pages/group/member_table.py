"""The members of a group, what each of them owns, and how it does."""

from datetime import datetime

import streamlit as st

from lagwise.domain import humanise
from lagwise.links import parameters
from lagwise_dashboard import tables, time_zone, visibility
from lagwise_dashboard.queries import group as queries
from lagwise_dashboard.queries.base import Row
from lagwise_dashboard.queries.listing import ListPage
from lagwise_dashboard.tables import TableColumn
from lagwise_dashboard.widgets import lag_columns, list_view, partition_names


def show(result: ListPage[Row], row: Row, now: datetime, *, rebalancing: bool) -> None:
    """Draw the members of the group of a row of `group_status`, a page of them.

    While the group is ``rebalancing``, owning nothing means nothing.
    """
    listing, about = parameters.MEMBER_LIST, (row["cluster"], row["group"])
    none = "The group has no members." if row["members"] is not None else "Unknown: the group could not be described."
    if not list_view.has_rows(listing, result, "member", "Client, host or id", none):
        return
    idle = result[0]["idle"]
    idle_note = f" {humanise.plural(idle, 'member')} {'owns' if idle == 1 else 'own'} nothing" if idle else ""
    if idle and rebalancing:
        idle_note += ": the group is rebalancing, and partitions are still being assigned."
    elif idle:
        idle_note += ": a partition has one reader, so more members than partitions cannot help."
    match = list_view.match_words(listing, result)
    st.caption(
        f"{result.counted('member')}{match}, as of {time_zone.clock_markdown(result[0]['sampled_at'], now)}.{idle_note}"
    )
    list_view.table(
        listing,
        result,
        columns,
        lambda query: queries.members(visibility.lake(), *about, row["as_of"], query),
        name="members",
        label="Members of the group and what they own",
        orders=queries.MEMBER_ORDERS,
        about=about,
        visible_rows=10,
    )


def columns(rows: list[Row]) -> list[TableColumn]:
    """The columns."""
    return [
        lag_columns.statuses(rows).sorts_by("status"),
        tables.text("Client", [r["client_id"] for r in rows]).sorts_by("client"),
        tables.text("Host", [(r["host"] or "").removeprefix("/") for r in rows]).sorts_by("host"),
        tables.count("Owns", [r["assigned_partitions"] for r in rows], of="partitions")
        .with_help("How many partitions it owns.")
        .sorts_by("owns"),
        tables.text("Partitions", [partition_names.owned(r) for r in rows]),
        lag_columns.oldest_unread(rows, "Of the partitions it owns."),
        lag_columns.lag(rows, "Unread records of the partitions it owns."),
        lag_columns.written(rows, "Written to the partitions it owns. " + lag_columns.WRITTEN_HELP),
        lag_columns.read(rows),
        tables.text("Static id", [r["static_instance_id"] for r in rows]).sorts_by("static_id"),
        tables.text("Member id", [r["member_id"] for r in rows]).sorts_by("id"),
    ]
