"""How rarely noise is taken for a trend.

The promise is that an interval misses the true slope once in a hundred times, whichever kind of noise lies over it.
Every simulation has its seed, so its figure is the same in every run and on every machine; the bounds stand as far from
1 % as chance does (three standard errors of a share of 1 % are 0.7 % in 2,000 runs and 0.9 % in 1,000).
"""

import math
import random
import statistics
from typing import NamedTuple

import pytest

from lagwise.domain.verdicts.trend import T_99
from tests.domain.lags import INTERVAL, is_significant, line, over, statistics_of, trend, trends


class Noise(NamedTuple):
    """``jitter`` and ``step`` are the standard deviations of what scatters around the line and of what adds up;
    the share of intervals that miss the slope must lie between ``fewest`` and ``most``."""

    number: int
    why: str
    samples: int
    jitter: float
    step: float
    runs: int
    fewest: float
    most: float


NOISES = (
    Noise(
        1, "five samples of jitter: the worse kind is assumed, so hardly ever: 0.15 %", 5, 1.0, 0.0, 2000, 0.0, 0.005
    ),
    Noise(2, "20 of jitter: half of the time that looks correlated, so less: 0.35 %", 20, 1.0, 0.0, 2000, 0.001, 0.017),
    Noise(3, "60 of jitter: 0.9 %", 60, 1.0, 0.0, 1000, 0.001, 0.019),
    Noise(4, "240 of jitter: 2 in 300", 240, 1.0, 0.0, 300, 0.0, 0.027),
    Noise(5, "five samples of a random walk: its steps tell its variance: 1.15 %", 5, 0.0, 1.0, 2000, 0.003, 0.017),
    Noise(6, "15 of a random walk: now and then it looks like jitter: 2.5 %", 15, 0.0, 1.0, 2000, 0.003, 0.035),
    Noise(7, "20 of a random walk: 1 %", 20, 0.0, 1.0, 2000, 0.003, 0.017),
    Noise(8, "60 of a random walk: 1.3 %", 60, 0.0, 1.0, 1000, 0.001, 0.019),
    Noise(9, "240 of a random walk: 2 in 300", 240, 0.0, 1.0, 300, 0.0, 0.027),
    Noise(10, "20 of a walk that jitter thrice its step hides: not promised: 9 %", 20, 3.0, 1.0, 1000, 0.0, 0.12),
)


def walks(noise: Noise, slope: float) -> list[list[tuple[float, float]]]:
    chance = random.Random(noise.number)
    runs = []
    for _ in range(noise.runs):
        level, samples = 0.0, []
        for t, lag in line(noise.samples, slope):
            level += chance.gauss(0.0, noise.step)
            samples.append((t, lag + level + chance.gauss(0.0, noise.jitter)))
        runs.append(samples)
    return runs


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: f"{noise.number:02d} {noise.why}")
def test_an_interval_misses_the_slope_about_once_in_a_hundred_times(noise: Noise) -> None:
    slope = 0.4
    found = trends(statistics_of(walks(noise, slope)))
    missed = sum(one is None or not one.low <= slope <= one.high for one in found) / noise.runs
    assert noise.fewest <= missed <= noise.most


def test_without_looking_at_the_kind_of_noise_most_random_walks_would_be_trends() -> None:
    """What the allowance is for: the plain standard error finds a trend in two of three."""
    noise = NOISES[6]
    wrong = 0
    for samples in walks(noise, 0.0):
        times, lags = zip(*samples, strict=True)
        slope, intercept = statistics.linear_regression(times, lags)
        squares = sum((lag - intercept - slope * t) ** 2 for t, lag in samples)
        error = math.sqrt(squares / 18 / (20 * statistics.pvariance(times)))
        wrong += abs(slope) > T_99[17] * error
    assert wrong / noise.runs > 0.5


def sawtooth(cadence: int, phase: int, samples: int = 20) -> list[tuple[float, float]]:
    """The lag of a group that commits all there is every ``cadence`` seconds, of 10 records per second."""
    return [(INTERVAL * n, 10.0 * ((INTERVAL * n + phase) % cadence)) for n in range(samples)]


@pytest.mark.parametrize(("window", "shortest"), [(300, 15), (900, 75), (3600, 225)])
def test_the_sawtooth_of_a_slow_committer_is_no_trend(window: int, shortest: int) -> None:
    """At whatever point of its rhythm it is met, in the shortest window that holds four of its commits."""
    step = window // 300
    for cadence in range(shortest, window // 4 + 1, step * step):
        phases = range(0, cadence, 5 * step * step)
        samples = int(window / INTERVAL)
        found = trends(statistics_of([sawtooth(cadence, phase, samples) for phase in phases]))
        assert [p for p, one in zip(phases, found, strict=True) if one is None or is_significant(one)] == [], cadence


def test_through_too_short_a_window_the_sawtooth_would_be_one() -> None:
    """What the window is chosen for: five minutes of a group that commits every seven are one tooth."""
    assert trend(sawtooth(420, 60)).low > 0


def test_a_sawtooth_that_climbs_is_a_trend_once_it_has_climbed_a_tooth() -> None:
    climbing = over(sawtooth(60, 0, samples=60), lambda n: 2.0 * INTERVAL * n)
    found = trend(climbing)
    assert found.low > 0
    assert found.low < 2.0 < found.high
