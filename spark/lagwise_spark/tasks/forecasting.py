"""What a topic will be sent: the forecast of one topic's hourly rates and of its daily maxima.

The same in plain words, with figures: ``docs/forecast.md``. Rates are records per second; an hour without samples is
NaN.

- Hourly means and daily maxima (of minute rates) are forecast each by itself, by a pool of models
  (:mod:`lagwise_spark.tasks.forecast_models`).
- Every model forecasts the tail of the topic's own history, from several starts, knowing only what came before. The
  smaller its mean error there, the larger its weight.
- The 90 % intervals are made of the pool's errors at the same starts, and wider the more these differ.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy import stats

from lagwise_spark.tasks.forecast_models import (
    OF_A_SHORT_HISTORY,
    OF_HOURS,
    OF_MAXIMA,
    Array,
    Model,
    Steps,
    combined,
    made_by,
    weights_of,
)

DAY, WEEK = 24, 168
#: A day's shape needs two days and a week's two weeks: less shows nothing twice.
LEAST_HOURS, LEAST_WEEKLY_HOURS = 2 * DAY, 2 * WEEK
#: The tail that is held out is at most this share of the history, …
HELD_OUT = 1 / 3
#: … and is forecast from at most so many starts, …
STARTS = 6
#: … which are half a tail apart, and at least so long: starts within a few days see the same surprises.
LEAST_BETWEEN_STARTS = 5 * DAY
#: Growth is told from so many weeks on.
LEAST_WEEKS_OF_GROWTH = 4
#: The ends of the 90 % interval among the held-out errors, …
LOW, HIGH = 0.05, 0.95
#: … which are moved outwards by so many standard deviations of the starts' ends. Those of maxima, which rest on a
#: twenty-fourth of the errors, by more.
WIDER_OF_HOURS, WIDER_OF_MAXIMA = 0.5, 1.0
#: Models see no hourly mean and no daily maximum above these quantiles of the history: one burst is not part of any
#: shape. It counts in every error, and so in the intervals. Hours that come once a week are a shape, and more than
#: those.
CLIPPED_ABOVE, MAXIMA_CLIPPED_ABOVE = 0.995, 0.95
#: A day's or a week's maximum is known when more than this share of it was seen.
SEEN = 0.5


@dataclass(frozen=True, slots=True)
class Band:
    """A forecast with the ends of its 90 % interval, records per second, never negative."""

    middle: Array
    low: Array
    high: Array


@dataclass(frozen=True, slots=True)
class RateForecast:
    """What is ahead.

    ``rates`` are the mean rates of the hours, ``maxima`` the highest minute rates of the days of 24 hours that follow
    one another from now on, and ``peak`` (low, middle, high) that of the last whole week; the last two are None where
    they are not known. ``shares`` are the weights of the models of the hours by name, and sum to 1. ``mase`` is the
    pool's mean absolute error on the held-out tail in units of the history's own week-to-week (day-to-day) change; null
    where the history never changes. ``tested_hours`` is the lead up to which the intervals were measured; beyond it,
    they are widened with the root of the lead.
    """

    rates: Band
    maxima: Band | None
    peak: tuple[float, float, float] | None
    shares: Mapping[str, float]
    mase: float | None
    baseline_mase: float | None
    tested_hours: int
    season_hours: int


def forecast(rates: Array, peaks: Array, hours: int) -> RateForecast | None:
    """The next ``hours`` hours, from hourly mean rates and the highest minute rates of the same hours, oldest first.

    None with less than two days of known hours. With less than two weeks only the day's shape is known, and no further
    ahead than the history is long: the result is shorter then, and without maxima.
    """
    known = np.isfinite(rates)
    if known.sum() < LEAST_HOURS:
        return None
    weekly = bool(known.sum() >= LEAST_WEEKLY_HOURS)
    season = WEEK if weekly else DAY
    if not weekly:
        hours = min(hours, int(known.sum()) // DAY * DAY)
    held = max(season, min(hours, int(len(rates) * HELD_OUT) // season * season))
    starts = _starts(len(rates), held, season)
    seen = np.minimum(_filled(rates, season), np.nanquantile(rates, CLIPPED_ABOVE))
    steps = Steps(DAY, season)
    ahead = _pool(OF_HOURS if weekly else OF_A_SHORT_HISTORY, rates, seen, starts, held, hours, steps, WIDER_OF_HOURS)
    scale = _mean_of(np.abs(rates[season:] - rates[:-season]))
    maxima, peak = _maxima(peaks, starts, held, hours) if weekly else (None, None)
    return RateForecast(
        rates=ahead.band,
        maxima=maxima,
        peak=peak,
        shares=ahead.shares,
        mase=_ratio(ahead.error, scale),
        baseline_mase=_ratio(ahead.baseline_error, scale),
        tested_hours=held,
        season_hours=season,
    )


@dataclass(frozen=True, slots=True)
class _Pooled:
    """A pool's forecast, with what it and its first model did on the held-out tails."""

    band: Band
    tails: list[Array]
    shares: dict[str, float]
    error: float
    baseline_error: float


def _pool(
    models: Mapping[str, Model],
    truth: Array,
    seen: Array,
    starts: list[int],
    held: int,
    ahead: int,
    steps: Steps,
    wider: float,
) -> _Pooled:
    """Forecast ``ahead`` steps of ``seen``, weighted and with an interval by the errors from the starts."""
    tried = [made_by(list(models.values()), seen[:start], held, steps) for start in starts]
    truths = [truth[start : start + held] for start in starts]
    errors = np.stack([_errors(made, came) for made, came in zip(tried, truths, strict=True)])
    weights = weights_of(errors)
    made = made_by(list(models.values()), seen, ahead, steps)
    tails = [combined(each, weights) for each in tried]
    rate = combined(made, weights)
    return _Pooled(
        band=_band(rate, tails, truths, wider),
        tails=tails,
        shares=dict(zip(models, weights.tolist(), strict=True)),
        error=_mean_of(np.concatenate([np.abs(m - t) for m, t in zip(tails, truths, strict=True)])),
        baseline_error=_mean_of(np.concatenate([np.abs(m[0] - t) for m, t in zip(tried, truths, strict=True)])),
    )


