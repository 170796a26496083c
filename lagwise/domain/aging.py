"""Whether a group's oldest unread record is late and keeps getting older, judged by its age alone.

The trend of the lag needs noise that it can measure. A group that restarts every minute has none: its sawtooth looks
like a random walk, and while it rebalances nobody can tell who reads what. Its age is known all the same. Lag that only
wanders comes back to where it was; a group that reads less than is written gets older by more than it ever came back.
That takes longer to see than a trend, but it assumes nothing about the noise.
"""

from array import array
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from itertools import accumulate
from math import inf
from operator import sub

from lagwise.domain.verdicts.direction import CADENCES_OF_PATIENCE
from lagwise.domain.verdicts.samples import gap_seconds
from lagwise.domain.verdicts.windows import CADENCES_PER_WINDOW, DAY_SECONDS, INTERVALS_PER_WINDOW, WINDOWS_SECONDS

#: The age must grow for this many times as long as a verdict usually takes …
USUAL_TIMES = 2.0
#: … which is looked for over that time and over these multiples of it: slow growth shows only in a longer window …
MULTIPLES = (1, 2, 4, 8)
#: … by comparing the first and the last part of the window, each this share of it …
SHARE_COMPARED = 0.25
#: … with how far the age came back within this multiple.
REMEMBERED_MULTIPLE = 16
#: It still grows only if it did lately, by at least this share of what it grew on average in the window.
SHARE_STILL = 0.5
#: Growth that was seen counts for this share of the shortest window: the teeth of restarts hide it at times.
SHARE_COUNTED = 0.5
#: How far the age of a group wanders that was never seen to have caught up is known after so many windows.
HISTORIES = 4


@dataclass(frozen=True, slots=True)
class AgePace:
    """What is usual for a group, in seconds: how old its records may get, how often it is sampled, and how often it
    commits (None where that is not known)."""

    lag_objective_seconds: float
    interval_seconds: float
    commit_cadence_seconds: float | None = None

    @property
    def usual_verdict_seconds(self) -> float:
        """How long it usually takes to tell where the lag is going: the shortest window in which a trend is judged, or
        as long as its samples and commits ask for."""
        commits = CADENCES_PER_WINDOW * (self.commit_cadence_seconds or 0.0)
        return max(WINDOWS_SECONDS[0], INTERVALS_PER_WINDOW * self.interval_seconds, commits)

    @property
    def patience_seconds(self) -> float:
        """How long the age must grow before that means anything."""
        return max(self.lag_objective_seconds, USUAL_TIMES * self.usual_verdict_seconds)

    @property
    def visible_seconds(self) -> float:
        """How old the oldest unread record of a group may look that keeps pace."""
        return self.interval_seconds + CADENCES_OF_PATIENCE * (self.commit_cadence_seconds or 0.0)

    @property
    def remembered_seconds(self) -> float:
        """How much of the past the answer rests on: a day, or the first window where that is longer, is enough."""
        longest = max(DAY_SECONDS, self.patience_seconds + self.interval_seconds)
        return min(REMEMBERED_MULTIPLE * self.patience_seconds, longest)


@dataclass(slots=True)
class _Growth:
    """Growth as it was last seen: when, and the age down to which that may come back as it did before."""

    at: float
    floor_seconds: float


@dataclass(slots=True)
class OldestUnread:
    """Follows the age of one group's oldest unread record, reading by reading.

    What it says rests on the readings of :attr:`AgePace.remembered_seconds` only, so it can be worked out again from a
    history.
    """

    _times: "array[float]" = field(default_factory=lambda: array("d"))
    _ages: "array[float]" = field(default_factory=lambda: array("d"))
    #: Whether the history begins with a group that had caught up. What came before is not known otherwise.
    _begins_caught_up: bool = False
    #: Since when readings have come without a gap: nobody knows what happened in one.
    _unbroken_since: float = 0.0
    _growth: _Growth | None = None

    def see(self, at: float, age_seconds: float, pace: AgePace, *, is_lower_bound: bool = False) -> bool:
        """Whether the oldest unread record is late and keeps getting older, given its age at a time. What is not newer
        than all that was seen changes nothing.

        It is late if it is older than the group's lag objective. It keeps getting older from when growth shows until
        none has shown for half as long as that takes, or the age has come back by more than it ever did. An age of next
        to nothing starts the history anew: the group has caught up. So does an age that is only a lower bound, which
        grows by itself.
        """
        if not self._times or at > self._times[-1]:
            self._take(at, age_seconds, pace, is_lower_bound=is_lower_bound)
        growth = self._growth
        if growth is None or age_seconds < growth.floor_seconds or age_seconds <= pace.lag_objective_seconds:
            return False
        return at - growth.at <= SHARE_COUNTED * pace.patience_seconds

    def _take(self, at: float, age_seconds: float, pace: AgePace, *, is_lower_bound: bool) -> None:
        has_caught_up = age_seconds <= pace.interval_seconds and not is_lower_bound
        if self._times and at - self._times[-1] > gap_seconds(pace.interval_seconds):
            self._unbroken_since = at
        if is_lower_bound or has_caught_up or not self._times:
            del self._times[:], self._ages[:]
            self._unbroken_since = at
            self._begins_caught_up = has_caught_up
            self._growth = None
        if is_lower_bound:
            return
        self._times.append(at)
        self._ages.append(age_seconds)
        self._forget(at - pace.remembered_seconds)
        if age_seconds > pace.visible_seconds:
            self._look_for_growth(pace)

    def _forget(self, before: float) -> None:
        forgotten = bisect_left(self._times, before)
        if forgotten:
            del self._times[:forgotten], self._ages[:forgotten]
            self._begins_caught_up = False

    def _look_for_growth(self, pace: AgePace) -> None:
        """Whether all of the last part of some window is older than all of its first part, by more than the age ever
        came back, and the age went on growing lately."""
        times, ages = self._times, self._ages
        now = times[-1]
        history = now - times[0]
        # The latest peak, how far the age came back before it, and how far it has come back since.
        recent = bisect_left(times, now - pace.patience_seconds)
        peak = max(range(recent, len(ages)), key=ages.__getitem__)
        until_peak = ages[: peak + 1]
        usual = max(pace.interval_seconds, *map(sub, accumulate(until_peak, max), until_peak))
        # An age is right to within a sampling interval.
        floor = ages[peak] - usual - pace.interval_seconds
        if ages[-1] < floor:
            return
        lately = ages[peak] - max(ages[:recent], default=0.0)
        for multiple in MULTIPLES:
            window = multiple * pace.patience_seconds
            if now - window < self._unbroken_since or (not self._begins_caught_up and history < HISTORIES * window):
                return
            part = SHARE_COMPARED * window
            first = bisect_left(times, now - window)
            # Where hardly any sample came, none may be in that part.
            oldest_before = max(ages[first : bisect_right(times, now - window + part)], default=inf)
            youngest_now = min(ages[bisect_right(times, now - part) :])
            grown = youngest_now - oldest_before
            on_average = grown / (window - 2 * part) * pace.patience_seconds
            if grown > usual and lately >= SHARE_STILL * on_average and youngest_now > pace.visible_seconds:
                self._growth = _Growth(now, floor)
                return
