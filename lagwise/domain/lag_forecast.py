"""When something will be so if the lag goes on as it does, and how sure that is.

A time is a length divided by a speed, and the speed is the slope of a trend with its confidence interval: so the time
has one too, and where the interval of the slope reaches zero it has no end.
"""

from dataclasses import dataclass

from lagwise.domain.trend import Trend


@dataclass(frozen=True, slots=True)
class Forecast:
    """Seconds from now, with their 99 % confidence interval; a ``high`` of None is never."""

    seconds: float
    low: float
    high: float | None


def catch_up(lag: int, trend: Trend) -> Forecast | None:
    """When the lag is gone; None where it does not shrink."""
    if trend.slope >= 0:
        return None
    return Forecast(lag / -trend.slope, lag / -trend.low, lag / -trend.high if trend.high < 0 else None)


def breach(seconds_left: float, trend: Trend, produce_rate_per_second: float) -> Forecast | None:
    """When the oldest unread record will be so many seconds older than it is; None where it does not get older.

    Where records come at a steady rate p and the lag grows by s records a second, the oldest unread record gets older
    by s / p seconds a second, and by one second at most: that is where nothing is read.
    """
    if produce_rate_per_second <= 0 or trend.slope <= 0:
        return None

    def seconds(slope: float) -> float:
        return seconds_left / min(1.0, slope / produce_rate_per_second)

    return Forecast(seconds(trend.slope), seconds(trend.high), seconds(trend.low) if trend.low > 0 else None)
