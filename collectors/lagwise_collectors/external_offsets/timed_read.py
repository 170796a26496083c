"""Reads one source in a thread of its own, with a timeout."""

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
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
        self._result: Future[tuple[T, datetime]] | None = None
        self._until = 0.0
        self._is_late = False

    def begin(self) -> None:
        """Start to read, unless the previous read is still running."""
        self._is_late = self._result is not None and not self._result.done()
        if self._is_late:
            return
        self._until = time.monotonic() + self._timeout_seconds
        self._result = Future()
        threading.Thread(target=self._run, args=(self._result,), name=f"offsets-{self.name}", daemon=True).start()

    def finish(self) -> tuple[T, datetime]:
        """The result, and when it was read. Raises OffsetSourceTrouble."""
        if self._result is None or self._is_late:
            raise OffsetSourceTrouble("timeout", "the previous read has not finished yet")
        try:
            return self._result.result(max(0.0, self._until - time.monotonic()))
        except TimeoutError:
            # A later result would be too old to compare with the watermarks that are read next.
            raise OffsetSourceTrouble("timeout", f"no answer within {self._timeout_seconds:g} s") from None

    def _run(self, result: "Future[tuple[T, datetime]]") -> None:
        try:
            result.set_result((self._read(), self._clock()))
        except OffsetSourceTrouble as trouble:
            result.set_exception(trouble)
        # From any library that reads this kind of source: it costs only its groups. BaseException, because a thread
        # that ends without a result would look like one that hangs, for ever.
        except BaseException as error:
            log.debug("%s", self.name, exc_info=True)
            detail = clean(redact(f"{type(error).__name__}: {error}"))
            result.set_exception(OffsetSourceTrouble("malformed", detail))
