"""What operators do: silence, acknowledge, send again. Each is one transaction, and recorded with who and when.

Every function raises DatabaseError where the database cannot be written, and OperatorError where the request is
invalid: the message gives the reason and what would work.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum

from sqlalchemy import Connection, Engine, delete, insert, select, update

from lagwise.config.visibility import EVERYTHING, Visibilities
from lagwise.platform.error_codes import ErrorCode
from lagwise.platform.errors import OperatorError
from lagwise_alerts.model import Alert, AlertKind, AlertState, Severity
from lagwise_alerts.notify.mute_state import Acknowledgement, Matcher, Silence
from lagwise_alerts.outbox.database import (
    ACKNOWLEDGEMENTS,
    ACTIONS,
    ALERTS,
    SILENCES,
    columns_of,
    create_tables,
    lock,
    sqlite_file,
    transaction,
)
from lagwise_alerts.outbox.operator_store import silence_of
from lagwise_alerts.outbox.store import alert_of

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
    SAVE_VIEW = "save_view"
    RENAME_VIEW = "rename_view"
    DELETE_VIEW = "delete_view"


@dataclass(frozen=True, slots=True)
class Operator:
    """Who acts, and where. ``acts_on`` are the groups whose alerts they may act on; what is about no group, or about
    several, takes an operator of everything."""

    name: str
    via: Via
    acts_on: Visibilities = EVERYTHING

    def may_act_on(self, cluster: str | None, group: str | None) -> bool:
        """Whether they may act on what is about this group; None is none, or several."""
        return self.acts_on.shows(cluster, group)

    def check_acts_on_everything(self) -> None:
        """Raises OperatorError if some groups are not theirs to act on."""
        if not self.acts_on.is_unlimited:
            raise OperatorError("this concerns groups of other teams: it needs an operator of all groups")


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
    if not by.may_act_on(*matcher.one_group):
        raise OperatorError(
            "an operator of a team silences one of its groups at a time: give the name of the group and that of its "
            "cluster in full, as `Like this alert` fills them in"
        )
    if ends_at <= max(starts_at, now):
        raise OperatorError("a silence must end after it begins, and in the future")
    if not comment.strip():
        raise OperatorError("give the reason for the silence")
    row = {**asdict(matcher), "starts_at": starts_at, "ends_at": ends_at, "comment": comment.strip()}
    row |= {"created_by": by.name, "created_at": now}
    with writing(engine) as connection:
        made = silence_of(connection.execute(insert(SILENCES).values(row).returning(SILENCES)).one())
        record(connection, by, Action.SILENCE, _silence_words(made), made.comment, now)
    return made


def unsilence(engine: Engine, silence_id: int, *, by: Operator, now: datetime) -> Silence:
    """End a silence now. The next round sends what it withheld and still applies."""
    with writing(engine) as connection:
        row = connection.execute(select(SILENCES).where(SILENCES.c.id == silence_id)).one_or_none()
        if row is not None and not by.may_act_on(*silence_of(row).matcher.one_group):
            row = None
        if row is None or row.ends_at <= now:
            over = "there is no silence" if row is None else "this silence has already ended:"
            raise OperatorError(
                f"{over} {silence_id}; `lagwise alert list` shows the active silences", code=ErrorCode.UNKNOWN_NAME
            )
        ended = {"starts_at": min(row.starts_at, now), "ends_at": now}
        changed = update(SILENCES).where(SILENCES.c.id == silence_id).values(ended).returning(SILENCES)
        made = silence_of(connection.execute(changed).one())
        record(connection, by, Action.UNSILENCE, _silence_words(made), "", now)
    return made


def acknowledge(engine: Engine, incident_id: str, *, comment: str, by: Operator, now: datetime) -> Acknowledgement:
    """Take an alert on: no more notifications until it ends, unless it becomes louder than it is."""
    with writing(engine) as connection:
        alert = _load_firing(connection, incident_id, by)
        taken = Acknowledgement(incident_id, alert.severity, by.name, now, comment.strip())
        connection.execute(delete(ACKNOWLEDGEMENTS).where(ACKNOWLEDGEMENTS.c.incident_id == incident_id))
        connection.execute(insert(ACKNOWLEDGEMENTS).values(columns_of(taken)))
        record(connection, by, Action.ACKNOWLEDGE, _alert_words(alert), taken.comment, now)
    return taken


def take_back(engine: Engine, incident_id: str, *, by: Operator, now: datetime) -> None:
    """Undo an acknowledgement: notifications go out again."""
    with writing(engine) as connection:
        alert = _load_firing(connection, incident_id, by)
        given = delete(ACKNOWLEDGEMENTS).where(ACKNOWLEDGEMENTS.c.incident_id == incident_id)
        if connection.execute(given).rowcount == 0:
            raise OperatorError(f"{incident_id} has not been acknowledged")
        record(connection, by, Action.TAKE_BACK, _alert_words(alert), "", now)


def record(connection: Connection, by: Operator, action: Action, subject: str, comment: str, now: datetime) -> None:
    """Record an action of an operator, in the transaction of the action."""
    row = {"at": now, "who": by.name, "via": by.via.value, "action": action.value}
    connection.execute(insert(ACTIONS).values(**row, subject=subject, comment=comment))


def record_test(engine: Engine, channel: str, result: str, *, by: Operator, now: datetime) -> None:
    """Record a test of a channel, and its result. It changes no alert, so it waits for no round."""
    by.check_acts_on_everything()
    with writing(engine, locks=False) as connection:
        record(connection, by, Action.TEST, f"channel {channel}", result, now)


@contextmanager
def writing(engine: Engine, *, locks: bool = True) -> Iterator[Connection]:
    """The transaction of an action; with ``locks``, no round of the alerts runs meanwhile.

    A mistyped path must not create a database: raises OperatorError.
    """
    path = sqlite_file(engine)
    if path is not None and not path.exists():
        raise OperatorError(
            f"there is no database {path}: name the folder of the running Lagwise with --data, or start "
            "`lagwise alert`",
            code=ErrorCode.DATABASE_MISSING,
        )
    create_tables(engine)
    with transaction(engine) as connection:
        if locks:
            lock(connection)
        yield connection


def _load_firing(connection: Connection, incident_id: str, by: Operator) -> Alert:
    """An alert that fires. To an operator who may not act on it, it reads like one that does not exist."""
    row = connection.execute(select(ALERTS).where(ALERTS.c.incident_id == incident_id)).one_or_none()
    if row is not None and not by.may_act_on(row.cluster, row.group):
        row = None
    if row is None or row.state is not AlertState.FIRING:
        state = "there is no alert" if row is None else f"the alert is {row.state}, not firing:"
        raise OperatorError(
            f"{state} {incident_id}; `lagwise alert list` shows the firing alerts", code=ErrorCode.UNKNOWN_NAME
        )
    return alert_of(row)


def _check(matcher: Matcher) -> None:
    given = matcher.patterns
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
    return ", ".join(f"{name} {pattern}" for name, pattern in matcher.patterns.items())


def _silence_words(made: Silence) -> str:
    return f"silence {made.id} ({matcher_words(made.matcher)}) until {made.ends_at:%Y-%m-%d %H:%M:%S} UTC"


def _alert_words(alert: Alert) -> str:
    return f"{alert.subject} ({alert.status})"
