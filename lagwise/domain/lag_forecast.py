"""When something will be so if the lag goes on as it does, and how sure that is.

A time is a length divided by a speed, and the speed is the slope of a trend with its confidence interval: so the time
has one too, and where the interval of the slope reaches zero it has no end.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Forecast:
    """Seconds from now, with their 99 % confidence interval; a ``high`` of None is never."""

    seconds: float
    low: float
    high: float | None
