"""Delivers snapshots to the lake in order, each exactly once: every sample goes through the spool, and while the lake
is down samples wait there and are delivered later.

The tables of a snapshot are appended one after the other, ``samples`` last: its row says that the sample is complete.
Every append carries the number of its sample as a Delta transaction of this writer. A sample that was interrupted, or
whose commit succeeded without an answer, is therefore completed and not repeated.
"""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import pyarrow as pa

from lagwise.operational.leadership import Leadership, NotLeader
from lagwise.platform.errors import LakeError
from lagwise.platform.log_events import LogEvent, event
from lagwise.platform.log_throttle import LogThrottle
from lagwise.tables.raw import COMMITS, EVENTS, GROUPS, MEMBERS, RAW_TABLES, SAMPLES, TOPICS, WATERMARKS
from lagwise.tables.schema import Table
from lagwise.tables.service_times import JOBS, SERVICE_TIMES
from lagwise.tables.store import Lake
from lagwise_collectors.lake_delivery.spool import Spool
from lagwise_collectors.protocol import ErrorTally, Snapshot

log = logging.getLogger("lagwise.collectors.sink")

ORDER: tuple[Table, ...] = (TOPICS, GROUPS, MEMBERS, COMMITS, WATERMARKS, EVENTS, SERVICE_TIMES, JOBS, SAMPLES)
#: The key of an event, which has no sample id.
_EVENT_KEY = ["cluster", "at", "kind", "group", "topic", "partition"]
#: How long a sample may take to be delivered before the next one is sampled.
PATIENCE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Delivery:
    """How a write went."""

    #: Snapshots that wait for the lake now.
    waiting: int
    #: Why they wait; None while the lake takes them.
    trouble: str | None
    #: All of them would survive a crash of this process.
    safe: bool = True


