"""From the history of topics to their demand and their forecasts."""

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy import stats

from lagwise.domain.capacity.demand import MINUTES_OF_HOUR, too_little
from lagwise.domain.sizing.objective import KEPT_OBJECTIVES_SECONDS, LEAST_MINUTES, least_capacities
from lagwise.domain.verdicts.columns import runs
from lagwise.tables.capacity import DEMAND, FORECASTS, TOPIC_HOURS
from lagwise_spark.tasks import forecasting
from lagwise_spark.tasks.arrow_columns import Numbering, combined
from lagwise_spark.tasks.forecast_models import Array
from lagwise_spark.tasks.forecasting import DAY, WEEK, RateForecast
from lagwise_spark.tasks.lake_files import KeyRange, LakeFiles
from lagwise_spark.tasks.running import Made

#: So far ahead a forecast is told by the hour, beyond it by the day.
HOURLY = 2 * WEEK
#: The level of the busy hours is the rate that this share of all hours do not exceed. One burst is no level.
BUSY_HOURS = 0.995

#: A week with less than this share of the middle one's traffic says nothing of how busy a week may get.
IDLE_WEEK = 0.1

_HOUR = 3_600_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: Columns of `topic_hours` that a history consists of.
_HISTORY = (
    "hour", "records", "seconds", "max_rate_per_second", "max_at", "minute_rates_per_second",
)  # fmt: skip


def made_demand(files: LakeFiles, horizon_days: int, due: Sequence[Mapping[str, Any]]) -> Made:
    """Rows of `demand` and of `forecasts` of the topics that are due: cluster, topic and ``until``, the end of the last
    hour that could be known."""
    until = {(row["cluster"], row["topic"]): row["until"] for row in due}
    made = [
        {"cluster": cluster, "topic": topic, **demand_of(history, until[cluster, topic], horizon_days)}
        for (cluster, topic), history in _histories(files, until)
    ]
    yield DEMAND.name, DEMAND.from_rows(made)
    ahead = [
        {"cluster": row["cluster"], "topic": row["topic"], "made_at": row["as_of"]} | one
        for row in made
        for one in row["ahead"]
    ]
    yield FORECASTS.name, FORECASTS.from_rows(ahead)


