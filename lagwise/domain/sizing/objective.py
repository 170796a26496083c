"""The least capacity that keeps a lag objective, from the recorded minutes of a topic.

Records are a fluid that is read in the order in which it came (FIFO), at a constant capacity c. What came by the end of
minute j waits for its backlog over c, and the backlog is the most by which what came in any stretch of minutes i to j
exceeds c times its length. So the oldest unread record is never older than the objective L if and only if, for every
stretch of n minutes with A records,

    A <= c * (60 n + L),

and the least such c is the steepest of these: max A / (60 n + L). It is the delay bound of an arrival curve and a
constant-rate server, solved for the rate (Le Boudec and Thiran, *Network Calculus*, theorem 1.4.2).

With L = 0 that is the highest minute rate. A partition with a constant share of the traffic needs that share of c.
Within a minute, traffic is taken as even. Minutes that are not known are left out, as if they had not been: the backlog
after a gap is the one before it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lagwise.domain.humanise import plural
from lagwise.domain.sizing.ranges import check_number

Rates = npt.NDArray[np.float64]

MINUTE_SECONDS = 60.0
#: Of less than two days of known minutes it is not known how much a day differs from the next, so that no capacity
#: follows from them.
LEAST_MINUTES = 2 * 1_440
#: The objectives for which the least capacity is worked out and kept; for those between it is bounded (`rate_for`).
KEPT_OBJECTIVES_SECONDS = (
    0.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1_800.0, 3_600.0, 7_200.0, 14_400.0, 28_800.0, 86_400.0,
)  # fmt: skip
#: Rounding errors of this relative size do not make a stretch steeper.
_ROUNDING = 1e-12


class Stretch(NamedTuple):
    """The minutes that decide a least capacity: the known ones from the ``first`` up to the ``last``, by index."""

    rate_per_second: float
    first: int
    last: int


def least_capacity(rates: Rates, objective_seconds: float) -> Stretch:
    """The least capacity, messages per second, with which no record gets older than the objective, and the stretch that
    decides it.

    ``rates`` are messages per second by the minute, oldest first; NaN is not known, and at least one must be known.
    Raises OutOfRange where the objective is negative, ValueError where no minute is known.
    """
    return _least(_known_minutes(rates), objective_seconds, None)


def least_capacities(rates: Rates, objectives_seconds: Sequence[float] = KEPT_OBJECTIVES_SECONDS) -> list[Stretch]:
    """:func:`least_capacity` for several objectives, in their order; each is cheaper with the others at hand."""
    known = _known_minutes(rates)
    found: dict[float, Stretch] = {}
    stretch = None
    for objective in sorted(objectives_seconds, reverse=True):
        stretch = found[objective] = _least(known, objective, stretch)
    return [found[objective] for objective in objectives_seconds]


class _KnownMinutes(NamedTuple):
    records: Rates
    #: Where each is among all minutes.
    places: npt.NDArray[np.int64]


def _known_minutes(rates: Rates) -> _KnownMinutes:
    index = np.flatnonzero(np.isfinite(rates))
    if not len(index):
        raise ValueError("no minute is known")
    return _KnownMinutes(rates[index] * MINUTE_SECONDS, index)


def _least(known: _KnownMinutes, objective_seconds: float, begin: Stretch | None) -> Stretch:
    """By Dinkelbach's method (*On Nonlinear Fractional Programming*, Management Science 1967): find the stretch that
    exceeds c by most, take its own least capacity as the next c, until none exceeds it. Two to five passes are usual.
    It begins with the stretch of another objective."""
    check_number("objective_seconds", objective_seconds, 0.0, 366 * 86_400.0, "from 0 to 366 days (in seconds)")
    records, places = known
    if begin is None:
        first = last = int(records.argmax())
    else:
        first, last = (int(at) for at in np.searchsorted(places, [begin.first, begin.last]))
    while True:
        needed = records[first : last + 1].sum() / (MINUTE_SECONDS * (last - first + 1) + objective_seconds)
        start, end = _most_excessive(records - MINUTE_SECONDS * needed)
        steeper = records[start : end + 1].sum() / (MINUTE_SECONDS * (end - start + 1) + objective_seconds)
        if steeper <= needed * (1.0 + _ROUNDING):
            return Stretch(float(needed), int(places[first]), int(places[last]))
        first, last = start, end


def _most_excessive(excess: Rates) -> tuple[int, int]:
    """The first and the last minute of the stretch with the largest sum. It neither begins nor ends within a run of
    minutes above 0, or of others, and of such runs there are far fewer than of minutes."""
    begins = np.concatenate([[0], np.flatnonzero(np.diff(excess > 0.0)) + 1, [len(excess)]])
    sums = np.concatenate([[0.0], np.cumsum(np.add.reduceat(excess, begins[:-1]))])
    end = int((sums[1:] - np.minimum.accumulate(sums[:-1])).argmax())
    start = int(sums[: end + 1].argmin())
    return int(begins[start]), int(begins[end + 1]) - 1


@dataclass(frozen=True, slots=True)
class ObjectiveRate:
    """The least capacity for one objective, and the stretch of recorded minutes that decides it."""

    objective_seconds: float
    #: Messages per second, in all that is recorded.
    rate_per_second: float
    #: Upper end of the 90 % interval of what a week to come takes, by how much the recorded weeks differ.
    high_per_second: float
    #: Start of the first and end of the last minute of the stretch.
    start: datetime
    until: datetime

    @property
    def stretch(self) -> str:
        """``the busiest 38 minutes from 2026-11-20 18:02 UTC``."""
        minutes = max(1, round((self.until - self.start).total_seconds() / MINUTE_SECONDS))
        length = "minute" if minutes == 1 else plural(minutes, "minute")
        return f"the busiest {length} from {self.start:%Y-%m-%d %H:%M} UTC"


def rate_for(kept: Sequence[ObjectiveRate], objective_seconds: float) -> ObjectiveRate | None:
    """The least capacity for an objective, from those of the ``kept`` ones in order of the objective, from 0 on. None
    where none are kept. Raises OutOfRange where the objective is negative.

    Exact for an objective that is kept, never too little for another. 1 / c is the least of straight lines
    (60 n + L) / A, so it is concave in L, and lies above the chord between two kept objectives. Beyond the longest, the
    capacity is that of the longest. The stretch is that of the neighbour which asks for more.
    """
    if not kept:
        return None
    check_number("objective_seconds", objective_seconds, 0.0, 366 * 86_400.0, "from 0 to 366 days (in seconds)")
    above = next((one for one in kept if one.objective_seconds >= objective_seconds), kept[-1])
    below = next((one for one in reversed(kept) if one.objective_seconds <= objective_seconds), kept[0])
    if above is below:
        return replace(above, objective_seconds=objective_seconds)
    share = (objective_seconds - below.objective_seconds) / (above.objective_seconds - below.objective_seconds)
    return replace(
        max((below, above), key=lambda one: _own_rate(one, objective_seconds)),
        objective_seconds=objective_seconds,
        rate_per_second=_between(below.rate_per_second, above.rate_per_second, share),
        high_per_second=_between(below.high_per_second, above.high_per_second, share),
    )


def _between(below: float, above: float, share: float) -> float:
    """On the chord of 1 / c."""
    return 1.0 / ((1.0 - share) / below + share / above) if above > 0.0 else 0.0


def _own_rate(one: ObjectiveRate, objective_seconds: float) -> float:
    """What the stretch by itself asks for with another objective."""
    length = (one.until - one.start).total_seconds()
    return one.rate_per_second * (length + one.objective_seconds) / (length + objective_seconds)
