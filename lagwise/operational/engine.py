"""The operational database: how it is opened, and how a transaction on it goes.

SQLite in the state folder by default, PostgreSQL (or what else SQLAlchemy knows) by setting. Times are UTC. A write
transaction takes the write lock at its beginning, so that what it read is still true when it commits.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Table, create_engine, event, func, make_url, select
from sqlalchemy import Engine as Engine
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SQLAlchemyError

from lagwise.operational.columns import metadata
from lagwise.platform.database_drivers import missing_driver, timeout_options
from lagwise.platform.error_codes import ErrorCode, code_of_system
from lagwise.platform.errors import ConfigError, DatabaseError, DatabaseGone
from lagwise.platform.logs import clean
from lagwise.platform.private_files import close, make_folder, opened
from lagwise.platform.secrets import resolve

#: How long to wait for another process to finish its transaction.
BUSY_SECONDS = 5.0
#: How long a server may take to accept a connection.
_CONNECT_SECONDS = 10.0
#: PostgreSQL's lock of this number keeps two processes from making the same tables at once: "Lagwise" in ASCII.
_MAKING_TABLES = 0x4C616777697365

_READ_ONLY = "lagwise_read_only"
_SUCH_AS = "give a SQLAlchemy URL such as postgresql+psycopg://user@host/name"


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
                connect_args=timeout_options(parsed.get_dialect().driver, parsed.query, _CONNECT_SECONDS),
                isolation_level="READ COMMITTED",
                pool_pre_ping=True,  # a server that was restarted meanwhile costs nothing
            )
        engine = create_engine(parsed, connect_args={"timeout": BUSY_SECONDS})
    except ImportError as error:
        raise ConfigError(f"database: {missing_driver(error)}", code=ErrorCode.DRIVER_MISSING) from None
    except ValueError:
        raise ConfigError(f"database: the port is not a number; {_SUCH_AS}") from None
    except (ArgumentError, NoSuchModuleError) as error:
        raise ConfigError(f"database: {clean(str(error).splitlines()[0])}; {_SUCH_AS}") from None
    event.listen(engine, "do_connect", lambda *_args: _close_to_others(engine))
    event.listen(engine, "connect", _set_up_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _close_to_others(engine: Engine) -> None:
    """Only this account may read what receivers answered. SQLite gives its other files the database's own mode."""
    path = sqlite_file(engine)
    if path is None or not path.parent.is_dir():
        return
    with suppress(OSError), opened(path, "ab"):  # SQLite says what is wrong with one that cannot be made
        pass
    for suffix in ("-journal", "-wal", "-shm"):  # of an earlier Lagwise
        close(path.with_name(path.name + suffix))


def _set_up_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # transactions begin where we say (`_begin_sqlite`), not where the driver guesses
    # No write-ahead log: its index is a file mapped into memory, and where that cannot be written any more (a read-only
    # remount) the system ends the process by SIGBUS. One of an earlier Lagwise goes once no other process has it open.
    with suppress(sqlite3.OperationalError):
        connection.execute("pragma journal_mode = PERSIST").close()
    connection.execute("pragma synchronous = FULL").close()


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


def make_database_folder(engine: Engine) -> None:
    """Make the folder of an SQLite database where there is none. Raises DatabaseError."""
    path = sqlite_file(engine)
    if path is not None:
        try:
            make_folder(path.parent)
        except OSError as error:
            raise DatabaseError(
                f"cannot make the folder of the database {path}: {error.strerror}",
                code=code_of_system(error, ErrorCode.DATABASE_UNUSABLE),
            ) from error


def make_tables(connection: Connection, *tables: Table) -> None:
    """Make the tables that do not exist yet."""
    wait_for_other_makers(connection)
    metadata.create_all(connection, tables=list(tables))


def wait_for_other_makers(connection: Connection) -> None:
    """Wait for a process that makes or changes tables, and keep others from it until the end of this transaction."""
    if waits_for_locks(connection):
        connection.execute(select(func.pg_advisory_xact_lock(_MAKING_TABLES)))


def waits_for_locks(connection: Connection) -> bool:
    """Whether this is PostgreSQL. It then waits no longer than SQLite would, for a process that hangs."""
    if connection.dialect.name != "postgresql":
        return False
    connection.exec_driver_sql(f"SET LOCAL lock_timeout = {int(1000 * BUSY_SECONDS)}")
    return True


def sqlite_file(engine: Engine) -> Path | None:
    """The file of an SQLite database; None for every other one."""
    name = engine.url.database if engine.url.get_backend_name() == "sqlite" else None
    return Path(name) if name and name != ":memory:" else None


def shown(engine: Engine) -> str:
    """The database's address without its password."""
    return clean(engine.url.render_as_string(hide_password=True))


def _one_line(engine: Engine, error: SQLAlchemyError) -> DatabaseError:
    """Not the library's own text: it holds the statement and its parameters."""
    cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    words = str(cause).strip().split("\n")[0] or type(cause).__name__
    is_gone = isinstance(error, DBAPIError) and (error.connection_invalidated or error.statement is None)
    kind = DatabaseGone if is_gone else DatabaseError
    return kind(
        f"cannot use the database {shown(engine)}: {clean(words)}",
        code=code_of_system(cause, ErrorCode.DATABASE_UNREACHABLE if is_gone else ErrorCode.DATABASE_UNUSABLE),
    )
