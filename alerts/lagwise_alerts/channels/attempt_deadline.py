"""Limits the total time of one attempt to deliver.

A socket timeout limits each silence only: a receiver that sends a byte every few seconds never exceeds it. Therefore,
when the time of an attempt is over, its connection is shut down, whatever waits on it.
"""

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

#: Connections may still be opened after the time is over: they are shut down at this interval.
_AGAIN_SECONDS = 0.1


class Attempt:
    """One attempt, as a context. ``connection`` returns the socket that the attempt uses; None before it has one."""

    def __init__(self, seconds: float, connection: Callable[[], socket.socket | None]) -> None:
        self._seconds = seconds
        self._connection = connection
        self._has_ended = threading.Event()
        self._guard = threading.Thread(target=self._cut_off, name="attempt", daemon=True)
        self.is_over = False

    @property
    def over(self) -> str:
        """The error of an attempt whose time is over."""
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
