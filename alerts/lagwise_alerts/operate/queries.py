"""Queries of pages and the command line on the operational database. They create nothing."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Engine,
    Row,
    Select,
    Table,
    false,
    func,
    inspect,
    or_,
    select,
    true,
)

from lagwise.config import Config
from lagwise.config.operating import MaintenanceWindow
from lagwise_alerts.model import Alert, AlertState
from lagwise_alerts.notify.mute_state import Acknowledgement, Mute, MuteState, Silence
from lagwise_alerts.operate.saved_views import SavedView, view_of
from lagwise_alerts.outbox.database import (
    ACTIONS,
    ACTIVE_GROUPS,
    ALERTS,
    DELIVERIES,
    SAVED_VIEWS,
    SILENCES,
    SUMMARY_MEMBERS,
    open_engine,
    sqlite_file,
    transaction,
)
from lagwise_alerts.outbox.operator_store import load_mute_state, silence_of
from lagwise_alerts.outbox.store import DEAD, DELIVERED, DELIVERY_COLUMNS, QUEUED, SUMMARISED, DeliveryRow, alert_of

Result = TypeVar("Result")
#: Groups by cluster and name.
Groups = tuple[tuple[str, str], ...]


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
class IncidentMessage:
    """A message about an incident as it goes out. In a summary it has the state, attempts and time of the summary."""

    incident_id: str
    channel: str
    #: An :class:`lagwise_alerts.model.AlertEvent`.
    event: str
    #: ``queued``, ``delivered`` or ``dead`` (given up).
    state: str
    #: How often it was tried.
    attempts: int
    #: When it was queued.
    created_at: datetime
    in_summary: bool


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


def open_alerts(engine: Engine) -> list[Alert]:
    """Firing alerts, then pending ones; the loudest first, then the oldest. Raises DatabaseError."""
    rows = _fetch(engine, select(ALERTS).where(ALERTS.c.state.in_((AlertState.PENDING, AlertState.FIRING))))
    alerts = [alert_of(row) for row in rows]
    return sorted(alerts, key=lambda a: (a.state is AlertState.PENDING, a.severity.rank, a.started_at, a.fingerprint))


def operator_state(alert: Alert, mute_state: MuteState, now: datetime) -> OperatorState:
    """What operators did about an alert. An acknowledgement at a lower severity than now does not count."""
    given = mute_state.acknowledgements.get(alert.incident_id)
    return OperatorState(
        acknowledged=given if given is not None and given.covers(alert.severity) else None,
        muted=mute_state.mute_of(alert.subject, alert.severity, now),
    )


def mute_state(engine: Engine, windows: Sequence[MaintenanceWindow], now: datetime) -> MuteState:
    """What mutes alerts at this moment. Raises DatabaseError."""
    nothing = MuteState(windows=tuple(windows))
    return _read_table(engine, SILENCES, lambda connection: load_mute_state(connection, windows, now), nothing)


def silences(engine: Engine, now: datetime) -> list[Silence]:
    """Active and future silences, the next to end first. Raises DatabaseError."""
    query = select(SILENCES).where(SILENCES.c.ends_at > now).order_by(SILENCES.c.ends_at, SILENCES.c.id)
    return [silence_of(row) for row in _fetch(engine, query, SILENCES)]


def saved_views(engine: Engine) -> list[SavedView]:
    """All saved views by name. Raises DatabaseError."""
    rows = _fetch(engine, select(SAVED_VIEWS), SAVED_VIEWS)
    return sorted(map(view_of, rows), key=lambda view: (view.name.casefold(), view.name))


def actions(
    engine: Engine, *, text: str = "", who: str | None = None, limit: int = 200, offset: int = 0
) -> list[ActionRow]:
    """What operators did (None: all of them), the latest first; only what has the text in it. Raises DatabaseError."""
    query = _actions(text, who).order_by(ACTIONS.c.id.desc()).limit(limit).offset(offset)
    return [ActionRow(**row._mapping) for row in _fetch(engine, query, ACTIONS)]


def count_actions(engine: Engine, *, text: str = "", who: str | None = None) -> int:
    """How many :func:`actions` there are in all. Raises DatabaseError."""
    return _count(engine, _actions(text, who), ACTIONS)


def _actions(text: str, who: str | None) -> Select[*tuple[Any, ...]]:
    a = ACTIONS.c
    found = select(a.at, a.who, a.via, a.action, a.subject, a.comment)
    return found.where(true() if who is None else a.who == who).where(
        _contains(text, a.who, a.action, a.subject, a.comment)
    )


def summary_sizes(engine: Engine) -> dict[int, int]:
    """How many messages each summary holds, by the number of the summary. Raises DatabaseError."""
    query = select(SUMMARY_MEMBERS.c.summary_id, func.count()).group_by(SUMMARY_MEMBERS.c.summary_id)
    return {int(summary): int(count) for summary, count in _fetch(engine, query, SUMMARY_MEMBERS)}


def history(
    engine: Engine,
    *,
    cluster: str | None = None,
    group: str | None = None,
    text: str = "",
    among: Groups | None = None,
    limit: int = 200,
    offset: int = 0,
) -> list[Alert]:
    """Alerts that ended, the latest first; only those with the text in a name or in their sentence. Raises
    DatabaseError."""
    query = _ended(cluster, group, text, among).order_by(ALERTS.c.resolved_at.desc(), ALERTS.c.incident_id)
    return [alert_of(row) for row in _fetch(engine, query.limit(limit).offset(offset))]


def count_history(engine: Engine, *, text: str = "", among: Groups | None = None) -> int:
    """How many alerts of :func:`history` there are in all. Raises DatabaseError."""
    return _count(engine, _ended(None, None, text, among))


def _ended(cluster: str | None, group: str | None, text: str, among: Groups | None) -> Select[*tuple[Any, ...]]:
    a = ALERTS.c
    query = select(ALERTS).where(a.state == AlertState.RESOLVED, _is_among(among))
    if cluster is not None:
        query = query.where(a.cluster == cluster)
    if group is not None:
        query = query.where(a.group == group)
    return query.where(_contains(text, a.group, a.cluster, a.rule, a.status, a.sentence))


def alerts_of(engine: Engine, incident_ids: Iterable[str]) -> list[Alert]:
    """Alerts by the ids of their incidents, open ones and others. Raises DatabaseError."""
    return [alert_of(row) for row in _fetch(engine, select(ALERTS).where(ALERTS.c.incident_id.in_(incident_ids)))]


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
    among: Groups | None = None,
    limit: int = 200,
    offset: int = 0,
) -> list[DeliveryRow]:
    """Messages, the latest first; what a summary brought only where an incident or that state is asked for. Only those
    with the text in them or in the name of the group that they are about.

    Raises DatabaseError.
    """
    query = _deliveries(incident_id, state, channel, text, among).order_by(DELIVERIES.c.id.desc())
    return [DeliveryRow(**row._mapping) for row in _fetch(engine, query.limit(limit).offset(offset))]


def count_deliveries(engine: Engine, *, text: str = "", among: Groups | None = None) -> int:
    """How many :func:`deliveries` there are in all. Raises DatabaseError."""
    return _count(engine, _deliveries(None, None, None, text, among))


def _deliveries(
    incident_id: str | None, state: str | None, channel: str | None, text: str, among: Groups | None
) -> Select[*tuple[Any, ...]]:
    d = DELIVERIES.c
    query = select(*DELIVERY_COLUMNS).where(_about(among))
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


def messages_of(engine: Engine, incident_ids: Iterable[str], since: datetime) -> list[IncidentMessage]:
    """All messages about incidents that were queued since then, in order. Raises DatabaseError."""
    d, summary = DELIVERIES.c, DELIVERIES.alias("summary")
    sent = [func.coalesce(summary.c[name], d[name]).label(name) for name in ("state", "attempts", "created_at")]
    is_member = SUMMARY_MEMBERS.c.delivery_id == d.id
    query = (
        select(d.incident_id, d.channel, d.event, *sent, summary.c.id.is_not(None).label("in_summary"))
        .outerjoin(SUMMARY_MEMBERS, is_member)
        .outerjoin(summary, summary.c.id == SUMMARY_MEMBERS.c.summary_id)
        .where(d.incident_id.in_(incident_ids), sent[-1] >= since)
        .order_by(d.id)
    )
    return [IncidentMessage(**row._mapping) for row in _fetch(engine, query, SUMMARY_MEMBERS)]


def channel_states(engine: Engine, channels: Sequence[str]) -> list[ChannelState]:
    """How these channels are doing. Raises DatabaseError."""
    oldest = waiting_channels(engine)
    latest = _by_channel(engine, func.max(DELIVERIES.c.delivered_at), DELIVERED)
    gave_up = _by_channel(engine, func.max(DELIVERIES.c.next_attempt_at), DEAD)
    return [ChannelState(name, oldest.get(name), latest.get(name), gave_up.get(name)) for name in channels]


def waiting_channels(engine: Engine) -> dict[str, datetime]:
    """The channels with waiting messages, and since when the oldest one waits. Raises DatabaseError."""
    return _by_channel(engine, func.min(DELIVERIES.c.created_at), QUEUED)


def _by_channel(engine: Engine, time: ColumnElement[datetime], state: str) -> dict[str, datetime]:
    query = select(DELIVERIES.c.channel, time.label("time")).where(DELIVERIES.c.state == state)
    return {row.channel: row.time for row in _fetch(engine, query.group_by(DELIVERIES.c.channel))}


def groups(engine: Engine) -> list[tuple[str, str]]:
    """The groups that alerts are about, by cluster and name. Raises DatabaseError."""
    found = select(ALERTS.c.cluster, ALERTS.c.group).where(ALERTS.c.cluster.is_not(None), ALERTS.c.group.is_not(None))
    return [(row.cluster, row.group) for row in _fetch(engine, found.distinct())]


def counts(engine: Engine, among: Groups | None = None) -> AlertCounts:
    """How many alerts and messages are in which state; of some groups, where given. Raises DatabaseError."""
    alerts = _tally(engine, ALERTS.c.state, _is_among(among))
    messages = _tally(engine, DELIVERIES.c.state, _about(among))
    return AlertCounts(
        firing=alerts.get(AlertState.FIRING, 0),
        pending=alerts.get(AlertState.PENDING, 0),
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


def _is_among(groups: Groups | None) -> ColumnElement[bool]:
    """Whether an alert is about one of the groups; None is any, and also what is about no group."""
    if groups is None:
        return true()
    a, clusters = ALERTS.c, sorted({cluster for cluster, _ in groups})
    its = ((a.cluster == one) & a.group.in_([group for cluster, group in groups if cluster == one]) for one in clusters)
    return or_(false(), *its)


def _about(groups: Groups | None) -> ColumnElement[bool]:
    """Whether a message is about one of the groups."""
    about = select(ALERTS.c.incident_id).where(_is_among(groups))
    return true() if groups is None else DELIVERIES.c.incident_id.in_(about)


def _tally(engine: Engine, column: Column[str], condition: ColumnElement[bool]) -> dict[str, int]:
    rows = _fetch(engine, select(column, func.count()).where(condition).group_by(column))
    return {str(state): int(count) for state, count in rows}


def _fetch(engine: Engine, query: Select[*tuple[Any, ...]], table: Table = ALERTS) -> Sequence[Row[*tuple[Any, ...]]]:
    return _read_table(engine, table, lambda connection: connection.execute(query).all(), [])


def _read_table(engine: Engine, table: Table, read: Callable[[Connection], Result], nothing: Result) -> Result:
    """What ``read`` returns, or ``nothing`` where the alert process has never run, so that the table does not exist."""
    path = sqlite_file(engine)
    if path is not None and not path.exists():
        return nothing
    with transaction(engine, read_only=True) as connection:
        return read(connection) if inspect(connection).has_table(table.name) else nothing
