"""Takes the samples of a cluster and has them written to the lake in order: each goes through the spool, and while the
lake is down samples wait there and are delivered later."""

import logging
import threading
from dataclasses import dataclass

from lagwise.operational.leadership import Leadership, NotLeader
from lagwise.platform.log_events import LogEvent, event
from lagwise.platform.log_throttle import LogThrottle
from lagwise_collectors.lake_delivery.append_samples import DueSample
from lagwise_collectors.lake_delivery.lake_writer import LakeWriter
from lagwise_collectors.lake_delivery.rivalry import Rivalry
from lagwise_collectors.lake_delivery.spool import Spool
from lagwise_collectors.protocol import ErrorTally, Snapshot

log = logging.getLogger("lagwise.collectors.sink")

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
    """One cluster's side of the writer that it shares with others. :meth:`write` is for one thread."""

    def __init__(
        self,
        writer: LakeWriter,
        spool: Spool,
        cluster: str,
        *,
        leadership: Leadership | None = None,
        rivalry: Rivalry | None = None,
    ) -> None:
        """``leadership``: samples wait in the spool while another process leads; None: no other process writes.
        ``rivalry``: so they do while this one stands aside for a process with another database."""
        self.cluster = cluster
        self._writer = writer
        self._spool = spool
        self._leadership = leadership
        self._rivalry = rivalry
        self._lock = threading.Lock()
        #: Set while nothing is being delivered.
        self._settled = threading.Event()
        self._settled.set()
        self._trouble: str | None = None
        self._delivered_since_trouble = 0
        self._log_throttle = LogThrottle(log, remind_after_seconds=None)
        # Samples of an earlier run may be in the lake already, in part or completely. So may later ones of another
        # process.
        self._maybe_written = len(spool) > 0
        #: The spool's number of the sample that the writer has.
        self._due: int | None = None
        if len(spool):
            log.info(
                "%s: %d samples of an earlier run wait in the spool",
                cluster,
                len(spool),
                extra=event(LogEvent.SPOOL_RECOVERED, cluster=cluster),
            )

    def write(self, snapshot: Snapshot, patience_seconds: float = PATIENCE_SECONDS) -> Delivery:
        """Deliver the waiting samples and then this one, or keep it. Returns within ``patience_seconds``."""
        with self._lock:
            busy = not self._settled.is_set()
            dropped = self._spool.take_dropped()
            if dropped:
                message = f"{dropped} samples were dropped because the lake could not be written for too long"
                log.error("%s: %s", self.cluster, message, extra=event(LogEvent.SAMPLES_DROPPED, cluster=self.cluster))
                tally = ErrorTally()
                tally.note("samples_dropped", message, dropped)
                snapshot = snapshot.with_errors(tally)
            self._spool.put(snapshot, reports_dropped=dropped)
            # A sample that has to wait, be it for those of other clusters, waits where a kill does not lose it.
            if busy or self._trouble is not None or not self._writer.is_free:
                self._move_to_disk()
            if busy:  # otherwise the lake may take some first
                self._spool.trim()
            self._settled.clear()
        self._writer.deliver(self)
        return self.settle(patience_seconds)

    def settle(self, seconds: float) -> Delivery:
        """Wait for the delivery under way, at most this long."""
        settled = self._settled.wait(seconds)
        with self._lock:
            trouble = self._trouble or (None if settled else "the lake is slow")
            return Delivery(len(self._spool), trouble, self._spool.safe)

    def close(self, seconds: float = PATIENCE_SECONDS) -> Delivery:
        """Wait for the delivery under way, then keep the rest on disk for the next start."""
        self._writer.hurry()
        delivery = self.settle(seconds)
        with self._lock:
            if len(self._spool):
                self._move_to_disk()
        return delivery

    def next_due(self) -> DueSample | None:
        """The oldest sample that waits; None where none does, or another process leads."""
        with self._lock:
            oldest = self._spool.first()
            maybe_written = self._maybe_written
            if oldest is None:
                self._finish()
                return None
        if self._leadership is not None:
            try:
                self._leadership.check()
            except NotLeader as error:
                self.keep(str(error))
                return None
        self._due, snapshot = oldest
        return DueSample(snapshot, maybe_written, None if self._leadership is None else self._leadership.lease)

    def saw_mark(self, mark: int | None) -> bool:
        """The lease under which the newest sample of the cluster in the lake was written. Returns whether the sample
        that is due is to be written; otherwise what waits is kept."""
        reason = None if self._rivalry is None else self._rivalry.saw(mark)
        if reason is not None:
            self.keep(reason)
        return reason is None

    def written(self) -> bool:
        """The sample that was due is in the lake. Returns whether more wait."""
        if self._rivalry is not None:
            self._rivalry.wrote()
        with self._lock:
            self._delivered_since_trouble += 1
            return self._done_with_due()

    def drop(self, reason: str) -> bool:
        """The sample that was due does not fit the tables. That is a bug of Lagwise, and must not block the samples
        after it. Returns whether more wait."""
        log.error(
            "%s: a sample does not fit the tables and is dropped: %s",
            self.cluster,
            reason,
            extra=event(LogEvent.SAMPLES_DROPPED, cluster=self.cluster),
        )
        with self._lock:
            return self._done_with_due()

    def keep(self, reason: str) -> None:
        """The lake cannot be written for now: what waits is kept, and delivered with the next sample."""
        with self._lock:
            self._maybe_written = True
            self._delivered_since_trouble = 0
            self._move_to_disk()
            self._spool.trim()
            waiting, safe, first = len(self._spool), self._spool.safe, self._trouble is None
            self._trouble = reason
            self._settled.set()
        if first:
            where = "the spool" if safe else "memory"
            log.error(
                "%s: %s; %d samples are kept in %s and delivered later",
                self.cluster,
                reason,
                waiting,
                where,
                extra=event(LogEvent.LAKE_NOT_WRITABLE, cluster=self.cluster),
            )

    def _done_with_due(self) -> bool:
        if self._due is not None:
            self._spool.remove(self._due)
            self._due = None
        if len(self._spool):
            return True
        self._maybe_written = False
        self._finish()
        return False

    def _finish(self) -> None:
        """Nothing waits any more."""
        if self._trouble is not None:
            log.info(
                "%s: the lake can be written again; %d samples were delivered",
                self.cluster,
                self._delivered_since_trouble,
                extra=event(LogEvent.LAKE_NOT_WRITABLE, over=True, cluster=self.cluster),
            )
            self._trouble = None
        self._clear_memory_warning()
        self._settled.set()

    def _move_to_disk(self) -> None:
        trouble = self._spool.move_to_disk()
        if trouble is None:
            self._clear_memory_warning()
        else:
            most = f"at most the newest {self._spool.memory_bytes // 1024**2} MiB"
            line = f"{self.cluster}: cannot write the spool: {trouble}; samples wait in memory ({most})"
            self._log_throttle.warn(LogEvent.SPOOL_NOT_WRITABLE, line, same="spool")

    def _clear_memory_warning(self) -> None:
        self._log_throttle.clear(LogEvent.SPOOL_NOT_WRITABLE, f"{self.cluster}: no sample waits in memory any more")
