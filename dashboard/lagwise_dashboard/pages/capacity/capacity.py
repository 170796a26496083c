"""How many threads, nodes and partitions does a workload need? Every input is editable and in the address."""

from datetime import datetime

import streamlit as st

from lagwise.domain.capacity.outlook import Outlook
from lagwise.domain.sizing.advice import advise
from lagwise.domain.sizing.group_workload import downstream_of, task_slots_of
from lagwise.domain.sizing.ramp_plan import ramp_to
from lagwise.domain.sizing.ranges import OutOfRange
from lagwise_dashboard import context, escaping
from lagwise_dashboard.cache import ask
from lagwise_dashboard.pages.capacity import advice, capacity_verdict, choose_group, export, inputs, scenarios, what_if
from lagwise_dashboard.pages.capacity.choose_group import SelectedGroup
from lagwise_dashboard.pages.capacity.inputs import StartingValues
from lagwise_dashboard.queries import capacity as queries
from lagwise_dashboard.queries.base import Row
from lagwise_dashboard.report.capacity_report import CapacityReport
from lagwise_dashboard.widgets import freshness, page
from lagwise_dashboard.widgets.error_boundary import boundary


def body() -> None:
    export.offer(_report(context.now()))


def _report(now: datetime) -> CapacityReport | None:
    """Draws the page; what it shows, or None where the inputs do not fit together."""
    # Without a lake, or with a broken one, the page still calculates.
    fresh = None
    with boundary():
        fresh = freshness.read(now)
        freshness.strip(fresh)
    selected = SelectedGroup()
    with boundary():
        selected = choose_group.choose(fresh, now)
    target = context.config().analysis.capacity.target_utilisation
    outlook = None
    if selected.row is not None:
        with boundary():
            outlook = _outlook(selected.row, target, now)
    st.subheader("What it takes", anchor=False)
    left, right = st.columns([1, 2], gap="large")
    with left:
        try:
            sizing_inputs = inputs.show(selected.starting_values or StartingValues.example(target), outlook)
        except OutOfRange as error:
            right.error(escaping.markdown(inputs.complaint(error)), icon=":material/error:")
            return None
    if sizing_inputs.workload is None:
        with right:
            advice.missing(sizing_inputs.missing)
        return CapacityReport(
            advice=None,
            missing=sizing_inputs.missing,
            row=selected.row,
            outlook=outlook,
            target_utilisation=target,
            now=now,
        )
    sizing = advise(sizing_inputs.workload, None if sizing_inputs.assumes_times else downstream_of(selected.row))
    with right:
        advice.show(sizing, task_slots_of(selected.row, sizing))
    running, interruption, simulated = what_if.show(sizing, selected.row)
    compared = scenarios.show(sizing, interruption)
    steps = ramp_to(sizing, running.threads_per_node if running else None)
    advice.show_ramp(steps)
    advice.reasons(sizing, sizing_inputs.sources)
    return CapacityReport(
        advice=sizing,
        sources=sizing_inputs.sources,
        row=selected.row,
        outlook=outlook,
        what_if=simulated,
        scenarios=compared,
        ramp=steps,
        target_utilisation=target,
        now=now,
    )


def _outlook(row: Row, target: float, now: datetime) -> Outlook:
    # By the minute, so that browsers that look at the same moment share one answer.
    outlook = ask(queries.outlook, row["cluster"], row["topic"], now.replace(second=0, microsecond=0))
    capacity_verdict.show_forecast(row, outlook, target, now)
    return outlook


page.show(
    "Capacity",
    body,
    below=export.show,
    help_text="How many threads, nodes and partitions a workload needs, and why.",
)
