"""Samples of a lag, and the trend of them, for the tests of trends."""

from collections.abc import Callable, Sequence
from itertools import pairwise

from lagwise.domain.trend import Statistics, Trend, samples_of, step_of, trend_of

Samples = Sequence[tuple[float, float]]

INTERVAL = 15.0


def statistics_of(samples: Samples) -> Statistics:
    """Samples and every step between them, in one bucket."""
    merged = samples_of(samples)
    for (t, lag), (later, next_lag) in pairwise(samples):
        merged += step_of(later - t, next_lag - lag)
    return merged


def trend(samples: Samples) -> Trend:
    found = trend_of(statistics_of(samples))
    assert found is not None
    return found


def line(samples: int, slope: float, start: float = 1000.0) -> list[tuple[float, float]]:
    """A lag that grows by ``slope`` records per second, sampled every 15 s."""
    return [(INTERVAL * n, start + slope * INTERVAL * n) for n in range(samples)]


def over(samples: Samples, noise: Callable[[int], float]) -> list[tuple[float, float]]:
    """The same with something added to each."""
    return [(t, lag + noise(n)) for n, (t, lag) in enumerate(samples)]


def is_significant(found: Trend) -> bool:
    return found.low > 0 or found.high < 0
