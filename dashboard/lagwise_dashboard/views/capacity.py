"""How many threads, nodes and partitions does a workload need? Every input is editable and in the address."""

from datetime import datetime

import streamlit as st

from lagwise.domain.capacity.outlook import Outlook
from lagwise.domain.sizing.advice import advise
from lagwise.domain.sizing.known_workload import downstream_of, task_slots_of
from lagwise.domain.sizing.ramp_plan import ramp_to
from lagwise.domain.sizing.ranges import OutOfRange
from lagwise_dashboard import literal, settings
from lagwise_dashboard.cache import ask
from lagwise_dashboard.components import (
    capacity_answer,
    capacity_export,
    capacity_forecast,
    capacity_group,
    capacity_inputs,
    capacity_ramp,
    capacity_scenarios,
    capacity_what_if,
    freshness,
    page,
)
from lagwise_dashboard.components.boundary import boundary
from lagwise_dashboard.components.capacity_group import Chosen
from lagwise_dashboard.components.capacity_inputs import Start
from lagwise_dashboard.queries import capacity as queries
from lagwise_dashboard.queries.base import Row
from lagwise_dashboard.report.contents import Report


def body() -> None:
    capacity_export.keep(_report(settings.now()))


def _report(now: datetime) -> Report | None:
    """Draws the page; what it shows, or None where the inputs do not fit together."""
    # Without a lake, or with a broken one, the page still calculates.
    fresh = None
    with boundary():
        fresh = freshness.read(now)
        freshness.strip(fresh)
    chosen = Chosen()
    with boundary():
        chosen = capacity_group.choose(fresh, now)
    target = settings.config().analysis.capacity.target_utilisation
    outlook = None
    if chosen.row is not None:
        with boundary():
            outlook = _outlook(chosen.row, target, now)
    st.subheader("What it takes", anchor=False)
    left, right = st.columns([1, 2], gap="large")
    with left:
        try:
            asked = capacity_inputs.show(chosen.start or Start.example(target))
        except OutOfRange as error:
            right.error(literal.markdown(capacity_inputs.complaint(error)), icon=":material/error:")
            return None
    if asked.workload is None:
        with right:
            capacity_answer.missing(asked.missing)
        return Report(
            advice=None,
            missing=asked.missing,
            row=chosen.row,
            outlook=outlook,
            target_utilisation=target,
            now=now,
        )
    advice = advise(asked.workload, None if asked.assumes_times else downstream_of(chosen.row))
    with right:
        capacity_answer.show(advice, task_slots_of(chosen.row, advice))
    running, interruption, what_if = capacity_what_if.show(advice, chosen.row)
    scenarios = capacity_scenarios.show(advice, interruption)
    ramp = ramp_to(advice, running.threads_per_node if running else None)
    capacity_ramp.show(ramp)
    capacity_answer.reasons(advice, asked.sources)
    return Report(
        advice=advice,
        sources=asked.sources,
        row=chosen.row,
        outlook=outlook,
        what_if=what_if,
        scenarios=scenarios,
        ramp=ramp,
        target_utilisation=target,
        now=now,
    )


def _outlook(row: Row, target: float, now: datetime) -> Outlook:
    # By the minute, so that browsers that look at the same moment share one answer.
    outlook = ask(queries.outlook, row["cluster"], row["topic"], now.replace(second=0, microsecond=0))
    capacity_forecast.show(row, outlook, target, now)
    return outlook


page.show(
    "Capacity",
    body,
    below=capacity_export.show,
    help_text="How many threads, nodes and partitions a workload needs, and why.",
)
