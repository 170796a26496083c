"""Alerts and deliveries as tables."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from lagwise.links import pages, parameters
from lagwise_alerts.operate import (
    ActionRow,
    Alert,
    AlertKind,
    AlertState,
    DeliveryRow,
    Mute,
    MuteCause,
    OperatorState,
    Silence,
    matcher_words,
)
from lagwise_dashboard import address, alert_reader, tables, visibility
from lagwise_dashboard.queries.listing import ListPage
from lagwise_dashboard.tables import TableColumn
from lagwise_dashboard.widgets import alert_words, grid, lag_columns, list_view

#: The sections of open alerts.
FIRING, ACKNOWLEDGED, SILENCED, PENDING = "Firing", "Acknowledged", "Silenced", "Pending"
COVERED = "Covered by another alert"
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
    "save_view": "saved",
    "rename_view": "renamed",
    "delete_view": "deleted",
}
_RESOLUTIONS = {
    "recovered": "recovered",
    "unknown": "it has been unknown for an hour",
    "group_gone": "the group is gone",
    "rule_changed": "its rule was changed",
    "cluster_removed": "its cluster is no longer watched",
}


@dataclass(frozen=True, slots=True)
class OpenAlert:
    """An open alert, and what operators did about it."""

    alert: Alert
    state: OperatorState


def is_covered(alert: Alert) -> bool:
    """Whether an alert would fire, but is left out because another one already reports the cause."""
    return alert.state is AlertState.PENDING and alert.inhibited_by is not None


def show_open(
    section: str, alerts: Sequence[OpenAlert], now: datetime, *, name: str | None = None, label: str | None = None
) -> None:
    """Draw the open alerts of a section, or some under a name of their own; a click opens the subject of one."""
    rows = [one.alert for one in alerts]
    people = _people(section, alerts, now)
    columns = [
        _severities(rows),
        tables.statuses("Status", [lag_columns.labels(r.status) for r in rows]),
        tables.text("About", [alert_words.about(r) for r in rows]),
        tables.duration("Status for", [tables.elapsed_seconds(r.since, now) for r in rows]).with_help(
            "How long this status has lasted; a milder one may have led to it."
        ),
        *people,
        tables.text("Why", [r.sentence for r in rows], width=_SENTENCE_WIDTH, wraps=True),
        tables.moment("As of", [None if r.clear_timer else r.last_as_of for r in rows], now).with_help(
            "The time of the data that the sentence is about. A dash: the rule no longer matches, and the sentence is "
            "that of when it last did."
        ),
        tables.text("Rule", [r.rule for r in rows]),
    ]
    grid.show(
        tables.without_empty(columns, *(column.title for column in people)),
        name=name or section.lower(),
        label=label or f"{section} alerts, most severe first",
        links=[_link(r) for r in rows],
        linked="About",
        visible_rows=10,
    )


def _people(section: str, alerts: Sequence[OpenAlert], now: datetime) -> list[TableColumn]:
    """Who was notified of the alerts of a section, or who acknowledged or muted them."""
    rows = [one.alert for one in alerts]
    if section == PENDING:
        return [tables.text("Notified", ["Not yet" for _ in rows])]
    if section == COVERED:
        about = {one.incident_id: alert_words.about(one) for one in alert_reader.open_alerts()}
        return [tables.text("Covered by", [about.get(r.inhibited_by or "", "an alert that ended") for r in rows])]
    if section == ACKNOWLEDGED:
        given = [one.state.acknowledged for one in alerts]
        return [
            tables.text("Acknowledged by", [one and one.by for one in given]),
            tables.ago("Since", [one.at if one else None for one in given], now),
            tables.text("Comment", [one and one.comment for one in given], width=_COMMENT_WIDTH),
        ]
    if section == SILENCED:
        mutes = [one.state.muted for one in alerts]
        return [
            tables.text("Muted by", [one and _mute(one) for one in mutes]),
            tables.duration("Muted for", [(one.until - now).total_seconds() if one else None for one in mutes]),
        ]
    return [
        tables.ago("Notified", [r.notified_at for r in rows], now),
        tables.text("On hold", ["On hold" if r.on_hold else None for r in rows]),
    ]


def _link(row: Alert) -> str:
    """The page of what an alert is about: its group, Lagwise itself, or of a shared incident this one."""
    if row.subject.kind is AlertKind.SHARED_INCIDENT:
        return address.href(pages.ALERTS)
    if row.subject.group is None:
        return address.href(pages.HEALTH)
    return address.href(pages.GROUP, {parameters.CLUSTER: row.subject.cluster, parameters.GROUP: row.subject.group})


def _mute(one: Mute) -> str:
    if one.cause is MuteCause.SILENCE:
        return f"silence {one.name}"
    return f"maintenance {one.name}" if visibility.sees_everything() else "maintenance"  # its name may name any group


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


def show_actions(result: ListPage[ActionRow], now: datetime) -> None:
    """Draw a page of operator actions, latest first."""

    def columns(rows: list[ActionRow]) -> list[TableColumn]:
        return [
            tables.moment("At", [r.at for r in rows], now),
            tables.text("Operator", [r.who for r in rows]),
            tables.text("Action", [_ACTIONS.get(r.action, r.action) for r in rows]),
            tables.text("Subject", [r.subject for r in rows], width=_COMMENT_WIDTH),
            tables.text("Comment", [r.comment for r in rows], width=_COMMENT_WIDTH),
            tables.text("Via", [r.via for r in rows]),
        ]

    list_view.table(
        parameters.ACTION_LIST,
        result,
        columns,
        alert_reader.actions,
        name="actions",
        label="Operator actions on alerts, latest first",
        visible_rows=12,
    )


def show_history(result: ListPage[Alert], now: datetime) -> None:
    """Draw a page of the alerts that ended, latest first."""

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

    list_view.table(
        parameters.ENDED_LIST,
        result,
        columns,
        alert_reader.history,
        name="ended-alerts",
        label="Alerts that ended, latest first",
        links=[_link(r) for r in result],
        linked="About",
        visible_rows=8,
    )


def show_deliveries(result: ListPage[DeliveryRow], now: datetime) -> None:
    """Draw a page of the messages, latest first."""

    def columns(rows: list[DeliveryRow]) -> list[TableColumn]:
        about = subjects(rows)
        return [
            tables.number("Number", [r.id for r in rows]),
            tables.moment("Decided", [r.created_at for r in rows], now),
            tables.text("Channel", [r.channel for r in rows]),
            tables.text("Event", [r.event for r in rows]),
            tables.text("About", [about.get(r.incident_id) for r in rows]),
            tables.text("State", [_DELIVERY_STATES.get(r.state, r.state) for r in rows]),
            tables.count("Attempts", [r.attempts for r in rows]),
            tables.moment("Delivered", [r.delivered_at for r in rows], now),
            tables.duration("Next attempt in", [_next_attempt(r, now) for r in rows], zero="due now"),
            tables.text("Last error", [r.last_error for r in rows], width=_COMMENT_WIDTH),
            tables.text("Key", [r.idempotency_key for r in rows]).with_help(
                "Sent with every attempt, so that a receiver can drop duplicates."
            ),
        ]

    list_view.table(
        parameters.DELIVERY_LIST,
        result,
        columns,
        alert_reader.deliveries,
        name="deliveries",
        label="Deliveries of alerts, latest first",
        visible_rows=12,
    )


def subjects(rows: Sequence[DeliveryRow]) -> dict[str, str]:
    """What messages are about, by the ids of their incidents."""
    sizes = alert_reader.summary_sizes()
    return {a.incident_id: alert_words.about(a) for a in alert_reader.alerts_of(rows)} | {
        r.incident_id: f"{sizes[r.id]:,} alerts" for r in rows if r.id in sizes
    }


def _severities(rows: list[Alert]) -> TableColumn:
    return tables.badges(
        "Severity", [[alert_words.severity_label(r.severity)] for r in rows], alert_words.SEVERITIES.values()
    )


def _next_attempt(row: DeliveryRow, now: datetime) -> float | None:
    return None if row.state != "queued" else max(0.0, (row.next_attempt_at - now).total_seconds())
