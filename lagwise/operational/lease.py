"""A lease: of several processes that could do the same, one does it.

One row of the operational database per scope. The holder renews it, the others watch it. No two clocks are ever
compared: a holder may act for HOLD_SECONDS from the moment *before* its last renewal, by its own clock, and another one
takes over when it has seen no renewal for TAKE_OVER_SECONDS *after* the last one that it saw, by its own. Since nothing
is seen before it was done, the first has stopped at least TAKE_OVER_SECONDS − HOLD_SECONDS before the second begins,
whatever the clocks say, how long the database takes, and however long the first process was held up.
"""

import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Engine,
    Integer,
    Row,
    String,
    Table,
    insert,
    inspect,
    select,
    update,
)

from lagwise.operational.columns import AnyText, UtcDateTime, metadata
from lagwise.operational.engine import make_database_folder, make_tables, sqlite_file, transaction, waits_for_locks
from lagwise.platform.error_codes import ErrorCode
from lagwise.platform.errors import DatabaseError

#: How often a lease is renewed, or looked at.
RENEW_SECONDS = 3.0
#: How long its holder may act after a renewal. What was begun by then (an attempt to deliver) has until
#: TAKE_OVER_SECONDS to end.
HOLD_SECONDS = 15.0
#: How long without a renewal until another takes over.
TAKE_OVER_SECONDS = 45.0

LEASES = Table(
    "leases",
    metadata,
    Column("scope", String(300), primary_key=True),
    Column("hold_id", BigInteger),  # another one each time that the lease is taken; null where it was given back
    Column("renewals", BigInteger, nullable=False),
    Column("since", UtcDateTime, nullable=False),  # by the holder's clock: for people
    Column("host", AnyText, nullable=False),
    Column("pid", Integer, nullable=False),
    Column("machine", AnyText),
    Column("started", BigInteger),
)


class NotHeld(DatabaseError):
    """The lease is not, or no longer, this process's."""

    code = ErrorCode.ALREADY_RUNNING


@dataclass(frozen=True, slots=True)
class Process:
    """A process. ``machine`` is the running system in which ``pid`` counts, ``started`` when it was started there, in
    clock ticks: equal numbers mean the same process. Both are None where the system is not Linux."""

    host: str
    pid: int
    machine: str | None
    started: int | None

    @classmethod
    def of_this(cls) -> "Process":
        """This process."""
        return cls(socket.gethostname(), os.getpid(), _machine(), _started(os.getpid()))

    def is_of_this_machine(self) -> bool:
        """Whether its number counts here."""
        return self.machine is not None and self.machine == _machine()

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"

    @property
    def pid_here(self) -> int | None:
        """Its number if that counts here. In containers, every process is number 1 of its own system."""
        is_here = self.is_of_this_machine() or (self.machine is None and self.host == socket.gethostname())
        return self.pid if is_here and self.pid != os.getpid() else None

    def has_ended(self) -> bool:
        """Whether it certainly runs no more, which can only be known of a process of this machine."""
        if not self.is_of_this_machine():
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            pass  # another user's, whose entry in /proc may be hidden
        return _started(self.pid) not in (self.started, None)


@dataclass(frozen=True, slots=True)
class Holder:
    """Who has a lease, and since when by that process's clock."""

    process: Process
    since: datetime

    def __str__(self) -> str:
        return f"{self.process} (since {self.since:%Y-%m-%d %H:%M:%S} UTC)"


@dataclass(frozen=True, slots=True)
class Hold:
    """A lease that a process has, or has not given back."""

    hold_id: int
    holder: Holder


def holds(engine: Engine) -> dict[str, Hold]:
    """The leases that are held, by scope. Makes nothing. Raises DatabaseError."""
    file = sqlite_file(engine)
    if file is not None and not file.exists():
        return {}
    with transaction(engine, read_only=True) as connection:
        if not inspect(connection).has_table(LEASES.name):
            return {}
        rows = connection.execute(select(LEASES).where(LEASES.c.hold_id.is_not(None))).all()
    return {row.scope: Hold(row.hold_id, Holder(_process(row), row.since)) for row in rows}


