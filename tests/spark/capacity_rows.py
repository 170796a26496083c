"""Rows about one group of which a capacity verdict is asked."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from lagwise.config import CapacitySettings
from lagwise.domain.sizing.objective import KEPT_OBJECTIVES_SECONDS
from lagwise.tables.analysis import PARTITION_STATUS
from lagwise.tables.capacity import CAPACITY, DEMAND, FORECASTS, OBSERVED_CAPACITY
from lagwise.tables.schema import Table
from lagwise.tables.service_times import SERVICE_TIMES
from lagwise.tables.store import Lake
from lagwise_spark.jobs.capacity import AGAIN_AFTER
from tests.app.judged import append, partition, row

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
EIGHT_CORES = CapacitySettings.model_validate({"nodes": [{"groups": {"include": ["bill.*"]}, "cores": 8}]})


def five_minutes(cluster: str, group: str) -> float:
    """The lag objective of every group."""
    return 300.0


def reads(lake: Lake, name: str, *, members: int = 4, partitions: int = 12, rate: float = 50.0) -> None:
    """A group on `orders` whose members run two to a host."""
    append(
        lake,
        PARTITION_STATUS,
        *[
            partition(
                name, n, as_of=NOW, lag=5, produce_rate_per_second=rate, owner=f"m{n % members}",
                host=f"10.0.0.{n % members // 2}",
            )
            for n in range(partitions)
        ],
        partition(name, 0, as_of=NOW, topic="left", status="ghost"),
    )  # fmt: skip


def judged_again(lake: Lake, after: timedelta = AGAIN_AFTER) -> None:
    """The statuses of a round so much later that the capacity verdicts are due."""
    again = [{**r, "as_of": r["as_of"] + after} for r in lake.read(PARTITION_STATUS).to_pylist()]
    lake.replace(PARTITION_STATUS, PARTITION_STATUS.from_rows(again))


def some(table: Table, **values: Any) -> dict[str, Any]:
    keys = {"cluster": "shop", "group": "billing", "topic": "orders"}
    names = {column.name for column in table.columns}
    return row(table, **{k: v for k, v in keys.items() if k in names} | values)


def burst(peak: float, minutes: int = 2, usual: float = 100.0, high: float = 1.0) -> list[dict[str, Any]]:
    """What objectives take, exactly, of a steady rate with one burst in it, three days ago at noon; and ``high`` times
    that at the upper end of a week."""
    start = NOW - timedelta(days=3)
    rates = {s: max(usual, peak * 60 * minutes / (60 * minutes + s)) for s in KEPT_OBJECTIVES_SECONDS}
    return [
        {
            "objective_seconds": objective,
            "rate_per_second": rate,
            "high_per_second": high * rate,
            "start": start,
            "until": start + timedelta(minutes=minutes),
        }
        for objective, rate in rates.items()
    ]


def demand(
    lake: Lake, peak: float = 600.0, later: float | None = None, objective_rates: Sequence[dict[str, Any]] = ()
) -> None:
    ahead = {} if later is None else {"forecast_peak_per_second": later, "models": "theta 100 %"}
    append(
        lake,
        DEMAND,
        some(DEMAND, as_of=NOW, peak_per_second=peak, peak_at=NOW - timedelta(days=1), minutes=30_000,
             history_hours=500, horizon_days=90,
             objective_rates=list(objective_rates), busy_hour_per_second=peak / 2, **ahead),
    )  # fmt: skip
    if later is not None:
        days = [NOW + timedelta(days=d) for d in range(1, 91)]
        peaks = [peak + (later - peak) * n / 89 for n in range(90)]
        for made, factor in ((NOW - timedelta(days=1), 7.0), (NOW, 1.0)):  # the newer one counts
            append(
                lake,
                FORECASTS,
                *[
                    some(FORECASTS, made_at=made, at=at, hours=24, produce_rate_per_second=peak_of_day * factor / 2,
                         busiest_per_second=peak_of_day * factor / 2,
                         busiest_high_per_second=peak_of_day * 1.1 * factor / 2,
                         peak_per_second=peak_of_day * factor, peak_high_per_second=peak_of_day * 1.1 * factor)
                    for at, peak_of_day in zip(days, peaks, strict=True)
                ],
            )  # fmt: skip


def seen(lake: Lake, rate: float | None, *, margin: float = 0.05) -> None:
    values = {"rate_per_second": rate, "rate_low_per_second": rate and rate * (1 - margin),
              "rate_high_per_second": rate and rate * (1 + margin), "at_least_per_second": 300.0}  # fmt: skip
    if rate:
        values |= {"seconds_per_message": 4 / rate, "members": 4, "blocks": 30,
                   "measured_until": NOW - timedelta(hours=1)}  # fmt: skip
    append(
        lake,
        OBSERVED_CAPACITY,
        some(OBSERVED_CAPACITY, as_of=NOW, **values),
        some(OBSERVED_CAPACITY, as_of=NOW, member="m0 (10.0.0.0)", rate_per_second=1.0),
    )


def probed(lake: Lake, minutes_ago: float, t1: float, t2: float, messages: int, **more: Any) -> None:
    at = NOW - timedelta(minutes=minutes_ago)
    append(
        lake,
        SERVICE_TIMES,
        some(SERVICE_TIMES, sampled_at=at, measured_at=at, source="probe", t1_seconds=t1, t2_seconds=t2,
             messages=messages, partition=0, **{"threads": 20, "host": "10.0.0.0"} | more),
    )  # fmt: skip


def rows(lake: Lake) -> dict[str, dict[str, Any]]:
    return {r["group"]: r for r in lake.read(CAPACITY).to_pylist()}
