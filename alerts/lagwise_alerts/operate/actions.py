"""What operators do: silence, acknowledge, send again. Each is one transaction, and recorded with who and when.

Everything here raises DatabaseError where the database cannot be written, and OperatorError where what is asked makes
no sense: its message says why, and what would.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sqlalchemy import Connection, Engine, Row, delete, insert, select, update

from lagwise.platform.errors import OperatorError
from lagwise_alerts.model import AlertKind, AlertState, AlertSubject, Severity
from lagwise_alerts.notify.mute_state import Acknowledgement, Matcher, Silence
from lagwise_alerts.outbox.database import ALERTS, lock, prepare, sqlite_file, transaction
from lagwise_alerts.outbox.operator_store import silence_of
from lagwise_alerts.outbox.operator_tables import ACKNOWLEDGEMENTS, ACTIONS, SILENCES

_LONGEST_PATTERN = 500


class Via(StrEnum):
    """Where an operator acted."""

    CLI = "cli"
    DASHBOARD = "dashboard"


class Action(StrEnum):
    """What an operator did."""

    SILENCE = "silence"
    UNSILENCE = "unsilence"
    ACKNOWLEDGE = "acknowledge"
    TAKE_BACK = "take_back"
    RESEND = "resend"
    TEST = "test"


@dataclass(frozen=True, slots=True)
class Operator:
    """Who acts, and where."""

    name: str
    via: Via


def silence(
    engine: Engine,
    matcher: Matcher,
    *,
    starts_at: datetime,
    ends_at: datetime,
    comment: str,
    by: Operator,
    now: datetime,
) -> Silence:
    """Mute the selected alerts until a time."""
    _check(matcher)
    if ends_at <= max(starts_at, now):
        raise OperatorError("a silence must end after it begins, and in the future")
    if not comment.strip():
        raise OperatorError("a silence needs a comment that says why")
    row = {
        "cluster": matcher.cluster,
        "group": matcher.group,
        "kind": matcher.kind,
        "severity": matcher.severity,
        "starts_at": starts_at,
        "ends_at": ends_at,
        "comment": comment.strip(),
        "created_by": by.name,
        "created_at": now,
    }
    _ready(engine)
    with transaction(engine) as connection:
        lock(connection)
        key = connection.scalars(insert(SILENCES).values(**row).returning(SILENCES.c.id)).one()
        made = silence_of(connection.execute(select(SILENCES).where(SILENCES.c.id == key)).one())
        record(connection, by, Action.SILENCE, _silence_words(made), made.comment, now)
    return made


def unsilence(engine: Engine, silence_id: int, *, by: Operator, now: datetime) -> Silence:
    """End a silence now. The next round sends what it withheld and still applies."""
    _ready(engine)
    with transaction(engine) as connection:
        lock(connection)
        row = connection.execute(select(SILENCES).where(SILENCES.c.id == silence_id)).one_or_none()
        if row is None or row.ends_at <= now:
            over = "there is no silence" if row is None else "this silence has already ended:"
            raise OperatorError(f"{over} {silence_id}; `lagwise alert list` shows the active silences")
        ended = {"starts_at": min(row.starts_at, now), "ends_at": now}
        connection.execute(update(SILENCES).where(SILENCES.c.id == silence_id).values(**ended))
        made = silence_of(connection.execute(select(SILENCES).where(SILENCES.c.id == silence_id)).one())
        record(connection, by, Action.UNSILENCE, _silence_words(made), "", now)
    return made


def acknowledge(engine: Engine, incident_id: str, *, comment: str, by: Operator, now: datetime) -> Acknowledgement:
    """Take an alert on: no more notifications until it ends, unless it becomes louder than it is."""
    _ready(engine)
    with transaction(engine) as connection:
        lock(connection)
        alert = _firing(connection, incident_id)
        taken = Acknowledgement(incident_id, Severity(alert.severity), by.name, now, comment.strip())
        connection.execute(delete(ACKNOWLEDGEMENTS).where(ACKNOWLEDGEMENTS.c.incident_id == incident_id))
        connection.execute(
            insert(ACKNOWLEDGEMENTS).values(
                incident_id=incident_id, severity=taken.severity.value, by=taken.by, at=now, comment=taken.comment
            )
        )
        record(connection, by, Action.ACKNOWLEDGE, _alert_words(alert), taken.comment, now)
    return taken


def take_back(engine: Engine, incident_id: str, *, by: Operator, now: datetime) -> None:
    """Undo an acknowledgement: notifications go out again."""
    _ready(engine)
    with transaction(engine) as connection:
        lock(connection)
        alert = _firing(connection, incident_id)
        given = delete(ACKNOWLEDGEMENTS).where(ACKNOWLEDGEMENTS.c.incident_id == incident_id)
        if connection.execute(given).rowcount == 0:
            raise OperatorError(f"nobody has acknowledged {incident_id}")
        record(connection, by, Action.TAKE_BACK, _alert_words(alert), "", now)


def record(connection: Connection, by: Operator, action: Action, subject: str, comment: str, now: datetime) -> None:
    """Record an action of an operator, in the transaction of the action."""
    row = {"at": now, "who": by.name, "via": by.via.value, "action": action.value}
    connection.execute(insert(ACTIONS).values(**row, subject=subject, comment=comment))


def record_test(engine: Engine, channel: str, said: str, *, by: Operator, now: datetime) -> None:
    """Record a test of a channel, and its result."""
    _ready(engine)
    with transaction(engine) as connection:
        record(connection, by, Action.TEST, f"channel {channel}", said, now)


def _ready(engine: Engine) -> None:
    """Prepare the database. A mistyped path must not create one: raises OperatorError where there is none."""
    path = sqlite_file(engine)
    if path is not None and not path.exists():
        raise OperatorError(
            f"there is no database {path}: name the folder of the running Lagwise with --data, or start `lagwise alert`"
        )
    prepare(engine)


def _firing(connection: Connection, incident_id: str) -> Row[*tuple[object, ...]]:
    row = connection.execute(select(ALERTS).where(ALERTS.c.incident_id == incident_id)).one_or_none()
    if row is None or row.state != AlertState.FIRING.value:
        state = "there is no alert" if row is None else f"the alert is {row.state}, not firing:"
        raise OperatorError(f"{state} {incident_id}; `lagwise alert list` shows the firing alerts")
    return row


def _check(matcher: Matcher) -> None:
    patterns = {"cluster": matcher.cluster, "group": matcher.group, "kind": matcher.kind, "severity": matcher.severity}
    given = {name: pattern for name, pattern in patterns.items() if pattern is not None}
    if not given:
        raise OperatorError("select alerts by cluster, group, kind or severity; '.*' is any")
    for name, pattern in given.items():
        if len(pattern) > _LONGEST_PATTERN:
            raise OperatorError(f"the pattern for {name} is longer than {_LONGEST_PATTERN} characters")
        try:
            re.compile(pattern)
        except re.error as error:
            raise OperatorError(f"{name}: {pattern!r} is not a regular expression: {error}") from None
    for name, words in (("kind", AlertKind), ("severity", Severity)):
        wanted = given.get(name)
        if wanted is not None and not any(re.fullmatch(wanted, word.value) for word in words):
            allowed = ", ".join(word.value for word in words)
            raise OperatorError(f"{name}: {wanted!r} matches none of {allowed}")


def matcher_words(matcher: Matcher) -> str:
    """Which alerts a matcher selects, in words."""
    patterns: Sequence[tuple[str, str | None]] = (
        ("cluster", matcher.cluster),
        ("group", matcher.group),
        ("kind", matcher.kind),
        ("severity", matcher.severity),
    )
    return ", ".join(f"{name} {pattern}" for name, pattern in patterns if pattern is not None)


def _silence_words(made: Silence) -> str:
    return f"silence {made.id} ({matcher_words(made.matcher)}) until {made.ends_at:%Y-%m-%d %H:%M:%S} UTC"


def _alert_words(alert: Row[*tuple[object, ...]]) -> str:
    kept = alert._mapping
    return f"{AlertSubject(AlertKind(kept['kind']), kept['cluster'], kept['group'])} ({kept['status']})"
