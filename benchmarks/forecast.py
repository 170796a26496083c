"""How good the forecast of a topic is, and what it costs: on made series of known truth, and on real ones.

Each series is cut in two: the models see the first part, and what they say of the second is compared with it. Printed
per kind: the mean absolute error in units of the change from week to week in the part that was known (MASE; Hyndman and
Koehler, 2006), next to the seasonal-naive baseline's on the same hours and as a multiple of that, how much of the truth
lies in the 90 % interval, the same for the highest minute rate of the last week, and the time.

Real series are taken from packages that carry hourly ones as data, where these are installed (none of Lagwise's own
needs them): ``pip install --no-deps river vega_datasets bokeh_sampledata``.
"""

import csv
import gzip
import importlib.util
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from benchmarks.common import options_parser
from lagwise_spark.tasks.forecasting import DAY, WEEK, Array, forecast

KINDS = ("daily, weekly, growing", "growing fast", "bursty", "level shift", "one burst", "flat")
#: Days of history, and days ahead that are forecast.
CUTS = ((28, 28), (60, 30), (180, 90), (365, 90))
SERIES = 20
GOAL_COVERAGE = (0.85, 0.95)


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
    return rates * np.exp(rng.normal(0, rng.uniform(0.1, 0.5), (len(rates), 60))).max(axis=1)


@dataclass(frozen=True)
class Outcome:
    """One series: the errors, whether and how far the truth was inside."""

    mase: float
    baseline_mase: float
    #: As a multiple of the baseline's.
    error: float
    coverage: float
    peak_inside: bool
    peak: float
    plain_peak: float
    seconds: float
    model: str


def outcome(rates: Array, history: int, ahead: int, seed: int = 0) -> Outcome:
    """What the forecast knows after ``history`` days, against the ``ahead`` days that followed."""
    peaks, cut, end = peaks_of(rates, seed), history * DAY, (history + ahead) * DAY
    began = time.perf_counter()
    predicted = forecast(rates[:cut], peaks[:cut], ahead * DAY)
    seconds = time.perf_counter() - began
    assert predicted is not None
    assert predicted.peak is not None
    truth, naive = rates[cut:end], np.resize(rates[cut - WEEK : cut], end - cut)
    known = np.isfinite(truth) & np.isfinite(naive)
    error, baseline = np.abs(predicted.rate - truth)[known].mean(), np.abs(naive - truth)[known].mean()
    scale = np.nanmean(np.abs(rates[WEEK:cut] - rates[: cut - WEEK]))
    inside = ((truth >= predicted.low) & (truth <= predicted.high))[known]
    highest, top = np.nanmax(peaks[end - WEEK : end]), predicted.rate[-WEEK:].max()
    # The other way to tell a peak: what the minutes do in busy hours, whatever the forecast has missed before.
    busy = rates[:cut] >= np.nanquantile(rates[:cut], 0.9)
    plain = top * np.median((peaks[:cut] / rates[:cut])[busy])
    return Outcome(
        mase=float(error / scale),
        baseline_mase=float(baseline / scale),
        error=float(error / baseline),
        coverage=float(inside.mean()),
        peak_inside=bool(predicted.peak[0] * top <= highest <= predicted.peak[2] * top),
        peak=float(predicted.peak[1] * top / highest),
        plain_peak=float(plain / highest),
        seconds=seconds,
        model=predicted.model,
    )


def real() -> Iterator[tuple[str, Array]]:
    """Hourly series that installed packages carry, NaN where an hour is missing."""
    files = (
        ("water through a pipe (river)", "river", "datasets/water-flow.csv", "%Y-%m-%dT%H:%M:%S%z"),
        ("temperature, Seattle (vega_datasets)", "vega_datasets", "_data/seattle-temps.csv", "%Y/%m/%d %H:%M"),
        (
            "sea surface (bokeh_sampledata)",
            "bokeh_sampledata",
            "_data/sea_surface_temperature.csv.gz",
            "%Y-%m-%dT%H:%M:%SZ",
        ),
    )
    for name, package, file, form in files:
        spec = importlib.util.find_spec(package)
        if spec is None or not spec.submodule_search_locations:
            print(f"{name:38} is not installed")
            continue
        path = Path(spec.submodule_search_locations[0]) / file
        with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
            rows = [(at, float(value)) for at, value in list(csv.reader(lines))[1:] if value]
        yield name, _by_hours([(datetime.strptime(at, form).replace(tzinfo=UTC), value) for at, value in rows])


