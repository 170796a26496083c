"""Least squares through the samples of a window, as :mod:`lagwise.domain.verdicts.trend` explains it."""

import math
from collections.abc import Sequence
from itertools import pairwise

from lagwise.domain.verdicts.trend import (
    MINIMUM_SAMPLES,
    RANDOM_WALK,
    SHARE_OF_SAWTOOTH,
    STEP_OF_MEANS,
    T_99,
    TELLING_SAMPLES,
)
from tests.contract.plain_model.records import Trend


def trend_of(samples: Sequence[tuple[float, float]], steps: Sequence[tuple[float, float]]) -> Trend | None:
    """The trend of (t, lag) samples, of which some follow each other in steps (dt, dlag); None where there are too few,
    or all are of the same time."""
    n = len(samples)
    if n < MINIMUM_SAMPLES or not steps:
        return None
    sum_t, sum_lag = (sum(one[which] for one in samples) for which in (0, 1))
    s_tt = sum(t * t for t, _ in samples) - sum_t * sum_t / n
    if s_tt <= 0:
        return None
    s_tl = sum(t * lag for t, lag in samples) - sum_t * sum_lag / n
    s_ll = sum(lag * lag for _, lag in samples) - sum_lag * sum_lag / n
    slope = s_tl / s_tt
    residuals = max(0.0, s_ll - slope * s_tl)
    dt_dt, dt_dlag, dlag_dlag = (
        sum(values) for values in zip(*((dt * dt, dt * dlag, dlag * dlag) for dt, dlag in steps), strict=True)
    )
    successive = max(0.0, dlag_dlag - 2 * slope * dt_dlag + slope * slope * dt_dt)
    variance = residuals / (n - 2) / s_tt
    if n < TELLING_SAMPLES or successive / len(steps) * n < 2 * residuals * (1 + 2 / n):
        squared_steps = max(0.0, dlag_dlag - dt_dlag / dt_dt * dt_dlag)
        variance = max(variance, RANDOM_WALK / n * squared_steps / max(1, len(steps) - 1) / (dt_dt / len(steps)))
    margin = T_99[min(n - 2, len(T_99)) - 1] * math.sqrt(variance)
    return Trend(slope, slope - margin, slope + margin)


def over_blocks(trend: Trend | None, means: Sequence[tuple[float, float]]) -> Trend | None:
    """The trend with the margin that the mean (t, lag) of blocks give it, where the samples are a sawtooth."""
    if trend is None:
        return None
    margin = trend.high - trend.slope
    steps = [(t - s, after - before) for (s, before), (t, after) in pairwise(means)]
    if abs(trend.slope) > margin or len(steps) < MINIMUM_SAMPLES:
        return trend
    seconds = sum(dt for dt, _ in steps)
    drift = sum(dlag for _, dlag in steps) / seconds
    squares = sum((dlag - drift * dt) ** 2 / dt for dt, dlag in steps)
    variance = RANDOM_WALK * STEP_OF_MEANS * squares / (len(steps) - 1) / seconds
    smaller = T_99[min(len(steps) - 2, len(T_99) - 1)] * math.sqrt(variance)
    return (
        Trend(trend.slope, trend.slope - smaller, trend.slope + smaller)
        if smaller < SHARE_OF_SAWTOOTH * margin
        else trend
    )
