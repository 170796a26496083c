"""The operational database: what it holds, and how it is opened.

SQLite in the state folder by default, PostgreSQL (or what else SQLAlchemy knows) by setting. Times are UTC. A write
transaction takes the write lock at its beginning, so that what it read is still true when it commits.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

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
    create_engine,
    event,
    func,
    insert,
    inspect,
    make_url,
    select,
    text,
    update,
)
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.schema import ExecutableDDLElement

from lagwise.alerts import operator_tables as _  # noqa: F401 (declares tables that `prepare` makes)
from lagwise.alerts.columns import AnyText, UtcDateTime, metadata
from lagwise.drivers import missing_driver, patience
from lagwise.errors import ConfigError, DatabaseError, DatabaseGone
from lagwise.logs import clean
from lagwise.private_files import close, make_folder, opened
from lagwise.secrets import resolve

#: Version of the tables below and in `operator_tables`. A database that says more was written by a newer Lagwise.
SCHEMA_VERSION = 2
#: How long to wait for another process to finish its transaction.
BUSY_SECONDS = 5.0
#: How long a server may take to accept a connection.
_CONNECT_SECONDS = 10.0
#: PostgreSQL's lock of this number keeps two processes from making the same tables at once: "Lagwise" in ASCII.
_MAKING_TABLES = 0x4C616777697365

_READ_ONLY = "lagwise_read_only"
_SUCH_AS = "give a SQLAlchemy URL such as postgresql+psycopg://user@host/name"


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
    Column("clocks", JSON, nullable=False),
    Column("calm", JSON),
    Column("told", JSON, nullable=False),
    Column("peak_severity", String(20)),
    Column("channels", JSON, nullable=False),
    Column("sequence", Integer, nullable=False),
    Column("labels", JSON),
    Column("told_at", UtcDateTime),
    Column("begun_at", JSON),
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


def open_engine(url: str) -> Engine:
    """An engine for a SQLAlchemy URL (or a reference to one). Connects to nothing yet.

    Raises ConfigError where the URL is none, or its driver is not installed.
    """
    resolved = resolve(url)
    try:
        parsed = make_url(resolved)
        if parsed.get_backend_name() != "sqlite":
            # Read committed: what is read after waiting for the lock is what the one before has left there, also where
            # the server's own default is to look at everything as it was when the transaction began.
            return create_engine(
                parsed,
                connect_args=patience(parsed.get_dialect().driver, parsed.query, _CONNECT_SECONDS),
                isolation_level="READ COMMITTED",
                pool_pre_ping=True,  # a server that was restarted meanwhile costs nothing
            )
        engine = create_engine(parsed, connect_args={"timeout": BUSY_SECONDS})
    except ImportError as error:
        raise ConfigError(f"database: {missing_driver(error)}") from None
    except ValueError:
        raise ConfigError(f"database: what stands for a port is no number; {_SUCH_AS}") from None
    except (ArgumentError, NoSuchModuleError) as error:
        raise ConfigError(f"database: {clean(str(error).splitlines()[0])}; {_SUCH_AS}") from None
    event.listen(engine, "do_connect", lambda *_args: _close_to_others(engine))
    event.listen(engine, "connect", _set_up_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _close_to_others(engine: Engine) -> None:
    """What receivers answered is for nobody else's eyes. SQLite gives the files beside the database its own mode."""
    path = sqlite_file(engine)
    if path is None or not path.parent.is_dir():
        return
    with suppress(OSError), opened(path, "ab"):  # SQLite says what is wrong with one that cannot be made
        pass
    for beside in ("-wal", "-shm"):  # of an earlier Lagwise
        close(path.with_name(path.name + beside))


def _set_up_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # transactions begin where we say (`_begin_sqlite`), not where the driver guesses
    for pragma in ("journal_mode = WAL", "synchronous = FULL"):
        connection.execute(f"pragma {pragma}").close()


def _begin_sqlite(connection: Connection) -> None:
    read_only = connection.get_execution_options().get(_READ_ONLY, False)
    connection.exec_driver_sql("BEGIN" if read_only else "BEGIN IMMEDIATE")


@contextmanager
def transaction(engine: Engine, *, read_only: bool = False) -> Iterator[Connection]:
    """One transaction: committed at the end, undone on any error. Raises DatabaseError, whose message is one line."""
    try:
        with engine.connect().execution_options(**{_READ_ONLY: read_only}) as connection, connection.begin():
            yield connection
    except SQLAlchemyError as error:
        raise _one_line(engine, error) from error


