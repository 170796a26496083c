"""``lagwise size GROUP --horizon``: the demand up to another day than is planned for, and the verdict there."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import click

from lagwise.domain.capacity.verdict import CanDo, DemandAhead, SetUp, judge_capacity
from lagwise.domain.humanise import duration
from lagwise.domain.sizing.advice import SizingAdvice
from lagwise.domain.sizing.workload import Unit
from lagwise.platform.logs import clean
from lagwise.tables.forecast_reader import demand_ahead
from lagwise.tables.store import Lake


def ahead_within(lake: Lake, row: Mapping[str, Any], horizon_seconds: float, now: datetime) -> tuple[DemandAhead, ...]:
    """The forecast of the topic's busiest minutes up to then. UsageError where it does not reach so far."""
    ahead = demand_ahead(lake, now).get((row["cluster"], row["topic"]), ())
    option = "--horizon"
    if not ahead:
        raise click.UsageError(
            f"there is no forecast of {clean(row['topic'])} yet, so {option} says nothing: leave it out, or type in "
            "--peak."
        )
    until = now + timedelta(seconds=horizon_seconds)
    reaches = (ahead[-1].at - now).total_seconds()
    # Forecast are whole days, and the newest may have been made yesterday.
    if horizon_seconds > reaches + 2 * 86_400.0:
        raise click.UsageError(
            f"the forecast of {clean(row['topic'])} reaches {duration(reaches)} ahead: {option} may be that at most; "
            "`analysis.forecast.horizon_days` sets how far it goes."
        )
    within = tuple(point for point in ahead if point.at <= until)
    if not within:
        raise click.UsageError(
            f"nothing is forecast before {ahead[0].at:%Y-%m-%d %H:%M} UTC: {option} must reach that."
        )
    return within


def highest(row: Mapping[str, Any], ahead: tuple[DemandAhead, ...]) -> tuple[float, str]:
    """Messages per second to plan for, and where that number comes from."""
    forecast = max(ahead, key=lambda point: point.mean)
    if (peak := row["peak_rate_per_second"]) is not None and peak >= forecast.mean:
        return peak, "history of minutes: none is forecast to be higher by then"
    return forecast.mean, f"forecast, for {forecast.at:%Y-%m-%d}"


def judged_within(
    row: Mapping[str, Any],
    ahead: tuple[DemandAhead, ...],
    advice: SizingAdvice | None,
    target_utilisation: float,
    load_test: str | None,
) -> dict[str, Any]:
    """The row with the verdict that holds when no more than this is ahead."""
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
        row["peak_rate_per_second"],
        ahead,
        target_utilisation=target_utilisation,
        running=running,
        advised=advised,
        load_test=load_test,
    )
    told = {"verdict": str(judgement.verdict), "sentence": judgement.sentence, "enough_until": judgement.enough_until}
    return {**row, **told}
