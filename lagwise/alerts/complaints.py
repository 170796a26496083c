"""Says what is wrong once, not every few seconds: again when it changes, and from time to time while it lasts."""

import logging
import time

_REMIND_AFTER_SECONDS = 300.0


class Complaints:
    """The troubles of one part of the program, by kind. Not for use from several threads."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._said: dict[str, tuple[str, float]] = {}

    def say(self, kind: str, line: str, *, same: str | None = None) -> None:
        """Log a warning, unless the same was said lately. ``same`` is what makes it the same, the line by default."""
        key = line if same is None else same
        before = self._said.get(kind)
        if before is not None and before[0] == key and time.monotonic() - before[1] < _REMIND_AFTER_SECONDS:
            return
        self._said[kind] = (key, time.monotonic())
        self._log.warning("%s", line)

    def clear(self, kind: str, line: str | None = None) -> None:
        """The trouble is over; says so if it had been said."""
        if self._said.pop(kind, None) is not None:
            self._log.info("%s", line or f"{kind}: works again")
