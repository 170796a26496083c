"""What will arrive, day by day, and in words where that comes from and how good it was."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from lagwise.domain.capacity.objective_demand import ObjectiveDemand
from lagwise.domain.capacity.verdict import DemandAhead
from lagwise.domain.humanise import duration, since
from lagwise.domain.sizing.workload import SizeBy

_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class DayAhead:
    """The busiest minute of a day to come, or what a lag objective takes of it, messages per second, with the ends of
    its 90 % interval."""

    at: datetime
    low: float
    peak: float
    high: float


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a topic will be sent. ``demand`` is its row of that table; no ``days`` is no forecast of peaks. ``hours``
    are the mean rates of the busy hours, which a short history has, too. ``low_shares`` has, by their starts, the lower
    ends of their 90 % intervals as shares of the means."""

    demand: Mapping[str, Any] | None
    days: tuple[DayAhead, ...]
    hours: tuple[DemandAhead, ...] = ()
    low_shares: Mapping[datetime, float] = field(default_factory=dict)


def days_by_objective(outlook: Outlook, takes: ObjectiveDemand) -> tuple[DayAhead, ...]:
    """The days ahead as the verdict by a lag objective sees them, in place of the busiest minutes: of each day the
    most that it takes, and at the upper end. The lower end is as far below as that of the busy hour."""
    found = []
    for day in outlook.days:
        its = [point for point in takes.ahead if day.at <= point.at < day.at + _DAY]
        if not its:
            continue  # the last hour of the day has begun
        busiest = max(its, key=lambda point: point.mean)
        low = busiest.mean * min(1.0, outlook.low_shares.get(busiest.at, 0.0))
        found.append(DayAhead(day.at, low, busiest.mean, max(point.upper for point in its)))
    return tuple(found)


def why_not(outlook: Outlook) -> str:
    """Why there is no forecast."""
    if outlook.demand is None:
        return "No forecast: there is no history of what arrives on this topic yet. It takes two days of it."
    return f"No forecast: {outlook.demand['reason'] or 'the newest one is too old'}."


def provenance(outlook: Outlook, now: datetime, size_by: SizeBy = SizeBy.PEAK) -> str:
    """From how much history, how good it was, and by which models; of what the objective takes, or of the peaks."""
    demand = outlook.demand
    if demand is None or not outlook.days:
        return why_not(outlook)
    # It is made of whole hours: how old it is says what it knows, not when it was worked out.
    history = duration(demand["history_hours"] * 3_600.0)
    source = f"from {history} of history up to the last whole hour, which ended {since(demand['as_of'], now)} ago"
    if size_by is SizeBy.OBJECTIVE:
        said = (
            "The chart shows what the objective takes, scaled by how much busier the busy hours become: "
            f"{source}. The band holds 90 % of the outcomes for them; its upper end allows for longer bursts as well."
        )
    else:
        said = f"The busiest minute of each day, {source}. The band holds 90 % of the outcomes."
    if demand["mase"] is not None and demand["baseline_mase"] is not None and demand["tested_days"] is not None:
        said += (
            f" Tested against what arrived, up to {duration(demand['tested_days'] * 86_400.0)} ahead, the mean "
            f"error of the hourly rates was {demand['mase']:.2f} of the usual change from one week to the next, and "
            f"that of simply repeating the last week {demand['baseline_mase']:.2f} of it. Weights of the models: "
            f"{demand['models']}."
        )
    return said
