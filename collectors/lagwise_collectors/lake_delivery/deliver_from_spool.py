"""Writes snapshots to the lake, in order, each exactly once, whatever happens in between.

The tables of a snapshot are appended one after the other, ``samples`` last: its row is the mark that the sample is
whole. Every append carries the number of its sample as a Delta transaction of this writer, so that a sample which was
interrupted half-way, or whose commit went through without our hearing of it, is completed and not repeated.
"""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import pyarrow as pa

from lagwise.operational.leadership import Leadership, NotLeader
from lagwise.platform.errors import LakeError
from lagwise.platform.log_throttle import LogThrottle
from lagwise.tables.raw import COMMITS, EVENTS, GROUPS, MEMBERS, RAW_TABLES, SAMPLES, TOPICS, WATERMARKS
from lagwise.tables.schema import Table
from lagwise.tables.service_times import JOBS, SERVICE_TIMES
from lagwise.tables.store import Lake
from lagwise_collectors.lake_delivery.spool import Spool
from lagwise_collectors.protocol import ErrorTally, Snapshot

log = logging.getLogger("lagwise.collectors.sink")

ORDER: tuple[Table, ...] = (TOPICS, GROUPS, MEMBERS, COMMITS, WATERMARKS, EVENTS, SERVICE_TIMES, JOBS, SAMPLES)
#: What makes an event, which has no sample's id.
_EVENT = ["cluster", "at", "kind", "group", "topic", "partition"]
#: How long a sample waits for its delivery before the next one is taken care of.
PATIENCE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Delivery:
    """How a write went: how many snapshots wait for the lake now, and why (None while it takes them). ``safe``: all of
    them would survive this process."""

    waiting: int
    trouble: str | None
    safe: bool = True


