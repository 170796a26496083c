"""Alerts and deliveries as tables."""

from collections.abc import Callable, Sequence
from datetime import datetime

from lagwise.links import pages, parameters
from lagwise_alerts.operate import (
    Acknowledgement,
    ActionRow,
    Alert,
    DeliveryRow,
    Mute,
    MuteCause,
    Silence,
    matcher_words,
)
from lagwise_dashboard import address, tables
from lagwise_dashboard.queries.listing import ListPage
from lagwise_dashboard.tables import TableColumn
from lagwise_dashboard.widgets import alert_words, grid, lag_columns

#: Pixels: the sentence is what a paged person has come for.
_SENTENCE_WIDTH = 460
_COMMENT_WIDTH = 300
_DELIVERY_STATES = {
    "queued": "… queued",
    "delivered": "✓ delivered",
    "dead": "✕ undelivered",
    "summarised": "≡ in a summary",
}
_ACTIONS = {
    "silence": "silenced",
    "unsilence": "ended",
    "acknowledge": "acknowledged",
    "take_back": "unacknowledged",
    "resend": "sent again",
    "test": "tested",
}
_RESOLUTIONS = {
    "recovered": "recovered",
    "unknown": "it has been unknown for an hour",
    "group_gone": "the group is gone",
    "rule_changed": "its rule was changed",
    "cluster_removed": "its cluster is no longer watched",
}


def show_open(rows: list[Alert], now: datetime, *, name: str, label: str, people: Sequence[TableColumn]) -> None:
    """Draw open alerts; a click opens the subject of one. ``people`` say who was notified or acknowledged."""
    columns = [
        _severities(rows),
        tables.statuses("Status", [lag_columns.labels(r.status) for r in rows]),
        tables.text("About", [alert_words.about(r) for r in rows]),
        tables.duration("Status for", [tables.elapsed_seconds(r.since, now) for r in rows]).with_help(
            "How long this status has lasted; a milder one may have led to it."
        ),
        *people,
        tables.text("Why", [r.sentence for r in rows], width=_SENTENCE_WIDTH, wraps=True),
        tables.text("Rule", [r.rule for r in rows]),
    ]
    grid.show(
        tables.without_empty(columns, *(column.title for column in people)),
        name=name,
        label=label,
        links=[link(r) for r in rows],
        linked="About",
        visible_rows=10,
    )


def link(row: Alert) -> str:
    """The page of what an alert is about: its group, or Lagwise itself."""
    if row.subject.group is None:
        return address.href(pages.HEALTH)
    return address.href(pages.GROUP, {parameters.CLUSTER: row.subject.cluster, parameters.GROUP: row.subject.group})


def notified_columns(rows: list[Alert], now: datetime) -> list[TableColumn]:
    """When people were notified of firing alerts first, and which are on hold."""
    return [
        tables.ago("Notified", [r.fired_at for r in rows], now),
        tables.text("On hold", ["on hold" if r.on_hold else None for r in rows]),
    ]


def pending_column(rows: list[Alert]) -> TableColumn:
    """Why nobody was notified of alerts yet."""
    return tables.text("Notified", ["Covered by another alert" if r.inhibited_by else "not yet" for r in rows])


def acknowledged_columns(given: Sequence[Acknowledgement | None], now: datetime) -> list[TableColumn]:
    """Who acknowledged alerts, when and with which comment."""
    return [
        tables.text("Acknowledged by", [one and one.by for one in given]),
        tables.ago("Since", [None if one is None else one.at for one in given], now),
        tables.text("Comment", [one and one.comment for one in given], width=_COMMENT_WIDTH),
    ]


def muted_columns(mutes: Sequence[Mute | None], now: datetime) -> list[TableColumn]:
    """What mutes alerts, and for how long."""
    return [
        tables.text("Muted by", [one and _mute(one) for one in mutes]),
        tables.duration("Muted for", [None if one is None else (one.until - now).total_seconds() for one in mutes]),
    ]


def _mute(one: Mute) -> str:
    return f"silence {one.name}" if one.cause is MuteCause.SILENCE else f"maintenance {one.name}"


def show_silences(silences: list[Silence], now: datetime) -> None:
    """Draw silences, next to end first."""
    columns = [
        tables.number("Silence", [one.id for one in silences]),
        tables.text("Matches", [matcher_words(one.matcher) for one in silences]),
        tables.duration("Ends in", [(one.ends_at - now).total_seconds() for one in silences]),
        tables.text("Created by", [one.created_by for one in silences]),
        tables.text("Reason", [one.comment for one in silences], width=_COMMENT_WIDTH),
    ]
    grid.show(columns, name="silences", label="Silences, next to end first", visible_rows=8)