def boot_seconds() -> float:
    """Seconds that also pass while the machine sleeps."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)


class Lease:
    """One process's side of a lease. May be used from threads.

    :meth:`ask` is to be called every RENEW_SECONDS; it takes the lease where it is free. ``clock`` is seconds that
    never go back, ``now`` the time for people.
    """

    def __init__(
        self,
        engine: Engine,
        scope: str,
        *,
        process: Process | None = None,
        clock: Callable[[], float] = boot_seconds,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.scope = scope
        #: Who else had it when the database was asked last; None if no other process had.
        self.holder: Holder | None = None
        #: Whether that one has been seen to live.
        self.holder_lives = False
        #: Why the database could not be asked the last time; None where it could.
        self.trouble: DatabaseError | None = None
        #: What names this hold, as long as it lasts; None where this process has never had the lease, or has lost it.
        self.hold_id: int | None = None
        self._engine = engine
        self._process = process or Process.of_this()
        self._clock = clock
        self._now = now
        self._prepared = False
        self._offered = self._new_hold_id()
        self._held_until = float("-inf")
        self._seen: tuple[int, int] | None = None
        self._seen_at = 0.0
        self._asked_at: float | None = None
        self._unreachable_since: float | None = None
        self._lock = threading.Lock()

    @property
    def is_shared(self) -> bool:
        """Whether other machines can use the database, too."""
        return self._engine.url.get_backend_name() != "sqlite"

    def holds(self, for_seconds: float = 0.0) -> bool:
        """Whether this process may act now, and for so long from now on."""
        return self._clock() + for_seconds < self._held_until

    def asked_lately(self) -> bool:
        """Whether what is known is of now. It is not when this process was held up: stopped, starved, suspended."""
        return self._asked_at is not None and self._clock() - self._asked_at < HOLD_SECONDS

    def unreachable_seconds(self) -> float:
        """For how long the database could not be asked; 0 where it could the last time."""
        return 0.0 if self._unreachable_since is None else self._clock() - self._unreachable_since

    def ask(self) -> None:
        """Take the lease, renew it, or see who has it. What stands in the way becomes ``trouble``."""
        ask_together([self])

    def _answered(self, holder: Holder | None, began: float) -> None:
        """The database was asked since ``began``, and said who else has the lease."""
        self.trouble, self._unreachable_since, self._prepared = None, None, True
        self.holder = holder
        if holder is None:
            self.hold_id, self._held_until = self._offered, began + HOLD_SECONDS
        else:
            self._let_go()
        self._asked_at = self._clock()

    def _not_answered(self, error: DatabaseError, began: float) -> None:
        """The database could not be asked."""
        self.trouble, self._prepared = error, False
        if self._unreachable_since is None:
            self._unreachable_since = began
        self._asked_at = self._clock()

    def check(self, connection: Connection) -> None:
        """Raise NotHeld unless the lease is this process's until the end of this transaction, whatever the clocks."""
        waits_for_locks(connection)
        row = connection.execute(select(LEASES).where(LEASES.c.scope == self.scope).with_for_update()).one_or_none()
        if row is None or row.hold_id is None or row.hold_id != self.hold_id:
            raise NotHeld(f"another process has taken over the {self.scope}")

    def give_back(self) -> None:
        """Let another one have it at once. A database that cannot be asked makes it wait for TAKE_OVER_SECONDS."""
        with self._lock:
            mine = update(LEASES).where(LEASES.c.scope == self.scope, LEASES.c.hold_id == self._offered)
            is_held = self.hold_id is not None
            self._let_go()
            if not is_held:
                return
            with suppress(DatabaseError), transaction(self._engine) as connection:
                connection.execute(mine.values(hold_id=None, renewals=LEASES.c.renewals + 1))

    def _asked(self, connection: Connection, began: float) -> Holder | None:
        """Who else has the lease; None is this process."""
        if not self._prepared:
            make_tables(connection, LEASES)
        waits_for_locks(connection)
        mine = LEASES.c.scope == self.scope
        row = connection.execute(select(LEASES).where(mine).with_for_update()).one_or_none()
        if row is None:
            connection.execute(insert(LEASES).values(scope=self.scope, renewals=0, **self._taken()))
        elif row.hold_id == self._offered:
            connection.execute(update(LEASES).where(mine).values(renewals=row.renewals + 1))
        elif row.hold_id is None or self._is_abandoned(row, began):
            connection.execute(update(LEASES).where(mine).values(renewals=row.renewals + 1, **self._taken()))
        else:
            return Holder(_process(row), row.since)
        return None

    def _is_abandoned(self, row: Row[Any], began: float) -> bool:
        process = _process(row)
        if process.has_ended():
            return True
        if self._seen != (row.hold_id, row.renewals):
            renews = self._seen is not None and self._seen[0] == row.hold_id
            self.holder_lives = renews or process.is_of_this_machine()
            self._seen, self._seen_at = (row.hold_id, row.renewals), self._clock()
        return began - self._seen_at >= TAKE_OVER_SECONDS

    def _let_go(self) -> None:
        """The next hold is another one; a commit whose outcome was never learnt is the same one."""
        if self.hold_id is not None:
            self._offered = self._new_hold_id()
        self.hold_id, self._held_until = None, float("-inf")

    def _new_hold_id(self) -> int:
        """A number that no other process has. It grows with the time: of two holds, the lower began earlier, or nearly
        so."""
        return int(self._now().timestamp()) << 30 | secrets.randbits(30)

    def _taken(self) -> dict[str, Any]:
        return {"hold_id": self._offered, "since": self._now(), **asdict(self._process)}


def ask_together(leases: Sequence[Lease]) -> None:
    """Ask for several leases of one database, as :meth:`Lease.ask` does for each, in one transaction."""
    # Always in the same order: two processes that lock the same rows never wait for each other.
    leases = sorted(leases, key=lambda lease: lease.scope)
    with ExitStack() as locked:
        for lease in leases:
            locked.enter_context(lease._lock)
        began = [lease._clock() for lease in leases]
        engine = leases[0]._engine
        try:
            if not all(lease._prepared for lease in leases):
                make_database_folder(engine)
            with transaction(engine) as connection:
                holders = [lease._asked(connection, at) for lease, at in zip(leases, began, strict=True)]
        except DatabaseError as error:
            for lease, at in zip(leases, began, strict=True):
                lease._not_answered(error, at)
        else:
            for lease, holder, at in zip(leases, holders, began, strict=True):
                lease._answered(holder, at)


def _process(row: Row[Any]) -> Process:
    return Process(row.host, row.pid, row.machine, row.started)


def _machine() -> str | None:
    """The boot of this system, and the namespace in it whose process numbers are ours (a container has its own)."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}/{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return None


def _started(pid: int) -> int | None:
    """When a process was started, in clock ticks since the boot: -1 if it has ended, None if unknown."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return -1 if stat[0] in (b"Z", b"X") else int(stat[19])