class Sink:
    """The way of one cluster's snapshots into the lake. :meth:`write` is for one thread; delivery has its own.

    A lake that is slow or away (an object store that retries for minutes) therefore never keeps the cluster from being
    sampled.
    """

    def __init__(
        self,
        lake: Lake,
        spool: Spool,
        cluster: str,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        turn: Leadership | None = None,
    ) -> None:
        """``turn``: samples wait in the spool while it is not this process's; None is always."""
        self._lake = lake
        self._spool = spool
        self._cluster = cluster
        self._clock = clock
        self._turn = turn
        self._lock = threading.Lock()
        self._job: threading.Thread | None = None
        self._trouble: str | None = None
        self._in_memory = False
        self._complaints = LogThrottle(log, remind_after_seconds=None)
        self._created = False
        # What was left behind may be in the lake already, in part or whole, and later samples of another process, too.
        self._maybe_written = len(spool) > 0
        if len(spool):
            log.info("%s: %d samples of an earlier run wait in the spool", cluster, len(spool))

    def write(self, snapshot: Snapshot, patience_seconds: float = PATIENCE_SECONDS) -> Delivery:
        """Deliver what waits and then this, or keep it. Returns when it is delivered, kept, or patience is over."""
        busy = self._job is not None and self._job.is_alive()
        with self._lock:
            dropped = self._spool.take_dropped()
            if dropped:
                message = f"{dropped} samples were dropped because the lake could not be written for too long"
                log.error("%s: %s", self._cluster, message)
                tally = ErrorTally()
                tally.note("samples_dropped", message, dropped)
                snapshot = snapshot.with_errors(tally)
            self._spool.put(snapshot, tells_dropped=dropped)
            if busy or self._trouble is not None:
                self._keep()
            if busy:  # else the lake may take some first
                self._spool.trim()
        if not busy:
            self._job = threading.Thread(target=self._deliver, name=f"sink-{self._cluster}", daemon=True)
            self._job.start()
        return self.settle(patience_seconds)

    def settle(self, seconds: float) -> Delivery:
        """Wait until nothing is under way, at most so long."""
        if self._job is not None:
            self._job.join(seconds)
        with self._lock:
            busy = self._job is not None and self._job.is_alive()
            trouble = self._trouble or ("the lake is slow" if busy else None)
            return Delivery(len(self._spool), trouble, self._spool.safe)

    def close(self, seconds: float = PATIENCE_SECONDS) -> Delivery:
        """Wait for what is under way, then keep the rest for the next start."""
        delivery = self.settle(seconds)
        with self._lock:
            if len(self._spool):
                self._keep()
        return delivery

    def _deliver(self) -> None:
        """Deliver from the oldest on until the queue is empty or the lake refuses."""
        delivered = 0
        while True:
            with self._lock:
                oldest = self._spool.first()
            if oldest is None:
                break
            number, snapshot = oldest
            try:
                if self._turn is not None:
                    self._turn.check()
                self._append(snapshot)
            except (LakeError, NotLeader) as error:
                self._refused(str(error))
                return
            except pa.ArrowException as error:
                # Rows that do not fit the tables are a defect of ours; they must not block all that follow.
                log.error("%s: a sample does not fit the tables and is dropped: %s", self._cluster, error)
            except Exception as error:  # a defect too, but it may pass: nothing is lost while it is looked into
                log.exception("%s: writing a sample failed unexpectedly", self._cluster)
                self._refused(f"{type(error).__name__}: {error}")
                return
            with self._lock:
                self._spool.remove(number)
                self._maybe_written = self._maybe_written and len(self._spool) > 0
            delivered += 1
        if self._trouble is not None:
            log.info("%s: the lake can be written again; %d samples were delivered", self._cluster, delivered)
            self._trouble = None
        with self._lock:
            if len(self._spool) == 0:
                self._nothing_in_memory()

    def _append(self, snapshot: Snapshot) -> None:
        if not self._created:
            self._lake.create(*RAW_TABLES)
            self._created = True
        writer, number = writer_of(self._cluster), time_number(snapshot)
        for table in ORDER:
            rows = snapshot.rows(table)
            if rows.num_rows == 0:
                continue
            if self._maybe_written and self._is_there(table, rows, number):
                continue
            transactions = {writer: number}
            if table is SAMPLES:
                rows = self._dated(rows)
                if self._turn is not None and self._turn.lease.holds() and self._turn.lease.hold_id is not None:
                    transactions[mark_of(self._cluster)] = self._turn.lease.hold_id
            self._lake.append(table, rows, transactions=transactions)

    def _is_there(self, table: Table, rows: pa.Table, number: int) -> bool:
        """Whether these rows of a sample are in the lake: by the number of the last one, and where another process has
        written later ones since, by looking for them."""
        last = self._lake.last_transaction(table, writer_of(self._cluster))
        if last is None or last <= number:
            return last == number
        names = ["sample_id"] if "sample_id" in rows.column_names else _EVENT
        first = rows.slice(0, 1)
        is_same = " and ".join(f'"{name}" is not distinct from ${name}' for name in names)
        sql = f"select 1 from {table.name} where {is_same} limit 1"  # noqa: S608 (own names)
        values = {name: first[name].to_pylist()[0] for name in names}
        since = first[str(table.clock)].to_pylist()[0]
        found: int = self._lake.query(sql, values, over=[table], since=since).num_rows
        return found > 0

    def _dated(self, run: pa.Table) -> pa.Table:
        column = SAMPLES.arrow.field("written_at")
        position = run.schema.get_field_index(column.name)
        return run.set_column(position, column, pa.array([self._clock()], column.type))

    def _refused(self, why: str) -> None:
        self._created = False
        self._maybe_written = True
        with self._lock:
            self._keep()
            self._spool.trim()
            waiting, first = len(self._spool), self._trouble is None
            self._trouble = why
        if first:
            where = "memory" if self._in_memory else "the spool"
            log.error("%s: %s; %d samples are kept in %s and delivered later", self._cluster, why, waiting, where)

    def _keep(self) -> None:
        trouble = self._spool.keep()
        self._in_memory = trouble is not None
        if trouble is None:
            self._nothing_in_memory()
        else:
            most = f"the newest {self._spool.memory_bytes // 1024**2} MiB of them"
            line = f"{self._cluster}: cannot write the spool: {trouble}; samples wait in memory, {most}"
            self._complaints.say("spool", line, same="spool")

    def _nothing_in_memory(self) -> None:
        self._complaints.clear("spool", f"{self._cluster}: no sample waits in memory any more")


def writer_of(cluster: str) -> str:
    """Under which the numbers of a cluster's samples are kept in the lake."""
    return f"lagwise-collector-{cluster}"


def mark_of(cluster: str) -> str:
    """Under which the hold of who last wrote a cluster's samples with its lease is kept, in the table of samples."""
    return f"lagwise-collector-{cluster}-hold"


def time_number(snapshot: Snapshot) -> int:
    """The sample's number in the transactions of its writer: microseconds of its beginning."""
    started_at: datetime = snapshot.header["started_at"]
    return int(started_at.timestamp()) * 1_000_000 + started_at.microsecond
