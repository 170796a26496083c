"""Whether it is this process's turn to do what only one may do at a time: by its lease, and without a database too.

A process that holds the lease does it, any other waits. A database that cannot be asked stops nobody who was at it:
whoever held the lease goes on, unless the lake bears the mark of another one that has taken it over meanwhile. Nobody
begins then, save where the database is a file of this machine, which no other machine could have asked either.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lagwise.operational import lease as leases
from lagwise.operational.lease import Lease
from lagwise.platform.errors import DatabaseGone, LagwiseError, LakeError
from lagwise.platform.log_throttle import LogThrottle

#: How often to look whether something that is done once can be done now.
_LOOK_SECONDS = 1.0


class NotOurTurn(LagwiseError):
    """Another process does it, or may be doing it. The message says who."""


class Turn:
    """One process's turn, kept by a thread of its own between :meth:`start` and :meth:`stop`. May be used from threads.

    ``what`` is what only one may do, in words such as "the analysis". ``mark`` reads from the lake what names the hold
    of the last one that wrote as the holder of the lease (None: none has); it may raise LakeError. ``says_trouble``:
    a database that cannot be asked is said here.
    """

    def __init__(
        self,
        lease: Lease,
        what: str,
        log: logging.Logger,
        *,
        mark: Callable[[], int | None] | None = None,
        says_trouble: bool = True,
    ) -> None:
        self.lease = lease
        #: Called when another process turns out to have taken over; must not raise.
        self.lost: Callable[[], None] = lambda: None
        self._what = what
        self._log = log
        self._mark = mark
        self._says_trouble = says_trouble
        self._complaints = LogThrottle(log, remind_after_seconds=None)
        self._own_marks: set[int | None] = set()
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"lease of {what}", daemon=True)

    def start(self) -> None:
        """Ask for the lease, and go on asking."""
        self.ask()
        self._thread.start()

    def stop(self, within_seconds: float = 2.0) -> None:
        """Give the lease back. To be called when nothing is done any more that needs it."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(within_seconds)
        if self.lease.trouble is None:  # else it would only take time, which the end of a process has not
            self.lease.give_back()

    @contextmanager
    def taken(self) -> Iterator["Turn"]:
        """Inside, it is this process's turn, for something that is done once.

        Raises NotOurTurn where another process has it: as soon as that one shows that it lives, which one on another
        machine does with its next renewal. It is taken over from one that does not.
        """
        self.lease.ask()
        while (reason := self.why_not()) is not None:
            if self.lease.holder is not None and self.lease.holder_lives:
                raise NotOurTurn(f"{reason}: stop that one first")
            if self.lease.trouble is not None and self.lease.is_shared:
                raise NotOurTurn(reason)
            time.sleep(_LOOK_SECONDS)
            self.ask()
        try:
            self.start()
            yield self
        finally:
            self.stop()

    def why_not(self, for_seconds: float = 0.0) -> str | None:
        """Why this process may not do it now (and for so many seconds from now on), in a sentence; None where it may.

        Costs next to nothing while the lease is held.
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
            return f"{self._what} is run by {lease.holder}"
        if lease.trouble is None:
            return f"the lease of {self._what} is being renewed"
        if self._may_go_on():
            return self._why_not_go_on()
        return f"whether another process runs {self._what} is unknown: {lease.trouble}"

    def check(self) -> None:
        """Raise NotOurTurn unless this process may do it now."""
        reason = self.why_not()
        if reason is not None:
            raise NotOurTurn(reason)

    def ask(self) -> None:
        """Take or renew the lease, and say what has changed."""
        with self._lock:
            before = self.lease.hold_id
            self.lease.ask()
            self._say()
            if self.lease.hold_id is None and before is not None:
                self._own_marks.clear()
                self.lost()
            elif self.lease.holds() and not self._own_marks:
                self._note_marks()

    def _run(self) -> None:
        while not self._stop.wait(leases.RENEW_SECONDS):
            try:
                self.ask()
            except Exception:  # a defect of ours: without this thread, nothing would ever be done again
                self._log.exception("the lease of %s: a defect in Lagwise, please report it", self._what)

    def _may_go_on(self) -> bool:
        """Whether this process may do it although the database cannot be asked."""
        lease = self.lease
        if lease.hold_id is not None:
            return True
        return lease.holder is None and not lease.is_shared and lease.unreachable_seconds() >= leases.HOLD_SECONDS

    def _why_not_go_on(self) -> str | None:
        """What the lake has to say against it."""
        if self._mark is None or not self.lease.is_shared:
            return None
        try:
            if self._mark() in (self.lease.hold_id, *self._own_marks):
                return None
        except LakeError as error:
            return str(error)
        return f"another process has taken over {self._what}, as the lake says; {self.lease.trouble}"

    def _note_marks(self) -> None:
        """The mark that was in the lake when this hold began is no sign of one that came later."""
        if self._mark is not None and self.lease.is_shared:
            try:
                self._own_marks = {self._mark()}
            except LakeError:
                return  # again at the next renewal

    def _say(self) -> None:
        lease = self.lease
        if lease.trouble is not None:
            if self._says_trouble and not lease.holds():
                does = "goes on" if self._may_go_on() else "waits"
                same = f"gone, {does}" if isinstance(lease.trouble, DatabaseGone) else None
                line = f"{lease.trouble}; whether another process runs {self._what} is unknown, and this one {does}"
                self._complaints.say("database", line, same=same)
            return
        self._complaints.clear("database", f"the operational database can be asked again who runs {self._what}")
        if lease.holder is not None:
            self._complaints.say("holder", f"{self._what} is run by {lease.holder}; this process waits for its turn")
        else:
            self._complaints.clear("holder", f"{self._what} is run by this process now")
