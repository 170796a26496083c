"""Alerts and deliveries as the alert process would have left them in the operational database."""

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import insert, update

from lagwise.domain.correlation import GroupTraits, SharedThing, ThingKind
from lagwise.domain.correlation_text import correlation_sentence
from lagwise.domain.group_record import GroupNumbers
from lagwise.domain.vocabulary import Status
from lagwise_alerts.model import AlertKind, AlertState, AlertSubject
from lagwise_alerts.operate import queries
from lagwise_alerts.outbox.database import ALERTS, DELIVERIES, create_tables, open_engine, transaction
from lagwise_alerts.outbox.store import alert_columns
from tests.dashboard.stories import GROUPS_OF_THE_DEMO, Story

BROKER = SharedThing(ThingKind.BROKER, "3", "prod")
_LOUD = {Status.LOSING_DATA, Status.AT_RISK, Status.STOPPED, Status.STALLED}


def write_to(folder: Path, now: datetime, stories: tuple[Story, ...] = GROUPS_OF_THE_DEMO) -> None:
    """An open alert for each group in trouble, some that ended, and what was sent to two channels."""
    write_into(f"sqlite:///{folder / 'lagwise.db'}", now, stories)


def write_into(url: str, now: datetime, stories: tuple[Story, ...] = GROUPS_OF_THE_DEMO) -> None:
    """The same, into any database."""
    engine = open_engine(url)
    create_tables(engine)
    alerts: list[dict[str, Any]] = []
    for n, s in enumerate(stories):
        if s.status in _LOUD or s.status == Status.FALLING_BEHIND:
            alerts.append(_alert(n, s, now, ended=False))
        elif s.status == Status.CATCHING_UP:
            alerts.append(_alert(n, s, now, ended=True))
    alerts.sort(key=lambda a: a["started_at"])
    messages = [m for alert in alerts for m in _deliveries(alert)]
    with transaction(engine) as connection:
        connection.execute(insert(ALERTS), alerts)
        connection.execute(insert(DELIVERIES), messages)
    engine.dispose()


def _alert(n: int, s: Story, now: datetime, *, ended: bool) -> dict[str, Any]:
    started = now - timedelta(seconds=s.since_seconds)
    pending = s.status == Status.FALLING_BEHIND
    fired = None if pending else started + timedelta(seconds=30)
    return {
        "incident_id": f"incident-{n:03d}",
        "fingerprint": AlertSubject(AlertKind.GROUP, s.cluster, s.group).fingerprint,
        "kind": "group",
        "cluster": s.cluster,
        "group": s.group,
        "things": (),
        "rule": str(s.status),
        "severity": "page" if s.status in _LOUD or ended else "warn",
        "status": str(Status.STOPPED) if ended else str(s.status),
        "reason": None,
        "state": "resolved" if ended else "pending" if pending else "firing",
        "since": started - (timedelta(minutes=25) if ended else timedelta()),
        "started_at": started,
        "fired_at": fired,
        "resolved_at": started + timedelta(seconds=90) if ended else None,
        "resolution": "recovered" if ended else None,
        "sentence": "6 partitions have lag and no member: the last consumer left." if ended else s.sentence,
        "numbers": GroupNumbers(lag_records=s.lag, lag_seconds=s.lag_seconds),
        "on_hold": False,
        "last_as_of": now,
        "rule_timers": [],
        "clear_timer": None,
        "notified_rules": [],
        "peak_severity": None,
        "channels": ["on-call", "team-chat"],
        "sequence": 1,
        "labels": {},
        "recent_starts": [],
        "flapping": False,
    }


def gather(folder: Path, thing: SharedThing = BROKER) -> None:
    """Make all firing alerts of the thing's cluster members of one shared incident."""
    engine = open_engine(f"sqlite:///{folder / 'lagwise.db'}")
    firing = [a for a in queries.open_alerts(engine) if a.state is AlertState.FIRING]
    members = [a for a in firing if a.subject.cluster == thing.cluster]
    subject = AlertSubject(AlertKind.SHARED_INCIDENT, thing.cluster, things=(thing,))
    began = {(a.subject.cluster or "", a.subject.group or ""): a.since for a in members}
    traits = {key: GroupTraits(frozenset({thing})) for key in began}
    shared = replace(
        members[0],
        subject=subject,
        fingerprint=subject.fingerprint,
        incident_id="shared-1",
        since=min(began.values()),
        sentence=correlation_sentence((thing,), began, {("prod", "well"): GroupTraits(frozenset())}, traits),
    )
    with transaction(engine) as connection:
        connection.execute(insert(ALERTS).values(**alert_columns(shared)))
        is_member = ALERTS.c.incident_id.in_([a.incident_id for a in members])
        connection.execute(update(ALERTS).where(is_member).values(shared_incident=shared.incident_id))
    engine.dispose()


def _deliveries(alert: dict[str, Any]) -> list[dict[str, Any]]:
    if alert["fired_at"] is None:
        return []
    rows = []
    for channel in alert["channels"]:
        dead = channel == "team-chat" and alert["group"] == "clickstream-archive"
        queued = channel == "team-chat" and alert["group"] == "invoice-mailer"
        rows.append(
            {
                "idempotency_key": f"{alert['incident_id']}-1",
                "channel": channel,
                "incident_id": alert["incident_id"],
                "event": "firing",
                "payload": "{}",
                "state": "dead" if dead else "queued" if queued else "delivered",
                "attempts": 12 if dead else 3 if queued else 1,
                "next_attempt_at": alert["last_as_of"] + timedelta(minutes=2),
                "last_error": "HTTP 410 from the receiver: gone" if dead else "timeout after 10 s" if queued else None,
                "created_at": alert["fired_at"],
                "delivered_at": None if dead or queued else alert["fired_at"] + timedelta(seconds=0.4),
            }
        )
    return rows
