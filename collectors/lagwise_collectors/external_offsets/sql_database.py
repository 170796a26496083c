"""Offsets in a database, by a query of the user's own: sent as it is, in a transaction that is never committed."""

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from lagwise.config.external_offsets import SqlOffsets
from lagwise.domain.vocabulary import Engine as KeptBy
from lagwise.platform.database_drivers import missing_driver, timeout_options
from lagwise.platform.errors import ConfigError
from lagwise.platform.secrets import redact, resolve
from lagwise_collectors.external_offsets.model import OffsetSourceTrouble, SourceResult, groups_of_records

#: A query that returns more is not one about offsets.
_MAX_ROWS = 200_000
_COLUMNS = ("group", "topic", "partition", "offset")
_OPTIONAL = ("updated_at",)
#: Statements that make a session read-only, by the dialect's name. Where there is none the account's rights have to.
_READ_ONLY = {
    "sqlite": "PRAGMA query_only = ON",
    "postgresql": "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
    "mysql": "SET SESSION TRANSACTION READ ONLY",
    "mariadb": "SET SESSION TRANSACTION READ ONLY",
}
#: What drivers call the method that ends a query from another thread.
_CANCELS = ("interrupt", "cancel")


def read_sql(settings: SqlOffsets) -> SourceResult:
    """Every group that the query returns. Each read has a connection of its own: none is held open between samples."""
    try:
        engine = _engine(settings)
        try:
            with engine.connect() as connection, _cancelled_after(settings.timeout_seconds, connection):
                records = _records(connection, settings.query)
        finally:
            engine.dispose()
    except ConfigError as error:
        raise OffsetSourceTrouble("refused", str(error)) from None
    except ImportError as error:
        raise OffsetSourceTrouble("missing", missing_driver(error)) from None
    except DBAPIError as error:
        raise _trouble(error) from None
    except SQLAlchemyError as error:
        raise OffsetSourceTrouble("malformed", _line(error)) from None
    return groups_of_records(records, KeptBy.SQL, where=f"the query of {settings.name}")


def _engine(settings: SqlOffsets) -> Engine:
    try:
        url = make_url(resolve(settings.url))
    except ValueError:
        raise OffsetSourceTrouble("malformed", "the port in its URL is not a number") from None
    if url.get_backend_name() == "sqlite" and url.database and not url.database.startswith("file:"):
        # SQLite would make the file where there is none.
        path = quote(str(Path(url.database).expanduser().absolute()))
        url = url.set(database=f"file:{path}", query={"mode": "ro", "uri": "true"})
    options = timeout_options(url.get_dialect().driver, url.query, settings.timeout_seconds)
    engine = create_engine(url, poolclass=NullPool, connect_args=options)
    statement = _READ_ONLY.get(engine.dialect.name)
    if statement is not None:

        @event.listens_for(engine, "connect")
        def _read_only(connection: Any, _record: Any) -> None:
            cursor = connection.cursor()
            cursor.execute(statement)
            cursor.close()
            connection.commit()  # a setting of the session would be undone with the transaction it was made in

    return engine


def _records(connection: Connection, query: str) -> list[dict[str, Any]]:
    # Not through text(), which would take every ":name" in the query for a parameter; and without an empty list of
    # them, with which drivers take every "%" for one.
    answer = connection.exec_driver_sql(query, execution_options={"no_parameters": True})
    if not answer.returns_rows:
        raise OffsetSourceTrouble("malformed", "the query returns no rows: it must be a SELECT")
    # Some databases fold names to capitals.
    names = [name.lower() for name in answer.keys()]  # noqa: SIM118 (a result, no dict)
    missing = [name for name in _COLUMNS if name not in names]
    if missing:
        raise OffsetSourceTrouble("malformed", f"the query returns no column {missing[0]}; it must be called so")
    places = {name: names.index(name) for name in (*_COLUMNS, *_OPTIONAL) if name in names}
    rows = answer.fetchmany(_MAX_ROWS + 1)
    if len(rows) > _MAX_ROWS:
        raise OffsetSourceTrouble("malformed", f"the query returns more than {_MAX_ROWS} rows")
    return [{name: row[place] for name, place in places.items()} for row in rows]


@contextlib.contextmanager
def _cancelled_after(seconds: float, connection: Connection) -> Iterator[None]:
    """End a query that takes longer, where the driver can: its answer would come too late."""
    raw = connection.connection.dbapi_connection

    def cancel() -> None:
        # It may have ended this very moment, and every driver says so in its own way.
        with contextlib.suppress(Exception):
            next((getattr(raw, name) for name in _CANCELS if hasattr(raw, name)), lambda: None)()

    timer = threading.Timer(seconds, cancel)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _trouble(error: DBAPIError) -> OffsetSourceTrouble:
    """By what drivers raise: they agree on classes of errors and on little else."""
    reason = _line(error)
    if any(word in reason.lower() for word in ("password", "authentication", "access denied", "permission denied")):
        return OffsetSourceTrouble("refused", reason)
    if "interrupted" in reason.lower() or "cancel" in reason.lower():
        return OffsetSourceTrouble("timeout", reason)
    is_gone = error.connection_invalidated or (isinstance(error, OperationalError) and error.statement is None)
    if is_gone or isinstance(error, InterfaceError):
        return OffsetSourceTrouble("unreachable", reason)
    return OffsetSourceTrouble("malformed", reason)


def _line(error: SQLAlchemyError) -> str:
    """The driver's words in one line, without the query."""
    reason = str(error.orig if isinstance(error, DBAPIError) and error.orig is not None else error)
    return redact(reason.strip().splitlines()[0] if reason.strip() else type(error).__name__)
