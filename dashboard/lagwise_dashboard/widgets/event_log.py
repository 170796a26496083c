"""What happened to a group: changes of its status, rebalances and other events, as tables and as marks in
the charts."""

from collections.abc import Callable, Iterable
from datetime import datetime

import streamlit as st

from lagwise.domain import humanise
from lagwise.links import parameters
from lagwise_dashboard import appearance, context, escaping, plot_theme, tables
from lagwise_dashboard.cache import ask
from lagwise_dashboard.queries import group as queries
from lagwise_dashboard.queries.base import Row
from lagwise_dashboard.queries.listing import ListPage
from lagwise_dashboard.tables import TableColumn
from lagwise_dashboard.widgets import grid, lag_columns, list_view
from lagwise_dashboard.widgets.group_charts import ChartMark
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
WITHOUT_READING_HELP = "Time that they took; ≤ where only an upper bound is known."
#: Pixels.
_DETAILS_WIDTH, SENTENCE_WIDTH = 300, 360


def marks(changes: Iterable[Row], events: Iterable[Row]) -> list[ChartMark]:
    """Changes of status and events as marks."""
    return [
        ChartMark(r["at"], _status_change(r), dash="solid", colour=appearance.look(r["after"]).colour, minor=False)
        for r in changes
    ] + [ChartMark(r["at"], f"{kind(r)}: {details(r)}" if details(r) else kind(r)) for r in events]


def alert_mark(at: datetime, text: str) -> ChartMark:
    """An alert as a mark."""
    return ChartMark(at, text, dash="dash", colour=plot_theme.SERIES[4], minor=False)


def of_group(row: Row, span: TimeRange, now: datetime) -> None:
    """What happened in a span to the group of a row of `group_status`, as tables: rebalances by the hour, changes of
    its status, and events."""
    cluster, group = row["cluster"], row["group"]
    its, about = (cluster, group, span.since, span.until), (cluster, group)
    hours(cluster, group, span, now)
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


def hours(cluster: str, group: str, span: TimeRange, now: datetime) -> None:
    """The hours of a span in which a group was rebalanced."""
    its = (cluster, group, span.since, span.until)
    found = ask(queries.rebalances, *its, list_view.asked(parameters.HOUR_LIST))
    show_rebalances(
        found, now, (cluster, group), lambda: queries.rebalances(context.lake(), *its, found.asked.whole).rows
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
            tables.text("Details", [details(r) for r in rows], width=_DETAILS_WIDTH, wraps=True),
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


def show_rebalances(found: ListPage[Row], now: datetime, about: tuple[str, str], whole: Whole) -> None:
    """Each hour's rebalances with their likely cause, a page of the ``whole``; nothing where there were none."""
    if not found:
        return
    st.subheader("Rebalances by hour", anchor=False)
    inexact = not all(r["exact"] for r in found)
    st.caption(
        (f"{found.counted('hour')}, the newest first. " if found.pages > 1 else "")
        + "The likely cause is concluded from who came and went, how long they had been silent, and their time-outs."
        + (" Some were told from samples, between which others may have been missed." if inexact else "")
    )

    def columns(rows: list[Row]) -> list[TableColumn]:
        made = [
            tables.moment("Hour from", [r["hour"] for r in rows], now),
            tables.count("Rebalances", [r["rebalances"] for r in rows]),
            tables.text("Storm", ["▲ storm" if r["is_storm"] else None for r in rows]),
            without_reading(rows),
            partitions_moved(rows),
            tables.count(
                "Read again", [r["reread_records_at_most"] for r in rows], of="records_at_most", say=_at_most
            ).described(
                "Records that had been read and not committed, so that the next owner read them again: at most."
            ),
            tables.text("Why", [r["sentence"] for r in rows], width=SENTENCE_WIDTH, wraps=True),
            tables.text("What would help", [r["remedy"] for r in rows], width=SENTENCE_WIDTH, wraps=True),
        ]
        return tables.without_empty(made, "Storm", "Read again")

    grid.show(
        columns(found.rows),
        name="rebalances-by-hour",
        label="Rebalances of the group by hour, with their likely cause",
        about=about,
        rows_seen=6,
        sorts=found.pages == 1,
        whole=lambda: columns(whole()),
    )
    list_view.pages(parameters.HOUR_LIST, found)


def without_reading(rows: list[Row]) -> TableColumn:
    """How long rebalances took, or at most."""
    taken = [_taken(r) for r in rows]
    return tables.duration(
        "Without reading", [seconds for seconds, _ in taken], at_most=[is_bound for _, is_bound in taken]
    ).described(WITHOUT_READING_HELP)


def without_reading_in_all(rows: list[Row]) -> str:
    """The sum of that column, in words; a dash where none of it is known."""
    known = [(seconds, is_bound) for seconds, is_bound in map(_taken, rows) if seconds is not None]
    if not known:
        return humanise.DASH
    is_bound = any(is_bound for _, is_bound in known)
    return ("≤ " if is_bound else "") + humanise.duration(sum(seconds for seconds, _ in known))


def _taken(row: Row) -> tuple[float | None, bool]:
    """Seconds without reading, and whether that is an upper bound."""
    known, most = row["downtime_seconds"], row["downtime_seconds_at_most"]
    return (known, False) if most is None else (most, most != known)


def partitions_moved(rows: list[Row]) -> TableColumn:
    """Partitions that changed hands."""
    return tables.count("Moved", [r["partitions_moved"] for r in rows], of="partitions").described(
        "Partitions that changed hands."
    )


def _at_most(records: float) -> str:
    return f"≤ {humanise.count(records)}"


def kind(row: Row) -> str:
    """The kind of an event in words."""
    return _KINDS.get(row["kind"], escaping.shown(row["kind"]).replace("_", " "))


def details(row: Row) -> str:
    """What an event changed, in one line of plain text."""
    parts: list[str] = []
    if row["topic"] is not None:
        place = escaping.shown(row["topic"])
        parts.append(place if row["partition"] is None else f"{place}-{row['partition']}")
    if row["before"] is not None or row["after"] is not None:
        parts.append(
            f"{escaping.shown(row['before']) or humanise.DASH} → {escaping.shown(row['after']) or humanise.DASH}"
        )
    if row["cause"]:
        parts.append(escaping.shown(row["cause"]).replace("_", " "))
    for verb, who in (("joined", row["joined"]), ("left", row["left"])):
        if who:
            parts.append(f"{verb}: {', '.join(escaping.shown(w) for w in who[:5])}{' …' if len(who) > 5 else ''}")
    if row["partitions_moved"] is not None:
        parts.append(f"{humanise.plural(row['partitions_moved'], 'partition')} moved")
    if row["duration_seconds"] is not None:
        parts.append(f"took {humanise.duration(row['duration_seconds'])}")
    return "; ".join(parts)


def _became(row: Row) -> list[str]:
    reason = appearance.reason_in_words(row["reason"])
    shown = lag_columns.labels(row["after"])
    return [*shown, reason] if reason else shown


def _status_change(row: Row) -> str:
    before = appearance.look(row["before"]).word if row["before"] else "first seen"
    return f"Status: {before} → {appearance.label(row['after'], row['reason'])}"
