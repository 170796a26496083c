"""Alerts and deliveries as tables."""

from datetime import datetime
from typing import Any

import streamlit as st

from lagwise.alerts.model import Kind, Severity
from lagwise.alerts.muting import Acknowledgement, Mute, MuteCause, Silence
from lagwise.alerts.operate import matcher_words
from lagwise.alerts.queries import ActionRow, AlertRow, DeliveryRow
from lagwise.domain import humanise
from lagwise_dashboard import literal, words
from lagwise_dashboard.components import tables

_SEVERITIES: dict[Severity, tuple[str, str]] = {
    Severity.PAGE: ("◆ page", "#BE123C"),
    Severity.WARN: ("▲ warn", "#B45309"),
    Severity.INFO: ("● info", "#2563EB"),
}
#: Room for two lines: the sentence is what a paged person has come for.
_SENTENCE_HEIGHT = 66
_DELIVERY_STATES = {
    "queued": "… queued",
    "delivered": "✓ delivered",
    "dead": "✕ given up",
    "summarised": "≡ in a summary",
}
_ACTIONS = {
    "silence": "silenced",
    "unsilence": "ended",
    "acknowledge": "acknowledged",
    "take_back": "gave back",
    "resend": "sent again",
    "test": "tried",
}
_RESOLUTIONS = {
    "recovered": "recovered",
    "unknown": "it has been unknown for an hour",
    "group_gone": "the group is gone",
    "rule_changed": "its rule was changed",
    "cluster_removed": "its cluster is no longer watched",
}


def show_open(rows: list[AlertRow], now: datetime, *, key: str, people: tuple[str, list[str]]) -> AlertRow | None:
    """Draw open alerts; the one that was clicked, if one was. ``people`` is how they stand with people: the column's
    title, and its texts."""
    title, standing = people
    event: Any = st.dataframe(
        tables.table(
            {
                "Severity": [[_severity(r)] for r in rows],
                "Status": [tables.badges([r.status]) for r in rows],
                "About": [about(r) for r in rows],
                "Status for": [humanise.since(r.since, now) for r in rows],
                title: standing,
                "Why": [literal.shown(r.sentence) for r in rows],
                "Rule": [literal.shown(r.rule) for r in rows],
            }
        ),
        key=key,
        hide_index=True,
        height=tables.height(min(len(rows), 10), row_height=_SENTENCE_HEIGHT),
        row_height=_SENTENCE_HEIGHT,
        placeholder=tables.PLACEHOLDER,
        on_select="rerun",
        selection_mode="single-cell",
        alt=f"Alerts ({title.lower()}), the loudest first; select a cell to open the group",
        column_config={
            "Severity": _severity_column(),
            "Status": tables.status_column(),
            "Status for": tables.right_column(help="How long this status has lasted; a milder one may have led to it."),
            "Why": st.column_config.TextColumn(width=545),
        },
    )
    cells = event.selection.cells
    return rows[cells[0][0]] if cells and cells[0][0] < len(rows) else None


def told(row: AlertRow, now: datetime) -> str:
    """When people were told of a firing alert first, or that they were not yet."""
    hold = ", on hold" if row.on_hold else ""
    return f"{humanise.since(row.fired_at, now)} ago{hold}"


def taken(given: Acknowledgement, now: datetime) -> str:
    """Who has an alert."""
    comment = f": {literal.shown(given.comment)}" if given.comment else ""
    return f"{literal.shown(given.by)}, {humanise.since(given.at, now)} ago{comment}"


def muted(mute: Mute, now: datetime) -> str:
    """What mutes an alert, and for how long."""
    left = humanise.duration((mute.until - now).total_seconds())
    name = f"silence {mute.name}" if mute.cause is MuteCause.SILENCE else f"maintenance {literal.shown(mute.name)}"
    return f"{name}, for {left}"


def show_silences(silences: list[Silence], now: datetime) -> None:
    """Draw silences, the next to end first."""
    st.dataframe(
        tables.table(
            {
                "Silence": [one.id for one in silences],
                "Of": [literal.shown(matcher_words(one.matcher)) for one in silences],
                "Ends": [f"in {humanise.duration((one.ends_at - now).total_seconds())}" for one in silences],
                "By": [literal.shown(one.created_by) for one in silences],
                "Because": [literal.shown(one.comment) for one in silences],
            }
        ),
        key="alerts_silences",
        hide_index=True,
        height=tables.height(min(len(silences), 8)),
        row_height=tables.ROW_HEIGHT,
        placeholder=tables.PLACEHOLDER,
        alt="Silences, the next to end first",
        column_config={"Because": st.column_config.TextColumn(width="large")},
    )


