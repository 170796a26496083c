"""Alerts and the outbox in the operational database. A decision is one transaction: all of it is kept, or none.

Killed at any instant, a process leaves either the alerts as they were (and the next one decides again) or the alerts
with every message they caused. A message that is in the outbox is there once: its key is unique per channel.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Engine, Row, bindparam, delete, func, insert, select, update

from lagwise.config import MaintenanceWindow
from lagwise.domain.group_record import numbers_of
from lagwise.operational.lease import Lease
from lagwise_alerts.model import (
    Alert,
    AlertKind,
    AlertSubject,
    Clock,
    Decision,
    Notification,
    Phase,
    Resolution,
    Severity,
)
from lagwise_alerts.outbox.database import ACTIVE_GROUPS, ALERTS, DELIVERIES, lock, transaction
from lagwise_alerts.outbox.operator_store import forget, obey

QUEUED = "queued"
DELIVERED = "delivered"
DEAD = "dead"
#: In a summary, which is a message of its own: that one is queued, delivered or dead.
SUMMARISED = "summarised"

_OPEN = (Phase.PENDING.value, Phase.FIRING.value)


@dataclass(frozen=True, slots=True)
class DeliveryRow:
    """One message to one channel. ``state`` is queued, delivered, dead (given up), or summarised: then a summary, a
    message of its own with the event ``summary``, brings it."""

    id: int
    idempotency_key: str
    channel: str
    incident_id: str
    event: str
    state: str
    attempts: int
    next_attempt_at: datetime
    last_error: str | None
    created_at: datetime
    delivered_at: datetime | None


def apply(
    engine: Engine,
    decide: Callable[[Mapping[str, Alert], Mapping[str, Alert]], Decision],
    render: Callable[[Notification], str],
    *,
    active: Iterable[AlertSubject] = (),
    windows: Sequence[MaintenanceWindow] = (),
    now: datetime,
    remember: timedelta = timedelta(0),
    lease: Lease | None = None,
) -> Decision:
    """Decide on the alerts as they stand and keep what was decided, in one transaction; returns what is told of it.

    ``decide`` is given the open alerts, and those that ended within ``remember``. ``render`` makes the message of a
    notification; ``active`` are groups newly seen alive; ``windows`` are those of maintenance in the settings. Raises
    DatabaseError, having kept nothing; so it does where ``lease`` is another process's by now.
    """
    with transaction(engine) as connection:
        if lease is not None:
            lease.check(connection)
        lock(connection)
        alerts = load_open(connection)
        decision = decide(alerts, load_ended(connection, now - remember))
        decision = obey(connection, alerts, decision, windows, now)
        _keep_alerts(connection, alerts, decision)
        _queue(connection, decision.notifications, render, now)
        _keep_active(connection, active, now)
    return decision


def load_open(connection: Connection) -> dict[str, Alert]:
    """The pending and firing alerts by fingerprint."""
    rows = connection.execute(select(ALERTS).where(ALERTS.c.state.in_(_OPEN)))
    return {alert.fingerprint: alert for alert in map(_alert, rows)}


def load_ended(connection: Connection, since: datetime) -> dict[str, Alert]:
    """The latest alert of each subject that ended since then, by fingerprint."""
    ended = (ALERTS.c.state == Phase.RESOLVED.value, ALERTS.c.resolved_at >= since)
    rows = connection.execute(select(ALERTS).where(*ended).order_by(ALERTS.c.resolved_at))
    return {alert.fingerprint: alert for alert in map(_alert, rows)}


def load_active(engine: Engine) -> set[str]:
    """The fingerprints of the groups that were ever seen alive."""
    with transaction(engine, read_only=True) as connection:
        return set(connection.scalars(select(ACTIVE_GROUPS.c.fingerprint)))


def waiting_channels(engine: Engine) -> dict[str, datetime]:
    """The channels that messages wait for, and since when the oldest does."""
    oldest = select(DELIVERIES.c.channel, func.min(DELIVERIES.c.created_at)).where(DELIVERIES.c.state == QUEUED)
    with transaction(engine, read_only=True) as connection:
        return {row[0]: row[1] for row in connection.execute(oldest.group_by(DELIVERIES.c.channel))}


def prune(engine: Engine, before: datetime) -> None:
    """Forget alerts that ended, messages that were delivered or given up, and what operators did, before a time."""
    done = DELIVERIES.c.state.in_((DELIVERED, DEAD, SUMMARISED))
    with transaction(engine) as connection:
        connection.execute(delete(DELIVERIES).where(done, DELIVERIES.c.created_at < before))
        kept = select(DELIVERIES.c.incident_id)
        connection.execute(
            delete(ALERTS).where(
                ALERTS.c.state == Phase.RESOLVED.value,
                ALERTS.c.resolved_at < before,
                ALERTS.c.incident_id.not_in(kept),
            )
        )
        forget(connection, before)


def _keep_alerts(connection: Connection, before: Mapping[str, Alert], decision: Decision) -> None:
    if decision.cancelled:
        # Gone, not resolved: nobody was ever told of them.
        gone = [{"key": incident_id} for incident_id in decision.cancelled]
        connection.execute(delete(ALERTS).where(ALERTS.c.incident_id == bindparam("key")), gone)
    known = {alert.incident_id for alert in before.values()}
    changed = [_columns(alert) for alert in decision.changed if alert.incident_id in known]
    new = [_columns(alert) for alert in decision.changed if alert.incident_id not in known]
    if changed:
        keyed = [{"key": row.pop("incident_id"), **row} for row in changed]
        connection.execute(update(ALERTS).where(ALERTS.c.incident_id == bindparam("key")), keyed)
    if new:
        connection.execute(insert(ALERTS), new)


def _queue(
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


def _keep_active(connection: Connection, active: Iterable[AlertSubject], now: datetime) -> None:
    rows = {s.fingerprint: {"cluster": s.cluster, "group": s.group, "seen_at": now} for s in active}
    if not rows:
        return
    known = set(connection.scalars(select(ACTIVE_GROUPS.c.fingerprint)))
    new = [{"fingerprint": key, **row} for key, row in rows.items() if key not in known]
    if new:
        connection.execute(insert(ACTIVE_GROUPS), new)


def _columns(alert: Alert) -> dict[str, Any]:
    return {
        "incident_id": alert.incident_id,
        "fingerprint": alert.fingerprint,
        "kind": alert.subject.kind.value,
        "cluster": alert.subject.cluster,
        "group": alert.subject.group,
        "rule": alert.rule,
        "severity": alert.severity.value,
        "status": alert.status,
        "reason": alert.reason,
        "state": alert.phase.value,
        "since": alert.since,
        "started_at": alert.started_at,
        "fired_at": alert.fired_at,
        "resolved_at": alert.resolved_at,
        "resolution": alert.resolution.value if alert.resolution else None,
        "sentence": alert.sentence,
        "numbers": asdict(alert.numbers),
        "on_hold": alert.on_hold,
        "last_as_of": alert.last_as_of,
        "clocks": [asdict(clock) for clock in alert.clocks],
        "calm": asdict(alert.calm) if alert.calm else None,
        "told": list(alert.told),
        "peak_severity": alert.peak_severity.value if alert.peak_severity else None,
        "channels": list(alert.channels),
        "sequence": alert.sequence,
        "labels": dict(alert.labels),
        "told_at": alert.told_at,
        "begun_at": [at.isoformat() for at in alert.begun_at],
        "flapping": alert.flapping,
        "inhibited_by": alert.inhibited_by,
    }


def _alert(row: Row[Any]) -> Alert:
    return Alert(
        fingerprint=row.fingerprint,
        incident_id=row.incident_id,
        subject=AlertSubject(AlertKind(row.kind), row.cluster, row._mapping["group"]),
        phase=Phase(row.state),
        rule=row.rule,
        severity=Severity(row.severity),
        status=row.status,
        reason=row.reason,
        since=row.since,
        started_at=row.started_at,
        last_as_of=row.last_as_of,
        sentence=row.sentence,
        numbers=numbers_of(row.numbers),
        clocks=tuple(Clock(**clock) for clock in row.clocks),
        calm=Clock(**row.calm) if row.calm else None,
        on_hold=row.on_hold,
        fired_at=row.fired_at,
        resolved_at=row.resolved_at,
        resolution=Resolution(row.resolution) if row.resolution else None,
        told=tuple(row.told),
        peak_severity=Severity(row.peak_severity) if row.peak_severity else None,
        channels=tuple(row.channels),
        sequence=row.sequence,
        labels=row.labels or {},
        told_at=row.told_at,
        begun_at=tuple(datetime.fromisoformat(at) for at in row.begun_at or ()),
        flapping=bool(row.flapping),
        inhibited_by=row.inhibited_by,
    )
