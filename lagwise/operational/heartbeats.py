"""Heartbeats in the operational database, where the parts on all machines see them.

Besides the file that :mod:`lagwise.platform.health` writes for the same machine: probes and the supervisor read that.
"""

import contextlib
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sqlalchemy import BigInteger, Column, Connection, Engine, Integer, String, Table, delete, insert, inspect, select
from sqlalchemy import update as updated

from lagwise.operational.columns import AnyText, UtcDateTime, metadata
from lagwise.operational.engine import make_tables, open_engine, sqlite_file, transaction
from lagwise.operational.lease import Process
from lagwise.platform.errors import ConfigError, DatabaseError
from lagwise.platform.health import Heart, as_line

#: How often a process writes its heartbeat here, if it has reported something.
WRITE_SECONDS = 10.0
#: A process that has reported nothing for so long has ended without a word, or hangs: the longest that one is at work
#: between two reports.
SILENT_SECONDS = 900.0
#: How long one that is silent is still shown.
_KEPT = timedelta(days=1)
#: How long the end of a process waits for the database.
_END_SECONDS = 2.0

HEARTBEATS = Table(
    "heartbeats",
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=False),  # another one each time that a process starts
    Column("process", String(50), nullable=False),
    Column("at", UtcDateTime, nullable=False),  # by the clock of its machine
    Column("line", AnyText, nullable=False),
    Column("host", AnyText, nullable=False),
    Column("pid", Integer, nullable=False),
    Column("machine", AnyText),
    Column("started", BigInteger),
)


@dataclass(frozen=True, slots=True)
class SharedBeat:
    """The last report of a process: ``process`` is its name, ``where`` the process itself."""

    process: str
    at: datetime
    line: str
    where: Process

    def is_silent(self, now: datetime) -> bool:
        """Whether it has reported nothing for too long."""
        return (now - self.at).total_seconds() > SILENT_SECONDS


@contextmanager
def beating(state: Path, process: str, database: str) -> Iterator[Heart]:
    """The heart of this process (its name), whose beats go into a file below ``state`` and into the database of this
    URL. At the end, its row there goes: who ended in order is not missing.

    A database that cannot be used costs the rows there and nothing else; who needs it reports it.
    """
    try:
        engine = open_engine(database)
    except ConfigError:
        yield Heart(state, process)
        return
    writer = _Writer(engine, process)
    writer.start()
    try:
        yield Heart(state, process, writer.tell)
    finally:
        writer.stop()
        writer.join(_END_SECONDS)


def read_heartbeats(engine: Engine, now: datetime) -> list[SharedBeat]:
    """The last report of every process of the last day, by name and host. Makes nothing. Raises DatabaseError."""
    file = sqlite_file(engine)
    if file is not None and not file.exists():
        return []
    with transaction(engine, read_only=True) as connection:
        if not inspect(connection).has_table(HEARTBEATS.name):
            return []
        columns = HEARTBEATS.c
        recent = select(HEARTBEATS).where(columns.at > now - _KEPT)
        rows = connection.execute(recent.order_by(columns.process, columns.host, columns.at)).all()
    return [SharedBeat(r.process, r.at, r.line, Process(r.host, r.pid, r.machine, r.started)) for r in rows]


class _Writer(threading.Thread):
    """Writes the newest report every few seconds, so that work never waits for the database."""

    def __init__(self, engine: Engine, process: str) -> None:
        super().__init__(name="heartbeats", daemon=True)
        self._engine = engine
        self._row = {"id": secrets.randbits(62), "process": process, **asdict(Process.of_this())}
        self._lock = threading.Lock()
        self._told: tuple[datetime, str] | None = None
        self._is_known = False
        self._stopping = threading.Event()
        self._wakes = threading.Event()

    def tell(self, line: str) -> None:
        """Take a report; the first one is written at once."""
        with self._lock:
            is_first, self._told = self._told is None and not self._is_known, (datetime.now(UTC), as_line(line))
        if is_first:
            self._wakes.set()

    def stop(self) -> None:
        """End, and forget the process."""
        self._stopping.set()
        self._wakes.set()

    def run(self) -> None:
        while not self._stopping.is_set():
            self._wakes.wait(WRITE_SECONDS)
            self._wakes.clear()
            with contextlib.suppress(DatabaseError):  # again with the next report
                self._write()
        with contextlib.suppress(DatabaseError):
            if self._is_known:
                with transaction(self._engine) as connection:
                    connection.execute(delete(HEARTBEATS).where(HEARTBEATS.c.id == self._row["id"]))
        self._engine.dispose()

    def _write(self) -> None:
        with self._lock:
            told = self._told
        if told is None or self._stopping.is_set():
            return
        report = {"at": told[0], "line": told[1]}
        with transaction(self._engine) as connection:
            if not self._is_known:
                make_tables(connection, HEARTBEATS)
                _forget_ended(connection, told[0])
            mine = updated(HEARTBEATS).where(HEARTBEATS.c.id == self._row["id"]).values(**report)
            if connection.execute(mine).rowcount == 0:
                connection.execute(insert(HEARTBEATS).values(**self._row, **report))
        self._is_known = True
        with self._lock:
            if self._told == told:
                self._told = None


def _forget_ended(connection: Connection, now: datetime) -> None:
    """Forget what was killed on this machine, and what has long been silent."""
    for row in connection.execute(select(HEARTBEATS)).all():
        if row.at < now - _KEPT or Process(row.host, row.pid, row.machine, row.started).has_ended():
            connection.execute(delete(HEARTBEATS).where(HEARTBEATS.c.id == row.id))