def show_actions(result: ListPage[ActionRow], now: datetime, all_rows: Callable[[], list[ActionRow]]) -> None:
    """Draw operator actions, latest first, a page of the ``all_rows``."""

    def columns(rows: list[ActionRow]) -> list[TableColumn]:
        return [
            tables.moment("At", [r.at for r in rows], now),
            tables.text("Operator", [r.who for r in rows]),
            tables.text("Action", [_ACTIONS.get(r.action, r.action) for r in rows]),
            tables.text("Subject", [r.subject for r in rows], width=_COMMENT_WIDTH),
            tables.text("Comment", [r.comment for r in rows], width=_COMMENT_WIDTH),
            tables.text("Via", [r.via for r in rows]),
        ]

    grid.show(
        columns(result.rows),
        name="actions",
        label="Operator actions on alerts, latest first",
        visible_rows=12,
        sorts=result.pages == 1,
        all_rows=lambda: columns(all_rows()),
    )


def show_history(result: ListPage[Alert], now: datetime, all_rows: Callable[[], list[Alert]]) -> None:
    """Draw alerts that ended, a page of the ``all_rows``."""

    def columns(rows: list[Alert]) -> list[TableColumn]:
        return [
            tables.moment("Ended", [r.resolved_at for r in rows], now),
            _severities(rows),
            tables.statuses("Status", [lag_columns.labels(r.status) for r in rows]),
            tables.text("About", [alert_words.about(r) for r in rows]),
            tables.duration(
                "Lasted",
                [None if r.resolved_at is None else tables.elapsed_seconds(r.since, r.resolved_at) for r in rows],
            ),
            tables.text("Ended because", [_RESOLUTIONS.get(r.resolution or "", r.resolution) for r in rows]),
            tables.text("Why it fired", [r.sentence for r in rows], width=_SENTENCE_WIDTH, wraps=True),
        ]

    grid.show(
        columns(result.rows),
        name="ended-alerts",
        label="Alerts that ended, latest first",
        links=[link(r) for r in result],
        linked="About",
        visible_rows=8,
        sorts=result.pages == 1,
        all_rows=lambda: columns(all_rows()),
    )


def show_deliveries(
    result: ListPage[DeliveryRow],
    subjects_of: Callable[[list[DeliveryRow]], dict[str, str]],
    now: datetime,
    *,
    all_rows: Callable[[], list[DeliveryRow]],
) -> None:
    """Draw messages, a page of the ``all_rows``; ``subjects_of`` says what incidents are about, by their ids."""

    def columns(rows: list[DeliveryRow]) -> list[TableColumn]:
        subjects = subjects_of(rows)
        return [
            tables.number("Number", [r.id for r in rows]),
            tables.moment("Decided", [r.created_at for r in rows], now),
            tables.text("Channel", [r.channel for r in rows]),
            tables.text("Event", [r.event for r in rows]),
            tables.text("About", [subjects.get(r.incident_id) for r in rows]),
            tables.text("State", [_DELIVERY_STATES.get(r.state, r.state) for r in rows]),
            tables.count("Attempts", [r.attempts for r in rows]),
            tables.moment("Delivered", [r.delivered_at for r in rows], now),
            tables.duration("Next attempt in", [_next_attempt(r, now) for r in rows], zero="due now"),
            tables.text("Last error", [r.last_error for r in rows], width=_COMMENT_WIDTH),
            tables.text("Key", [r.idempotency_key for r in rows]).with_help(
                "Sent with every attempt, so that a receiver can drop duplicates."
            ),
        ]

    grid.show(
        columns(result.rows),
        name="deliveries",
        label="Deliveries of alerts, latest first",
        visible_rows=12,
        sorts=result.pages == 1,
        all_rows=lambda: columns(all_rows()),
    )


def _severities(rows: list[Alert]) -> TableColumn:
    return tables.badges(
        "Severity", [[alert_words.severity_label(r.severity)] for r in rows], alert_words.SEVERITIES.values()
    )


def _next_attempt(row: DeliveryRow, now: datetime) -> float | None:
    return None if row.state != "queued" else max(0.0, (row.next_attempt_at - now).total_seconds())
