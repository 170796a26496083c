"""Says what is wrong once, not every few seconds: again when it changes, and that it is over."""

import logging
import time


class LogThrottle:
    """The troubles of one part of the program, by kind. Not for use from several threads.

    ``remind_after_seconds`` is how often a trouble that lasts is said again; None is never.
    """

    def __init__(self, log: logging.Logger, *, remind_after_seconds: float | None = 300.0) -> None:
        self._log = log
        self._remind_after_seconds = remind_after_seconds
        self._said: dict[str, tuple[str, float]] = {}

    def say(self, kind: str, line: str, *, same: str | None = None) -> None:
        """Log a warning, unless the same was said lately. ``same`` is what makes it the same, the line by default."""
        key = line if same is None else same
        before = self._said.get(kind)
        if before is not None and before[0] == key and not self._is_long_ago(before[1]):
            return
        self._said[kind] = (key, time.monotonic())
        self._log.warning("%s", line)

    def clear(self, kind: str, line: str | None = None) -> None:
        """The trouble is over; says so if it had been said."""
        if self._said.pop(kind, None) is not None:
            self._log.info("%s", line or f"{kind}: works again")

    def _is_long_ago(self, said_at: float) -> bool:
        return self._remind_after_seconds is not None and time.monotonic() - said_at >= self._remind_after_seconds
