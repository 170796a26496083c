"""Whether lag grows: least squares over mergeable statistics, with an error that allows for autocorrelation.

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

import numpy as np

from lagwise.domain.verdicts.columns import MICROS, Array, Columns, Ranges, before, is_first, runs

#: Two-sided 99 % quantiles of Student's t for 1, 2, … 30 degrees of freedom, then the normal one.
T_99 = (
    63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169,
    3.106, 3.055, 3.012, 2.977, 2.947, 2.921, 2.898, 2.878, 2.861, 2.845,
    2.831, 2.819, 2.807, 2.797, 2.787, 2.779, 2.771, 2.763, 2.756, 2.750, 2.576,
)  # fmt: skip
_QUANTILES = np.array(T_99)

#: A trend is not judged on fewer samples than this.
MINIMUM_SAMPLES = 5
#: With fewer samples than this, residuals cannot tell what kind of noise it is: the worse is assumed.
TELLING_SAMPLES = 15
#: Variance of the slope through n samples of a random walk, times n, in variances of a step per squared interval.
RANDOM_WALK = 6 / 5

#: A margin that shrinks to less than this share over longer steps is that of a sawtooth.
SHARE_OF_SAWTOOTH = 0.6
#: The means of two successive blocks of a random walk differ by 2/3 of the variance of a step over the block.
STEP_OF_MEANS = 3 / 2


def slope_and_margin(s: Columns) -> tuple[Array, Array]:
    """Slope of the lag in records per second, and half of its 99 % confidence interval, from the statistics of windows
    (see :data:`lagwise.domain.verdicts.buckets.STATISTICS`); NaN where there are too few samples, or all are of the
    same time."""
    n, steps = s["samples"].astype(np.float64), s["steps"].astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        s_tt = s["sum_tt"] - s["sum_t"] * s["sum_t"] / n
        s_tl = s["sum_t_lag"] - s["sum_t"] * s["sum_lag"] / n
        s_ll = s["sum_lag_lag"] - s["sum_lag"] * s["sum_lag"] / n
        is_enough = (n >= MINIMUM_SAMPLES) & (steps >= 1) & (s_tt > 0)
        slope = np.where(is_enough, s_tl / s_tt, np.nan)
        residuals = np.maximum(0.0, s_ll - slope * s_tl)
        successive = np.maximum(0.0, s["sum_dlag_dlag"] - 2 * slope * s["sum_dt_dlag"] + slope * slope * s["sum_dt_dt"])
        independent = residuals / (n - 2) / s_tt
        is_correlated = (n < TELLING_SAMPLES) | (successive / steps * n < 2 * residuals * (1 + 2 / n))
        drift = s["sum_dt_dlag"] / s["sum_dt_dt"]
        squared_steps = np.maximum(0.0, s["sum_dlag_dlag"] - drift * s["sum_dt_dlag"])
        random_walk = RANDOM_WALK / n * squared_steps / np.maximum(1, steps - 1) / (s["sum_dt_dt"] / steps)
        variance = np.where(is_correlated, np.maximum(independent, random_walk), independent)
    freedom = np.clip(s["samples"] - 2, 1, len(T_99))
    return slope, np.where(is_enough, _QUANTILES[freedom - 1] * np.sqrt(variance), np.nan)


def margin_over_blocks(buckets: Columns, parts: Ranges, length: Array, slope: Array, margin: Array) -> Array:
    """The margin as if the mean lags of blocks were steps of a random walk, where samples are a sawtooth; NaN
    elsewhere, and where it would decide nothing because ``slope`` is beyond its ``margin``. Each case has blocks of its
    own ``length`` (microseconds).

    The steps of a random walk grow with the root of time, so that longer ones say the same. Those of a sawtooth do not:
    a consumer that is restarted once a minute makes large steps up and down from sample to sample, which say nothing of
    where it will be in an hour. A margin that shrinks by so much over blocks is that of a sawtooth: over 15 steps of a
    random walk that happens 3 times in 1,000.
    """
    made = np.full(len(slope), np.nan)
    cases = np.flatnonzero(np.abs(slope) <= margin)
    case, row = Ranges(parts.start[cases], parts.stop[cases]).rows()
    if not len(row):
        return made
    minute, samples = buckets["minute"][row], buckets["samples"][row]
    block = runs(case, minute - minute % length[cases][case])
    count = block.sum(samples)
    since = buckets["minute"][parts.start[cases]][case]
    mean_t = block.sum(samples * ((minute - since) / MICROS) + buckets["sum_t"][row]) / count
    mean_lag = block.sum(buckets["sum_lag"][row]) / count
    case = block.first(case)
    is_step = ~is_first(case)
    dt, dlag = (mean_t - before(mean_t))[is_step], (mean_lag - before(mean_lag))[is_step]
    case = case[is_step]
    steps = np.bincount(case, minlength=len(cases))
    seconds, rise = np.bincount(case, dt, len(cases)), np.bincount(case, dlag, len(cases))
    with np.errstate(divide="ignore", invalid="ignore"):
        drift = rise / seconds
        squares = np.bincount(case, (dlag - drift[case] * dt) ** 2 / dt, len(cases))
        variance = RANDOM_WALK * STEP_OF_MEANS * squares / (steps - 1) / seconds
    over_blocks = _QUANTILES[np.clip(steps - 2, 0, len(T_99) - 1)] * np.sqrt(variance)
    is_sawtooth = (steps >= MINIMUM_SAMPLES) & (over_blocks < SHARE_OF_SAWTOOTH * margin[cases])
    made[cases] = np.where(is_sawtooth, over_blocks, np.nan)
    return made
