"""Demand, forecasts and measurements of the stories' groups, and the verdicts that the real job makes of them."""

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from lagwise.config import CapacitySettings
from lagwise.domain.sizing.objective import KEPT_OBJECTIVES_SECONDS
from lagwise.tables.analysis import PARTITION_STATUS
from lagwise.tables.capacity import DEMAND, FORECASTS, OBSERVED_CAPACITY, TOPIC_HOURS
from lagwise.tables.service_times import SERVICE_TIMES
from lagwise.tables.store import Lake
from lagwise_spark.jobs.capacity import plan
from tests.dashboard.lakes import append, overwrite

Row = dict[str, Any]
_HOURLY, _HORIZON = timedelta(days=14), timedelta(days=90)
#: Recorded minutes from which it does not follow yet what an objective takes.
_MINUTES_WITHOUT = 20 * 60
#: Nodes of the groups that a probe measures.
SETTINGS = CapacitySettings(nodes=[{"groups": {"include": ["checkout"]}, "cores": 2}])


@dataclass(frozen=True)
class Plan:
    """What is known of one group and its topic; rates are records per second."""

    group: str
    topic: str
    peak: float
    #: Growth over the horizon; None is no forecast.
    growth: float | None = None
    #: What the members together do under saturation.
    seen: float | None = None
    at_least: float | None = None
    members: int = 3
    #: T1 and T2 in seconds, and the threads of a node, by a probe.
    probe: tuple[float, float, int] | None = None
    #: How long the burst at the peak lasted, while at other times half of it arrives; None is too few minutes.
    burst_minutes: int | None = None
    cluster: str = "prod"


PLANS = (
    Plan("clickstream-archive", "clicks", 5_200.0, growth=0.3, seen=4_100.0, members=8),
    Plan("checkout", "carts", 320.0, growth=0.6, probe=(0.030, 0.004, 4), members=6),
    Plan("recommendations", "views", 300.0, growth=0.1, seen=6_400.0, members=16),
    Plan("email-notifications", "emails", 90.0, at_least=100.0),
    Plan("billing-export", "billing", 60.0, growth=0.1, seen=120.0, burst_minutes=5),
)


def write(lake: Lake, now: datetime, plans: tuple[Plan, ...] = PLANS) -> int:
    """Fill the tables that planning reads, and let the analysis judge every group; how many verdicts there are."""
    overwrite(lake, DEMAND, [_demand(p, now) for p in plans])
    append(lake, TOPIC_HOURS, _hours(lake, now))
    append(lake, FORECASTS, (row for p in plans if p.growth is not None for row in _forecast(p, p.growth, now)))
    overwrite(lake, OBSERVED_CAPACITY, [_observed(p, now) for p in plans if p.probe is None])
    append(lake, SERVICE_TIMES, [_service(p, p.probe, now) for p in plans if p.probe is not None])
    return plan(lake, SETTINGS, now, objective_of=lambda cluster, group: 300.0)


def _hour(now: datetime) -> datetime:
    return now.replace(minute=0, second=0, microsecond=0)


def _hours(lake: Lake, now: datetime) -> Iterator[Row]:
    """Two days in which every partition is sent as much as it is now."""
    rates: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
    for r in lake.read(PARTITION_STATUS).to_pylist():
        rates[r["cluster"], r["topic"]][r["partition"]] = r["produce_rate_per_second"] or 0.0
    for (cluster, topic), by_partition in rates.items():
        records = [{"partition": p, "records": int(rate * 3600)} for p, rate in sorted(by_partition.items())]
        for hours in range(48):
            yield {
                "cluster": cluster,
                "topic": topic,
                "hour": _hour(now) - timedelta(hours=hours + 1),
                "partitions": len(records),
                "minutes": 60,
                "records": sum(r["records"] for r in records),
                "seconds": 3600.0,
                "max_rate_per_second": sum(by_partition.values()),
                "max_at": _hour(now) - timedelta(hours=hours + 1),
                "minute_rates_per_second": [sum(by_partition.values())] * 60,
                "partition_records": records,
            }


