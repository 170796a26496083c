"""How good the forecast of a topic is, and what it costs: on made series of known truth, and on real ones.

Each series is cut in two: the forecast knows the first part, and is compared with the second. The tables have, by kind
of series or by horizon:

- the mean absolute error in units of the change from week to week in the part that was known (MASE; Hyndman and
  Koehler, 2006), and as a multiple of the seasonal-naive forecast's and of the elected model's (`benchmarks.elected`:
  the best one of three, which the pool replaced), of which the geometric means are printed, and how many series have
  a smaller error than each;
- how much of the truth lies in the 90 % interval, and in that of the elected model;
- the error of the daily maxima as a multiple of that of the mean of the last four same weekdays, and of the elected
  model's, and how many series have a smaller one; and how often the highest minute of the last week lies in its 90 %
  interval;
- CPU time.

Real series (`benchmarks.hourly_series` says where they come from) are forecast 7, 30 and 90 days ahead from eight
origins each, with 400 days of history at most. Constants were chosen on every other one of them; the table has both
halves.
"""

import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.common import options_parser
from benchmarks.elected import elected
from benchmarks.hourly_series import HourlySeries, real_series
from lagwise_spark.tasks.forecast_models import Array
from lagwise_spark.tasks.forecasting import DAY, WEEK, forecast

KINDS = ("daily, weekly, growing", "growing fast", "bursty", "level shift", "one burst", "flat")
#: Days of history, and days ahead that are forecast.
CUTS = ((28, 28), (60, 30), (180, 90), (365, 90))
SERIES = 20
GOAL_COVERAGE = (0.85, 0.95)
#: Of real series: days ahead, origins, and the days that are known, in turn.
HORIZONS, ORIGINS, KNOWN = (7, 30, 90), 8, (400, 120, 400, 42)
LEAST_KNOWN = 28


