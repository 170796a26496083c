"""When the next sample is due: at a fixed rate on a monotonic clock, later after failures, and at another moment of the
interval for each cluster."""

import hashlib
import math

_MAX_REST_SECONDS = 60.0
#: By how much each further cluster extends the time over which first samples are spread: about what one costs.
_START_APART_SECONDS = 0.25


class FixedRate:
    """Ticks at ``start``, ``start + interval``, … of a monotonic clock in seconds.

    Ticks do not drift with the time that a sample takes. A sample that takes longer than the interval skips the ticks
    that have passed, and so does a machine that was suspended. The first tick may come at another time than ``start``,
    at ``first``, half an interval away from it at most.
    """

    def __init__(self, interval_seconds: float, start: float, first: float | None = None) -> None:
        self._interval = interval_seconds
        self._start = start
        self._next = start if first is None else first

    def wait_seconds(self, now: float) -> float:
        """Time until the next tick; 0 when it is due."""
        return max(0.0, self._next - now)

    def ran(self, now: float, *, rest_seconds: float = 0.0) -> int:
        """Record that the due tick was worked on until ``now``. Returns how many ticks were skipped.

        The next tick is the first after now, and no earlier than ``rest_seconds`` after the one just done.
        """
        due = self._next
        done = round((due - self._start) / self._interval)
        passed = max(done, math.floor((now - self._start) / self._interval))
        rested = done + round(rest_seconds / self._interval)
        self._next = self._start + max(passed + 1, rested) * self._interval
        return max(0, math.floor((now - due) / self._interval))


def phase_of(name: str) -> float:
    """At which part of each interval a cluster is sampled, from 0 up to 1: by its name alone, so that a restart, or
    another cluster in the settings, changes nothing."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest()) / 2**64


def schedule_of(name: str, interval_seconds: float, *, clusters: int, now: float, wall_seconds: float) -> FixedRate:
    """The ticks of one of several clusters: at its phase of the interval, as counted by the wall clock.

    The first tick does not wait for that: it comes soon, at once where there is no other cluster, and is in place of
    the nearest one. ``now`` is of the clock that never goes back, ``wall_seconds`` is the time since 1970.
    """
    phase = phase_of(name)
    first = now + phase * min(interval_seconds, _START_APART_SECONDS * (clusters - 1))
    last = now - (wall_seconds / interval_seconds - phase) % 1.0 * interval_seconds
    nearest = last + round((first - last) / interval_seconds) * interval_seconds
    return FixedRate(interval_seconds, nearest, first)


def rest_after_failures(failures: int, interval_seconds: float) -> float:
    """Seconds to wait after this many failed samples in a row: doubling, up to a limit."""
    if failures <= 1:
        return 0.0
    return min(max(interval_seconds, _MAX_REST_SECONDS), interval_seconds * 2.0 ** min(failures - 1, 20))