def _demand(p: Plan, now: datetime) -> Row:
    until = _hour(now)
    ahead = None if p.growth is None else p.peak * (1 + p.growth)
    return {
        "cluster": p.cluster,
        "topic": p.topic,
        "as_of": until,
        "first_hour": until - timedelta(days=60),
        "history_hours": 60 * 24,
        "minutes": _MINUTES_WITHOUT if p.burst_minutes is None else 60 * 24 * 60,
        "peak_per_second": p.peak,
        "peak_at": until - timedelta(days=2, hours=3),
        "p50_per_second": 0.5 * p.peak,
        "p95_per_second": 0.8 * p.peak,
        "p99_per_second": 0.9 * p.peak,
        "busy_hour_per_second": 0.9 * p.peak,
        "objective_rates": [] if p.burst_minutes is None else list(_objective_rates(p, until)),
        "growth_per_month": None if p.growth is None else p.growth / 3,
        "horizon_days": _HORIZON.days,
        "forecast_peak_per_second": ahead,
        "forecast_peak_low_per_second": None if ahead is None else 0.85 * ahead,
        "forecast_peak_high_per_second": None if ahead is None else 1.2 * ahead,
        "tested_days": None if ahead is None else 30.0,
        "models": None if ahead is None else "median 60 %, theta 40 %",
        "mase": None if ahead is None else 0.7,
        "baseline_mase": None if ahead is None else 1.1,
        "reason": "there are only 3 days of history: 14 are needed" if p.growth is None else None,
    }


def _objective_rates(p: Plan, until: datetime) -> Iterator[Row]:
    """Exactly what objectives take of a burst at the peak, and of half of it at all other times."""
    start, seconds = until - timedelta(days=2, hours=3), 60.0 * (p.burst_minutes or 0)
    for objective in KEPT_OBJECTIVES_SECONDS:
        rate = max(0.5 * p.peak, p.peak * seconds / (seconds + objective))
        yield {
            "objective_seconds": objective,
            "rate_per_second": rate,
            "high_per_second": 1.2 * rate,
            "start": start,
            "until": start + timedelta(seconds=seconds),
        }


def _forecast(p: Plan, growth: float, now: datetime) -> Iterator[Row]:
    at = until = _hour(now)
    while at < until + _HORIZON:
        hours = 1 if at - until < _HOURLY else 24
        trend = 0.9 * p.peak * (1 + growth * ((at - until) / _HORIZON))
        shape = 0.75 + 0.25 * math.sin((at.hour - 9) / 24 * 2 * math.pi) if hours == 1 else 0.75
        wide = 0.05 + 0.12 * ((at - until) / _HORIZON)
        busiest = trend * (shape if hours == 1 else 1.0)
        yield {
            "cluster": p.cluster,
            "topic": p.topic,
            "made_at": until,
            "at": at,
            "hours": hours,
            "produce_rate_per_second": trend * shape,
            "low_per_second": trend * shape * (1 - wide),
            "high_per_second": trend * shape * (1 + wide),
            "busiest_per_second": busiest,
            "busiest_high_per_second": busiest * (1 + wide),
            **(_peak(trend / 0.9, wide) if (at - until) % timedelta(days=1) == timedelta(0) else {}),
        }
        at += timedelta(hours=hours)


def _peak(busiest: float, wide: float) -> Row:
    return {
        "peak_per_second": busiest,
        "peak_low_per_second": busiest * (1 - wide),
        "peak_high_per_second": busiest * (1 + wide),
    }


def _observed(p: Plan, now: datetime) -> Row:
    return {
        "cluster": p.cluster,
        "group": p.group,
        "topic": p.topic,
        "as_of": now,
        "rate_per_second": p.seen,
        "rate_low_per_second": None if p.seen is None else 0.97 * p.seen,
        "rate_high_per_second": None if p.seen is None else 1.03 * p.seen,
        "reason": "never_saturated" if p.seen is None else None,
        "sentence": "as the analysis says it",
        "saturated_seconds": 0.0 if p.seen is None else 4_000.0,
        "blocks": 0 if p.seen is None else 40,
        "episodes": 0 if p.seen is None else 3,
        "at_least_per_second": p.at_least,
        "members": p.members,
        "is_scaled": False,
        "seconds_per_message": None if p.seen is None else p.members / p.seen,
        "measured_from": now - timedelta(days=3),
        "measured_until": now - timedelta(hours=5),
        "missing_seconds": 0.0,
    }


def _service(p: Plan, probe: tuple[float, float, int], now: datetime) -> Row:
    t1, t2, threads = probe
    return {
        "sample_id": f"{p.cluster}-0",
        "cluster": p.cluster,
        "sampled_at": now - timedelta(minutes=2),
        "measured_at": now - timedelta(minutes=3),
        "group": p.group,
        "topic": p.topic,
        "partition": 0,
        "source": "probe",
        "t1_seconds": t1,
        "t2_seconds": t2,
        "messages": 52_000,
        "threads": threads,
    }
