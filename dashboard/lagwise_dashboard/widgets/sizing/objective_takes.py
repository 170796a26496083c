"""What the lag objective of a workload takes, beside its peak."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import streamlit as st

from lagwise.domain import humanise
from lagwise.domain.capacity.objective_demand import why_unknown
from lagwise.domain.capacity.outlook import Outlook
from lagwise.domain.humanise import significant
from lagwise.domain.sizing.figures import by_objective
from lagwise.domain.sizing.group_workload import as_planned
from lagwise.tables.topic_facts import objective_takes
from lagwise_dashboard import escaping


class ObjectiveTakes(NamedTuple):
    """The least capacity that keeps the objective, and what decides it; None is not known, and why."""

    rate_per_second: float | None
    source: str


def of(known: ObjectiveTakes, typed_seconds: float | None, outlook: Outlook | None) -> ObjectiveTakes:
    """What is known of the group, or what the objective that was entered takes of its topic."""
    demand = outlook.demand if outlook is not None else None
    if outlook is not None and demand is not None and typed_seconds is not None:
        takes = objective_takes(demand, typed_seconds, outlook.hours)
        known = ObjectiveTakes(takes.planned_per_second if takes else None, takes.planned_evidence if takes else "")
    if known.rate_per_second is None:
        return ObjectiveTakes(None, why_unknown(demand["minutes"] if demand is not None else None))
    return ObjectiveTakes(as_planned({"objective_rate_per_second": known.rate_per_second}).popitem()[1], known.source)


def show(takes: ObjectiveTakes, values: Mapping[str, Any], *, with_forecast: bool) -> None:
    """``By the objective of 5 min: 340/s · by the highest minute: 1,430/s``, and what decides the first of them.
    ``with_forecast``: both allow for what is forecast, and so are more than what was needed so far."""
    peak = values.get("peak_rate_per_second")
    if peak is None:
        return
    rate = humanise.DASH if takes.rate_per_second is None else f"{significant(takes.rate_per_second)}/s"
    both = f"{by_objective(values.get('objective_seconds'))}: {rate} · by the highest minute: {significant(peak)}/s"
    both = f"with the forecast, {both}" if with_forecast else both
    st.markdown(escaping.markdown(both[0].upper() + both[1:]))
    said = f"What the objective takes: {takes.source}."
    if takes.rate_per_second is not None:
        said += (
            " The advice carries that. The verdict goes by what is expected: it may be “enough” where the advice asks "
            "for more."
        )
    st.caption(escaping.markdown(said))