def _by_hours(rows: list[tuple[datetime, float]]) -> Array:
    first = rows[0][0]
    hours = np.full((rows[-1][0] - first) // timedelta(hours=1) + 1, np.nan)
    for at, value in rows:
        hours[(at - first) // timedelta(hours=1)] = value
    return hours


def line(name: str, history: int, ahead: int, outcomes: list[Outcome]) -> str:
    """One row of the table."""

    def mean(values: list[float]) -> float:
        return float(np.mean(values))

    models = ", ".join(f"{model} {n}" for model, n in Counter(o.model for o in outcomes).most_common())
    return (
        f"| {name} | {history} + {ahead} | {mean([o.mase for o in outcomes]):.2f} | "
        f"{mean([o.baseline_mase for o in outcomes]):.2f} | {mean([o.error for o in outcomes]):.2f} | "
        f"{mean([o.coverage for o in outcomes]):.0%} ({min(o.coverage for o in outcomes):.0%}) | "
        f"{mean([o.peak_inside for o in outcomes]):.0%} | {np.median([o.peak for o in outcomes]):.2f} | "
        f"{np.median([o.plain_peak for o in outcomes]):.2f} | {mean([o.seconds for o in outcomes]):.3f} | {models} |"
    )


def main() -> int:
    options = options_parser(__doc__, "a smoke test: few and short series").parse_args()
    series, cuts = (2, CUTS[:2]) if options.small else (SERIES, CUTS)
    began = time.perf_counter()
    forecast(made("flat", 30, 0), made("flat", 30, 0), DAY)
    print(f"first forecast, with the import of the library: {time.perf_counter() - began:.1f} s\n")
    print(
        "| kind | days known + ahead | MASE | baseline's MASE | error / baseline's | in the 90 % interval, "
        "mean (least) | peak in its interval | peak / truth | by the plain ratio | s | models |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    every: list[Outcome] = []
    outside: list[str] = []
    for history, ahead in cuts:
        for kind in KINDS:
            its = [outcome(made(kind, history + ahead, seed), history, ahead, seed) for seed in range(series)]
            every += its
            if not GOAL_COVERAGE[0] <= (inside := float(np.mean([o.coverage for o in its]))) <= GOAL_COVERAGE[1]:
                outside.append(f"{kind}, {history} + {ahead}: {inside:.0%}")
            print(line(kind, history, ahead, its), flush=True)
    coverage = float(np.mean([o.coverage for o in every]))
    errors = float(np.mean([o.error for o in every]))
    mase, baseline = (float(np.mean([getattr(o, name) for o in every])) for name in ("mase", "baseline_mase"))
    print(
        f"\nall {len(every)} made series: MASE {mase:.2f}, the baseline's {baseline:.2f}; error {errors:.2f} of the "
        f"baseline's, {coverage:.1%} in the 90 % interval"
    )
    print(
        f"peaks in their interval: {np.mean([o.peak_inside for o in every]):.0%}; "
        f"{np.mean([o.seconds for o in every]):.3f} s a topic\n"
    )
    low, high = GOAL_COVERAGE
    print(f"kinds with less than {low:.0%} or more than {high:.0%} in the interval: {'; '.join(outside) or 'none'}\n")
    for name, rates in real():
        days = len(rates) // DAY
        history = days * 2 // 3
        print(line(name, history, min(90, days - history), [outcome(rates, history, min(90, days - history))]))
    missed = not GOAL_COVERAGE[0] <= coverage <= GOAL_COVERAGE[1] or errors >= 1
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
