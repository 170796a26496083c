"""Reading one place beside other work: in a thread that is waited for so long, and no longer."""

import logging
import threading
import time
from collections.abc import Callable
from datetime import datetime
from typing import Generic, TypeVar

from lagwise.platform.logs import clean
from lagwise.platform.secrets import redact
from lagwise_collectors.external_offsets.model import Trouble

log = logging.getLogger("lagwise.collectors.elsewhere")

T = TypeVar("T")


class TimedRead(Generic[T]):
    """One place and the thread that reads it. A thread that hangs is not waited for, and not joined by a second.

    ``read`` may raise Trouble; ``clock`` dates what it returned.
    """

    def __init__(self, name: str, timeout_seconds: float, read: Callable[[], T], clock: Callable[[], datetime]) -> None:
        self.name = name
        self._timeout_seconds = timeout_seconds
        self._read = read
        self._clock = clock
        self._thread: threading.Thread | None = None
        self._box: list[tuple[T, datetime] | Trouble] = []
        self._until = 0.0
        self._is_late = False

    def begin(self) -> None:
        """Start to read, unless the look before this one goes on."""
        self._is_late = self._thread is not None and self._thread.is_alive()
        if self._is_late:
            return
        self._until = time.monotonic() + self._timeout_seconds
        self._box = []
        self._thread = threading.Thread(target=self._run, args=(self._box,), name=f"offsets-{self.name}", daemon=True)
        self._thread.start()

    def finish(self) -> tuple[T, datetime]:
        """What was read, and when. Raises Trouble."""
        if self._thread is None or self._is_late:
            raise Trouble("timeout", "the look before this one has not ended yet")
        self._thread.join(max(0.0, self._until - time.monotonic()))
        if not self._box:
            # Whatever it still finds is too old to be held against the watermarks that come next.
            raise Trouble("timeout", f"no answer within {self._timeout_seconds:g} s")
        answer = self._box[0]
        if isinstance(answer, Trouble):
            raise answer
        return answer

    def _run(self, box: list[tuple[T, datetime] | Trouble]) -> None:
        try:
            found = self._read()
        except Trouble as trouble:
            box.append(trouble)
        except Exception as error:  # of whatever library reads this kind of place: it costs its own groups
            log.debug("%s", self.name, exc_info=True)
            box.append(Trouble("malformed", clean(redact(f"{type(error).__name__}: {error}"))))
        else:
            box.append((found, self._clock()))
