"""One topic's history to its demand and its forecast. Runs on Spark's executors, which have nothing of ours: this
module, the definitions it uses and the models are sent along."""

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from lagwise.domain.capacity.demand import quantile_of, too_little
from lagwise_spark.transforms import forecasting
from lagwise_spark.transforms.forecasting import DAY, WEEK, Array, RateForecast

#: So far ahead a forecast is told by the hour, beyond it by the day.
HOURLY = 2 * WEEK

_HOUR = 3_600_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def demand_of(history: pa.Table, until: datetime, horizon_days: int) -> dict[str, Any]:
    """The row of `demand` of one topic from its rows of `topic_hours`, and as ``ahead`` its rows of `forecasts`.
    ``until`` is the end of the last hour that could be known. Raises nothing that a history could cause."""
    history = history.sort_by("hour")
    first = history["hour"][0].as_py()
    hours = history["hour"].cast(pa.int64()).to_numpy() // _HOUR
    peaks_known = history["max_rate_per_second"].to_numpy()
    busiest = int(peaks_known.argmax())
    row: dict[str, Any] = {
        "as_of": until,
        "first_hour": first,
        "history_hours": len(hours),
        "minutes": int(history["minutes"].to_numpy().sum()),
        "peak_per_second": float(peaks_known[busiest]),
        "peak_at": history["max_at"][busiest].as_py(),
        **_quantiles(history, float(peaks_known[busiest])),
        "horizon_days": horizon_days,
        "reason": too_little(len(hours), horizon_days),
        "ahead": [],
    }
    length = int(_micros(until) // _HOUR - hours[0])
    rates = _grid(hours, history["records"].to_numpy() / history["seconds"].to_numpy(), length)
    peaks = _grid(hours, peaks_known, length)
    growth = forecasting.growth_per_month(rates)
    if growth is not None:
        names = ("growth_per_month", "growth_low_per_month", "growth_high_per_month")
        row |= dict(zip(names, growth, strict=True))
    made = forecasting.forecast(rates, peaks, horizon_days * DAY)
    if made is not None:
        row |= {"model": made.model, "mase": made.mase, "baseline_mase": made.baseline_mase}
        row |= {"tested_days": made.tested_hours / DAY, "ahead": _ahead(made, until)}
        if row["reason"] is None:
            row |= _peak(made)
    return row


def _micros(at: datetime) -> int:
    return (at - _EPOCH) // timedelta(microseconds=1)


def _grid(hours: Array, values: Array, length: int) -> Array:
    """Every hour from the first on, NaN where nothing is known."""
    grid = np.full(length, np.nan)
    at = hours - hours[0]
    inside = at < length
    grid[at[inside]] = values[inside]
    return grid


def _quantiles(history: pa.Table, peak: float) -> dict[str, float]:
    counted = pa.concat_arrays([chunk.flatten() for chunk in history["rates"].chunks])
    buckets, at = np.unique(counted.field("bucket").to_numpy(), return_inverse=True)
    minutes = np.bincount(at, counted.field("minutes").to_numpy(), len(buckets)).astype(int)
    counts = dict(zip(buckets.tolist(), minutes.tolist(), strict=True))
    zeros = int(history["zero_minutes"].to_numpy().sum())
    return {f"p{n}_per_second": min(peak, quantile_of(zeros, counts, n / 100)) for n in (50, 95, 99)}


def _peak(made: RateForecast) -> dict[str, Any]:
    """The highest minute rate to expect in the last week before the horizon."""
    if made.peak is None:
        return {"reason": "the last weeks have too many gaps: the forecast could not be compared with what came"}
    top = float(made.rate[-WEEK:].max())
    names = ("forecast_peak_low_per_second", "forecast_peak_per_second", "forecast_peak_high_per_second")
    return {name: top * factor for name, factor in zip(names, made.peak, strict=True)}


def _ahead(made: RateForecast, until: datetime) -> list[dict[str, Any]]:
    """By the hour at first, then by the day (of 24 hours from ``until`` on)."""
    if not np.isfinite(made.low).all():
        return []
    rows = []
    at = 0
    while at < len(made.rate):
        hours = 1 if at < HOURLY else DAY
        its = slice(at, at + hours)
        busiest = at + int(made.rate[its].argmax())
        rows.append(
            {
                "at": until + timedelta(hours=at),
                "hours": hours,
                "produce_rate_per_second": math.fsum(made.rate[its]) / hours,
                "low_per_second": math.fsum(made.low[its]) / hours,
                "high_per_second": math.fsum(made.high[its]) / hours,
                "busiest_per_second": float(made.rate[busiest]),
                "busiest_high_per_second": float(made.high[busiest]),
            }
        )
        at += hours
    return rows
