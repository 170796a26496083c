"""SIGINT and SIGTERM: they end a command at its next step, and interrupt a long wait at once."""

import contextlib
import faulthandler
import signal
import threading
from collections.abc import Iterator
from types import FrameType


class Interrupted(BaseException):
    """A signal came inside :meth:`Signals.interrupting`. Not an Exception, so that nothing on the way catches it."""


class Signals:
    """Takes over SIGINT and SIGTERM for the rest of the process. A second signal ends the process at once.

    A process that still runs ``hang_seconds`` after the first signal writes the stack of every thread to stderr, and
    ends with code 1: whoever waits for what it holds does not wait for ever, and the log says where it hung.
    """

    def __init__(self, *, hang_seconds: float | None = None) -> None:
        self._hang_seconds = hang_seconds
        self.stop = threading.Event()
        self._interrupting = False
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._handle)

    @contextlib.contextmanager
    def interrupting(self) -> Iterator[None]:
        """Inside, a signal raises Interrupted. So does one that came earlier."""
        self._interrupting = True
        try:
            if self.stop.is_set():
                raise Interrupted
            yield
        finally:
            self._interrupting = False

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        self.stop.set()
        signal.signal(number, signal.SIG_DFL)
        if self._hang_seconds is not None:
            faulthandler.dump_traceback_later(self._hang_seconds, exit=True)
        if self._interrupting:
            raise Interrupted
