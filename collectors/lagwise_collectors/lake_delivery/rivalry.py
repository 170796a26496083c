"""Notices that another process writes samples of the same cluster into this lake, and decides which of the two goes on.

A lease keeps processes apart that have one operational database. Two with different ones, as on two machines that were
given the same lake and nothing else, each hold the lease of their own. Both leave the id of their hold in the lake with
each sample. Where that is another's, again and again, the one whose hold began earlier goes on, and the other stands
aside until no more samples come from the first.
"""

import logging
import time
from collections.abc import Callable

from lagwise.operational.lease import TAKE_OVER_SECONDS, Lease
from lagwise.platform.errors import LakeError
from lagwise.platform.log_events import LogEvent
from lagwise.platform.log_throttle import LogThrottle
from lagwise.tables.raw import SAMPLES
from lagwise.tables.store import Lake
from lagwise_collectors.lake_delivery.append_samples import writer_of

log = logging.getLogger("lagwise.collectors")

#: How often another's mark must follow ours. Once may be a process that was suspended during a write, and has just
#: finished that.
_SIGHTINGS = 2
#: After so many intervals without a sample from the other, and TAKE_OVER_SECONDS, it is gone.
_INTERVALS = 3


class Rivalry:
    """One process's side of it, for one cluster. :meth:`saw` and :meth:`wrote` are for the thread that writes,
    :meth:`why_not` is for the one that samples."""

    def __init__(
        self,
        lake: Lake,
        cluster: str,
        lease: Lease,
        interval_seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.lease = lease
        self._lake = lake
        self._cluster = cluster
        self._gone_after_seconds = max(TAKE_OVER_SECONDS, _INTERVALS * interval_seconds)
        self._clock = clock
        self._log_throttle = LogThrottle(log, remind_after_seconds=None)
        #: The hold under which this process has written since it last saw another's mark.
        self._wrote_under: int | None = None
        self._sightings = 0
        self._seen_at = float("-inf")
        #: Why this process stands aside; None while it does not.
        self._aside: str | None = None
        self._last_sample: int | None = None

    def saw(self, mark: int | None) -> str | None:
        """The id of the hold under which the newest sample in the lake was written. Returns why this process does not
        write another one; None if it does."""
        hold_id = self.lease.hold_id
        if mark is None or hold_id is None or self._wrote_under != hold_id or mark == hold_id:
            return None
        if self._clock() - self._seen_at > self._gone_after_seconds:
            self._sightings = 0
        self._sightings, self._seen_at, self._wrote_under = self._sightings + 1, self._clock(), None
        if self._sightings < _SIGHTINGS:
            return None
        trouble = (
            f"{self._other()} writes samples of {self._cluster} into this lake, too, and has another operational "
            "database; `database` must be the same in the settings of both"
        )
        if hold_id < mark:
            self._log_throttle.warn(LogEvent.SECOND_COLLECTOR, f"{trouble}. This process goes on", same="goes on")
            return None
        self._log_throttle.warn(LogEvent.SECOND_COLLECTOR, f"{trouble}. This process stands aside", same="aside")
        self._aside, self._last_sample = trouble, None
        return self._aside

    def wrote(self) -> None:
        """A sample was written under the present hold."""
        self._wrote_under = self.lease.hold_id
        if self._sightings and self._clock() - self._seen_at > self._gone_after_seconds:
            self._over()

    def why_not(self) -> str | None:
        """Why this process stands aside; None if it does not, or the other has written nothing for a while."""
        if self._aside is None:
            return None
        try:
            newest = self._lake.last_transaction(SAMPLES, writer_of(self._cluster))
        except LakeError:
            return self._aside
        if newest != self._last_sample:
            self._last_sample, self._seen_at = newest, self._clock()
        elif self._clock() - self._seen_at > self._gone_after_seconds:
            self._aside = None
            self._over()
        return self._aside

    def _over(self) -> None:
        self._sightings = 0
        line = f"no other process writes samples of {self._cluster} any more"
        self._log_throttle.clear(LogEvent.SECOND_COLLECTOR, line)

    def _other(self) -> str:
        """Who it is, as far as the lake tells."""
        try:
            others = [who for who in self._lake.recent_writers(SAMPLES) if who != self._lake.written_by]
        except LakeError:
            others = []
        return others[0] if others else "another process"
