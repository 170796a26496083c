"""Queries of pages and the command line on the operational database. They create nothing."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Column, ColumnElement, Connection, Engine, Row, Select, Table, func, inspect, or_, select, true

from lagwise.config import Config
from lagwise.config.operating import MaintenanceWindow
from lagwise.domain.group_record import GroupNumbers, numbers_of
from lagwise_alerts.model import AlertKind, AlertState, AlertSubject, Severity
from lagwise_alerts.notify.mute_state import Acknowledgement, Mute, MuteState, Silence
from lagwise_alerts.outbox.database import ACTIVE_GROUPS, ALERTS, DELIVERIES, open_engine, sqlite_file, transaction
from lagwise_alerts.outbox.operator_store import load_mute_state, silence_of
from lagwise_alerts.outbox.operator_tables import ACTIONS, SILENCES
from lagwise_alerts.outbox.operator_tables import SUMMARISED as IN_SUMMARIES
from lagwise_alerts.outbox.store import DEAD, DELIVERED, QUEUED, SUMMARISED, DeliveryRow


@dataclass(frozen=True, slots=True)
class AlertRow:
    """One incident.

    ``on_hold``: its data is stale or unknown at the moment, so it stays as it was. ``labels`` are those of the group's
    owner. ``notified_at`` is the time of the latest notification. ``inhibited_by`` is the incident that already reports
    the same trouble, so that this one sends no notification.
    """

    incident_id: str
    fingerprint: str
    kind: AlertKind
    cluster: str | None
    group: str | None
    rule: str
    severity: Severity
    status: str
    reason: str | None
    state: AlertState
    since: datetime
    started_at: datetime
    fired_at: datetime | None
    resolved_at: datetime | None
    resolution: str | None
    sentence: str
    numbers: GroupNumbers
    on_hold: bool
    channels: tuple[str, ...]
    labels: Mapping[str, str] = field(default_factory=dict)
    notified_at: datetime | None = None
    flapping: bool = False
    inhibited_by: str | None = None

    @property
    def subject(self) -> AlertSubject:
        """What the alert is about."""
        return AlertSubject(self.kind, self.cluster, self.group)


@dataclass(frozen=True, slots=True)
class OperatorState:
    """What operators did about an open alert. Both None: notifications go out."""

    acknowledged: Acknowledgement | None
    muted: Mute | None


@dataclass(frozen=True, slots=True)
class ActionRow:
    """An action of an operator. ``via`` is cli or dashboard, ``subject`` what it was done to, in words."""

    at: datetime
    who: str
    via: str
    action: str
    subject: str
    comment: str


@dataclass(frozen=True, slots=True)
class ChannelState:
    """How a channel is doing: since when its oldest message waits, when one was delivered last, and one given up."""

    channel: str
    waiting_since: datetime | None
    delivered_at: datetime | None
    gave_up_at: datetime | None


@dataclass(frozen=True, slots=True)
class AlertCounts:
    """How many alerts and messages are in which state."""

    firing: int = 0
    pending: int = 0
    delivered: int = 0
    queued: int = 0
    dead: int = 0


def connect(config: Config) -> Engine:
    """An engine for the functions below. Raises ConfigError where the setting ``database`` is no database."""
    return open_engine(config.database_url)


def open_alerts(engine: Engine) -> list[AlertRow]:
    """Firing alerts, then pending ones; the loudest first, then the oldest. Raises DatabaseError."""
    rows = _fetch(engine, select(ALERTS).where(ALERTS.c.state.in_((AlertState.PENDING.value, AlertState.FIRING.value))))
    alerts = [_alert_row(row) for row in rows]
    return sorted(alerts, key=lambda a: (a.state is AlertState.PENDING, a.severity.rank, a.started_at, a.fingerprint))


def operator_state(alert: AlertRow, mute_state: MuteState, now: datetime) -> OperatorState:
    """What operators did about an alert. An acknowledgement at a lower severity than now does not count."""
    given = mute_state.acknowledgements.get(alert.incident_id)
    return OperatorState(
        acknowledged=given if given is not None and given.covers(alert.severity) else None,
        muted=mute_state.mute_of(alert.subject, alert.severity, now),
    )


def mute_state(engine: Engine, windows: Sequence[MaintenanceWindow], now: datetime) -> MuteState:
    """What mutes alerts at this moment. Raises DatabaseError."""
    if not _is_there(engine):
        return MuteState(windows=tuple(windows))
    with transaction(engine, read_only=True) as connection:
        if not _has(connection, SILENCES):
            return MuteState(windows=tuple(windows))
        return load_mute_state(connection, windows, now)


def silences(engine: Engine, now: datetime) -> list[Silence]:
    """Active and future silences, the next to end first. Raises DatabaseError."""
    query = select(SILENCES).where(SILENCES.c.ends_at > now).order_by(SILENCES.c.ends_at, SILENCES.c.id)
    return [silence_of(row) for row in _fetch(engine, query, SILENCES)]


def actions(engine: Engine, *, text: str = "", limit: int = 200, offset: int = 0) -> list[ActionRow]:
    """What operators did, the latest first; only what has the text in it. Raises DatabaseError."""
    query = _actions(text).order_by(ACTIONS.c.id.desc()).limit(limit).offset(offset)
    return [ActionRow(**row._mapping) for row in _fetch(engine, query, ACTIONS)]


def count_actions(engine: Engine, *, text: str = "") -> int:
    """How many :func:`actions` there are in all. Raises DatabaseError."""
    return _count(engine, _actions(text), ACTIONS)


def _actions(text: str) -> Select[*tuple[Any, ...]]:
    a = ACTIONS.c
    found = select(a.at, a.who, a.via, a.action, a.subject, a.comment)
    return found.where(_contains(text, a.who, a.action, a.subject, a.comment))


def summary_sizes(engine: Engine) -> dict[int, int]:
    """How many messages each summary holds, by the number of the summary. Raises DatabaseError."""
    query = select(IN_SUMMARIES.c.summary_id, func.count()).group_by(IN_SUMMARIES.c.summary_id)
    return {int(summary): int(count) for summary, count in _fetch(engine, query, IN_SUMMARIES)}


def history(
    engine: Engine,
    *,
    cluster: str | None = None,
    group: str | None = None,
    text: str = "",
    limit: int = 200,
    offset: int = 0,
) -> list[AlertRow]:
    """Alerts that ended, the latest first; only those with the text in a name or in their sentence. Raises
    DatabaseError."""
    query = _ended(cluster, group, text).order_by(ALERTS.c.resolved_at.desc(), ALERTS.c.incident_id)
    return [_alert_row(row) for row in _fetch(engine, query.limit(limit).offset(offset))]


def count_history(engine: Engine, *, text: str = "") -> int:
    """How many alerts of :func:`history` there are in all. Raises DatabaseError."""
    return _count(engine, _ended(None, None, text))


def _ended(cluster: str | None, group: str | None, text: str) -> Select[*tuple[Any, ...]]:
    a = ALERTS.c
    query = select(ALERTS).where(a.state == AlertState.RESOLVED.value)
    if cluster is not None:
        query = query.where(a.cluster == cluster)
    if group is not None:
        query = query.where(a.group == group)
    return query.where(_contains(text, a.group, a.cluster, a.rule, a.status, a.sentence))


def alerts_of(engine: Engine, incident_ids: Iterable[str]) -> list[AlertRow]:
    """Alerts by the ids of their incidents, open ones and others. Raises DatabaseError."""
    return [_alert_row(row) for row in _fetch(engine, select(ALERTS).where(ALERTS.c.incident_id.in_(incident_ids)))]


def active_groups(engine: Engine) -> frozenset[str]:
    """The fingerprints of the groups that were ever seen alive. Raises DatabaseError."""
    return frozenset(row.fingerprint for row in _fetch(engine, select(ACTIVE_GROUPS.c.fingerprint)))


def deliveries(
    engine: Engine,
    *,
    incident_id: str | None = None,
    state: str | None = None,
    channel: str | None = None,
    text: str = "",
    limit: int = 200,
    offset: int = 0,
) -> list[DeliveryRow]:
    """Messages, the latest first; what a summary brought only where an incident or that state is asked for. Only those
    with the text in them or in the name of the group that they are about.

    Raises DatabaseError.
    """
    query = _deliveries(incident_id, state, channel, text).order_by(DELIVERIES.c.id.desc())
    return [_delivery_row(row) for row in _fetch(engine, query.limit(limit).offset(offset))]


def count_deliveries(engine: Engine, *, text: str = "") -> int:
    """How many :func:`deliveries` there are in all. Raises DatabaseError."""
    return _count(engine, _deliveries(None, None, None, text))


def _deliveries(incident_id: str | None, state: str | None, channel: str | None, text: str) -> Select[*tuple[Any, ...]]:
    d = DELIVERIES.c
    query = select(DELIVERIES)
    if incident_id is None and state is None:
        query = query.where(d.state != SUMMARISED)
    if channel is not None:
        query = query.where(d.channel == channel)
    if incident_id is not None:
        query = query.where(d.incident_id == incident_id)
    if state is not None:
        query = query.where(d.state == state)
    if text:
        about = select(ALERTS.c.incident_id).where(_contains(text, ALERTS.c.group))
        query = query.where(_contains(text, d.channel, d.event, d.state, d.last_error) | d.incident_id.in_(about))
    return query


def channel_states(engine: Engine, channels: Sequence[str]) -> list[ChannelState]:
    """How these channels are doing. Raises DatabaseError."""
    d = DELIVERIES.c
    waiting = select(d.channel, func.min(d.created_at)).where(d.state == QUEUED).group_by(d.channel)
    delivered = select(d.channel, func.max(d.delivered_at)).where(d.state == DELIVERED).group_by(d.channel)
    dead = select(d.channel, func.max(d.next_attempt_at)).where(d.state == DEAD).group_by(d.channel)
    oldest, latest, gave_up = (
        {row[0]: row[1] for row in _fetch(engine, query)} for query in (waiting, delivered, dead)
    )
    return [ChannelState(name, oldest.get(name), latest.get(name), gave_up.get(name)) for name in channels]


def counts(engine: Engine) -> AlertCounts:
    """How many alerts and messages are in which state. Raises DatabaseError."""
    alerts = _tally(engine, ALERTS.c.state)
    messages = _tally(engine, DELIVERIES.c.state)
    return AlertCounts(
        firing=alerts.get(AlertState.FIRING.value, 0),
        pending=alerts.get(AlertState.PENDING.value, 0),
        delivered=messages.get(DELIVERED, 0),
        queued=messages.get(QUEUED, 0),
        dead=messages.get(DEAD, 0),
    )


def _contains(text: str, *columns: Column[Any]) -> ColumnElement[bool]:
    """Whether one of the columns contains the text; always, where the text is empty."""
    return or_(*(column.icontains(text, autoescape=True) for column in columns)) if text else true()


def _count(engine: Engine, query: Select[*tuple[Any, ...]], table: Table = ALERTS) -> int:
    found = _fetch(engine, select(func.count()).select_from(query.subquery()), table)
    return int(found[0][0]) if found else 0


def _tally(engine: Engine, column: Column[str]) -> dict[str, int]:
    rows = _fetch(engine, select(column, func.count()).group_by(column))
    return {str(state): int(count) for state, count in rows}


def _fetch(engine: Engine, query: Select[*tuple[Any, ...]], table: Table = ALERTS) -> Sequence[Row[*tuple[Any, ...]]]:
    """The rows; none where the alert process has never run, so that the tables do not exist."""
    if not _is_there(engine):
        return []
    with transaction(engine, read_only=True) as connection:
        return connection.execute(query).all() if _has(connection, table) else []


def _is_there(engine: Engine) -> bool:
    path = sqlite_file(engine)
    return path is None or path.exists()


def _has(connection: Connection, table: Table) -> bool:
    return inspect(connection).has_table(table.name)


def _alert_row(row: Row[Any]) -> AlertRow:
    return AlertRow(
        incident_id=row.incident_id,
        fingerprint=row.fingerprint,
        kind=AlertKind(row.kind),
        cluster=row.cluster,
        group=row._mapping["group"],
        rule=row.rule,
        severity=Severity(row.severity),
        status=row.status,
        reason=row.reason,
        state=AlertState(row.state),
        since=row.since,
        started_at=row.started_at,
        fired_at=row.fired_at,
        resolved_at=row.resolved_at,
        resolution=row.resolution,
        sentence=row.sentence,
        numbers=numbers_of(row.numbers),
        on_hold=row.on_hold,
        channels=tuple(row.channels),
        labels=row.labels or {},
        notified_at=row.notified_at,
        flapping=bool(row.flapping),
        inhibited_by=row.inhibited_by,
    )


def _delivery_row(row: Row[Any]) -> DeliveryRow:
    return DeliveryRow(
        id=row.id,
        idempotency_key=row.idempotency_key,
        channel=row.channel,
        incident_id=row.incident_id,
        event=row.event,
        state=row.state,
        attempts=row.attempts,
        next_attempt_at=row.next_attempt_at,
        last_error=row.last_error,
        created_at=row.created_at,
        delivered_at=row.delivered_at,
    )
