"""Reads one source in a thread of its own, with a timeout."""

import logging
import threading
import time
from collections.abc import Callable
from datetime import datetime
from typing import Generic, TypeVar

from lagwise.platform.logs import clean
from lagwise.platform.secrets import redact
from lagwise_collectors.external_offsets.model import OffsetSourceTrouble

log = logging.getLogger("lagwise.collectors.external_offsets")

T = TypeVar("T")


class TimedRead(Generic[T]):
    """One source and the thread that reads it. While a thread hangs, no second one is started.

    ``read`` may raise OffsetSourceTrouble; ``clock`` dates its result.
    """

    def __init__(self, name: str, timeout_seconds: float, read: Callable[[], T], clock: Callable[[], datetime]) -> None:
        self.name = name
        self._timeout_seconds = timeout_seconds
        self._read = read
        self._clock = clock
        self._thread: threading.Thread | None = None
        self._outcome: list[tuple[T, datetime] | OffsetSourceTrouble] = []
        self._until = 0.0
        self._is_late = False

    def begin(self) -> None:
        """Start to read, unless the previous read is still running."""
        self._is_late = self._thread is not None and self._thread.is_alive()
        if self._is_late:
            return
        self._until = time.monotonic() + self._timeout_seconds
        self._outcome = []
        self._thread = threading.Thread(
            target=self._run, args=(self._outcome,), name=f"offsets-{self.name}", daemon=True
        )
        self._thread.start()

    def finish(self) -> tuple[T, datetime]:
        """The result, and when it was read. Raises OffsetSourceTrouble."""
        if self._thread is None or self._is_late:
            raise OffsetSourceTrouble("timeout", "the previous read has not finished yet")
        self._thread.join(max(0.0, self._until - time.monotonic()))
        if not self._outcome:
            # A later result would be too old to compare with the watermarks that are read next.
            raise OffsetSourceTrouble("timeout", f"no answer within {self._timeout_seconds:g} s")
        answer = self._outcome[0]
        if isinstance(answer, OffsetSourceTrouble):
            raise answer
        return answer

    def _run(self, outcome: list[tuple[T, datetime] | OffsetSourceTrouble]) -> None:
        try:
            result = self._read()
        except OffsetSourceTrouble as trouble:
            outcome.append(trouble)
        except Exception as error:  # from any library that reads this kind of source: it costs only its groups
            log.debug("%s", self.name, exc_info=True)
            outcome.append(OffsetSourceTrouble("malformed", clean(redact(f"{type(error).__name__}: {error}"))))
        else:
            outcome.append((result, self._clock()))
