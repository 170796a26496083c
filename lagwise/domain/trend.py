"""Whether lag grows: least squares over mergeable statistics, with an error that allows for autocorrelation.

A bucket holds sufficient statistics of its samples, so that the trend over any window is a merge of buckets and never
a re-read of samples. Samples of lag are not independent (a backlog that is high now is high in 15 s), so the plain
standard error of the slope is too small and would see trends in noise. It is widened by the lag-one autocorrelation
ρ of the residuals, sqrt((1+ρ)/(1−ρ)), the usual correction for first-order autoregressive errors (e.g. Zwiers and
von Storch 1995, equation 3); ρ comes from the mean squared successive difference of the residuals, as in the
Durbin–Watson statistic (d ≈ 2(1−ρ)), which is itself a sum over steps and so merges like the rest.

Two things go wrong with that in short windows, and a backlog meets both. Residuals look less correlated than the
errors are, because the line was fitted to them: the expected estimate is about ρ − (2+4ρ)/n (around a mean it is
ρ − (1+3ρ)/n, Marriott and Pope 1954), which is undone here. And a backlog is the sum of all that came in and went
out: where both are noise it is a random walk, whose ρ is 1, which would make the interval infinite. But the slope of
the line through n steps of a random walk has the variance 6/(5n) of a step, and the uncorrected formula, which sees
residuals of the variance n/15, says 12/(15n²): the widening need never exceed sqrt(1.5 n). ``tests/domain`` shows by
simulation that noise of either kind is rarely taken for a trend.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

#: Two-sided 99 % quantiles of Student's t for 1, 2, … 30 degrees of freedom, then the normal one.
T_99 = (
    63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169,
    3.106, 3.055, 3.012, 2.977, 2.947, 2.921, 2.898, 2.878, 2.861, 2.845,
    2.831, 2.819, 2.807, 2.797, 2.787, 2.779, 2.771, 2.763, 2.756, 2.750, 2.576,
)  # fmt: skip

#: A trend is not judged on fewer samples than this.
MINIMUM_SAMPLES = 5

#: (1+ρ)/(1−ρ) never exceeds this many times the number of samples: see the module's text on random walks.
RANDOM_WALK = 1.5


@dataclass(frozen=True, slots=True)
class Statistics:
    """Sums over samples (t in seconds since an origin, lag in records) and over the steps between successive ones."""

    samples: int = 0
    sum_t: float = 0.0
    sum_tt: float = 0.0
    sum_lag: float = 0.0
    sum_lag_lag: float = 0.0
    sum_t_lag: float = 0.0
    steps: int = 0
    sum_dt_dt: float = 0.0
    sum_dt_dlag: float = 0.0
    sum_dlag_dlag: float = 0.0

    def shifted(self, seconds: float) -> "Statistics":
        """The same statistics with every t larger by ``seconds``: another origin."""
        return Statistics(
            self.samples,
            self.sum_t + self.samples * seconds,
            self.sum_tt + 2 * seconds * self.sum_t + self.samples * seconds * seconds,
            self.sum_lag,
            self.sum_lag_lag,
            self.sum_t_lag + seconds * self.sum_lag,
            self.steps,
            self.sum_dt_dt,
            self.sum_dt_dlag,
            self.sum_dlag_dlag,
        )

    def __add__(self, other: "Statistics") -> "Statistics":
        """Statistics of both, given the same origin."""
        return Statistics(
            self.samples + other.samples,
            self.sum_t + other.sum_t,
            self.sum_tt + other.sum_tt,
            self.sum_lag + other.sum_lag,
            self.sum_lag_lag + other.sum_lag_lag,
            self.sum_t_lag + other.sum_t_lag,
            self.steps + other.steps,
            self.sum_dt_dt + other.sum_dt_dt,
            self.sum_dt_dlag + other.sum_dt_dlag,
            self.sum_dlag_dlag + other.sum_dlag_dlag,
        )


@dataclass(frozen=True, slots=True)
class Trend:
    """Slope of the lag in records per second with its 99 % confidence interval."""

    slope: float
    low: float
    high: float


def samples_of(samples: Iterable[tuple[float, float]]) -> Statistics:
    """Statistics of (t, lag) samples, without the steps between them."""
    rows = list(samples)
    return Statistics(
        samples=len(rows),
        sum_t=sum(t for t, _ in rows),
        sum_tt=sum(t * t for t, _ in rows),
        sum_lag=sum(lag for _, lag in rows),
        sum_lag_lag=sum(lag * lag for _, lag in rows),
        sum_t_lag=sum(t * lag for t, lag in rows),
    )


def step_of(dt: float, dlag: float) -> Statistics:
    """Statistics of one step between two successive samples."""
    return Statistics(steps=1, sum_dt_dt=dt * dt, sum_dt_dlag=dt * dlag, sum_dlag_dlag=dlag * dlag)


def trend_of(s: Statistics) -> Trend | None:
    """The trend, or None where there are too few samples or all are of the same time."""
    n = s.samples
    if n < MINIMUM_SAMPLES or s.steps < 1:
        return None
    s_tt = s.sum_tt - s.sum_t * s.sum_t / n
    if s_tt <= 0:
        return None
    s_tl = s.sum_t_lag - s.sum_t * s.sum_lag / n
    s_ll = s.sum_lag_lag - s.sum_lag * s.sum_lag / n
    slope = s_tl / s_tt
    squared_residuals = max(0.0, s_ll - slope * s_tl)
    successive = max(0.0, s.sum_dlag_dlag - 2 * slope * s.sum_dt_dlag + slope * slope * s.sum_dt_dt)
    inflation = 1.0
    if squared_residuals > 0:
        measured = 1 - (successive / s.steps) / (2 * squared_residuals / n)
        inflation = variance_inflation(measured, n)
    error = math.sqrt(squared_residuals / (n - 2) / s_tt * inflation)
    margin = T_99[min(n - 2, len(T_99)) - 1] * error
    return Trend(slope, slope - margin, slope + margin)


def variance_inflation(measured_autocorrelation: float, samples: int) -> float:
    """By how much the slope's variance exceeds that of independent samples: (1+ρ)/(1−ρ), never less than 1."""
    most = RANDOM_WALK * samples
    # ρ = (measured + 2/n) / (1 − 4/n), both sides multiplied by n so that few samples divide nothing by zero.
    above, below = measured_autocorrelation * samples + 2, samples - 4
    if above <= 0:
        return 1.0
    if above >= below:
        return most
    return min(most, (below + above) / (below - above))
