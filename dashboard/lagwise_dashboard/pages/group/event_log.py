"""What happened to a group: changes of its status, rebalances and other events, as tables and as marks in
the charts."""

from collections.abc import Callable, Iterable
from datetime import datetime

import streamlit as st

from lagwise.links import parameters
from lagwise_dashboard import appearance, context, escaping, plot_theme, tables
from lagwise_dashboard.cache import ask
from lagwise_dashboard.pages.group.group_charts import ChartMark
from lagwise_dashboard.queries import group as queries
from lagwise_dashboard.queries.base import Row
from lagwise_dashboard.queries.listing import ListPage
from lagwise_dashboard.tables import TableColumn
from lagwise_dashboard.widgets import grid, lag_columns, list_view, rebalance_hours
from lagwise_dashboard.widgets.time_range import TimeRange

#: All rows of a list of which a page is drawn.
Whole = Callable[[], list[Row]]

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
        ChartMark(r["at"], _status_change(r), dash="solid", colour=appearance.look(r["after"]).colour, minor=False)
        for r in changes
    ] + [
        ChartMark(r["at"], f"{kind(r)}: {rebalance_hours.details(r)}" if rebalance_hours.details(r) else kind(r))
        for r in events
    ]


def alert_mark(at: datetime, text: str) -> ChartMark:
    """An alert as a mark."""
    return ChartMark(at, text, dash="dash", colour=plot_theme.SERIES[4], minor=False)


def show(row: Row, span: TimeRange, now: datetime) -> None:
    """What happened in a span to the group of a row of `group_status`, as tables: rebalances by the hour, changes of
    its status, and events."""
    cluster, group = row["cluster"], row["group"]
    its, about = (cluster, group, span.since, span.until), (cluster, group)
    rebalance_hours.show(cluster, group, span, now)
    left, right = st.columns(2)
    with left:
        changes = ask(queries.changes, *its, list_view.asked(parameters.CHANGE_LIST))
        show_changes(
            changes,
            row["as_of"],
            now,
            span.words,
            about,
            whole=lambda: queries.changes(context.lake(), *its, changes.asked.whole).rows,
        )
    with right:
        what = (cluster, group, tuple(row["topics"]), span.since, span.until)
        events = ask(queries.events, *what, list_view.asked(parameters.EVENT_LIST))
        show_events(
            events, now, span.words, about, lambda: queries.events(context.lake(), *what, events.asked.whole).rows
        )


def show_changes(
    found: ListPage[Row], as_of: datetime, now: datetime, span: str, about: tuple[str, str], *, whole: Whole
) -> None:
    """The history of the status, a page of the ``whole``. The status that it still has is counted up to ``as_of``, the
    moment of the verdict. ``span`` is a phrase: ``in the last 1 h``; ``about`` are cluster and group."""
    st.subheader("Status history", anchor=False)
    if not found:
        st.caption(f"The status has not changed {span}.")
        return
    if found.pages > 1:
        st.caption(f"{found.counted('change')}, the newest first.")

    def columns(rows: list[Row]) -> list[TableColumn]:
        ends = [r["until_at"] or as_of for r in rows]
        return [
            tables.moment("At", [r["at"] for r in rows], now),
            tables.duration(
                "For",
                [tables.lasted(r["at"], end) for r, end in zip(rows, ends, strict=True)],
                at_least=[r["until_at"] is None for r in rows],
            ).described("How long it had the status; ≥ for the one that it still has."),
            tables.statuses("Was", [lag_columns.labels(r["before"]) or ["first seen"] for r in rows]),
            tables.statuses("Became", [_became(r) for r in rows]),
        ]

    grid.show(
        columns(found.rows),
        name="status-history",
        label="Changes of the group's status, the newest first",
        about=about,
        rows_seen=8,
        sorts=found.pages == 1,
        whole=lambda: columns(whole()),
    )
    list_view.pages(parameters.CHANGE_LIST, found)


def show_events(found: ListPage[Row], now: datetime, span: str, about: tuple[str, str], whole: Whole) -> None:
    """Rebalances and other events, a page of the ``whole``. ``span`` is a phrase: ``in the last 1 h``."""
    its = parameters.EVENT_LIST
    st.subheader("Events", anchor=False)
    if not found and not list_view.is_searched(its):
        st.caption(f"No rebalance and no other event {span}.")
        return
    list_view.search(its, found, "Kind, topic, member or cause", "Search the events")
    if not found:
        st.caption(f"No event matches {span}.")
        return
    st.caption(f"{found.counted('event')}{list_view.match(found, is_filtered=list_view.is_searched(its))} {span}.")

    def columns(rows: list[Row]) -> list[TableColumn]:
        return [
            tables.moment("At", [r["at"] for r in rows], now),
            tables.text("What", [kind(r) for r in rows]),
            tables.text("Details", [rebalance_hours.details(r) for r in rows], width=_DETAILS_WIDTH, wraps=True),
        ]

    grid.show(
        columns(found.rows),
        name="events",
        label="Events of the group and its topics, the newest first",
        about=about,
        rows_seen=8,
        sorts=found.pages == 1,
        whole=lambda: columns(whole()),
    )
    list_view.pages(its, found)


def kind(row: Row) -> str:
    """The kind of an event in words."""
    return _KINDS.get(row["kind"], escaping.shown(row["kind"]).replace("_", " "))


def _became(row: Row) -> list[str]:
    reason = appearance.reason_in_words(row["reason"])
    shown = lag_columns.labels(row["after"])
    return [*shown, reason] if reason else shown


def _status_change(row: Row) -> str:
    before = appearance.look(row["before"]).word if row["before"] else "first seen"
    return f"Status: {before} → {appearance.label(row['after'], row['reason'])}"
