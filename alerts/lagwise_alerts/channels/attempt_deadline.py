"""How long one attempt to deliver may take in all.

The timeout of a socket bounds each silence: a receiver that sends a byte every few seconds never exceeds it. When the
time of an attempt is over, its connection is therefore shut down under whatever waits on it.
"""

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

#: A connection may come about, or another one be opened, after the time is over.
_AGAIN_SECONDS = 0.1


class Attempt:
    """One attempt, as a context. ``connection`` says which socket it uses at a moment, None for none yet."""

    def __init__(self, seconds: float, connection: Callable[[], socket.socket | None]) -> None:
        self._seconds = seconds
        self._connection = connection
        self._has_ended = threading.Event()
        self._guard = threading.Thread(target=self._cut_off, name="attempt", daemon=True)
        self.is_over = False

    @property
    def over(self) -> str:
        """What is said of an attempt whose time is over."""
        return f"not done within {self._seconds:g} s"

    def __enter__(self) -> Self:
        self._guard.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._has_ended.set()
        self._guard.join()

    def _cut_off(self) -> None:
        if self._has_ended.wait(self._seconds):
            return
        self.is_over = True
        while True:
            connection = self._connection()
            if connection is not None:
                with suppress(OSError):  # closed by now
                    # Not by the method of a TLS socket, which would forget its state under the thread that reads.
                    socket.socket.shutdown(connection, socket.SHUT_RDWR)
            if self._has_ended.wait(_AGAIN_SECONDS):
                return
