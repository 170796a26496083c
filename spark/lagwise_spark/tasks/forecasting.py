"""What a topic will be sent: the forecast of one topic's hourly rates, by models of the library statsforecast.

The same in plain words, with figures: ``docs/forecast.md``. Rates are records per second; an hour without samples is
NaN.

- Two scales, both forecast by the library: the mean of each day (where the trend shows), and the shape of a week by the
  hour (the mean of the last four weeks). An hour is its share of the day times the day's forecast.
- Several models stand for election, the seasonal-naive one among them (next week is as last week was). Each forecasts
  the tail of the topic's own history, from several starts, knowing only what came before; the one with the least mean
  error is used, and where none is better than the seasonal-naive one by a margin, that one is.
- The 90 % interval is made of the same held-out errors: whatever the model, it is as wide as the model was wrong.
"""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

Array = npt.NDArray[np.float64]

DAY, WEEK = 24, 168
#: A day's shape needs two days and a week's two weeks: less shows nothing twice.
LEAST_HOURS, LEAST_WEEKLY_HOURS = 2 * DAY, 2 * WEEK
#: The seasonal-naive forecast is used unless another one's mean error is at least this much smaller.
MARGIN = 0.02
#: The tail that is held out is at most this share of the history, …
HELD_OUT = 1 / 3
#: … and is forecast from at most so many starts.
STARTS = 6
#: Growth is told from so many weeks on.
LEAST_WEEKS_OF_GROWTH = 4
#: The ends of the 90 % interval among the held-out errors.
LOW, HIGH = 0.05, 0.95
#: Models see no rate above this quantile of the history: one burst is not part of any shape. It counts in every error,
#: and in the peak. Lower than the share of one hour a week, which is a shape.
CLIPPED_ABOVE = 0.995
#: The seasonal mean is that of the last so many weeks (or days).
PERIODS = 4


@dataclass(frozen=True)
class RateForecast:
    """Mean rates of the hours ahead with their 90 % interval, records per second, never negative.

    ``mase`` is the mean absolute error on the held-out tail in units of the history's own week-to-week (day-to-day)
    change; null where the history never changes. ``tested_hours`` is the lead up to which the interval was measured;
    beyond it, it is widened with the root of the lead. ``peak`` (low, middle, high) is the highest minute rate of the
    last week, in multiples of the highest hourly mean that is forecast for it.
    """

    model: str
    rate: Array
    low: Array
    high: Array
    mase: float | None
    baseline_mase: float | None
    tested_hours: int
    season_hours: int
    peak: tuple[float, float, float] | None


_Model = Callable[[Array, int], Array]


