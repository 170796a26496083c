"""Leadership: of the processes that could do a job, one does it and the others are on standby.

The process that holds the lease leads. If the database cannot be reached, the leader goes on, unless the lake bears the
mark of another process that has taken over. No standby takes over then, except where the database is a file of this
machine, which no process of another machine could reach either.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lagwise.operational import lease as leases
from lagwise.operational.lease import Lease
from lagwise.platform.error_codes import ErrorCode
from lagwise.platform.errors import DatabaseGone, LagwiseError, LakeError
from lagwise.platform.log_events import LogEvent, event
from lagwise.platform.log_throttle import LogThrottle

#: How often a process that waits for a one-off job asks again.
_POLL_SECONDS = 1.0
#: How long the end of a process waits for a renewal that is under way.
_JOIN_SECONDS = 2.0


class NotLeader(LagwiseError):
    """Another process leads, or may be leading. The message says which."""

    code = ErrorCode.ALREADY_RUNNING


class Leadership:
    """One process's claim to lead. A thread renews it between :meth:`start` and :meth:`stop`. Safe for use by threads.

    ``what`` names the job, as in "the analysis". ``mark`` reads from the lake the id of the hold under which the last
    leader wrote (None: none has written); it may raise LakeError. With ``logs_trouble``, an unreachable database is
    logged here.
    """

    def __init__(
        self,
        lease: Lease,
        what: str,
        log: logging.Logger,
        *,
        mark: Callable[[], int | None] | None = None,
        logs_trouble: bool = True,
    ) -> None:
        self.lease = lease
        #: Called when another process has taken over; must not raise.
        self.lost: Callable[[], None] = lambda: None
        self._what = what
        self._log = log
        self._mark = mark
        self._logs_trouble = logs_trouble
        self._log_throttle = LogThrottle(log, remind_after_seconds=None)
        self._own_marks: set[int | None] = set()
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"lease of {what}", daemon=True)

    def start(self) -> None:
        """Ask for the lease, and keep asking and renewing."""
        self.ask()
        self._thread.start()

    def stop(self) -> None:
        """Give the lease back. Call it when nothing that needs the lease runs any more."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(_JOIN_SECONDS)
        if self.lease.trouble is None:  # an unreachable database would only delay the end of the process
            self.lease.give_back()

    @contextmanager
    def taken(self) -> Iterator["Leadership"]:
        """Lead within the block, for a job that is done once.

        Raises NotLeader as soon as the present leader is known to live; one on another machine shows it by its next
        renewal. The lease of a dead leader is taken over.
        """
        self.lease.ask()
        while (reason := self.why_not()) is not None:
            if self.lease.holder is not None and self.lease.holder_lives:
                raise NotLeader(f"{reason}: stop that one first")
            if self.lease.trouble is not None and self.lease.is_shared:
                raise NotLeader(reason)
            time.sleep(_POLL_SECONDS)
            self.ask()
        try:
            self.start()
            yield self
        finally:
            self.stop()

    def why_not(self, for_seconds: float = 0.0) -> str | None:
        """Why this process does not lead now and for ``for_seconds`` from now on, in a sentence; None if it leads.

        Cheap while the lease is held.
        """
        lease = self.lease
        if lease.holds(for_seconds):
            return None
        is_known = lease.holder is not None or lease.trouble is not None
        if not is_known or not lease.asked_lately():
            self.ask()
            if lease.holds(for_seconds):
                return None
        if lease.holder is not None:
            return f"{lease.holder} runs {self._what}"
        if lease.trouble is None:
            return f"the lease of {self._what} is being renewed"
        if self._may_go_on():
            return self._why_not_go_on()
        return f"whether another process runs {self._what} is unknown: {lease.trouble}"

    def check(self) -> None:
        """Raise NotLeader unless this process leads now."""
        reason = self.why_not()
        if reason is not None:
            raise NotLeader(reason)

    def ask(self) -> None:
        """Take or renew the lease, and log what has changed."""
        with self._lock:
            before = self.lease.hold_id
            self.lease.ask()
            self._log_changes()
            if self.lease.hold_id is None and before is not None:
                self._own_marks.clear()
                self.lost()
            elif self.lease.holds() and not self._own_marks:
                self._note_marks()

    def _run(self) -> None:
        while not self._stop.wait(leases.RENEW_SECONDS):
            try:
                self.ask()
            except Exception:  # a bug must not end this thread: no process would lead again
                self._log.exception(
                    "the lease of %s: a defect in Lagwise, please report it", self._what, extra=event(LogEvent.DEFECT)
                )

    def _may_go_on(self) -> bool:
        """Whether this process may lead although the database cannot be reached."""
        lease = self.lease
        if lease.hold_id is not None:
            return True
        return lease.holder is None and not lease.is_shared and lease.unreachable_seconds() >= leases.HOLD_SECONDS

    def _why_not_go_on(self) -> str | None:
        """Why it may not after all, by the mark in the lake; None if the lake has no objection."""
        if self._mark is None or not self.lease.is_shared:
            return None
        try:
            if self._mark() in (self.lease.hold_id, *self._own_marks):
                return None
        except LakeError as error:
            return str(error)
        return f"according to the lake, another process has taken over {self._what}; {self.lease.trouble}"

    def _note_marks(self) -> None:
        """Remember the mark that was in the lake when this hold began: it does not show a later takeover."""
        if self._mark is not None and self.lease.is_shared:
            try:
                self._own_marks = {self._mark()}
            except LakeError:
                return  # again at the next renewal

    def _log_changes(self) -> None:
        lease = self.lease
        if lease.trouble is not None:
            if self._logs_trouble and not lease.holds():
                does = "goes on" if self._may_go_on() else "waits"
                same = f"gone, {does}" if isinstance(lease.trouble, DatabaseGone) else None
                line = f"{lease.trouble}; whether another process runs {self._what} is unknown, and this one {does}"
                self._log_throttle.warn(LogEvent.DATABASE_UNREACHABLE, line, same=same, code=lease.trouble.code)
            return
        self._log_throttle.clear(LogEvent.DATABASE_UNREACHABLE, "the operational database is reachable again")
        if lease.holder is not None:
            self._log_throttle.warn(LogEvent.STANDBY, f"{lease.holder} runs {self._what}; this process is on standby")
        else:
            self._log_throttle.clear(LogEvent.STANDBY, f"this process now runs {self._what}")
