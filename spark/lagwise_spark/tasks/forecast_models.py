"""The models that forecast a series with a weekly (or daily) shape, and the weights they get in the pool.

A model gets a series without gaps that ends now, and says its next steps. Two kinds of series go through the same
models: hourly means (a day is 24 steps) and the daily maxima (a day is one step).

Weights are ∝ 1/error⁴ of the held-out errors: a model twice as bad as another has a sixteenth of its weight. Combining
by the inverse of past errors: Bates and Granger, "The Combination of Forecasts", 1969.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

#: The usual shape is the median of so many seasons: bursts and holidays are no part of it.
USUAL_SEASONS = 8
#: Weight of the newest season in the exponentially smoothed one, and how many seasons count in it: of the earlier ones,
#: less than one in a hundred million is left.
SMOOTHING, SMOOTHED_SEASONS = 0.3, 52
#: Trends are those of the last half year.
TREND_DAYS = 182
#: A weekday with less than this share of the mean day's rate says nothing about the level.
QUIET_DAY = 0.05
#: The power of the inverse errors, and the least error that counts, in multiples of the first model's.
POWER, LEAST_ERROR = 4, 1e-3


@dataclass(frozen=True, slots=True)
class Steps:
    """How many steps of a series are a day, and how many repeat: a week's, or a day's where the history is short."""

    day: int
    season: int


Model = Callable[[Array, int, Steps], Array]


def repeated(y: Array, ahead: int, steps: Steps) -> Array:
    """The last season again: the seasonal-naive forecast."""
    return np.resize(y[-steps.season :], ahead)


def usual(y: Array, ahead: int, steps: Steps) -> Array:
    """The median of the last eight seasons."""
    return np.resize(np.median(_seasons(y, steps, USUAL_SEASONS), axis=0), ahead)


def smoothed(y: Array, ahead: int, steps: Steps) -> Array:
    """Seasonal exponential smoothing: each step of the season by itself, from season to season."""
    seasons = _seasons(y, steps, SMOOTHED_SEASONS)
    weights = SMOOTHING * (1 - SMOOTHING) ** np.arange(len(seasons))[::-1]
    weights[0] /= SMOOTHING  # the oldest one is where the smoothing starts
    return np.resize(weights @ seasons, ahead)


def level(y: Array, ahead: int, steps: Steps) -> Array:
    """The usual shape at the level of the last seven days."""
    return _at_level(y, ahead, steps, lambda days, n: np.full(n, days[-7:].mean()))


def theta(y: Array, ahead: int, steps: Steps) -> Array:
    """The usual shape at a level that continues half of the linear trend (the Theta method: Assimakopoulos and
    Nikolopoulos, 2000)."""
    from statsforecast.models import Theta

    return _at_level(y, ahead, steps, lambda days, n: _run(Theta(season_length=1), days, n))


def damped(y: Array, ahead: int, steps: Steps) -> Array:
    """The usual shape at a level whose trend fades out (ETS(A,Ad,N): Gardner and McKenzie, 1985)."""
    from statsforecast.models import AutoETS

    return _at_level(y, ahead, steps, lambda days, n: _run(AutoETS(season_length=1, model="AAN", damped=True), days, n))


#: By name. The first one is the baseline that errors are compared with.
OF_HOURS: Mapping[str, Model] = {
    "seasonal-naive": repeated,
    "median": usual,
    "smoothed": smoothed,
    "level": level,
    "theta": theta,
    "damped": damped,
}
OF_A_SHORT_HISTORY: Mapping[str, Model] = {"seasonal-naive": repeated, "median": usual, "smoothed": smoothed}
#: Maxima of days are mostly noise: continuing their trend makes them worse (docs/adr/0014-forecasts.md).
OF_MAXIMA: Mapping[str, Model] = {"median": usual, "smoothed": smoothed, "level": level}


def weights_of(errors: Array) -> Array:
    """The weights of models from their held-out errors (starts x models); NaN is none.

    A model that failed at some starts is compared with the first one at the others. The first one gets all the weight
    where it is never wrong, and where nothing could be compared.
    """
    tested = np.isfinite(errors) & np.isfinite(errors[:, :1])
    mine = np.where(tested, errors, 0.0).sum(axis=0)
    firsts = np.where(tested, errors[:, :1], 0.0).sum(axis=0)
    if not firsts[0] > 0:
        only_first: Array = np.eye(errors.shape[1])[0]
        return only_first
    ratio = np.divide(mine, firsts, out=np.full(len(mine), np.inf), where=firsts > 0)
    weights = np.maximum(ratio, LEAST_ERROR) ** -float(POWER)
    return np.asarray(weights / weights.sum(), dtype=np.float64)


def combined(made: Array, weights: Array) -> Array:
    """The weighted mean of forecasts (models x steps), without models that give none."""
    gives = np.isfinite(made).all(axis=1) & (weights > 0)
    return np.asarray(weights[gives] @ made[gives] / weights[gives].sum(), dtype=np.float64)


def made_by(models: Sequence[Model], y: Array, ahead: int, steps: Steps) -> Array:
    """The forecasts of all of them (models x steps), never negative; NaN where one fails."""
    return np.maximum(np.stack([model(y, ahead, steps) for model in models]), 0.0)


def _seasons(y: Array, steps: Steps, most: int) -> Array:
    count = min(most, len(y) // steps.season)
    seasons: Array = y[len(y) - count * steps.season :].reshape(count, steps.season)
    return seasons


def _at_level(y: Array, ahead: int, steps: Steps, of_days: Callable[[Array, int], Array]) -> Array:
    """The usual shape, scaled day by day to a level that is forecast from the days with their weekday taken out."""
    shape = np.median(_seasons(y, steps, USUAL_SEASONS), axis=0)
    if not shape.mean() > 0:
        return np.zeros(ahead)
    shape = shape / shape.mean()
    days = y[len(y) % steps.day :].reshape(-1, steps.day).mean(axis=1)[-TREND_DAYS:]
    weekday = shape.reshape(-1, steps.day).mean(axis=1)
    weekday = np.resize(weekday[::-1], len(days))[::-1]  # both end with the day that ends now
    telling = weekday >= QUIET_DAY
    levels = days[telling] / weekday[telling]
    count = -(-ahead // steps.day)
    scale = np.repeat(np.maximum(of_days(levels, count), 0.0), steps.day)
    return np.asarray((np.resize(shape, len(scale)) * scale)[:ahead], dtype=np.float64)


def _run(model: object, y: Array, ahead: int) -> Array:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # a constant history is no reason to warn
        try:
            made = model.forecast(y=y, h=ahead)["mean"]  # type: ignore[attr-defined]  # statsforecast has no types
        except Exception:  # whatever a model makes of an odd history: it has no weight then
            return np.full(ahead, np.nan)
    return np.asarray(made, dtype=np.float64)
