"""Stage 5, queue: alerts and the outbox in the operational database. A decision is stored whole, or not at all.

Killed at any instant, a process leaves either the alerts as they were, and the next process decides again, or the
alerts with every message they caused. The key of a message is unique per channel, so no message is queued twice.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Engine, Row, bindparam, delete, func, insert, select, update

from lagwise.config.operating import MaintenanceWindow
from lagwise.domain.group_record import numbers_of
from lagwise.operational.lease import Lease
from lagwise_alerts.model import (
    Alert,
    AlertKind,
    AlertState,
    AlertSubject,
    Decision,
    Notification,
    Resolution,
    RuleTimer,
    Severity,
)
from lagwise_alerts.notify.mute import MuteResult
from lagwise_alerts.notify.mute_state import MuteState
from lagwise_alerts.outbox.database import ACTIVE_GROUPS, ALERTS, DELIVERIES, lock, transaction
from lagwise_alerts.outbox.operator_store import load_mute_state, prune_operator_data, store_withheld

QUEUED = "queued"
DELIVERED = "delivered"
DEAD = "dead"
#: The message is part of a summary, which is a message of its own and is queued, delivered or dead.
SUMMARISED = "summarised"

_OPEN = (AlertState.PENDING.value, AlertState.FIRING.value)


@dataclass(frozen=True, slots=True)
class DeliveryRow:
    """One message to one channel. ``state`` is queued, delivered, dead (given up) or summarised (part of a summary)."""

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


def decide_and_queue(
    engine: Engine,
    decide: Callable[[Mapping[str, Alert], Mapping[str, Alert], MuteState], MuteResult],
    render: Callable[[Notification], str],
    *,
    active: Iterable[AlertSubject] = (),
    windows: Sequence[MaintenanceWindow] = (),
    now: datetime,
    remember: timedelta = timedelta(0),
    lease: Lease | None = None,
) -> Decision:
    """Read the alerts, decide, store the alerts and queue the messages, in one transaction. Returns the decision.

    ``decide`` is given the open alerts, those that ended within ``remember``, and what mutes alerts. ``render`` makes
    the message of a notification. ``active`` are groups newly seen alive, ``windows`` the maintenance windows in the
    settings. Raises DatabaseError, having stored nothing; also where another process holds ``lease`` by now.
    """
    with transaction(engine) as connection:
        if lease is not None:
            lease.check(connection)
        lock(connection)
        alerts = load_open(connection)
        mute_state = load_mute_state(connection, windows, now)
        result = decide(alerts, load_ended(connection, now - remember), mute_state)
        store_withheld(connection, mute_state, result)
        _store_alerts(connection, alerts, result.decision)
        _queue(connection, result.decision.notifications, render, now)
        _store_active(connection, active, now)
    return result.decision


def load_open(connection: Connection) -> dict[str, Alert]:
    """The pending and firing alerts by fingerprint."""
    rows = connection.execute(select(ALERTS).where(ALERTS.c.state.in_(_OPEN)))
    return {alert.fingerprint: alert for alert in map(_alert, rows)}


def load_ended(connection: Connection, since: datetime) -> dict[str, Alert]:
    """The latest alert of each subject that ended since then, by fingerprint."""
    ended = (ALERTS.c.state == AlertState.RESOLVED.value, ALERTS.c.resolved_at >= since)
    rows = connection.execute(select(ALERTS).where(*ended).order_by(ALERTS.c.resolved_at))
    return {alert.fingerprint: alert for alert in map(_alert, rows)}


def load_active(engine: Engine) -> set[str]:
    """The fingerprints of the groups that were ever seen active."""
    with transaction(engine, read_only=True) as connection:
        return set(connection.scalars(select(ACTIVE_GROUPS.c.fingerprint)))


def waiting_channels(engine: Engine) -> dict[str, datetime]:
    """The channels with waiting messages, and since when the oldest one waits."""
    oldest = select(DELIVERIES.c.channel, func.min(DELIVERIES.c.created_at)).where(DELIVERIES.c.state == QUEUED)
    with transaction(engine, read_only=True) as connection:
        return {row[0]: row[1] for row in connection.execute(oldest.group_by(DELIVERIES.c.channel))}


def prune(engine: Engine, before: datetime) -> None:
    """Delete ended alerts, delivered and dead messages, and the actions of operators from before a time."""
    done = DELIVERIES.c.state.in_((DELIVERED, DEAD, SUMMARISED))
    with transaction(engine) as connection:
        connection.execute(delete(DELIVERIES).where(done, DELIVERIES.c.created_at < before))
        kept = select(DELIVERIES.c.incident_id)
        connection.execute(
            delete(ALERTS).where(
                ALERTS.c.state == AlertState.RESOLVED.value,
                ALERTS.c.resolved_at < before,
                ALERTS.c.incident_id.not_in(kept),
            )
        )
        prune_operator_data(connection, before)


def _store_alerts(connection: Connection, before: Mapping[str, Alert], decision: Decision) -> None:
    if decision.cancelled:
        # Deleted, not resolved: nobody was ever notified of them.
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


def _store_active(connection: Connection, active: Iterable[AlertSubject], now: datetime) -> None:
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
        "state": alert.state.value,
        "since": alert.since,
        "started_at": alert.started_at,
        "fired_at": alert.fired_at,
        "resolved_at": alert.resolved_at,
        "resolution": alert.resolution.value if alert.resolution else None,
        "sentence": alert.sentence,
        "numbers": asdict(alert.numbers),
        "on_hold": alert.on_hold,
        "last_as_of": alert.last_as_of,
        "rule_timers": [asdict(timer) for timer in alert.rule_timers],
        "clear_timer": asdict(alert.clear_timer) if alert.clear_timer else None,
        "notified_rules": list(alert.notified_rules),
        "peak_severity": alert.peak_severity.value if alert.peak_severity else None,
        "channels": list(alert.channels),
        "sequence": alert.sequence,
        "labels": dict(alert.labels),
        "notified_at": alert.notified_at,
        "recent_starts": [at.isoformat() for at in alert.recent_starts],
        "flapping": alert.flapping,
        "inhibited_by": alert.inhibited_by,
    }


def _alert(row: Row[Any]) -> Alert:
    return Alert(
        fingerprint=row.fingerprint,
        incident_id=row.incident_id,
        subject=AlertSubject(AlertKind(row.kind), row.cluster, row._mapping["group"]),
        state=AlertState(row.state),
        rule=row.rule,
        severity=Severity(row.severity),
        status=row.status,
        reason=row.reason,
        since=row.since,
        started_at=row.started_at,
        last_as_of=row.last_as_of,
        sentence=row.sentence,
        numbers=numbers_of(row.numbers),
        rule_timers=tuple(RuleTimer(**timer) for timer in row.rule_timers),
        clear_timer=RuleTimer(**row.clear_timer) if row.clear_timer else None,
        on_hold=row.on_hold,
        fired_at=row.fired_at,
        resolved_at=row.resolved_at,
        resolution=Resolution(row.resolution) if row.resolution else None,
        notified_rules=tuple(row.notified_rules),
        peak_severity=Severity(row.peak_severity) if row.peak_severity else None,
        channels=tuple(row.channels),
        sequence=row.sequence,
        labels=row.labels or {},
        notified_at=row.notified_at,
        recent_starts=tuple(datetime.fromisoformat(at) for at in row.recent_starts or ()),
        flapping=bool(row.flapping),
        inhibited_by=row.inhibited_by,
    )
