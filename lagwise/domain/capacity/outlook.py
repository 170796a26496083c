"""What will arrive, day by day, and in words where that comes from and how good it was."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from lagwise.domain.capacity.verdict import DemandAhead
from lagwise.domain.humanise import duration, since

_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class DayAhead:
    """The busiest minute of a day to come, messages per second, with the ends of its 90 % interval."""

    at: datetime
    low: float
    peak: float
    high: float


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a topic will be sent. ``demand`` is its row of that table; no ``days`` is no forecast. ``hours`` are the
    mean rates of the busy hours."""

    demand: Mapping[str, Any] | None
    days: tuple[DayAhead, ...]
    hours: tuple[DemandAhead, ...] = ()


def days_by_objective(outlook: Outlook, objective_rate_per_second: float) -> tuple[DayAhead, ...]:
    """The days ahead as the verdict by a lag objective sees them: what it takes so far, scaled by each day's busiest
    hour, in place of the busiest minutes. The lower ends are as far below as those of the minutes."""
    if outlook.demand is None or not outlook.demand["busy_hour_per_second"]:
        return outlook.days
    scale = objective_rate_per_second / outlook.demand["busy_hour_per_second"]
    found = []
    for day in outlook.days:
        its = [hour for hour in outlook.hours if day.at <= hour.at < day.at + _DAY]
        busiest = max(its, key=lambda hour: hour.mean)
        low = day.low / day.peak if day.peak else 0.0
        found.append(DayAhead(day.at, busiest.mean * scale * low, busiest.mean * scale, busiest.upper * scale))
    return tuple(found)


def why_not(outlook: Outlook) -> str:
    """Why there is no forecast."""
    if outlook.demand is None:
        return "No forecast: there is no history of what arrives on this topic yet. It takes two days of it."
    return f"No forecast: {outlook.demand['reason'] or 'the newest one is too old'}."


def provenance(outlook: Outlook, now: datetime) -> str:
    """From how much history, how good it was, and by which models."""
    demand = outlook.demand
    if demand is None or not outlook.days:
        return why_not(outlook)
    history = duration(demand["history_hours"] * 3_600.0)
    said = (
        f"The busiest minute of each day, from {history} of history, made {since(demand['as_of'], now)} ago. The band "
        "holds 90 % of the outcomes."
    )
    if demand["mase"] is not None and demand["baseline_mase"] is not None and demand["tested_days"] is not None:
        said += (
            f" Compared with what came, up to {duration(demand['tested_days'] * 86_400.0)} ahead, the mean error of "
            f"the hourly rates was {demand['mase']:.2f}, that of simply repeating the last week "
            f"{demand['baseline_mase']:.2f}. Weights of the models: {demand['models']}."
        )
    return said