def made(kind: str, days: int, seed: int) -> Array:
    """Hourly mean rates: a shape of day and week, noise by the hour, a level that wanders for days, and what the kind
    is about."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    t = np.arange(days * DAY)
    level = 10 ** rng.uniform(0, 4)
    if kind == "flat":
        return level * np.exp(rng.normal(0, 0.05, len(t)))
    if kind == "one burst":
        rates = level * np.exp(rng.normal(0, 0.1, len(t)))
        first = int(len(t) * rng.uniform(0.2, 0.45))
        rates[first : first + 3] *= 1000
        return rates
    day = 1 + 0.6 * np.sin(2 * np.pi * (t - 9) / DAY) + 0.25 * np.sin(4 * np.pi * (t - 4) / DAY)
    shape = day * np.where(t // DAY % 7 >= 5, rng.uniform(0.4, 0.9), 1.0)
    rates = level * shape * np.exp(rng.normal(0, 0.12, len(t)) + _wander(rng, len(t)))
    month = t / (30 * DAY)
    if kind == "bursty":
        return rates * np.where(rng.random(len(t)) < 0.02, rng.uniform(3, 10, len(t)), 1.0)
    if kind == "level shift":
        return rates * np.where(t < len(t) * rng.uniform(0.2, 0.6), 1.0, rng.uniform(0.4, 2.5))
    low, high = (0.06, 0.15) if kind == "growing fast" else (-0.03, 0.08)
    return rates * (1 + rng.uniform(low, high) * month)


def _wander(rng: np.random.Generator, length: int, per_hour: float = 0.98, size: float = 0.1) -> Array:
    steps = rng.normal(0, size * np.sqrt(1 - per_hour**2), length)
    level = np.zeros(length)
    for i in range(1, length):
        level[i] = per_hour * level[i - 1] + steps[i]
    return level


def peaks_of(rates: Array, seed: int) -> Array:
    """The highest minute rates of the hours: the minutes of an hour differ by a tenth or by half, as topics do."""
    rng = np.random.default_rng([seed, 99])
    highest: Array = np.exp(rng.normal(0, rng.uniform(0.1, 0.5), (len(rates), 60))).max(axis=1)
    return rates * highest


@dataclass(frozen=True, slots=True)
class Outcome:
    """One forecast: errors, and whether and how far the truth was inside."""

    mase: float
    naive_mase: float
    elected_mase: float
    coverage: float
    elected_coverage: float
    #: Mean absolute errors of the daily maxima.
    maxima_error: float
    same_weekdays_error: float
    elected_maxima_error: float
    #: The daily maxima's share in their interval.
    maxima_coverage: float
    peak_inside: bool
    #: The forecast peak of the last week as a multiple of what it was.
    peak: float
    cpu_seconds: float
    elected_cpu_seconds: float


def outcome(rates: Array, peaks: Array, history: int, ahead: int) -> Outcome | None:
    """What the forecast knows after ``history`` hours, against the ``ahead`` days that followed; None where too little
    of either is known."""
    end = history + ahead * DAY
    truth, highest = rates[history:end], _maxima(peaks[history:end])
    began = time.process_time()
    predicted = forecast(rates[:history], peaks[:history], ahead * DAY)
    seconds = time.process_time() - began
    is_known = np.isfinite(truth).mean() > 0.5 and np.nansum(truth) > 0 and np.nansum(highest[-7:]) > 0
    if predicted is None or predicted.maxima is None or predicted.peak is None or not is_known:
        return None
    scale = float(np.nanmean(np.abs(rates[WEEK:history] - rates[: history - WEEK])))
    if not scale > 0:
        return None
    began = time.process_time()
    other = elected(rates[:history], peaks[:history], ahead * DAY)
    elected_seconds = time.process_time() - began
    last_week = rates[history - WEEK : history]
    naive = np.resize(np.where(np.isfinite(last_week), last_week, np.nanmean(last_week)), end - history)
    before = _maxima(peaks[:history])
    same_weekdays = np.resize(np.nanmean(before[-28:].reshape(-1, 7), axis=0), ahead)
    peak = float(np.nanmax(highest[-7:]))
    return Outcome(
        mase=_error(predicted.rates.middle, truth) / scale,
        naive_mase=_error(naive, truth) / scale,
        elected_mase=_error(other.rate, truth) / scale,
        coverage=_inside(predicted.rates.low, truth, predicted.rates.high),
        elected_coverage=_inside(other.low, truth, other.high),
        maxima_error=_error(predicted.maxima.middle, highest),
        same_weekdays_error=_error(same_weekdays, highest),
        elected_maxima_error=_error(other.maxima, highest),
        maxima_coverage=_inside(predicted.maxima.low, highest, predicted.maxima.high),
        peak_inside=predicted.peak[0] <= peak <= predicted.peak[2],
        peak=predicted.peak[1] / peak,
        cpu_seconds=seconds,
        elected_cpu_seconds=elected_seconds,
    )


def _maxima(peaks: Array) -> Array:
    """The highest of the days, the last of which ends with the hours; NaN where none is known."""
    days = peaks[len(peaks) % DAY :].reshape(-1, DAY)
    highest = np.where(np.isfinite(days), days, -np.inf).max(axis=1)
    return np.where(np.isfinite(highest), highest, np.nan)


def _error(made: Array, truth: Array) -> float:
    return float(np.nanmean(np.abs(made - truth)))


def _inside(low: Array, truth: Array, high: Array) -> float:
    known = np.isfinite(truth)
    return float(((truth >= low) & (truth <= high))[known].mean())


@dataclass(frozen=True, slots=True)
class OfSeries:
    """The forecasts of one series."""

    name: str
    outcomes: list[Outcome]

    def mean(self, of: str) -> float:
        return float(np.mean([getattr(o, of) for o in self.outcomes]))

    def ratio(self, mine: str, other: str) -> float:
        """The mean of the one as a multiple of the mean of the other; 1 where both are zero."""
        a, b = self.mean(mine), self.mean(other)
        return a / b if b > 0 else 1.0


HEADER = (
    "| series | MASE | error / naive's | less than naive's | error / elected one's | less than it "
    "| in the 90 % interval (the elected one's; series with 85 to 95 %) "
    "| daily maxima: error / same weekdays' | less than it | / elected one's | in their interval "
    "| peak of the last week in its interval | forecast peak / truth, median | CPU ms (elected) |\n"
    "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|"
)


def line(name: str, series: list[OfSeries]) -> str:
    """One row of the table, in which every series counts as much."""

    def mean(of: str) -> float:
        return float(np.mean([s.mean(of) for s in series]))

    def against(mine: str, other: str) -> tuple[str, str]:
        ratios = np.array([s.ratio(mine, other) for s in series])
        return f"{np.exp(np.log(np.maximum(ratios, 1e-9)).mean()):.3f}", f"{(ratios < 1).sum()} of {len(ratios)}"

    of_maxima, less = against("maxima_error", "same_weekdays_error")
    low, high = GOAL_COVERAGE
    fair = sum(low <= s.mean("coverage") <= high for s in series)
    cells = (
        name,
        f"{mean('mase'):.2f}",
        *against("mase", "naive_mase"),
        *against("mase", "elected_mase"),
        f"{mean('coverage'):.0%} ({mean('elected_coverage'):.0%}; {fair} of {len(series)})",
        of_maxima,
        less,
        against("maxima_error", "elected_maxima_error")[0],
        f"{mean('maxima_coverage'):.0%}",
        f"{mean('peak_inside'):.0%}",
        f"{np.median([o.peak for s in series for o in s.outcomes]):.2f}",
        f"{1000 * mean('cpu_seconds'):.0f} ({1000 * mean('elected_cpu_seconds'):.0f})",
    )
    return f"| {' | '.join(cells)} |"


def made_outcomes(kind: str, history: int, ahead: int, seeds: Iterable[int]) -> list[OfSeries]:
    """A forecast each of so many made series."""
    found = []
    for seed in seeds:
        rates = made(kind, history + ahead, seed)
        one = outcome(rates, peaks_of(rates, seed), history * DAY, ahead)
        assert one is not None
        found.append(OfSeries(f"{kind} {seed}", [one]))
    return found


def real_outcomes(known: Iterable[HourlySeries], ahead: int) -> Iterator[OfSeries]:
    """The forecasts of every series that is long enough, from its origins."""
    for series in known:
        days = len(series.rates) // DAY
        if days < 2 * LEAST_KNOWN or days - ahead < LEAST_KNOWN:
            continue
        origins = np.linspace(min(2 * LEAST_KNOWN, days - ahead), days - ahead, ORIGINS).astype(int)
        found = []
        for number, origin in enumerate(np.unique(origins)):
            # Not all at midnight.
            cut = int(origin) * DAY - (5 * number) % DAY
            first = max(0, cut - KNOWN[number % len(KNOWN)] * DAY)
            one = outcome(series.rates[first:], series.peaks[first:], cut - first, ahead)
            found += [one] if one is not None else []
        if found:
            yield OfSeries(series.name, found)


def main() -> int:
    options = options_parser(__doc__, "a smoke test: few and short series").parse_args()
    series, cuts, horizons = (2, CUTS[:2], HORIZONS[:1]) if options.small else (SERIES, CUTS, HORIZONS)
    began = time.perf_counter()
    forecast(made("flat", 30, 0), made("flat", 30, 0), DAY)
    print(f"first forecast, with the import of the library: {time.perf_counter() - began:.1f} s\n\n{HEADER}")
    every: list[OfSeries] = []
    for history, ahead in cuts:
        for kind in KINDS:
            its = made_outcomes(kind, history, ahead, range(series))
            every += its
            print(line(f"{kind}, {history} + {ahead} days", its), flush=True)
    print(line(f"all {len(every)} made series", every), flush=True)
    known = list(real_series())
    for ahead in horizons:
        found = list(real_outcomes(known, ahead))
        for name, some in (("constants chosen on them", found[1::2]), ("the others", found[::2])):
            if some:
                print(line(f"real, {ahead} days ahead, {name}", some), flush=True)
    coverage = float(np.mean([s.mean("coverage") for s in every]))
    worse = float(np.mean([s.ratio("mase", "naive_mase") for s in every])) >= 1
    return int(worse or not GOAL_COVERAGE[0] <= coverage <= GOAL_COVERAGE[1])


if __name__ == "__main__":
    sys.exit(main())