def _errors(made: Array, came: Array) -> Array:
    """The mean absolute error of each model; NaN where it gives no forecast, or nothing is known of what came."""
    known = np.isfinite(came)
    if not known.any():
        return np.full(len(made), np.nan)
    return np.asarray(np.abs(made - came)[:, known].mean(axis=1), dtype=np.float64)


def _filled(rates: Array, season: int) -> Array:
    """Unknown steps replaced, for the models, by the same step of another season: the one before, else the next known
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
    step = max(LEAST_BETWEEN_STARTS if season == WEEK else DAY, held // 2 // DAY * DAY)
    return [s for s in range(last, season - 1, -step) if s == last or s >= 2 * season][:STARTS]


def _mean_of(values: Array) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if known.size else math.nan


def _ratio(error: float, scale: float) -> float | None:
    return error / scale if math.isfinite(error) and scale > 0 else None


def _band(rate: Array, tails: list[Array], truths: list[Array], wider: float) -> Band:
    """The interval of a forecast, by what the held-out steps were for what had been forecast of them.

    Errors are taken in units of half the forecast of their step and half that of the mean step: busy hours are missed
    by more than quiet ones, and quiet ones not by nothing. The middle 90 % of them are taken start by start, because
    the errors of one tail often have one cause and one sign. What comes differs from the mean of these ends as they
    differ from one another, so the interval is wider by ``wider`` of their standard deviations.
    """
    errors = [(came - made) / _unit(made) for made, came in zip(tails, truths, strict=True)]
    ends = np.array(
        [np.quantile(e[np.isfinite(e)], [LOW, HIGH], method="weibull") for e in errors if np.isfinite(e).any()]
    )
    if not ends.size:
        return Band(rate, np.full_like(rate, np.nan), np.full_like(rate, np.nan))
    low, high = ends.mean(axis=0) + wider * ends.std(axis=0) * np.array([-1.0, 1.0])
    unit = _unit(rate) * np.sqrt(np.maximum(1.0, np.arange(1, len(rate) + 1) / len(tails[0])))
    return Band(rate, np.clip(rate + min(low, 0.0) * unit, 0.0, None), rate + max(high, 0.0) * unit)


def _unit(made: Array) -> Array:
    unit: Array = (made + made.mean()) / 2
    return np.where(unit > 0, unit, 1.0)


def _maxima(
    peaks: Array, starts: list[int], held: int, hours: int
) -> tuple[Band | None, tuple[float, float, float] | None]:
    """The maxima of the days ahead, and that of the last week ahead; None where too much of the history is unknown."""
    maxima = _maxima_of_days(peaks)
    if np.isfinite(maxima).sum() * DAY < LEAST_WEEKLY_HOURS:
        return None, None
    # Starts are whole days before the end.
    of_days = [len(maxima) - (len(peaks) - start) // DAY for start in starts]
    days = held // DAY
    seen = np.minimum(_filled(maxima, 7), np.nanquantile(maxima, MAXIMA_CLIPPED_ABOVE))
    pooled = _pool(OF_MAXIMA, maxima, seen, of_days, days, hours // DAY, Steps(1, 7), WIDER_OF_MAXIMA)
    ratios = _peak_ratios(maxima, of_days, days, hours // DAY, pooled.tails)
    if ratios is None or not np.isfinite(pooled.band.low).all():
        return None, None
    low, middle, high = (float(pooled.band.middle[-7:].max()) * ratio for ratio in ratios)
    return pooled.band, (low, middle, high)


def _maxima_of_days(peaks: Array) -> Array:
    """The highest of every 24 hours, counted back from the end; NaN where fewer than half of them are known."""
    days = peaks[len(peaks) % DAY :].reshape(-1, DAY)
    known = np.isfinite(days)
    highest = np.where(known, days, -math.inf).max(axis=1)
    return np.where(known.mean(axis=1) > SEEN, highest, np.nan)


def _peak_ratios(
    maxima: Array, starts: list[int], days: int, ahead: int, tails: list[Array]
) -> tuple[float, float, float] | None:
    """Low, middle and high of: the highest day of the last week of a held-out tail, in multiples of the highest that
    had been forecast for it. The highest of seven days is mostly above the highest of what they are expected to be."""
    ratios = []
    for start, made in zip(starts, tails, strict=True):
        its = maxima[start + days - 7 : start + days]
        top = made[-7:].max()
        # Of half a week the peak may not have been seen.
        if np.isfinite(its).mean() <= SEEN:
            continue
        highest = np.nanmax(its)
        if top > 0:
            ratios.append(float(highest / top))
        elif highest == 0:
            ratios.append(1.0)
    if not ratios:
        return None
    logs = np.log(np.maximum(ratios, 1e-9))
    # The median, because one burst is not what to expect; but it widens the interval.
    middle = float(np.median(logs))
    count = max(2, len(logs))
    spread = math.sqrt(float(np.mean((logs - middle) ** 2)) * count / (count - 1) * (1 + 1 / count))
    reach = float(stats.t.ppf(HIGH, count - 1)) * spread * math.sqrt(max(1.0, ahead / days))
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
