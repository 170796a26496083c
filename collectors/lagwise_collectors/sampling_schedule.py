"""When to sample: at a fixed rate, on a clock that nobody can set."""

import math


class FixedRate:
    """Ticks at ``start``, ``start + interval``, … of a monotonic clock in seconds.

    Ticks do not drift by how long the work takes. Work that takes longer than the interval skips the ticks that passed
    meanwhile instead of running them in a row; so does a machine that slept.
    """

    def __init__(self, interval_seconds: float, start: float) -> None:
        self._interval = interval_seconds
        self._start = start
        self._next = start

    def wait_seconds(self, now: float) -> float:
        """Time until the next tick; 0 when it is due."""
        return max(0.0, self._next - now)

    def ran(self, now: float, *, rest_seconds: float = 0.0) -> int:
        """Note that the due tick was worked on until ``now``. Returns how many ticks passed meanwhile.

        The next tick is the first after now, and no earlier than ``rest_seconds`` after the one just done.
        """
        done = round((self._next - self._start) / self._interval)
        passed = max(done, math.floor((now - self._start) / self._interval))
        rested = done + round(rest_seconds / self._interval)
        self._next = self._start + max(passed + 1, rested) * self._interval
        return passed - done


def rest_after_failures(failures: int, interval_seconds: float, most_seconds: float = 60.0) -> float:
    """How long to leave a cluster alone that could not be read so many times in a row: doubling, up to a limit."""
    if failures <= 1:
        return 0.0
    return min(max(interval_seconds, most_seconds), interval_seconds * 2.0 ** min(failures - 1, 20))
