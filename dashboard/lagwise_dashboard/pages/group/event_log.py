"""All that happened to a group, in one list and as marks in the charts: changes of its status, alerts, rebalances,
events of its topics and of their leaders, and changes in what was measured."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import streamlit as st

from lagwise.domain.vocabulary import EventClass, RebalanceCause
from lagwise.links import parameters
from lagwise_alerts.operate import Alert
from lagwise_dashboard import address, appearance, escaping, plot_theme, tables, visibility
from lagwise_dashboard.appearance import Appearance
from lagwise_dashboard.cache import ask
from lagwise_dashboard.pages.group import likely_cause
from lagwise_dashboard.pages.group.group_charts import ChartMark
from lagwise_dashboard.pages.group.level_shifts import Shift
from lagwise_dashboard.pages.group.likely_cause import LikelyCause
from lagwise_dashboard.queries import event_log as queries
from lagwise_dashboard.queries.base import Row
from lagwise_dashboard.queries.event_log import Noted, Scope
from lagwise_dashboard.queries.listing import FIRST_PAGE, ListPage
from lagwise_dashboard.tables import TableColumn
from lagwise_dashboard.widgets import alert_words, filters, lag_columns, list_view, rebalance_hours
from lagwise_dashboard.widgets.time_range import TimeRange

#: How each class looks. Only the cause stands out: the statuses beside them have colours of their own.
_GREY = "#475569"
_CLASSES: dict[str, Appearance] = {
    EventClass.STATUS: Appearance("Status", "◐", _GREY, "gray", "The status of the group changed."),
    EventClass.ALERT: Appearance(
        "Alert", "◆", _GREY, "gray", "An alert about the group began, was escalated, or ended."
    ),
    EventClass.REBALANCE: Appearance("Rebalance", "⇄", _GREY, "gray", "Partitions were assigned anew."),
    EventClass.GROUP: Appearance("Group", "◇", _GREY, "gray", "Its state at the coordinator changed, or it is gone."),
    EventClass.OFFSETS: Appearance("Offsets", "↶", _GREY, "gray", "Committed offsets went back, skipped, or are gone."),
    EventClass.TOPIC: Appearance("Topic", "≡", _GREY, "gray", "A topic that it reads was changed."),
    EventClass.LEADERS: Appearance("Leaders", "⇅", _GREY, "gray", "Leaders of a topic that it reads changed."),
    EventClass.LEVEL: Appearance("Level shift", "∿", _GREY, "gray", "Something measured has had another level since."),
}
_CAUSE = Appearance("likely cause", "▶", "#BE123C", "red", "What the analysis names as the cause of the backlog.")
#: Pixels.
_DETAILS_WIDTH = 560


@dataclass(frozen=True, slots=True)
class EventLog:
    """The events of a group within a span: where they are found, and the newest of them."""

    scope: Scope
    #: Besides those of the lake.
    noted: tuple[Noted, ...]
    cause: LikelyCause | None
    newest: ListPage[Row]

    def marks(self) -> Iterator[ChartMark]:
        """The newest events as marks."""
        for row in self.newest:
            if row["event_class"] == EventClass.STATUS:
                colour = appearance.of_status(row["after"]).colour
                yield ChartMark(row["at"], _status_change(row), dash="solid", colour=colour, minor=False)
            elif row["event_class"] == EventClass.ALERT:
                yield ChartMark(row["at"], row["text"], "dash", plot_theme.SERIES[4], minor=False)
            elif row["text"] is not None:
                yield ChartMark(row["at"], row["text"])
            else:
                told = rebalance_hours.details(row)
                yield ChartMark(row["at"], f"{_kind(row)}: {told}" if told else _kind(row))

    @property
    def unmarked(self) -> int:
        """How many events of the span are older than those."""
        return self.newest.total - len(self.newest)


@dataclass(frozen=True, slots=True)
class AlertHistory:
    """The alerts of a group, open ones first, and when they were escalated, by incident, oldest first."""

    alerts: Sequence[Alert] = ()
    escalations: Mapping[str, Sequence[datetime]] = field(default_factory=dict)


def find(row: Row, span: TimeRange, alerts: AlertHistory, shifts: Sequence[Shift]) -> EventLog:
    """The events of a span of the group of a row of `group_status`."""
    cause = likely_cause.of(row)
    noted = [*_alerts(alerts, span), *likely_cause.noted(shifts, cause, span)]
    scope = Scope(row["cluster"], row["group"], tuple(row["topics"]), span.since, span.until)
    told = tuple(sorted(noted))
    # As the list asks for it where the address asks for nothing: one answer for both.
    return EventLog(scope, told, cause, ask(queries.events, scope, told, FIRST_PAGE, ()))


def show(row: Row, log: EventLog, span: TimeRange, now: datetime) -> None:
    """Draw the events of the group of a row of `group_status`: its rebalances by hour, and all events in one list."""
    scope, listing = log.scope, parameters.EVENT_LIST
    rebalance_hours.show(scope.cluster, scope.group, span, now)
    classes = address.get(parameters.EVENT_CLASS)
    is_filtered = bool(classes) or list_view.is_searched(listing)
    events = ask(queries.events, scope, log.noted, list_view.query(listing), classes)
    st.subheader("What happened", anchor=False)
    if not events and not is_filtered:
        st.caption(f"Nothing happened {span.words}: no change of status, no alert, no rebalance, no other event.")
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        list_view.search(listing, events.total, "Kind, status, topic, member or cause", "Search the events")
        counts = ask(queries.counts, scope, log.noted)
        if len(counts) > 1 or classes:
            filters.counted("Kinds of events", counts, parameters.EVENT_CLASS, _CLASSES)
    if not events:
        st.caption(f"No event matches {span.words}.")
        return
    match = list_view.match_words(listing, events, is_filtered=is_filtered)
    st.caption(f"{events.counted('event')}{match} {span.words}.")
    list_view.table(
        listing,
        events,
        lambda rows: _columns(rows, log.cause, row["as_of"], now),
        lambda query: queries.events(visibility.lake(), scope, log.noted, query, classes),
        name="events",
        label="What happened to the group and its topics, newest first",
        about=(scope.cluster, scope.group),
        visible_rows=12,
    )


def _columns(rows: list[Row], cause: LikelyCause | None, as_of: datetime, now: datetime) -> list[TableColumn]:
    is_status = [r["event_class"] == EventClass.STATUS for r in rows]
    is_cause = [bool(r["is_cause"]) or (cause is not None and cause.is_event(r)) for r in rows]
    lasted = [
        tables.elapsed_seconds(r["at"], r["until_at"] or as_of) if s else None
        for r, s in zip(rows, is_status, strict=True)
    ]
    details = tables.text("Details", [_details(r) for r in rows], width=_DETAILS_WIDTH, wraps=True)
    return [
        tables.moment("At", [r["at"] for r in rows], now),
        _what(rows, is_cause),
        replace(details, raw={**details.raw, **_raw(rows)}),
        tables.duration(
            "Lasted", lasted, at_least=[s and r["until_at"] is None for r, s in zip(rows, is_status, strict=True)]
        ).with_help("How long the status lasted; ≥ marks the present status."),
    ]


def _what(rows: list[Row], is_cause: list[bool]) -> TableColumn:
    """The kind, for a change of status what it became, and whether it is the likely cause."""
    cells = []
    for row, marked in zip(rows, is_cause, strict=True):
        kind = _appearance(row)
        became = lag_columns.labels(row["after"]) if row["event_class"] == EventClass.STATUS else []
        cells.append([kind.label, *became, *([_CAUSE.label] if marked else [])])
    kinds = {badge.label: badge for badge in map(_appearance, rows)}
    made = tables.badges("What", cells, [*kinds.values(), *appearance.STATUS_APPEARANCES.values(), _CAUSE])
    words = [_appearance(row).word for row in rows]
    raw: dict[str, Sequence[object]] = {
        "class": [row["event_class"] for row in rows],
        "kind": [row["kind"] for row in rows],
        "what": words,
        "is_likely_cause": is_cause,
    }
    return replace(made, raw=raw, help="\n".join(f"{c.label}: {c.meaning}" for c in (*_CLASSES.values(), _CAUSE)))


def _appearance(row: Row) -> Appearance:
    """How the kind of an event reads and looks."""
    its = _CLASSES[row["event_class"]]
    return its if row["kind"] is None else replace(its, word=_kind(row))


def _kind(row: Row) -> str:
    """The kind of an event of the lake in words."""
    if row["cause"] == RebalanceCause.UNFINISHED:
        return queries.UNFINISHED_WORDS
    return queries.WORDS.get(row["kind"], escaping.visible(row["kind"]).replace("_", " "))


def _details(row: Row) -> str:
    if row["event_class"] == EventClass.STATUS:
        was = appearance.of_status(row["before"]).label if row["before"] else "first seen"
        reason = appearance.reason_in_words(row["reason"])
        return f"was {was}" + (f"; {reason}" if reason else "")
    if row["text"] is not None:
        return str(row["text"]).removeprefix(alert_words.ALERT)
    return rebalance_hours.details(row)


def _raw(rows: list[Row]) -> dict[str, list[object]]:
    """What a CSV holds besides the details in words."""
    names = ("topic", "partition", "before", "after", "reason", "cause", "partitions_moved", "duration_seconds")
    members = {name: ["; ".join(r[name] or ()) or None for r in rows] for name in ("joined", "left")}
    return {**{name: [r[name] for r in rows] for name in names}, **members}


def _alerts(history: AlertHistory, span: TimeRange) -> Iterator[Noted]:
    told: list[tuple[datetime | None, str]] = []
    for alert in history.alerts:
        told += [(alert.fired_at, alert_words.began_text(alert)), (alert.resolved_at, alert_words.resolved_text(alert))]
        escalated = history.escalations.get(alert.incident_id, [])
        told += [(at, alert_words.escalated_text(alert, latest=at == escalated[-1])) for at in escalated]
    for at, text in told:
        if at is not None and span.since <= at <= span.until:
            yield Noted(at, EventClass.ALERT, text)


def _status_change(row: Row) -> str:
    before = appearance.of_status(row["before"]).word if row["before"] else "first seen"
    return f"Status: {before} → {appearance.label(row['after'], row['reason'])}"
