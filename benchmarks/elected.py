"""What the pool of models is compared with: the election that it replaced.

Of three models the one with the least held-out error made the forecast, the interval was that of all its errors
together, and every hour was raised to a busiest minute by one factor.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from statsforecast.models import Theta

from lagwise_spark.tasks.forecast_models import Array
from lagwise_spark.tasks.forecasting import CLIPPED_ABOVE, DAY, HIGH, LOW, STARTS, WEEK

#: The seasonal-naive forecast was used unless another one's mean error was at least this much smaller.
_MARGIN = 0.02


@dataclass(frozen=True, slots=True)
class Elected:
    """The means of the hours with their 90 % interval, and the busiest minutes of the days."""

    rate: Array
    low: Array
    high: Array
    maxima: Array
    model: str


def elected(rates: Array, peaks: Array, hours: int) -> Elected:
    """The next ``hours`` hours, from at least two weeks of history; few hours of it may be unknown."""
    seen = np.minimum(_filled(rates), np.nanquantile(rates, CLIPPED_ABOVE))
    held = max(WEEK, min(hours, len(rates) // 3 // WEEK * WEEK))
    step = max(DAY, held // 3 // DAY * DAY)
    last = len(rates) - held
    starts = [s for s in range(last, WEEK - 1, -step) if s == last or s >= 2 * WEEK][:STARTS]
    tails = {name: [model(seen[:start], held) for start in starts] for name, model in _MODELS.items()}
    truths = np.concatenate([rates[start : start + held] for start in starts])
    errors = {name: float(np.nanmean(np.abs(np.concatenate(made) - truths))) for name, made in tails.items()}
    name = min(errors, key=lambda n: errors[n])
    if not errors[name] < errors["seasonal-naive"] * (1 - _MARGIN):
        name = "seasonal-naive"
    rate = _MODELS[name](seen, hours)
    relative = (truths - np.concatenate(tails[name])) / np.concatenate([_unit(made) for made in tails[name]])
    low, high = np.nanquantile(relative, [LOW, HIGH])
    unit = _unit(rate) * np.sqrt(np.maximum(1.0, np.arange(1, hours + 1) / held))
    logs = [
        math.log(max(np.nanmax(peaks[start + first : start + first + WEEK]), 1e-9) / top)
        for start, made in zip(starts, tails[name], strict=True)
        for first in range(0, held - WEEK + 1, WEEK)
        if (top := made[first : first + WEEK].max()) > 0
        and np.isfinite(peaks[start + first : start + first + WEEK]).any()
    ]
    factor = max(1.0, math.exp(float(np.mean(logs)))) if logs else 1.0
    return Elected(
        rate=rate,
        low=np.clip(rate + min(low, 0.0) * unit, 0.0, None),
        high=rate + max(high, 0.0) * unit,
        maxima=rate.reshape(-1, DAY).max(axis=1) * factor,
        model=name,
    )


def _naive(y: Array, hours: int) -> Array:
    return np.resize(y[-WEEK:], hours)


def _mean(y: Array, hours: int) -> Array:
    weeks = min(4, len(y) // WEEK)
    return np.resize(y[-weeks * WEEK :].reshape(weeks, WEEK).mean(axis=0), hours)


def _theta(y: Array, hours: int) -> Array:
    days = y[len(y) % DAY :].reshape(-1, DAY).mean(axis=1)
    level = np.maximum(Theta(7).forecast(y=days, h=hours // DAY)["mean"], 0.0)
    shape = _mean(y, hours)
    means = shape.reshape(-1, DAY).mean(axis=1)
    factors: Array = np.divide(level, means, out=np.zeros_like(level), where=means > 0)
    return shape * np.repeat(factors, DAY)


_MODELS: dict[str, Callable[[Array, int], Array]] = {
    "seasonal-naive": _naive,
    "seasonal-mean": _mean,
    "theta": _theta,
}


def _unit(made: Array) -> Array:
    unit: Array = (made + made.mean()) / 2
    return np.where(unit > 0, unit, 1.0)


def _filled(rates: Array) -> Array:
    y = rates.copy()
    for i in np.flatnonzero(np.isnan(y)):
        y[i] = y[i - WEEK] if i >= WEEK and np.isfinite(y[i - WEEK]) else np.nanmedian(rates)
    return y
