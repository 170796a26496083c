"""The tables of the alerts in the operational database. :mod:`lagwise.operational.engine` opens it. The migrations in
``lagwise/operational/migrations`` make them: a change here needs one there.

Columns convert their values: a row holds the same types as the model.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, fields
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    Connection,
    Engine,
    Index,
    Integer,
    String,
    Table,
    Text,
    UniqueConstraint,
    select,
    text,
)

from lagwise.domain.correlation import SharedThing, ThingKind
from lagwise.domain.group_record import numbers_of
from lagwise.operational import lease as _lease  # noqa: F401 (declares the table of leases)
from lagwise.operational.columns import AnyText, Json, UtcDateTime, Word, metadata
from lagwise.operational.engine import make_database_folder, waits_for_locks
from lagwise.operational.engine import open_engine as open_engine
from lagwise.operational.engine import sqlite_file as sqlite_file
from lagwise.operational.engine import transaction as transaction
from lagwise.operational.migrate import migrate_database, migrate_within
from lagwise_alerts.model import AlertEvent, AlertKind, AlertState, Resolution, RuleTimer, Severity

Value = TypeVar("Value")

_NAMES = Json(list, tuple)
_NUMBERS = Json(asdict, numbers_of)
_TIMER = Json(asdict, lambda stored: RuleTimer(**stored))
_TIMERS = Json(lambda timers: list(map(asdict, timers)), lambda stored: tuple(RuleTimer(**one) for one in stored))
_THINGS = Json(
    lambda things: list(map(asdict, things)),
    lambda stored: tuple(SharedThing(**one | {"kind": ThingKind(one["kind"])}) for one in stored),
)
_TIMES = Json(lambda times: [at.isoformat() for at in times], lambda stored: tuple(map(datetime.fromisoformat, stored)))

#: Its one row is what alert processes lock.
SCHEMA = Table(
    "lagwise_schema",
    metadata,
    Column("component", String(50), primary_key=True),
    Column("version", Integer, nullable=False),
)

_OPEN = text("state in ('pending', 'firing')")

ALERTS = Table(
    "alerts",
    metadata,
    Column("incident_id", String(60), primary_key=True),
    Column("fingerprint", String(16), nullable=False),
    Column("kind", Word(AlertKind, 20), nullable=False),
    Column("cluster", AnyText),
    Column("group", AnyText),
    Column("things", _THINGS, nullable=False),
    Column("rule", String(100), nullable=False),
    Column("severity", Word(Severity, 20), nullable=False),
    Column("status", String(50), nullable=False),
    Column("reason", String(50)),
    Column("state", Word(AlertState, 20), nullable=False),
    Column("since", UtcDateTime, nullable=False),
    Column("started_at", UtcDateTime, nullable=False),
    Column("fired_at", UtcDateTime),
    Column("resolved_at", UtcDateTime),
    Column("resolution", Word(Resolution)),
    Column("sentence", AnyText, nullable=False),
    Column("numbers", _NUMBERS, nullable=False),
    Column("on_hold", Boolean, nullable=False),
    Column("last_as_of", UtcDateTime, nullable=False),
    Column("rule_timers", _TIMERS, nullable=False),
    Column("clear_timer", _TIMER),
    Column("notified_rules", _NAMES, nullable=False),
    Column("peak_severity", Word(Severity, 20)),
    Column("channels", _NAMES, nullable=False),
    Column("sequence", Integer, nullable=False),
    Column("labels", JSON, nullable=False),
    Column("notified_at", UtcDateTime),
    Column("recent_starts", _TIMES, nullable=False),
    Column("flapping", Boolean, nullable=False),
    Column("inhibited_by", String(60)),
    Column("worsened_at", UtcDateTime),
    Column("shared_incident", String(60)),
    Index("alerts_one_open", "fingerprint", unique=True, sqlite_where=_OPEN, postgresql_where=_OPEN),
    Index("alerts_by_end", "state", "resolved_at"),
)

DELIVERIES = Table(
    "deliveries",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("idempotency_key", String(100), nullable=False),
    Column("channel", String(100), nullable=False),
    Column("incident_id", String(60), nullable=False),
    Column("event", String(20), nullable=False),
    Column("payload", Text, nullable=False),
    Column("state", String(20), nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("next_attempt_at", UtcDateTime, nullable=False),
    Column("last_error", AnyText),
    Column("created_at", UtcDateTime, nullable=False),
    Column("delivered_at", UtcDateTime),
    UniqueConstraint("channel", "idempotency_key"),
    Index("deliveries_queue", "state", "channel", "id"),
    Index("deliveries_by_incident", "incident_id"),
    sqlite_autoincrement=True,  # an id is never used again: the ids are the order of delivery
)

ACTIVE_GROUPS = Table(
    "active_groups",
    metadata,
    Column("fingerprint", String(16), primary_key=True),
    Column("cluster", AnyText, nullable=False),
    Column("group", AnyText, nullable=False),
    Column("seen_at", UtcDateTime, nullable=False),
)

#: Patterns are regular expressions on the whole value; null is any.
SILENCES = Table(
    "silences",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("cluster", AnyText),
    Column("group", AnyText),
    Column("kind", AnyText),
    Column("severity", AnyText),
    Column("starts_at", UtcDateTime, nullable=False),
    Column("ends_at", UtcDateTime, nullable=False),
    Column("comment", AnyText, nullable=False),
    Column("created_by", AnyText, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Index("silences_by_end", "ends_at"),
    sqlite_autoincrement=True,
)

#: ``severity`` is how loud the alert was then. A louder alert is not acknowledged.
ACKNOWLEDGEMENTS = Table(
    "acknowledgements",
    metadata,
    Column("incident_id", String(60), primary_key=True),
    Column("severity", Word(Severity, 20), nullable=False),
    Column("by", AnyText, nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Column("comment", AnyText, nullable=False),
)

#: One row per incident with a withheld notification. It is sent once nothing mutes it any more, if it still applies.
WITHHELD = Table(
    "withheld",
    metadata,
    Column("incident_id", String(60), primary_key=True),
    Column("event", Word(AlertEvent, 20), nullable=False),
    Column("rule", String(100), nullable=False),
    Column("channels", _NAMES, nullable=False),
    Column("previous_status", String(50)),
    Column("previous_severity", Word(Severity, 20)),
    Column("withheld_at", UtcDateTime, nullable=False),
)

#: Which messages are part of which summary: both are ids of ``deliveries``.
SUMMARY_MEMBERS = Table(
    "summarised",
    metadata,
    Column("delivery_id", Integer, primary_key=True, autoincrement=False),
    Column("summary_id", Integer, nullable=False),
    Index("summarised_by_summary", "summary_id"),
)

#: A name for an address of the dashboard: the path of its page, and its query.
SAVED_VIEWS = Table(
    "saved_views",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("name", AnyText, nullable=False),
    Column("page", String(50), nullable=False),
    Column("query", AnyText, nullable=False),
    Column("saved_by", AnyText, nullable=False),
    Column("saved_at", UtcDateTime, nullable=False),
    sqlite_autoincrement=True,  # a form that is still open never means another view
)

#: Every action of an operator. ``via`` is cli or dashboard, ``subject`` what it was done to, in words.
ACTIONS = Table(
    "actions",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("at", UtcDateTime, nullable=False),
    Column("who", AnyText, nullable=False),
    Column("via", String(20), nullable=False),
    Column("action", String(30), nullable=False),
    Column("subject", AnyText, nullable=False),
    Column("comment", AnyText, nullable=False),
    Index("actions_by_time", "at"),
    sqlite_autoincrement=True,
)


#: Databases limit the values of one statement (SQLite to 32,766, others to fewer).
_VALUES_AT_A_TIME = 500


def in_batches(values: Sequence[Value]) -> Iterator[Sequence[Value]]:
    """The values in batches that fit into one statement."""
    return (values[i : i + _VALUES_AT_A_TIME] for i in range(0, len(values), _VALUES_AT_A_TIME))


def columns_of(value: Any) -> dict[str, Any]:
    """The fields of a dataclass by name, for a table whose columns are called the same."""
    return {one.name: getattr(value, one.name) for one in fields(value)}


def create_tables(engine: Engine) -> None:
    """Make the tables, or bring those of an older version up to date. Raises DatabaseError."""
    migrate_database(engine)


def try_out(engine: Engine) -> None:
    """Check that a start and a decision would work, without leaving anything in the database. Raises DatabaseError."""
    make_database_folder(engine)
    with suppress(_Undo), transaction(engine) as connection:
        migrate_within(engine, connection)
        lock(connection)
        raise _Undo


class _Undo(Exception):
    """Rolls a transaction back."""


def lock(connection: Connection) -> None:
    """Keep other alert processes on the same database out of this transaction (SQLite's is exclusive already)."""
    waits_for_locks(connection)
    connection.execute(select(SCHEMA.c.version).where(SCHEMA.c.component == "alerts").with_for_update())