def _histories(
    files: LakeFiles, until: Mapping[tuple[str, str], datetime]
) -> Iterator[tuple[tuple[str, str], pa.Table]]:
    """The rows of `topic_hours` of each of these topics that has any."""
    only = {"cluster": {cluster for cluster, _ in until}, "topic": {topic for _, topic in until}}
    rows = files.rows(TOPIC_HOURS, _HISTORY, KeyRange(), only)
    clusters, topics = Numbering(), Numbering()
    key = combined([clusters.of(rows["cluster"]), topics.of(rows["topic"])], (len(clusters), len(topics)))
    order = np.argsort(key)
    history = rows.select(_HISTORY).combine_chunks().take(order)
    its = runs(key[order])
    for number, start, size in zip(key[order][its.start], its.start, its.sizes, strict=True):
        topic = clusters.names[number // len(topics)], topics.names[number % len(topics)]
        if topic in until:
            of_topic = history.slice(start, size)
            yield topic, of_topic.filter(pc.less(of_topic["hour"], until[topic]))


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
        "peak_per_second": float(peaks_known[busiest]),
        "peak_at": history["max_at"][busiest].as_py(),
        **_of_minutes(history, float(peaks_known[busiest])),
        "horizon_days": horizon_days,
        "reason": too_little(len(hours), horizon_days),
        "ahead": [],
    }
    length = int(_micros(until) // _HOUR - hours[0])
    rates = _grid(hours, history["records"].to_numpy() / history["seconds"].to_numpy(), length)
    peaks = _grid(hours, peaks_known, length)
    row["busy_hour_per_second"] = float(np.nanquantile(rates, BUSY_HOURS, method="inverted_cdf"))
    growth = forecasting.growth_per_month(rates)
    if growth is not None:
        names = ("growth_per_month", "growth_low_per_month", "growth_high_per_month")
        row |= dict(zip(names, growth, strict=True))
    made = forecasting.forecast(rates, peaks, horizon_days * DAY)
    if made is not None:
        row |= {"models": _named(made.shares), "mase": made.mase, "baseline_mase": made.baseline_mase}
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


def _of_minutes(history: pa.Table, peak: float) -> dict[str, Any]:
    """How many minutes are known, quantiles of their rates, and the least capacity for each of the kept objectives."""
    lists = pa.concat_arrays([chunk.flatten() for chunk in history["minute_rates_per_second"].chunks])
    rates = lists.to_numpy(zero_copy_only=False).astype(np.float64)
    known = rates[np.isfinite(rates)]
    quantiles = np.quantile(known, (0.5, 0.95, 0.99), method="inverted_cdf")
    names = ("p50_per_second", "p95_per_second", "p99_per_second")
    row: dict[str, Any] = {name: min(peak, float(rate)) for name, rate in zip(names, quantiles, strict=True)}
    row["minutes"] = len(known)
    return row | {"objective_rates": _objective_rates(history, rates, peak) if len(known) >= LEAST_MINUTES else []}


def _objective_rates(history: pa.Table, rates: Array, peak: float) -> list[dict[str, Any]]:
    """Hours of which nothing is known are left out of the rates, as the minutes are that are not known. The minutes are
    rounded up, the peak is not: no objective takes more than that."""
    hours = history["hour"].cast(pa.int64()).to_numpy()

    def start_of(minute: int) -> datetime:
        hour, of_hour = divmod(minute, MINUTES_OF_HOUR)
        return _EPOCH + timedelta(microseconds=int(hours[hour])) + timedelta(minutes=of_hour)

    highs = _week_to_come(rates)
    return [
        {
            "objective_seconds": objective,
            "rate_per_second": min(peak, stretch.rate_per_second),
            "high_per_second": max(min(peak, stretch.rate_per_second), float(high)),
            "start": start_of(stretch.first),
            "until": start_of(stretch.last) + timedelta(minutes=1),
        }
        for objective, stretch, high in zip(KEPT_OBJECTIVES_SECONDS, least_capacities(rates), highs, strict=True)
    ]


def _week_to_come(rates: Array) -> Array:
    """For each kept objective the upper end of the 90 % interval of what a week to come takes, by how much the recorded
    weeks differ: their logarithms are taken as normal. With less than two weeks that are not idle, it is that of a day,
    of two at least; of fewer nothing follows."""
    weeks = _not_idle(rates, WEEK)
    blocks = weeks if len(weeks) >= 2 else _not_idle(rates, DAY)
    if len(blocks) < 2:
        return np.zeros(len(KEPT_OBJECTIVES_SECONDS))
    logs = np.log([[one.rate_per_second for one in least_capacities(block)] for block in blocks])
    spread = logs.std(axis=0, ddof=1) * math.sqrt(1 + 1 / len(logs))
    high: Array = np.exp(logs.mean(axis=0) + stats.t.ppf(forecasting.HIGH, len(logs) - 1) * spread)
    return high


def _not_idle(rates: Array, hours: int) -> Array:
    """The minutes in blocks of so many hours, counted back from the end, without those (before a topic was used, or in
    an outage) with next to no traffic: the logarithm of nothing would make them differ beyond all measure."""
    length = hours * MINUTES_OF_HOUR
    blocks = rates[len(rates) % length :].reshape(-1, length)
    traffic = np.nansum(blocks, axis=1) / np.maximum(1, np.isfinite(blocks).sum(axis=1))
    if not traffic.any():
        return blocks[:0]
    busy: Array = blocks[traffic >= IDLE_WEEK * np.median(traffic[traffic > 0.0])]
    return busy


def _peak(made: RateForecast) -> dict[str, Any]:
    """The highest minute rate to expect in the last week before the horizon."""
    if made.peak is None:
        return {"reason": "the last weeks have too many gaps: the forecast could not be compared with what came"}
    names = ("forecast_peak_low_per_second", "forecast_peak_per_second", "forecast_peak_high_per_second")
    return dict(zip(names, made.peak, strict=True))


def _named(shares: Mapping[str, float]) -> str:
    """The models by their weights in words, without those of less than one percent."""
    heaviest = sorted(shares.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{name} {100 * share:.0f} %" for name, share in heaviest if share >= 0.01)


def _ahead(made: RateForecast, until: datetime) -> list[dict[str, Any]]:
    """By the hour at first, then by the day (of 24 hours from ``until`` on); a day's peak stands where it begins."""
    rates = made.rates
    if not np.isfinite(rates.low).all():
        return []
    rows = []
    at = 0
    while at < len(rates.middle):
        hours = 1 if at < HOURLY else DAY
        its = slice(at, at + hours)
        busiest = at + int(rates.middle[its].argmax())
        row = {
            "at": until + timedelta(hours=at),
            "hours": hours,
            "produce_rate_per_second": math.fsum(rates.middle[its]) / hours,
            "low_per_second": math.fsum(rates.low[its]) / hours,
            "high_per_second": math.fsum(rates.high[its]) / hours,
            "busiest_per_second": float(rates.middle[busiest]),
            "busiest_high_per_second": float(rates.high[busiest]),
        }
        if made.maxima is not None and at % DAY == 0:
            row |= {
                "peak_per_second": float(made.maxima.middle[at // DAY]),
                "peak_low_per_second": float(made.maxima.low[at // DAY]),
                "peak_high_per_second": float(made.maxima.high[at // DAY]),
            }
        rows.append(row)
        at += hours
    return rows
