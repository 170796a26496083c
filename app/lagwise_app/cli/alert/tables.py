"""Alerts, silences and deliveries as tables for the terminal. Names from outside are escaped."""

from collections.abc import Sequence
from datetime import datetime

from rich.table import Table
from rich.text import Text

from lagwise.domain.humanise import duration
from lagwise_alerts.model import Alert, AlertState
from lagwise_alerts.notify.mute_state import Silence
from lagwise_alerts.operate.actions import matcher_words
from lagwise_alerts.operate.queries import OperatorState
from lagwise_alerts.outbox.store import DeliveryRow
from lagwise_app.terminal.safe_text import plain


def alert_table(alerts: Sequence[tuple[Alert, OperatorState]], now: datetime) -> Table:
    """Open alerts, one per row, with who has acknowledged them or what mutes them."""
    table = _table("state", "severity", "about", "since", "why", "incident")
    for alert, operator_state in alerts:
        table.add_row(
            _state(alert, operator_state, now),
            alert.severity.value,
            plain(str(alert.subject)),
            f"{_span(alert.since, now)} ago",
            plain(alert.sentence),
            plain(alert.incident_id),
        )
    return table


def silence_table(silences: Sequence[Silence], now: datetime) -> Table:
    table = _table("silence", "alerts", "ends", "by", "reason")
    for one in silences:
        begins = "" if one.starts_at <= now else f", begins in {_span(now, one.starts_at)}"
        table.add_row(
            str(one.id),
            plain(matcher_words(one.matcher)),
            f"in {_span(now, one.ends_at)}{begins}",
            plain(one.created_by),
            plain(one.comment),
        )
    return table


def delivery_table(rows: Sequence[DeliveryRow], now: datetime) -> Table:
    table = _table("number", "decided", "channel", "event", "state", "attempts", "last error", "incident")
    for row in rows:
        table.add_row(
            str(row.id),
            f"{_span(row.created_at, now)} ago",
            plain(row.channel),
            plain(row.event),
            Text(row.state, style="bold red" if row.state == "dead" else ""),
            str(row.attempts),
            plain(row.last_error or ""),
            plain(row.incident_id),
        )
    return table


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold", no_wrap=column in ("number", "silence", "severity", "attempts"))
    return table


def _state(alert: Alert, operator_state: OperatorState, now: datetime) -> Text:
    """The state, with who has acknowledged the alert or what mutes it."""
    if alert.state is AlertState.PENDING:
        return Text("pending" if alert.inhibited_by is None else "covered by another alert", style="dim")
    if operator_state.acknowledged is not None:
        return Text("acknowledged by ").append_text(plain(operator_state.acknowledged.by))
    if operator_state.muted is not None:
        muted = operator_state.muted
        return Text(f"{muted.cause.value} ").append_text(plain(muted.name)).append(f" for {_span(now, muted.until)}")
    firing = Text("firing", style="bold red")
    return firing if alert.shared_incident is None else firing.append(", in a shared incident", style="dim")


def _span(first: datetime, last: datetime) -> str:
    return duration(max(0.0, (last - first).total_seconds()))