def forecast(rates: Array, peaks: Array, hours: int) -> RateForecast | None:
    """The next ``hours`` hours, from hourly mean rates and the highest minute rates of the same hours, oldest first.

    None with less than two days of known hours. With less than two weeks only the day's shape is known, and no further
    ahead than the history is long: the result is shorter then.
    """
    known = np.isfinite(rates)
    if known.sum() < LEAST_HOURS:
        return None
    weekly = bool(known.sum() >= LEAST_WEEKLY_HOURS)
    season = WEEK if weekly else DAY
    if not weekly:
        hours = min(hours, int(known.sum()) // DAY * DAY)
    filled = np.minimum(_filled(rates, season), np.nanquantile(rates, CLIPPED_ABOVE))
    models = _models(season)
    held = max(season, min(hours, int(len(rates) * HELD_OUT) // season * season))
    starts = _starts(len(rates), held, season)
    tails = {name: [_clean(model(filled[:s], held)) for s in starts] for name, model in models.items()}
    scale = _mean_of(np.abs(rates[season:] - rates[:-season]))
    errors = {name: _error(rates, starts, held, made) for name, made in tails.items()}
    baseline = errors[NAIVE]
    name = min(errors, key=lambda n: errors[n])
    # Also where nothing could be compared, because no held-out hour is known.
    if not errors[name] < baseline * (1 - MARGIN):
        name = NAIVE
    rate = _clean(models[name](filled, hours))
    if not np.isfinite(rate).all():
        name, rate = NAIVE, _clean(models[NAIVE](filled, hours))
    low, high = _interval(rates, starts, held, tails[name], rate)
    return RateForecast(
        model=name,
        rate=rate,
        low=low,
        high=high,
        mase=_ratio(errors[name], scale),
        baseline_mase=_ratio(baseline, scale),
        tested_hours=held,
        season_hours=season,
        peak=_peak(peaks, starts, held, tails[name]) if weekly else None,
    )


NAIVE, MEAN, THETA = "seasonal-naive", "seasonal-mean", "theta"


def _models(season: int) -> dict[str, _Model]:
    from statsforecast.models import SeasonalNaive, SeasonalWindowAverage, Theta

    def naive(y: Array, h: int) -> Array:
        return _run(SeasonalNaive(season), y, h)

    def mean(y: Array, h: int) -> Array:
        return _run(SeasonalWindowAverage(season, min(PERIODS, len(y) // season)), y, h)

    if season == DAY:
        return {NAIVE: naive, MEAN: mean}
    return {NAIVE: naive, MEAN: mean, THETA: _by_days(lambda y, h: _run(Theta(7), y, h), shape_of=mean)}


def _by_days(model: _Model, shape_of: _Model) -> _Model:
    """A model of the days' means, given the shape of the last weeks by the hour."""

    def by_hours(y: Array, h: int) -> Array:
        days = -(-h // DAY)
        of_days = y[len(y) % DAY :].reshape(-1, DAY).mean(axis=1)
        level = np.maximum(model(of_days, days), 0.0)
        shape = shape_of(y, days * DAY)
        mean = shape.reshape(-1, DAY).mean(axis=1)
        factor = np.divide(level, mean, out=np.zeros_like(level), where=mean > 0)
        spread: Array = shape * np.repeat(factor, DAY)
        return spread[:h]

    return by_hours


def _run(model: object, y: Array, h: int) -> Array:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # a constant history is no reason to warn
        try:
            made = model.forecast(y=y, h=h)["mean"]  # type: ignore[attr-defined]  # statsforecast has no types
        except Exception:  # whatever a model makes of an odd history: it is not elected then
            return np.full(h, np.nan)
    return np.asarray(made, dtype=np.float64)


def _clean(made: Array) -> Array:
    """Without what no rate can be; a model that fails on an odd history must not be taken for a good one."""
    return np.where(np.isfinite(made), np.maximum(made, 0.0), np.inf)


def _filled(rates: Array, season: int) -> Array:
    """Unknown hours replaced, for the models, by the same hour of another season: the one before, else the next known
    one, else the middle of all. They count in no error."""
    y = rates.copy()
    for i in np.flatnonzero(~np.isfinite(y)):
        if i >= season and np.isfinite(y[i - season]):
            y[i] = y[i - season]
    for i in np.flatnonzero(~np.isfinite(y))[::-1]:
        if i + season < len(y) and np.isfinite(y[i + season]):
            y[i] = y[i + season]
    y[~np.isfinite(y)] = np.nanmedian(rates)
    return y


def _starts(length: int, held: int, season: int) -> list[int]:
    """Where the held-out tails begin: the last one first, each with at least a season before it, and two where more
    than one is possible."""
    last = length - held
    step = max(DAY, held // 3 // DAY * DAY)
    return [s for s in range(last, season - 1, -step) if s == last or s >= 2 * season][:STARTS]


def _error(rates: Array, starts: list[int], held: int, tails: list[Array]) -> float:
    """Mean absolute error over the held-out hours that are known; infinite where a model failed."""
    pairs = zip(starts, tails, strict=True)
    return _mean_of(np.concatenate([np.abs(rates[s : s + held] - made) for s, made in pairs]))


def _mean_of(values: Array) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else math.nan


def _ratio(error: float, scale: float) -> float | None:
    return error / scale if math.isfinite(error) and scale > 0 else None


def _interval(rates: Array, starts: list[int], held: int, tails: list[Array], rate: Array) -> tuple[Array, Array]:
    """The middle 90 % of what the held-out hours were, by what had been forecast for them.

    Errors are taken in units of half the forecast of their hour and half that of the mean hour: busy hours are missed
    by more than quiet ones, and quiet ones not by nothing.
    """
    errors = np.concatenate([(rates[s : s + held] - made) / _unit(made) for s, made in zip(starts, tails, strict=True)])
    errors = errors[np.isfinite(errors)]
    if not errors.size:
        return np.full_like(rate, np.nan), np.full_like(rate, np.nan)
    low, high = np.quantile(errors, [LOW, HIGH])
    wider = np.sqrt(np.maximum(1.0, np.arange(1, len(rate) + 1) / held))
    unit = _unit(rate) * wider
    return np.clip(rate + min(low, 0.0) * unit, 0.0, None), rate + max(high, 0.0) * unit


def _unit(made: Array) -> Array:
    unit: Array = (made + made.mean()) / 2
    return np.where(unit > 0, unit, 1.0)


def _peak(peaks: Array, starts: list[int], held: int, tails: list[Array]) -> tuple[float, float, float] | None:
    """Low, middle and high of: the highest minute rate of a held-out week, in multiples of the highest hourly mean that
    had been forecast for it. So bursts within the hour, and hours busier than the mean one, are in it."""
    ratios = []
    for s, made in zip(starts, tails, strict=True):
        for first in range(0, held - WEEK + 1, WEEK):
            its = peaks[s + first : s + first + WEEK]
            top = made[first : first + WEEK].max()
            # Of half a week the peak may not have been seen.
            if np.isfinite(its).mean() <= 0.5:
                continue
            highest = np.nanmax(its)
            if 0 < top < math.inf:
                ratios.append(float(highest / top))
            elif top == highest == 0:
                ratios.append(1.0)
    if not ratios:
        return None
    # Starts overlap: so many weeks have really been seen.
    weeks = max(2, (starts[0] + held - starts[-1]) // WEEK)
    logs = np.log(np.maximum(ratios, 1e-9))
    spread = logs.std() * math.sqrt(weeks / (weeks - 1)) * math.sqrt(1 + 1 / weeks)
    reach = float(stats.t.ppf(HIGH, weeks - 1) * spread)
    middle = float(logs.mean())
    return math.exp(middle - reach), math.exp(middle), math.exp(middle + reach)


def growth_per_month(rates: Array) -> tuple[float, float, float] | None:
    """Growth of the weeks' means in 30 days, as a share of their mean, with its 90 % interval: the middle of the slopes
    between any two weeks (Theil and Sen), which one odd week cannot turn. None with less than four known weeks."""
    weeks = rates[len(rates) % WEEK :].reshape(-1, WEEK)
    at = np.flatnonzero(np.isfinite(weeks).mean(axis=1) >= 0.5)
    if len(at) < LEAST_WEEKS_OF_GROWTH:
        return None
    means = np.nanmean(weeks[at], axis=1)
    mean = float(means.mean())
    if mean <= 0:
        return None
    slope, _, low, high = stats.theilslopes(means, at, alpha=0.9)
    month = 30 * DAY / WEEK / mean
    return float(slope * month), float(low * month), float(high * month)
