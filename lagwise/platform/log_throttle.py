"""Logs a trouble once, not every few seconds: again when it changes, and once when it is over."""

import logging
import time
from typing import Any

from lagwise.platform.error_codes import ErrorCode
from lagwise.platform.log_events import LogEvent, event


class LogThrottle:
    """The troubles of one part of the program, one of each event. Not for use from several threads.

    A trouble that lasts is logged again after ``remind_after_seconds``; None is never.
    """

    def __init__(self, log: logging.Logger, *, remind_after_seconds: float | None = 300.0) -> None:
        self._log = log
        self._remind_after_seconds = float("inf") if remind_after_seconds is None else remind_after_seconds
        #: By event: what was logged last, and when.
        self._logged: dict[LogEvent, tuple[str, float]] = {}

    def warn(self, trouble: LogEvent, line: str, *, same: str | None = None, code: ErrorCode | None = None) -> None:
        """Log a warning, unless the same was logged lately: the same line, or one with an equal ``same``. ``code`` is
        that of an error that a person can mend."""
        key, now = line if same is None else same, time.monotonic()
        before, at = self._logged.get(trouble, (None, now))
        if before != key or now - at >= self._remind_after_seconds:
            self._logged[trouble] = (key, now)
            fields: dict[str, Any] = {} if code is None else {"code": code.value}
            self._log.warning("%s", line, extra=event(trouble, **fields))

    def clear(self, trouble: LogEvent, line: str) -> None:
        """The trouble is over: log that if the trouble had been logged."""
        if self._logged.pop(trouble, None) is not None:
            self._log.info("%s", line, extra=event(trouble, over=True))
