"""What a topic will be sent, in the unit that capacity is judged by: the busiest minute."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from lagwise.domain.capacity.verdict import DemandAhead

_WEEK = timedelta(days=7)


def busy_minutes(
    busy_hours: Iterable[tuple[datetime, float, float]], forecast_peak_per_second: float
) -> tuple[DemandAhead, ...]:
    """The forecast of busy hours (start, mean, upper end of the interval), in order of time, as one of busy minutes.

    A forecast may go below nothing, and its interval's end below its mean: neither is kept.
    ``forecast_peak_per_second`` is the highest minute rate in the last week of the forecast: by as much as it is above
    that week's busiest hour, all hours are raised.
    """
    hours = [(at, max(0.0, mean), max(0.0, mean, upper)) for at, mean, upper in busy_hours]
    if not hours:
        return ()
    week = max(mean for at, mean, _ in hours if at > hours[-1][0] - _WEEK)
    factor = max(1.0, forecast_peak_per_second / week) if week > 0.0 else 1.0
    return tuple(DemandAhead(at, mean * factor, upper * factor) for at, mean, upper in hours)
