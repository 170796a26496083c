"""Which group runs out of capacity first; what one can do, until when that is enough, and what would be.

All numbers are measured ones. What others would take is asked on the page Plan.
"""

from dataclasses import replace
from datetime import datetime

import streamlit as st

from lagwise.domain.sizing.advice import advise
from lagwise.domain.sizing.group_workload import downstream_of, missing_of, task_slots_of, workload_from
from lagwise.domain.sizing.ramp_plan import ramp_to
from lagwise.domain.sizing.ranges import OutOfRange
from lagwise.domain.sizing.workload import SizeBy
from lagwise.links import pages, parameters
from lagwise_dashboard import address, context
from lagwise_dashboard.pages.capacity import capacity_verdict, headroom
from lagwise_dashboard.report.capacity_report import CapacityReport
from lagwise_dashboard.widgets import empty_page, page
from lagwise_dashboard.widgets.error_boundary import boundary
from lagwise_dashboard.widgets.sizing import advice, choose_group, export, objective_takes, what_if
from lagwise_dashboard.widgets.sizing.choose_group import SelectedGroup
from lagwise_dashboard.widgets.sizing.objective_takes import ObjectiveTakes
from lagwise_dashboard.widgets.sizing.starting_values import StartingValues

_PLAN_ICON = ":material/calculate:"


def body() -> None:
    report = None
    with boundary():
        report = _report(context.now())
    export.offer(report)


def _report(now: datetime) -> CapacityReport | None:
    """Draws the page; what it shows of a group, or None without one."""
    if empty_page.fresh_data(now) is None:
        return None
    selected = choose_group.choose(now, placeholder="All groups; type a part of a name", resets=what_if.OF_THE_GROUP)
    if selected.name is None:
        headroom.show(now)
        address.page_link(pages.PLAN, "Plan a new workload", icon=_PLAN_ICON)
    return _of_group(selected, now) if selected.is_known else None


def _of_group(selected: SelectedGroup, now: datetime) -> CapacityReport:
    row = selected.row
    if row is None:
        st.info(
            "**No verdict on its capacity yet.** The analysis produces one a few minutes after it first sees a group.",
            icon=":material/hourglass_top:",
        )
    else:
        capacity_verdict.show(row, now)
    st.caption(choose_group.provenance(selected, now))
    outlook = None
    with boundary():
        outlook = choose_group.outlook_of(selected, now)
        if row is not None and outlook is not None:
            target = context.config().analysis.capacity.target_utilisation
            capacity_verdict.show_forecast(row, outlook, target, now)
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.subheader("What it takes", anchor=False, width="content")
        typed = {parameter: address.get(parameter) for parameter in parameters.OF_WHAT_IF}
        address.page_link(pages.PLAN, "Plan with these numbers", icon=_PLAN_ICON, values=typed)
    return _with_advice(choose_group.known(selected, outlook, now), StartingValues.of(selected, now))


def _with_advice(known: CapacityReport, start: StartingValues) -> CapacityReport:
    """Draw the advice for what is measured, without assumptions, and what if; the report with them."""
    values, sources = dict(start.values), dict(start.sources)
    if known.row is not None:
        rate, source = values.get("objective_rate_per_second"), sources.get("objective_rate_per_second", "")
        takes = objective_takes.of(ObjectiveTakes(rate, source), None, known.outlook)
        values["objective_rate_per_second"], sources["objective_rate_per_second"] = takes
        objective_takes.show(takes, values, with_forecast=bool(known.outlook and known.outlook.days))
    values["size_by"], sources["size_by"] = SizeBy(context.config().analysis.capacity.size_by), "settings"
    if values.get("hottest_share") is None:
        sources["hottest_share"] = "taken as even"
    if missing := missing_of(values):
        advice.missing(missing)
        st.caption("*Plan with these numbers* has a field for each.")
        return replace(known, missing=missing)
    try:
        workload = workload_from(values)
    except OutOfRange as error:
        advice.complaint(error)
        return known
    sizing = advise(workload, downstream_of(known.row))
    advice.show(sizing, task_slots_of(known.row, sizing))
    running, _, simulated = what_if.show(sizing, known.row)
    steps = ramp_to(sizing, running.threads_per_node if running else None)
    advice.show_ramp(steps)
    advice.reasons(sizing, sources)
    return replace(known, advice=sizing, sources=sources, what_if=simulated, ramp=steps)


def _below() -> None:
    if address.get(parameters.GROUP) is not None:
        export.show()


page.show(
    "Capacity",
    body,
    below=_below,
    help_text="Which group runs out of capacity first, what a group can do, and what it takes.",
)
