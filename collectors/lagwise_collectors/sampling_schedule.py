"""When the next sample is due: at a fixed rate on a monotonic clock, later after failures."""

import math

_MAX_REST_SECONDS = 60.0


class FixedRate:
    """Ticks at ``start``, ``start + interval``, … of a monotonic clock in seconds.

    Ticks do not drift with the time that a sample takes. A sample that takes longer than the interval skips the ticks
    that have passed, and so does a machine that was suspended.
    """

    def __init__(self, interval_seconds: float, start: float) -> None:
        self._interval = interval_seconds
        self._start = start
        self._next = start

    def wait_seconds(self, now: float) -> float:
        """Time until the next tick; 0 when it is due."""
        return max(0.0, self._next - now)

    def ran(self, now: float, *, rest_seconds: float = 0.0) -> int:
        """Record that the due tick was worked on until ``now``. Returns how many ticks were skipped.

        The next tick is the first after now, and no earlier than ``rest_seconds`` after the one just done.
        """
        done = round((self._next - self._start) / self._interval)
        passed = max(done, math.floor((now - self._start) / self._interval))
        rested = done + round(rest_seconds / self._interval)
        self._next = self._start + max(passed + 1, rested) * self._interval
        return passed - done


def rest_after_failures(failures: int, interval_seconds: float) -> float:
    """Seconds to wait after this many failed samples in a row: doubling, up to a limit."""
    if failures <= 1:
        return 0.0
    return min(max(interval_seconds, _MAX_REST_SECONDS), interval_seconds * 2.0 ** min(failures - 1, 20))
