"""What happened to a group: changes of its status, rebalances and other events, as tables and as marks in
the charts."""

from collections.abc import Iterable
from datetime import datetime

import streamlit as st

from lagwise.links import parameters
from lagwise_dashboard import appearance, context, escaping, tables
from lagwise_dashboard.cache import ask
from lagwise_dashboard.pages.group.group_charts import ChartMark
from lagwise_dashboard.queries import group as queries
from lagwise_dashboard.queries.base import Row
from lagwise_dashboard.tables import TableColumn
from lagwise_dashboard.widgets import lag_columns, list_view, rebalance_hours
from lagwise_dashboard.widgets.time_range import TimeRange

_KINDS = {
    "rebalance": "Rebalance",
    "state_changed": "State changed",
    "commit_rewound": "Commit went back",
    "commit_skipped": "Commit skipped records",
    "offsets_gone": "Commits gone",
    "group_gone": "Group gone",
    "topic_recreated": "Topic re-created",
    "topic_gone": "Topic gone",
    "partitions_added": "Partitions added",
    "config_changed": "Setting changed",
}
#: Pixels.
_DETAILS_WIDTH = 300


def marks(changes: Iterable[Row], events: Iterable[Row]) -> list[ChartMark]:
    """Changes of status and events as marks."""
    return [
        ChartMark(r["at"], _status_change(r), dash="solid", colour=appearance.of_status(r["after"]).colour, minor=False)
        for r in changes
    ] + [
        ChartMark(r["at"], f"{_kind(r)}: {details}" if (details := rebalance_hours.details(r)) else _kind(r))
        for r in events
    ]


def show(row: Row, span: TimeRange, now: datetime) -> None:
    """Draw the events of a span for the group of a row of `group_status`: its rebalances by hour, the changes of its
    status, and all other events."""
    rebalance_hours.show(row["cluster"], row["group"], span, now)
    left, right = st.columns(2)
    with left:
        _status_history(row, span, now)
    with right:
        _events(row, span, now)


def _status_history(row: Row, span: TimeRange, now: datetime) -> None:
    """Draw the changes of the status. The present status is counted up to the moment of the verdict."""
    listing, about = parameters.CHANGE_LIST, (row["cluster"], row["group"])
    changes = ask(queries.changes, *about, span.since, span.until, list_view.query(listing))
    st.subheader("Status history", anchor=False)
    if not changes:
        st.caption(f"The status has not changed {span.words}.")
        return
    if changes.pages > 1:
        st.caption(f"{changes.counted('change')}, newest first.")

    def columns(rows: list[Row]) -> list[TableColumn]:
        ends = [r["until_at"] or row["as_of"] for r in rows]
        return [
            tables.moment("At", [r["at"] for r in rows], now),
            tables.duration(
                "For",
                [tables.elapsed_seconds(r["at"], end) for r, end in zip(rows, ends, strict=True)],
                at_least=[r["until_at"] is None for r in rows],
            ).with_help("How long the status lasted; ≥ marks the present status."),
            tables.statuses("Was", [lag_columns.labels(r["before"]) or ["first seen"] for r in rows]),
            tables.statuses("Became", [_became(r) for r in rows]),
        ]

    list_view.table(
        listing,
        changes,
        columns,
        lambda query: queries.changes(context.lake(), *about, span.since, span.until, query),
        name="status-history",
        label="Changes of the group's status, newest first",
        about=about,
        visible_rows=8,
    )


def _events(row: Row, span: TimeRange, now: datetime) -> None:
    """Draw rebalances and other events of the group and its topics."""
    listing, about = parameters.EVENT_LIST, (row["cluster"], row["group"])
    arguments = (*about, tuple(row["topics"]), span.since, span.until)
    events = ask(queries.events, *arguments, list_view.query(listing))
    st.subheader("Events", anchor=False)
    none = f"No rebalances or other events {span.words}."
    if not list_view.has_rows(listing, events, "event", "Kind, topic, member or cause", none, within=span.words):
        return
    st.caption(f"{events.counted('event')}{list_view.match_words(listing, events)} {span.words}.")

    def columns(rows: list[Row]) -> list[TableColumn]:
        return [
            tables.moment("At", [r["at"] for r in rows], now),
            tables.text("Event", [_kind(r) for r in rows]),
            tables.text("Details", [rebalance_hours.details(r) for r in rows], width=_DETAILS_WIDTH, wraps=True),
        ]

    list_view.table(
        listing,
        events,
        columns,
        lambda query: queries.events(context.lake(), *arguments, query),
        name="events",
        label="Events of the group and its topics, newest first",
        about=about,
        visible_rows=8,
    )


def _kind(row: Row) -> str:
    """The kind of an event in words."""
    return _KINDS.get(row["kind"], escaping.visible(row["kind"]).replace("_", " "))


def _became(row: Row) -> list[str]:
    reason = appearance.reason_in_words(row["reason"])
    shown = lag_columns.labels(row["after"])
    return [*shown, reason] if reason else shown


def _status_change(row: Row) -> str:
    before = appearance.of_status(row["before"]).word if row["before"] else "first seen"
    return f"Status: {before} → {appearance.label(row['after'], row['reason'])}"
