"""The group of ``lagwise size GROUP``: its row of `capacity`, and its demand and verdict up to a horizon."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from lagwise.domain.capacity.objective_demand import PlannedLoad, why_unknown
from lagwise.domain.capacity.observed import ObservedCapacity, Undecided
from lagwise.domain.capacity.observed_text import load_test_of
from lagwise.domain.capacity.outlook import Outlook
from lagwise.domain.capacity.verdict import CanDo, DemandAhead, SetUp, judge_capacity
from lagwise.domain.humanise import duration
from lagwise.domain.sizing.advice import SizingAdvice
from lagwise.domain.sizing.downstream import DownstreamFull
from lagwise.domain.sizing.group_workload import as_planned, downstream_of, known_values
from lagwise.domain.sizing.workload import SizeBy, Unit
from lagwise.platform.logs import clean
from lagwise.tables.capacity import OBSERVED_CAPACITY
from lagwise.tables.store import Lake
from lagwise.tables.topic_facts import NOTHING_AHEAD, TopicAhead, demand_ahead, objective_takes
from lagwise_app.size.bad_question import BadQuestion


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredGroup:
    """What the lake knows of a group."""

    #: Its row of `capacity`.
    row: dict[str, Any]
    #: The fields of a Workload that are known.
    inputs: Mapping[str, Any]
    #: The source of each of them.
    sources: Mapping[str, str]
    outlook: Outlook
    #: What must be done where something else is asked than the row was judged by: another horizon or objective, or
    #: the peak; None where not.
    load: PlannedLoad | None
    #: The load test that would show its capacity; None where the capacity is known.
    load_test: str | None
    #: Evidence that the downstream is full; None where that is unknown or the inputs assume another downstream.
    downstream: DownstreamFull | None


def load_measured_group(
    lake: Lake,
    row: dict[str, Any],
    *,
    horizon_seconds: float | None,
    objective_seconds: float | None,
    size_by: SizeBy,
    target_utilisation: float,
    now: datetime,
) -> MeasuredGroup:
    """What is known of the group with this row of `capacity`; ``objective_seconds`` replaces its own lag objective.

    Raises LakeError, and BadQuestion where the horizon does not fit the forecast.
    """
    from lagwise_dashboard.queries import capacity as queries

    row = {**row}
    inputs, sources = known_values(row, now)
    inputs["target_utilisation"], sources["target_utilisation"] = target_utilisation, "settings"
    inputs["size_by"] = size_by
    outlook, load = queries.outlook(lake, row["cluster"], row["topic"], now), None
    decides = SizeBy.PEAK if row["objective_rate_per_second"] is None else size_by
    if horizon_seconds is not None or objective_seconds is not None or decides != row["size_by"]:
        ahead = demand_ahead(lake, now).get((row["cluster"], row["topic"]), NOTHING_AHEAD)
        if horizon_seconds is not None:
            until = now + timedelta(seconds=horizon_seconds)
            ahead = _ahead_within(row, ahead, horizon_seconds, now)
            inputs["peak_rate_per_second"], sources["peak_rate_per_second"] = _planned_peak(row, ahead.minutes)
            outlook = _outlook_within(outlook, ahead, until)
        asked = row["objective_seconds"] if objective_seconds is None else objective_seconds
        takes = objective_takes(outlook.demand, asked, ahead.hours) if outlook.demand and asked is not None else None
        load = PlannedLoad.of(row["peak_rate_per_second"], ahead.minutes, takes, size_by)
        if takes is not None:
            row |= {
                "objective_seconds": asked,
                "objective_rate_per_second": takes.recorded.rate_per_second,
                "planned_objective_rate_per_second": takes.planned_per_second,
            }
            inputs |= as_planned({"objective_rate_per_second": takes.planned_per_second})
            inputs["objective_seconds"] = asked
            sources["objective_rate_per_second"] = takes.planned_evidence
    if inputs.get("objective_rate_per_second") is None:
        sources["objective_rate_per_second"] = why_unknown(outlook.demand["minutes"] if outlook.demand else None)
    return MeasuredGroup(
        row=row,
        inputs=inputs,
        sources=sources,
        outlook=outlook,
        load=load,
        load_test=_load_test_for(lake, row, _planned_rate(inputs), target_utilisation),
        downstream=downstream_of(row),
    )


def _load_test_for(lake: Lake, row: Mapping[str, Any], peak_per_second: float | None, target: float) -> str | None:
    """The load test that shows whether the group can handle such a peak; None where its capacity is known."""
    if peak_per_second is None:
        return None
    found = lake.query(
        """select reason, at_least_per_second, missing_seconds from observed_capacity
        where cluster = ? and "group" = ? and topic = ? and member is null""",
        [row["cluster"], row["group"], row["topic"]],
        over=[OBSERVED_CAPACITY],
    ).to_pylist()
    observed = None
    if found:
        of_group = found[0]
        observed = ObservedCapacity(
            reason=Undecided(of_group["reason"]) if of_group["reason"] else None,
            at_least_per_second=of_group["at_least_per_second"],
            missing_seconds=of_group["missing_seconds"] or 0.0,
        )
    is_known = row["capacity_high_per_second"] is not None
    return load_test_of(is_known, observed, row["produce_rate_per_second"], peak_per_second / target)


def _ahead_within(row: Mapping[str, Any], ahead: TopicAhead, horizon_seconds: float, now: datetime) -> TopicAhead:
    """The forecast up to the horizon. Raises BadQuestion where it is shorter."""
    if not ahead.minutes:
        raise BadQuestion(
            f"there is no forecast of {clean(row['topic'])} yet: leave the horizon out, or give the peak."
        )
    until = now + timedelta(seconds=horizon_seconds)
    reaches = (ahead.minutes[-1].at - now).total_seconds()
    # Forecasts are in whole days, and the newest may be from yesterday.
    if horizon_seconds > reaches + 2 * 86_400.0:
        raise BadQuestion(
            f"the forecast of {clean(row['topic'])} reaches {duration(reaches)} ahead: the horizon must not exceed "
            "that; `analysis.forecast.horizon_days` extends it."
        )
    within = TopicAhead(*(tuple(point for point in points if point.at <= until) for points in ahead))
    if not within.minutes:
        raise BadQuestion(
            f"the forecast begins at {ahead.minutes[0].at:%Y-%m-%d %H:%M} UTC: the horizon must reach that."
        )
    return within


def _outlook_within(outlook: Outlook, ahead: TopicAhead, until: datetime) -> Outlook:
    """The outlook up to a nearer horizon: what an objective takes is bounded by the peak that is planned with then."""
    demand = outlook.demand
    if demand is not None:
        demand = {
            **demand,
            "forecast_peak_per_second": max(point.mean for point in ahead.minutes),
            "forecast_peak_high_per_second": max(point.upper for point in ahead.minutes),
        }
    days = tuple(day for day in outlook.days if day.at <= until)
    return replace(outlook, demand=demand, days=days, hours=ahead.hours)


def _planned_peak(row: Mapping[str, Any], ahead: tuple[DemandAhead, ...]) -> tuple[float, str]:
    """Messages per second to plan for, and the source of that number."""
    forecast = max(ahead, key=lambda point: point.mean)
    if (peak := row["peak_rate_per_second"]) is not None and peak >= forecast.mean:
        return peak, "history of minutes: none is forecast to be higher by then"
    return forecast.mean, f"forecast, for {forecast.at:%Y-%m-%d}"


def _planned_rate(inputs: Mapping[str, Any]) -> float | None:
    """Messages per second that are sized with."""
    takes: float | None = inputs.get("objective_rate_per_second")
    return takes if takes is not None and inputs["size_by"] is SizeBy.OBJECTIVE else inputs.get("peak_rate_per_second")


def row_as_asked(known: MeasuredGroup, advice: SizingAdvice | None, target_utilisation: float) -> dict[str, Any]:
    """The row, with the verdict for the load that is asked about where that is another one than it was judged by."""
    row, load = known.row, known.load
    if load is None:
        return row
    low = row["capacity_low_per_second"]
    by_nodes = row["threads_per_node"] is not None and row["cores"] is not None
    running = (
        SetUp(row["nodes"], row["partitions"], row["threads_per_node"])
        if by_nodes
        else SetUp(row["members"], row["partitions"], unit=Unit(row["unit"]))
    )
    advised = None
    if advice is not None and (triple := advice.triple) is not None:
        threads = triple.threads_per_node if by_nodes else None
        advised = SetUp(triple.nodes, triple.partitions, threads, running.unit)
    judgement = judge_capacity(
        None if low is None else CanDo(low, row["capacity_high_per_second"]),
        load.now_per_second,
        load.ahead,
        target_utilisation=target_utilisation,
        running=running,
        advised=advised,
        load_test=known.load_test,
        objective_seconds=load.objective_seconds,
    )
    return {
        **row,
        "verdict": str(judgement.verdict),
        "sentence": judgement.sentence,
        "is_exceeded": judgement.is_exceeded,
        "enough_until": judgement.enough_until,
        "size_by": str(SizeBy.PEAK if load.objective_seconds is None else SizeBy.OBJECTIVE),
        "demand_per_second": load.now_per_second,
        "forecast_demand_per_second": load.highest_ahead_per_second,
        "forecast_demand_high_per_second": load.highest_upper_per_second,
    }