def show_actions(rows: list[ActionRow], now: datetime) -> None:
    """Draw what people did, the latest first."""
    st.dataframe(
        tables.table(
            {
                "When": [humanise.clock(r.at, now) for r in rows],
                "Who": [literal.shown(r.who) for r in rows],
                "Did": [_ACTIONS.get(r.action, literal.shown(r.action)) for r in rows],
                "What": [literal.shown(r.subject) for r in rows],
                "Comment": [literal.shown(r.comment) or None for r in rows],
                "Where": [literal.shown(r.via) for r in rows],
            }
        ),
        key="alerts_actions",
        hide_index=True,
        height=tables.height(min(len(rows), 12)),
        row_height=tables.ROW_HEIGHT,
        placeholder=tables.PLACEHOLDER,
        alt="What people did about alerts, the latest first",
        column_config={"What": st.column_config.TextColumn(width="large")},
    )


def show_history(rows: list[AlertRow], now: datetime) -> None:
    """Draw alerts that ended."""
    st.dataframe(
        tables.table(
            {
                "Ended": [humanise.clock(r.resolved_at, now) for r in rows],
                "Severity": [[_severity(r)] for r in rows],
                "Status": [tables.badges([r.status]) for r in rows],
                "About": [about(r) for r in rows],
                "Lasted": [_lasted(r) for r in rows],
                "Because": [_RESOLUTIONS.get(r.resolution or "", literal.shown(r.resolution)) or None for r in rows],
                "Why it fired": [literal.shown(r.sentence) for r in rows],
            }
        ),
        key="alerts_history",
        hide_index=True,
        height=tables.height(min(len(rows), 12)),
        row_height=tables.ROW_HEIGHT,
        placeholder=tables.PLACEHOLDER,
        alt="Alerts that ended, the latest first",
        column_config={
            "Severity": _severity_column(),
            "Status": tables.status_column(),
            "Lasted": tables.right_column(),
            "Why it fired": st.column_config.TextColumn(width="large"),
        },
    )


def show_deliveries(rows: list[DeliveryRow], subjects: dict[str, str], now: datetime) -> None:
    """Draw messages; ``subjects`` says what an incident is about, by its id."""
    st.dataframe(
        tables.table(
            {
                "Number": [r.id for r in rows],
                "Decided": [humanise.clock(r.created_at, now) for r in rows],
                "Channel": [literal.shown(r.channel) for r in rows],
                "Tells": [literal.shown(r.event) for r in rows],
                "About": [subjects.get(r.incident_id) for r in rows],
                "State": [_DELIVERY_STATES.get(r.state, literal.shown(r.state)) for r in rows],
                "Attempts": [r.attempts for r in rows],
                "Delivered": [humanise.clock(r.delivered_at, now) for r in rows],
                "Next attempt": [_next_attempt(r, now) for r in rows],
                "Last error": [literal.shown(r.last_error) or None for r in rows],
                "Key": [literal.shown(r.idempotency_key) for r in rows],
            }
        ),
        key="alerts_deliveries",
        hide_index=True,
        height=tables.height(min(len(rows), 12)),
        row_height=tables.ROW_HEIGHT,
        placeholder=tables.PLACEHOLDER,
        alt="Deliveries of alerts, the latest first",
        column_config={
            "Last error": st.column_config.TextColumn(width=230),
            "Key": st.column_config.TextColumn(
                width="medium", help="Sent with every attempt, so that a receiver can drop duplicates."
            ),
        },
    )


def about(row: AlertRow) -> str:
    """What an alert is about, in plain text."""
    if row.kind is Kind.ANALYSIS:
        return "the analysis"
    if row.kind is Kind.COLLECTION:
        return f"collection from {literal.shown(row.cluster)}"
    finding = "" if row.kind is Kind.GROUP else f"{_finding_words(row)}: "
    return f"{finding}{literal.shown(row.group)} ({literal.shown(row.cluster)})"


def _finding_words(row: AlertRow) -> str:
    return row.kind.value.replace("_", " ")


def severity_words(severity: Severity) -> str:
    """Sign and word of a severity."""
    return _SEVERITIES[severity][0]


def _severity(row: AlertRow) -> str:
    return severity_words(row.severity)


def _severity_column() -> Any:
    return st.column_config.MultiselectColumn(
        options=[word for word, _ in _SEVERITIES.values()], color=[colour for _, colour in _SEVERITIES.values()]
    )


def _next_attempt(row: DeliveryRow, now: datetime) -> str | None:
    if row.state != "queued":
        return None
    return (
        "due now"
        if row.next_attempt_at <= now
        else f"in {humanise.duration((row.next_attempt_at - now).total_seconds())}"
    )


def _lasted(row: AlertRow) -> str:
    if row.resolved_at is None:
        return humanise.DASH
    return humanise.duration(round((row.resolved_at - row.since).total_seconds()))


def mark_text(row: AlertRow, *, resolved: bool) -> str:
    """An alert as a mark in a chart."""
    is_finding = row.group is not None and row.kind is not Kind.GROUP
    word = _finding_words(row) if is_finding else words.look(row.status).word
    return f"Alert resolved ({word})" if resolved else f"Alert {severity_words(row.severity)}: {word}"