def prepare(engine: Engine) -> None:
    """Make the tables that do not exist yet. Raises DatabaseError where that fails or they are of a newer version."""
    _make_folder(engine)
    with transaction(engine) as connection:
        _make_tables(engine, connection)


def try_out(engine: Engine) -> None:
    """Do what a start and a decision need, and leave nothing of it in the database. Raises DatabaseError."""
    _make_folder(engine)
    with suppress(_Undo), transaction(engine) as connection:
        _make_tables(engine, connection)
        lock(connection)
        raise _Undo


class _Undo(Exception):
    """Let a transaction be undone."""


def _make_folder(engine: Engine) -> None:
    path = sqlite_file(engine)
    if path is not None:
        try:
            make_folder(path.parent)
        except OSError as error:
            raise DatabaseError(f"cannot make the folder of the database {path}: {error.strerror}") from error


def _make_tables(engine: Engine, connection: Connection) -> None:
    if _waits_for_locks(connection):
        connection.execute(select(func.pg_advisory_xact_lock(_MAKING_TABLES)))
    metadata.create_all(connection)
    _add_columns(connection)
    version = connection.scalar(select(SCHEMA.c.version).where(SCHEMA.c.component == "alerts"))
    if version is None:
        connection.execute(insert(SCHEMA).values(component="alerts", version=SCHEMA_VERSION))
    elif version > SCHEMA_VERSION:
        raise DatabaseError(
            f"the database {_shown(engine)} was written by a newer Lagwise (its alert tables have version "
            f"{version}, this one knows {SCHEMA_VERSION}): upgrade Lagwise, or name another database"
        )
    elif version < SCHEMA_VERSION:
        _upgrade(connection)


def _upgrade(connection: Connection) -> None:
    """From version 1: silences and the like are tables of their own, made like all that do not exist yet."""
    connection.execute(update(SCHEMA).where(SCHEMA.c.component == "alerts").values(version=SCHEMA_VERSION))


def _add_columns(connection: Connection) -> None:
    """Add what the tables of an earlier Lagwise lack. All that came later may be null: it can go on with them."""
    inspector = inspect(connection)
    for table in metadata.sorted_tables:
        there = {column["name"] for column in inspector.get_columns(table.name)}
        for column in table.columns:
            if column.name not in there:
                connection.execute(AddColumn(column))


class AddColumn(ExecutableDDLElement):
    """``ALTER TABLE … ADD COLUMN …``, in the words of the database."""

    def __init__(self, column: Column[Any]) -> None:
        self.column = column


@compiles(AddColumn)
def _add_column(element: AddColumn, compiler: Any, **_options: Any) -> str:
    table = compiler.preparer.format_table(element.column.table)
    return f"ALTER TABLE {table} ADD COLUMN {compiler.get_column_specification(element.column)}"


def lock(connection: Connection) -> None:
    """Keep other alert processes on the same database out of this transaction (SQLite's is exclusive already)."""
    _waits_for_locks(connection)
    connection.execute(select(SCHEMA.c.version).where(SCHEMA.c.component == "alerts").with_for_update())


def _waits_for_locks(connection: Connection) -> bool:
    """Whether this is PostgreSQL. It then waits no longer than SQLite would, for a process that hangs."""
    if connection.dialect.name != "postgresql":
        return False
    connection.exec_driver_sql(f"SET LOCAL lock_timeout = {int(1000 * BUSY_SECONDS)}")
    return True


def sqlite_file(engine: Engine) -> Path | None:
    """The file of an SQLite database; None for every other one."""
    name = engine.url.database if engine.url.get_backend_name() == "sqlite" else None
    return Path(name) if name and name != ":memory:" else None


def _shown(engine: Engine) -> str:
    return clean(engine.url.render_as_string(hide_password=True))


def _one_line(engine: Engine, error: SQLAlchemyError) -> DatabaseError:
    """Not the library's own text: it holds the statement and its parameters."""
    cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    words = str(cause).strip().split("\n")[0] or type(cause).__name__
    is_gone = isinstance(error, DBAPIError) and (error.connection_invalidated or error.statement is None)
    return (DatabaseGone if is_gone else DatabaseError)(f"cannot use the database {_shown(engine)}: {clean(words)}")
