"""Logs a trouble once, not every few seconds: again when it changes, and once when it is over."""

import logging
import time


class LogThrottle:
    """The troubles of one part of the program, by kind. Not for use from several threads.

    A trouble that lasts is logged again after ``remind_after_seconds``; None is never.
    """

    def __init__(self, log: logging.Logger, *, remind_after_seconds: float | None = 300.0) -> None:
        self._log = log
        self._remind_after_seconds = float("inf") if remind_after_seconds is None else remind_after_seconds
        #: By kind: what was logged last, and when.
        self._logged: dict[str, tuple[str, float]] = {}

    def warn(self, kind: str, line: str, *, same: str | None = None) -> None:
        """Log a warning, unless the same was logged lately: the same line, or one with an equal ``same``."""
        key, now = line if same is None else same, time.monotonic()
        before, at = self._logged.get(kind, (None, now))
        if before != key or now - at >= self._remind_after_seconds:
            self._logged[kind] = (key, now)
            self._log.warning("%s", line)

    def clear(self, kind: str, line: str | None = None) -> None:
        """The trouble is over: log that if the trouble had been logged."""
        if self._logged.pop(kind, None) is not None:
            self._log.info("%s", line or f"{kind}: works again")
