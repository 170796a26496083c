"""Stage 6, queue: alerts and the outbox in the operational database. A decision is stored whole, or not at all.

Killed at any instant, a process leaves either the alerts as they were, and the next process decides again, or the
alerts with every message they caused. The key of a message is unique per channel, so no message is queued twice.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Engine, Row, bindparam, delete, insert, select, update

from lagwise.config.operating import MaintenanceWindow
from lagwise.operational.lease import Lease
from lagwise_alerts.model import Alert, AlertState, AlertSubject, Decision, Notification
from lagwise_alerts.notify.mute import MuteResult
from lagwise_alerts.notify.mute_state import MuteState
from lagwise_alerts.outbox.database import ACTIVE_GROUPS, ALERTS, DELIVERIES, columns_of, lock, transaction
from lagwise_alerts.outbox.operator_store import load_mute_state, prune_operator_data, store_withheld

QUEUED = "queued"
DELIVERED = "delivered"
DEAD = "dead"
#: The message is part of a summary, which is a message of its own and is queued, delivered or dead.
SUMMARISED = "summarised"

_OPEN = (AlertState.PENDING, AlertState.FIRING)


@dataclass(frozen=True, slots=True)
class DeliveryRow:
    """One message to one channel."""

    #: Its number: messages of a channel are sent in this order.
    id: int
    #: The same at every attempt, so that the receiver recognises a message that was sent twice.
    idempotency_key: str
    channel: str
    #: The incident that it reports; of a summary, a name of its own.
    incident_id: str
    #: An :class:`lagwise_alerts.model.AlertEvent`, or that of a summary.
    event: str
    #: ``queued``, ``delivered``, ``dead`` (given up) or ``summarised`` (part of a summary).
    state: str
    #: How often it was tried.
    attempts: int
    #: The earliest time of the next attempt; of a dead message, when it was given up.
    next_attempt_at: datetime
    #: What went wrong at the latest attempt; None where nothing did.
    last_error: str | None
    #: When it was queued.
    created_at: datetime
    #: When the receiver accepted it; None where it has not.
    delivered_at: datetime | None


#: The columns of a :class:`DeliveryRow`: all but the document.
DELIVERY_COLUMNS = [DELIVERIES.c[one.name] for one in fields(DeliveryRow)]


def decide_and_queue(
    engine: Engine,
    run_stages: Callable[[Mapping[str, Alert], Mapping[str, Alert], MuteState], MuteResult],
    render: Callable[[Notification], str],
    *,
    active: Iterable[AlertSubject] = (),
    windows: Sequence[MaintenanceWindow] = (),
    now: datetime,
    remember: timedelta = timedelta(0),
    lease: Lease | None = None,
) -> Decision:
    """Read the alerts, decide, store the alerts and queue the messages, in one transaction. Returns the decision.

    ``run_stages`` decides from the open alerts, those that ended within ``remember``, and what mutes alerts. ``render``
    makes the message of a notification. ``active`` are groups newly seen active, ``windows`` the maintenance windows.
    Raises DatabaseError, having stored nothing; also where another process holds ``lease`` by now.
    """
    with transaction(engine) as connection:
        if lease is not None:
            lease.check(connection)
        lock(connection)
        alerts = load_open(connection)
        mute_state = load_mute_state(connection, windows, now)
        result = run_stages(alerts, load_ended(connection, now - remember), mute_state)
        store_withheld(connection, mute_state, result)
        _store_alerts(connection, alerts, result.decision)
        _insert_deliveries(connection, result.decision.notifications, render, now)
        _store_active(connection, active, now)
    return result.decision


def load_open(connection: Connection) -> dict[str, Alert]:
    """The pending and firing alerts by fingerprint."""
    rows = connection.execute(select(ALERTS).where(ALERTS.c.state.in_(_OPEN)))
    return {alert.fingerprint: alert for alert in map(alert_of, rows)}


def load_ended(connection: Connection, since: datetime) -> dict[str, Alert]:
    """The latest alert of each subject that ended since then, by fingerprint."""
    ended = (ALERTS.c.state == AlertState.RESOLVED, ALERTS.c.resolved_at >= since)
    rows = connection.execute(select(ALERTS).where(*ended).order_by(ALERTS.c.resolved_at))
    return {alert.fingerprint: alert for alert in map(alert_of, rows)}


def prune(engine: Engine, before: datetime) -> None:
    """Delete ended alerts, delivered and dead messages, and the actions of operators from before a time."""
    done = DELIVERIES.c.state.in_((DELIVERED, DEAD, SUMMARISED))
    with transaction(engine) as connection:
        connection.execute(delete(DELIVERIES).where(done, DELIVERIES.c.created_at < before))
        kept = select(DELIVERIES.c.incident_id)
        connection.execute(
            delete(ALERTS).where(
                ALERTS.c.state == AlertState.RESOLVED,
                ALERTS.c.resolved_at < before,
                ALERTS.c.incident_id.not_in(kept),
            )
        )
        prune_operator_data(connection, before)


def _store_alerts(connection: Connection, before: Mapping[str, Alert], decision: Decision) -> None:
    if decision.cancelled:
        # Deleted, not resolved: no notification of them was ever sent.
        gone = [{"key": incident_id} for incident_id in decision.cancelled]
        connection.execute(delete(ALERTS).where(ALERTS.c.incident_id == bindparam("key")), gone)
    known = {alert.incident_id for alert in before.values()}
    changed = [alert_columns(alert) for alert in decision.changed if alert.incident_id in known]
    new = [alert_columns(alert) for alert in decision.changed if alert.incident_id not in known]
    if changed:
        keyed = [{"key": row.pop("incident_id"), **row} for row in changed]
        connection.execute(update(ALERTS).where(ALERTS.c.incident_id == bindparam("key")), keyed)
    if new:
        connection.execute(insert(ALERTS), new)


def _insert_deliveries(
    connection: Connection, notifications: Iterable[Notification], render: Callable[[Notification], str], now: datetime
) -> None:
    rows = []
    for notification in notifications:
        payload = render(notification) if notification.channels else ""
        rows += [
            {
                "idempotency_key": notification.idempotency_key,
                "channel": channel,
                "incident_id": notification.alert.incident_id,
                "event": notification.event.value,
                "payload": payload,
                "state": QUEUED,
                "attempts": 0,
                "next_attempt_at": now,
                "created_at": now,
            }
            for channel in notification.channels
        ]
    if rows:
        connection.execute(insert(DELIVERIES), rows)


def _store_active(connection: Connection, active: Iterable[AlertSubject], now: datetime) -> None:
    rows = {s.fingerprint: {"cluster": s.cluster, "group": s.group, "seen_at": now} for s in active}
    if not rows:
        return
    known = set(connection.scalars(select(ACTIVE_GROUPS.c.fingerprint)))
    new = [{"fingerprint": key, **row} for key, row in rows.items() if key not in known]
    if new:
        connection.execute(insert(ACTIVE_GROUPS), new)


def alert_columns(alert: Alert) -> dict[str, Any]:
    """Values by the names of their columns: the alert's fields, of which the subject has four."""
    values = columns_of(alert)
    return values | columns_of(values.pop("subject"))


def alert_of(row: Row[Any]) -> Alert:
    """The alert of a row."""
    values = dict(row._mapping)
    subject = AlertSubject(**{name: values.pop(name) for name in ("kind", "cluster", "group", "things")})
    return Alert(subject=subject, **values)
