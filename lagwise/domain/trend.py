"""Whether lag grows: least squares over mergeable statistics, with an error that allows for autocorrelation.

A bucket holds sufficient statistics of its samples, so that the trend over any window is a merge of buckets and never
a re-read of samples.

Noise in lag comes in two kinds. The sawtooth of commits and the jitter of sampling scatter around the line: the plain
standard error of the slope is right. But a backlog is the sum of all that came in and went out, and where both are
noise it is a random walk: it strays from where it was, and least squares finds a trend in it nearly always when its
samples are taken for independent (40 % of the time at the 99 % level with the usual correction for first-order
autocorrelation, for which a random walk is too much). The slope of the line through n samples of a random walk is
known to have the variance 6/(5n) of a step (e.g. Durlauf and Phillips 1988), steps which the samples show.

Which kind it is, the residuals tell: their lag-one autocorrelation ρ, from the mean squared successive difference as
in the Durbin–Watson statistic (d ≈ 2(1−ρ)), itself a sum over steps and so mergeable. Residuals look less correlated
than errors are, because the line was fitted to them; of independent errors the expected ρ is −2/n, so anything above
that counts as correlated, and with few samples everything does. ``tests/domain/test_trend.py`` shows by simulation
how rarely noise of either kind is taken for a trend.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

#: Two-sided 99 % quantiles of Student's t for 1, 2, … 30 degrees of freedom, then the normal one.
T_99 = (
    63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169,
    3.106, 3.055, 3.012, 2.977, 2.947, 2.921, 2.898, 2.878, 2.861, 2.845,
    2.831, 2.819, 2.807, 2.797, 2.787, 2.779, 2.771, 2.763, 2.756, 2.750, 2.576,
)  # fmt: skip

#: A trend is not judged on fewer samples than this.
MINIMUM_SAMPLES = 5

#: With fewer samples than this, residuals cannot tell what kind of noise it is: the worse is assumed.
TELLING_SAMPLES = 15

#: Variance of the slope through n samples of a random walk, times n, in variances of a step per squared interval.
RANDOM_WALK = 6 / 5


@dataclass(frozen=True, slots=True)
class Statistics:
    """Sums over samples (t in seconds since an origin, lag in records) and over the steps between successive ones."""

    #: Number of samples.
    samples: int = 0
    #: Sum of t.
    sum_t: float = 0.0
    #: Sum of t².
    sum_tt: float = 0.0
    #: Sum of the lag.
    sum_lag: float = 0.0
    #: Sum of the squared lag.
    sum_lag_lag: float = 0.0
    #: Sum of t times lag.
    sum_t_lag: float = 0.0
    #: Number of steps between successive samples.
    steps: int = 0
    #: Sum of the squared lengths of the steps, in seconds².
    sum_dt_dt: float = 0.0
    #: Sum of each step's length times the change of the lag in it.
    sum_dt_dlag: float = 0.0
    #: Sum of the squared changes of the lag in the steps.
    sum_dlag_dlag: float = 0.0

    def shifted(self, seconds: float) -> "Statistics":
        """The same statistics with every t larger by ``seconds``: another origin."""
        return replace(
            self,
            sum_t=self.sum_t + self.samples * seconds,
            sum_tt=self.sum_tt + 2 * seconds * self.sum_t + self.samples * seconds * seconds,
            sum_t_lag=self.sum_t_lag + seconds * self.sum_lag,
        )

    def __add__(self, other: "Statistics") -> "Statistics":
        """Statistics of both, given the same origin."""
        return Statistics(
            samples=self.samples + other.samples,
            sum_t=self.sum_t + other.sum_t,
            sum_tt=self.sum_tt + other.sum_tt,
            sum_lag=self.sum_lag + other.sum_lag,
            sum_lag_lag=self.sum_lag_lag + other.sum_lag_lag,
            sum_t_lag=self.sum_t_lag + other.sum_t_lag,
            steps=self.steps + other.steps,
            sum_dt_dt=self.sum_dt_dt + other.sum_dt_dt,
            sum_dt_dlag=self.sum_dt_dlag + other.sum_dt_dlag,
            sum_dlag_dlag=self.sum_dlag_dlag + other.sum_dlag_dlag,
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
    variance = squared_residuals / (n - 2) / s_tt
    if n < TELLING_SAMPLES or _are_correlated(squared_residuals, successive, s):
        variance = max(variance, _random_walk_variance(s))
    margin = T_99[min(n - 2, len(T_99)) - 1] * math.sqrt(variance)
    return Trend(slope, slope - margin, slope + margin)


def _are_correlated(squared_residuals: float, successive: float, s: Statistics) -> bool:
    """Whether the lag-one autocorrelation of the residuals is above what independent errors would show."""
    n = s.samples
    return successive / s.steps * n < 2 * squared_residuals * (1 + 2 / n)


def _random_walk_variance(s: Statistics) -> float:
    """Variance of the slope if lag is a random walk with the drift and the step variance that its steps show."""
    drift = s.sum_dt_dlag / s.sum_dt_dt
    squared_steps = max(0.0, s.sum_dlag_dlag - drift * s.sum_dt_dlag)
    return RANDOM_WALK / s.samples * squared_steps / max(1, s.steps - 1) / (s.sum_dt_dt / s.steps)
