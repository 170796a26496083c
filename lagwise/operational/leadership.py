"""Leadership: of the processes that could do a job, one does it and the others are on standby.

The process that holds the lease leads. If the database cannot be reached, the leader goes on, unless the lake bears the
mark of another process that has taken over. No standby takes over then, except where the database is a file of this
machine, which no process of another machine could reach either.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress

from lagwise.operational import lease as leases
from lagwise.operational.lease import Lease, ask_together
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


class Renewal:
    """Renews the leases of this process's leaderships on one database: one thread, one transaction for all of them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._renewed: list[Leadership] = []
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def add(self, leadership: "Leadership") -> None:
        """Renew this one, too, from now on."""
        with self._lock:
            self._renewed.append(leadership)
            if self._thread is None:
                self._stop = threading.Event()
                self._thread = threading.Thread(target=self._run, args=(self._stop,), name="leases", daemon=True)
                self._thread.start()

    def remove(self, leadership: "Leadership") -> None:
        """Renew this one no more. The thread ends with the last one."""
        with self._lock:
            if leadership in self._renewed:
                self._renewed.remove(leadership)
            thread = None if self._renewed else self._thread
            if thread is not None:
                self._stop.set()
                self._thread = None
        if thread is not None:
            thread.join(_JOIN_SECONDS)

    def _run(self, stop: threading.Event) -> None:
        noting: threading.Thread | None = None
        while not stop.wait(leases.RENEW_SECONDS):
            with self._lock:
                renewed = list(self._renewed)
            try:
                _ask_all(renewed)
            except Exception:  # a bug must not end this thread: no process would lead again
                for leadership in renewed:
                    leadership.log_defect()
            unnoted = [leadership for leadership in renewed if leadership.lacks_mark()]
            if unnoted and (noting is None or not noting.is_alive()):
                # An object store that does not answer takes minutes to say so. Renewals do not wait for that.
                noting = threading.Thread(target=_note_marks, args=(unnoted,), name="marks of leases", daemon=True)
                noting.start()


class Leadership:
    """One process's claim to lead. A thread renews it between :meth:`start` and :meth:`stop`. Safe for use by threads.

    ``what`` names the job, as in "the analysis". ``mark`` reads from the lake the id of the hold under which the last
    leader wrote (None: none has written); it may raise LakeError. With ``logs_trouble``, an unreachable database is
    logged here. ``renewal`` is shared by the leaderships of a process that has several.
    """

    def __init__(
        self,
        lease: Lease,
        what: str,
        log: logging.Logger,
        *,
        mark: Callable[[], int | None] | None = None,
        logs_trouble: bool = True,
        renewal: Renewal | None = None,
    ) -> None:
        self.lease = lease
        #: Called when another process has taken over; must not raise.
        self.lost: Callable[[], None] = lambda: None
        self._what = what
        self._log = log
        self._mark = mark
        self._logs_trouble = logs_trouble
        self._log_throttle = LogThrottle(log, remind_after_seconds=None)
        #: A hold of this process, and the mark that was in the lake when it began.
        self._noted: tuple[int, int | None] | None = None
        self._lock = threading.Lock()
        self._renewal = renewal or Renewal()

    def start(self) -> None:
        """Ask for the lease, and keep asking and renewing."""
        self.ask()
        self._renewal.add(self)

    def stop(self) -> None:
        """Give the lease back. Call it when nothing that needs the lease runs any more."""
        self._renewal.remove(self)
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
        _ask_all([self])
        if self.lacks_mark():
            self.note_mark()

    def lacks_mark(self) -> bool:
        """Whether :meth:`note_mark` is due."""
        if self._mark is None or not self.lease.is_shared or not self.lease.holds():
            return False
        return self._noted is None or self._noted[0] != self.lease.hold_id

    def note_mark(self) -> None:
        """Remember the mark that was in the lake when this hold began: it does not show a later takeover."""
        hold_id = self.lease.hold_id
        if self._mark is not None and hold_id is not None:
            with suppress(LakeError):  # again at the next renewal
                self._noted = hold_id, self._mark()

    def log_defect(self) -> None:
        """Log the exception that is being handled."""
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
            noted = self._noted
            own = [self.lease.hold_id, *([noted[1]] if noted is not None and noted[0] == self.lease.hold_id else [])]
            if self._mark() in own:
                return None
        except LakeError as error:
            return str(error)
        return f"according to the lake, another process has taken over {self._what}; {self.lease.trouble}"

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


def _ask_all(leaderships: Sequence[Leadership]) -> None:
    """Take or renew the leases, and log what has changed."""
    if not leaderships:
        return
    leaderships = sorted(leaderships, key=lambda one: one.lease.scope)
    with ExitStack() as locked:
        for one in leaderships:
            locked.enter_context(one._lock)
        before = [one.lease.hold_id for one in leaderships]
        ask_together([one.lease for one in leaderships])
        for one, hold_id in zip(leaderships, before, strict=True):
            one._log_changes()
            if one.lease.hold_id is None and hold_id is not None:
                one.lost()


def _note_marks(leaderships: Sequence[Leadership]) -> None:
    for one in leaderships:
        one.note_mark()
