"""What a group's lag objective takes of a topic: in the recorded minutes, and in those to come.

The forecast is of hours; how the minutes of an hour differ is in the recorded ones. So these are scaled by as much as
the busy hours to come are above those recorded, at the upper end of the forecast's interval. They are never scaled
down: what happened once may come again. And a longer burst than any so far may come: what is planned for is the upper
end of what a week takes, by how much the recorded weeks differ. None of this asks for more than the highest minute, so
far or forecast: with that capacity nothing ever waits.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC
from typing import NamedTuple

from lagwise.domain.capacity.verdict import DemandAhead
from lagwise.domain.humanise import duration, significant
from lagwise.domain.sizing.objective import LEAST_MINUTES, MINUTE_SECONDS, ObjectiveRate, rate_for
from lagwise.domain.sizing.workload import SizeBy


@dataclass(frozen=True, slots=True)
class ObjectiveDemand:
    """The least capacity that keeps the objective, messages per second: recorded, and ahead."""

    recorded: ObjectiveRate
    #: Known minutes that it is taken from.
    minutes: int
    #: Upper end of what a week takes at the level of the recorded ones.
    week_per_second: float
    #: What was recorded, scaled by the forecast, in order of time; the upper ends are those of a week.
    ahead: tuple[DemandAhead, ...]
    #: The highest minute, so far or forecast: what a plan by the peak is made with.
    peak_per_second: float

    @property
    def planned_per_second(self) -> float:
        """The most of the upper ends, now and ahead. Never more than the peak, for which its own upper end is not
        planned either."""
        highest = max([self.week_per_second, *(point.upper for point in self.ahead)])
        return max(self.recorded.rate_per_second, min(highest, self.peak_per_second))

    @property
    def evidence(self) -> str:
        """``the busiest 38 minutes from 2026-11-20 18:02 UTC decide, of 28 d recorded``."""
        stretch = self.recorded.stretch
        decide = "decides" if stretch.startswith("the busiest minute ") else "decide"
        return f"{stretch} {decide}, of {duration(self.minutes * MINUTE_SECONDS)} recorded"

    @property
    def planned_evidence(self) -> str:
        """The evidence, and by how much more is planned."""
        planned = self.planned_per_second
        if planned <= self.recorded.rate_per_second:
            return self.evidence
        said = f"{self.evidence}; raised by a factor of {significant(planned / self.recorded.rate_per_second)} to"
        highest = max(self.ahead, key=lambda point: point.upper, default=None)
        if planned >= self.peak_per_second:
            return f"{said} the highest minute so far or forecast"
        if highest is None or planned <= self.week_per_second:
            return f"{said} the upper end of what a week takes"
        return f"{said} the upper end of the forecast for {highest.at.astimezone(UTC):%Y-%m-%d}"


def objective_demand(
    kept: Sequence[ObjectiveRate],
    objective_seconds: float,
    *,
    minutes: int,
    peak_per_second: float,
    peak_high_per_second: float,
    busy_hour_per_second: float,
    hours_ahead: Sequence[DemandAhead],
) -> ObjectiveDemand | None:
    """What an objective takes, from the kept ones of the topic; None without any, where too little is recorded.

    ``minutes`` are known ones. ``peak_per_second`` is the highest minute, so far or forecast, and
    ``peak_high_per_second`` is at the upper end of that forecast: no more is taken. ``busy_hour_per_second`` is the
    level of the recorded busy hours, ``hours_ahead`` are the mean rates of the hours to come. Raises OutOfRange where
    the objective is negative.
    """
    recorded = rate_for(kept, objective_seconds)
    if recorded is None:
        return None
    rate, high = recorded.rate_per_second, recorded.high_per_second
    # What was recorded was needed, so it is never cut.
    most, most_at_worst = max(rate, peak_per_second), max(rate, peak_per_second, peak_high_per_second)
    ahead = tuple(
        DemandAhead(
            point.at,
            min(rate * point.mean / busy_hour_per_second, most),
            min(max(rate, high) * point.upper / busy_hour_per_second, most_at_worst),
        )
        for point in (hours_ahead if busy_hour_per_second > 0.0 else ())
    )
    return ObjectiveDemand(recorded, minutes, max(rate, min(high, most)), ahead, most)


class PlannedLoad(NamedTuple):
    """What must be done, messages per second: what the objective takes, else the peak."""

    now_per_second: float | None
    ahead: tuple[DemandAhead, ...]
    #: None where the peak decides.
    objective_seconds: float | None

    @property
    def highest_ahead_per_second(self) -> float | None:
        """The highest mean of the forecast; None without one."""
        return max((point.mean for point in self.ahead), default=None)

    @property
    def highest_upper_per_second(self) -> float | None:
        """The highest upper end of the forecast's intervals; None without one."""
        return max((point.upper for point in self.ahead), default=None)

    @classmethod
    def of(
        cls,
        peak_per_second: float | None,
        minutes_ahead: tuple[DemandAhead, ...],
        takes: ObjectiveDemand | None,
        size_by: SizeBy,
    ) -> "PlannedLoad":
        """What decides, of the peak with its forecast and of what the objective takes (None is not known)."""
        if takes is None or size_by is SizeBy.PEAK:
            return cls(peak_per_second, minutes_ahead, None)
        return cls(takes.recorded.rate_per_second, takes.ahead, takes.recorded.objective_seconds)


#: Why it is unknown what an objective takes, where a peak is entered.
OTHER_PEAK = "unknown for another peak than the recorded one; that peak decides"


def why_unknown(minutes: int | None) -> str:
    """Why the verdict on a group does not say what its objective takes, after so many recorded minutes."""
    if minutes is not None and minutes >= LEAST_MINUTES:
        return "unknown until the next verdict; until then, the peak decides"
    so_far = duration(minutes * MINUTE_SECONDS) if minutes else "none"
    return f"unknown before two days of minutes are recorded ({so_far} so far); until then, the peak decides"
