"""Tables of alerts and messages in the operational database. :mod:`lagwise.operational.engine` opens it."""

from contextlib import suppress

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
    insert,
    select,
    text,
)

from lagwise.operational import lease as _lease  # noqa: F401 (declares the table of leases)
from lagwise.operational.columns import AnyText, UtcDateTime, metadata
from lagwise.operational.engine import make_database_folder, make_tables, shown, waits_for_locks
from lagwise.operational.engine import open_engine as open_engine
from lagwise.operational.engine import sqlite_file as sqlite_file
from lagwise.operational.engine import transaction as transaction
from lagwise.platform.errors import DatabaseError
from lagwise_alerts.outbox import operator_tables as _  # noqa: F401 (declares tables that `prepare` makes)

#: Version of the tables below and in `operator_tables`.
SCHEMA_VERSION = 3

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
    Column("kind", String(20), nullable=False),
    Column("cluster", AnyText),
    Column("group", AnyText),
    Column("rule", String(100), nullable=False),
    Column("severity", String(20), nullable=False),
    Column("status", String(50), nullable=False),
    Column("reason", String(50)),
    Column("state", String(20), nullable=False),
    Column("since", UtcDateTime, nullable=False),
    Column("started_at", UtcDateTime, nullable=False),
    Column("fired_at", UtcDateTime),
    Column("resolved_at", UtcDateTime),
    Column("resolution", String(50)),
    Column("sentence", AnyText, nullable=False),
    Column("numbers", JSON, nullable=False),
    Column("on_hold", Boolean, nullable=False),
    Column("last_as_of", UtcDateTime, nullable=False),
    Column("rule_timers", JSON, nullable=False),
    Column("clear_timer", JSON),
    Column("notified_rules", JSON, nullable=False),
    Column("peak_severity", String(20)),
    Column("channels", JSON, nullable=False),
    Column("sequence", Integer, nullable=False),
    Column("labels", JSON),
    Column("notified_at", UtcDateTime),
    Column("recent_starts", JSON),
    Column("flapping", Boolean),
    Column("inhibited_by", String(60)),
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


def prepare(engine: Engine) -> None:
    """Make the tables that do not exist yet. Raises DatabaseError where that fails, or they have another version."""
    make_database_folder(engine)
    with transaction(engine) as connection:
        _make_tables(engine, connection)


def try_out(engine: Engine) -> None:
    """Check that a start and a decision would work, without leaving anything in the database. Raises DatabaseError."""
    make_database_folder(engine)
    with suppress(_Undo), transaction(engine) as connection:
        _make_tables(engine, connection)
        lock(connection)
        raise _Undo


class _Undo(Exception):
    """Rolls a transaction back."""


def _make_tables(engine: Engine, connection: Connection) -> None:
    make_tables(connection, *metadata.sorted_tables)
    version = connection.scalar(select(SCHEMA.c.version).where(SCHEMA.c.component == "alerts"))
    if version is None:
        connection.execute(insert(SCHEMA).values(component="alerts", version=SCHEMA_VERSION))
    elif version > SCHEMA_VERSION:
        raise DatabaseError(
            f"the database {shown(engine)} was written by a newer Lagwise (its alert tables have version "
            f"{version}, this one knows {SCHEMA_VERSION}): upgrade Lagwise, or name another database"
        )
    elif version < SCHEMA_VERSION:
        raise DatabaseError(
            f"the database {shown(engine)} was written by a Lagwise before the first release (its alert tables have "
            f"version {version}, this one needs {SCHEMA_VERSION}): delete it, or name another database"
        )


def lock(connection: Connection) -> None:
    """Keep other alert processes on the same database out of this transaction (SQLite's is exclusive already)."""
    waits_for_locks(connection)
    connection.execute(select(SCHEMA.c.version).where(SCHEMA.c.component == "alerts").with_for_update())