class Sink:
    """Delivers one cluster's snapshots. :meth:`write` is for one thread; delivery has a thread of its own.

    A lake that is slow or unreachable (an object store that retries for minutes) therefore never delays sampling.
    """

    def __init__(
        self,
        lake: Lake,
        spool: Spool,
        cluster: str,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        leadership: Leadership | None = None,
    ) -> None:
        """``leadership``: samples wait in the spool while another process leads; None: no other process writes."""
        self._lake = lake
        self._spool = spool
        self._cluster = cluster
        self._clock = clock
        self._leadership = leadership
        self._lock = threading.Lock()
        self._job: threading.Thread | None = None
        self._trouble: str | None = None
        self._log_throttle = LogThrottle(log, remind_after_seconds=None)
        self._created = False
        # Samples of an earlier run may be in the lake already, in part or completely. So may later ones of another
        # process.
        self._maybe_written = len(spool) > 0
        if len(spool):
            log.info(
                "%s: %d samples of an earlier run wait in the spool",
                cluster,
                len(spool),
                extra=event(LogEvent.SPOOL_RECOVERED, cluster=cluster),
            )

    def write(self, snapshot: Snapshot, patience_seconds: float = PATIENCE_SECONDS) -> Delivery:
        """Deliver the waiting samples and then this one, or keep it. Returns within ``patience_seconds``."""
        busy = self._job is not None and self._job.is_alive()
        with self._lock:
            dropped = self._spool.take_dropped()
            if dropped:
                message = f"{dropped} samples were dropped because the lake could not be written for too long"
                log.error(
                    "%s: %s", self._cluster, message, extra=event(LogEvent.SAMPLES_DROPPED, cluster=self._cluster)
                )
                tally = ErrorTally()
                tally.note("samples_dropped", message, dropped)
                snapshot = snapshot.with_errors(tally)
            self._spool.put(snapshot, reports_dropped=dropped)
            if busy or self._trouble is not None:
                self._move_to_disk()
            if busy:  # otherwise the lake may take some first
                self._spool.trim()
        if not busy:
            self._job = threading.Thread(target=self._deliver, name=f"sink-{self._cluster}", daemon=True)
            self._job.start()
        return self.settle(patience_seconds)

    def settle(self, seconds: float) -> Delivery:
        """Wait for the delivery under way, at most this long."""
        if self._job is not None:
            self._job.join(seconds)
        with self._lock:
            busy = self._job is not None and self._job.is_alive()
            trouble = self._trouble or ("the lake is slow" if busy else None)
            return Delivery(len(self._spool), trouble, self._spool.safe)

    def close(self, seconds: float = PATIENCE_SECONDS) -> Delivery:
        """Wait for the delivery under way, then keep the rest on disk for the next start."""
        delivery = self.settle(seconds)
        with self._lock:
            if len(self._spool):
                self._move_to_disk()
        return delivery

    def _deliver(self) -> None:
        """Deliver from the oldest on, until the spool is empty or the lake rejects a write."""
        delivered = 0
        while True:
            with self._lock:
                oldest = self._spool.first()
            if oldest is None:
                break
            number, snapshot = oldest
            try:
                if self._leadership is not None:
                    self._leadership.check()
                self._append(snapshot)
            except (LakeError, NotLeader) as error:
                self._rejected(str(error))
                return
            except pa.ArrowException as error:
                # Rows that do not fit the tables are a bug of Lagwise; they must not block the samples after them.
                log.error(
                    "%s: a sample does not fit the tables and is dropped: %s",
                    self._cluster,
                    error,
                    extra=event(LogEvent.SAMPLES_DROPPED, cluster=self._cluster),
                )
            except Exception as error:  # a bug, too, but it may be temporary: nothing is dropped
                log.exception(
                    "%s: writing a sample failed unexpectedly",
                    self._cluster,
                    extra=event(LogEvent.DEFECT, cluster=self._cluster),
                )
                self._rejected(f"{type(error).__name__}: {error}")
                return
            with self._lock:
                self._spool.remove(number)
                self._maybe_written = self._maybe_written and len(self._spool) > 0
            delivered += 1
        if self._trouble is not None:
            log.info(
                "%s: the lake can be written again; %d samples were delivered",
                self._cluster,
                delivered,
                extra=event(LogEvent.LAKE_NOT_WRITABLE, over=True, cluster=self._cluster),
            )
            self._trouble = None
        with self._lock:
            if len(self._spool) == 0:
                self._clear_memory_warning()

    def _append(self, snapshot: Snapshot) -> None:
        if not self._created:
            self._lake.create(*RAW_TABLES)
            self._created = True
        writer, number = writer_of(self._cluster), transaction_number(snapshot)
        for table in ORDER:
            rows = snapshot.rows(table)
            if rows.num_rows == 0:
                continue
            if self._maybe_written and self._is_in_lake(table, rows, number):
                continue
            transactions = {writer: number}
            if table is SAMPLES:
                rows = self._with_written_at(rows)
                lease = None if self._leadership is None else self._leadership.lease
                if lease is not None and lease.holds() and lease.hold_id is not None:
                    transactions[lease_mark_of(self._cluster)] = lease.hold_id
            self._lake.append(table, rows, transactions=transactions)

    def _is_in_lake(self, table: Table, rows: pa.Table, number: int) -> bool:
        """Whether these rows are in the lake: by the number of the last transaction. Where another process has written
        later samples since, by a query."""
        last = self._lake.last_transaction(table, writer_of(self._cluster))
        if last is None or last <= number:
            return last == number
        names = ["sample_id"] if "sample_id" in rows.column_names else _EVENT_KEY
        first = rows.slice(0, 1)
        is_same = " and ".join(f'"{name}" is not distinct from ${name}' for name in names)
        sql = f"select 1 from {table.name} where {is_same} limit 1"  # noqa: S608 (own names)
        values = {name: first[name].to_pylist()[0] for name in names}
        since = first[str(table.clock)].to_pylist()[0]
        matches: int = self._lake.query(sql, values, over=[table], since=since).num_rows
        return matches > 0

    def _with_written_at(self, run: pa.Table) -> pa.Table:
        column = SAMPLES.arrow.field("written_at")
        position = run.schema.get_field_index(column.name)
        return run.set_column(position, column, pa.array([self._clock()], column.type))

    def _rejected(self, reason: str) -> None:
        self._created = False
        self._maybe_written = True
        with self._lock:
            self._move_to_disk()
            self._spool.trim()
            waiting, safe, first = len(self._spool), self._spool.safe, self._trouble is None
            self._trouble = reason
        if first:
            where = "the spool" if safe else "memory"
            log.error(
                "%s: %s; %d samples are kept in %s and delivered later",
                self._cluster,
                reason,
                waiting,
                where,
                extra=event(LogEvent.LAKE_NOT_WRITABLE, cluster=self._cluster),
            )

    def _move_to_disk(self) -> None:
        trouble = self._spool.move_to_disk()
        if trouble is None:
            self._clear_memory_warning()
        else:
            most = f"at most the newest {self._spool.memory_bytes // 1024**2} MiB"
            line = f"{self._cluster}: cannot write the spool: {trouble}; samples wait in memory ({most})"
            self._log_throttle.warn(LogEvent.SPOOL_NOT_WRITABLE, line, same="spool")

    def _clear_memory_warning(self) -> None:
        self._log_throttle.clear(LogEvent.SPOOL_NOT_WRITABLE, f"{self._cluster}: no sample waits in memory any more")


def writer_of(cluster: str) -> str:
    """The name of the Delta transactions that number a cluster's samples."""
    return f"lagwise-collector-{cluster}"


def lease_mark_of(cluster: str) -> str:
    """The name of the Delta transaction, in the table of samples, that holds the lease of its last writer."""
    return f"lagwise-collector-{cluster}-hold"


def transaction_number(snapshot: Snapshot) -> int:
    """The sample's number in the transactions of its writer: its start in microseconds since 1970."""
    started_at: datetime = snapshot.header["started_at"]
    return int(started_at.timestamp()) * 1_000_000 + started_at.microsecond
