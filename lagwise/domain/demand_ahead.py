"""What a topic will be sent, in the unit that capacity is judged by: the busiest minute."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from lagwise.domain.capacity_verdict import DemandAhead

_WEEK = timedelta(days=7)


def busy_minutes(busy_hours: Sequence[DemandAhead], forecast_peak_per_second: float) -> tuple[DemandAhead, ...]:
    """The forecast of busy hours, in order of time, as one of busy minutes.

    ``forecast_peak_per_second`` is the highest minute rate in the last week of the forecast: by as much as it is above
    that week's busiest hour, all hours are raised.
    """
    if not busy_hours:
        return ()
    week = max(hour.mean for hour in busy_hours if hour.at > busy_hours[-1].at - _WEEK)
    factor = max(1.0, forecast_peak_per_second / week) if week > 0.0 else 1.0
    return tuple(replace(hour, mean=hour.mean * factor, upper=hour.upper * factor) for hour in busy_hours)
