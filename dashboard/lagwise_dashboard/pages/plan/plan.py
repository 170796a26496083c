"""How many threads, nodes and partitions does a workload need? Every input is editable and in the address."""

from dataclasses import replace
from datetime import datetime

import streamlit as st

from lagwise.domain.humanise import count
from lagwise.domain.sizing.advice import advise
from lagwise.domain.sizing.group_workload import downstream_of, task_slots_of
from lagwise.domain.sizing.ramp_plan import ramp_to
from lagwise.domain.sizing.ranges import OutOfRange
from lagwise.links import pages
from lagwise_dashboard import address, appearance, context, escaping
from lagwise_dashboard.pages.plan import inputs, scenarios
from lagwise_dashboard.report.capacity_report import CapacityReport
from lagwise_dashboard.widgets import freshness, page
from lagwise_dashboard.widgets.error_boundary import boundary
from lagwise_dashboard.widgets.sizing import advice, choose_group, export, what_if
from lagwise_dashboard.widgets.sizing.choose_group import SelectedGroup
from lagwise_dashboard.widgets.sizing.starting_values import StartingValues


def body() -> None:
    export.offer(_report(context.now()))


def _report(now: datetime) -> CapacityReport | None:
    """Draws the page; what it shows, or None where the inputs do not fit together."""
    # Without a lake, or with a broken one, the page still calculates.
    selected, outlook = SelectedGroup(), None
    with boundary():
        fresh = freshness.read(now)
        freshness.strip(fresh)
        if fresh.as_of is not None:
            selected = _selected(now)
            outlook = choose_group.outlook_of(selected, now)
    if not selected.is_known:
        st.caption("The grey values below are an example.")
    left, right = st.columns([1, 2], gap="large")
    with left:
        try:
            sizing_inputs = inputs.show(StartingValues.of(selected, now), outlook)
        except OutOfRange as error:
            with right:
                advice.complaint(error)
            return None
    known = choose_group.known(selected, outlook, now)
    if sizing_inputs.workload is None:
        with right:
            advice.missing(sizing_inputs.missing)
        return replace(known, missing=sizing_inputs.missing)
    sizing = advise(sizing_inputs.workload, None if sizing_inputs.assumes_times else downstream_of(selected.row))
    with right:
        advice.show(sizing, task_slots_of(selected.row, sizing))
    running, interruption, simulated = what_if.show(sizing, selected.row)
    compared = scenarios.show(sizing, interruption)
    steps = ramp_to(sizing, running.threads_per_node if running else None)
    advice.show_ramp(steps)
    advice.reasons(sizing, sizing_inputs.sources)
    return replace(
        known, advice=sizing, sources=sizing_inputs.sources, what_if=simulated, scenarios=compared, ramp=steps
    )


def _selected(now: datetime) -> SelectedGroup:
    """The group whose numbers the inputs start with, and what is known of its load."""
    selected = choose_group.choose(
        now,
        placeholder="No group: start with an example",
        resets=(*inputs.OF_THE_GROUP, *what_if.OF_THE_GROUP),
    )
    if not selected.is_known:
        return selected
    row, load = selected.row, selected.load
    with st.container(horizontal=True, vertical_alignment="center"):
        if row is not None:
            label = appearance.of_capacity_verdict(row["verdict"]).label
            st.markdown(f"**{escaping.markdown(label)}** &nbsp; {escaping.markdown(row['sentence'])}", width="content")
        address.page_link(pages.CAPACITY, "Its capacity", icon=":material/speed:")
    text = choose_group.provenance(selected, now)
    if load is not None and load.lag:
        text += f" Its lag of {count(load.lag)} does not count as a backlog here unless you enter it."
    st.caption(text)
    return selected


page.show(
    "Plan a new workload",
    body,
    below=export.show,
    help_text="How many threads, nodes and partitions a workload needs, and why.",
)
