"""What if all nodes stop, or every node is restarted: the advised set-up and the running one side by side."""

from collections.abc import Sequence

import streamlit as st

from lagwise.domain.simulation.scenario import Interruption
from lagwise.domain.simulation.what_if import (
    WhatIf,
    WhatIfSetUp,
    outage,
    outcome_sentence,
    rolling_restart,
    running_set_up,
    set_ups,
    try_set_ups,
)
from lagwise.domain.sizing.advice import SizingAdvice
from lagwise.domain.sizing.group_workload import RunningNodes, running_of
from lagwise.domain.sizing.ranges import OutOfRange
from lagwise.domain.sizing.workload import Workload
from lagwise.links import parameters
from lagwise_dashboard import address, escaping
from lagwise_dashboard.queries.base import Row
from lagwise_dashboard.report import what_if_chart
from lagwise_dashboard.widgets import charts
from lagwise_dashboard.widgets.number_input import number_input

_OUTAGE, _ROLLING = "outage", "rolling-restart"
#: What a group fills: of another group it is another number.
OF_THE_GROUP = (parameters.RUNNING_NODES, parameters.RUNNING_THREADS)


def show(advice: SizingAdvice, row: Row | None) -> tuple[WhatIfSetUp | None, Interruption, WhatIf | None]:
    """Draw the inputs and the answer: what runs (None is not known), what happens, and what comes of it."""
    st.subheader("What if", anchor=False)
    left, right = st.columns([1, 2], gap="large")
    with left:
        interruption = _interruption()
        running = running_set_up(_running(row))
        tried = set_ups(advice, running)
    with right:
        return running, interruption, _answer(advice.workload, tried, interruption)


def _answer(workload: Workload, tried: Sequence[WhatIfSetUp], interruption: Interruption) -> WhatIf | None:
    if not tried:
        st.caption("There is no advice to simulate. Enter what runs now.")
        return None
    try:
        what_if = try_set_ups(workload, tried, interruption)
    except OutOfRange as error:
        st.caption(escaping.markdown(f"This cannot be simulated: {error}"))
        return None
    charts.draw(
        what_if_chart.chart(what_if),
        key="capacity_what_if",
        alt="Age of the oldest unread message over time, for what runs and for what is advised",
    )
    st.markdown("\n".join(f"- **{label}.** {escaping.markdown(outcome_sentence(o))}" for label, o in what_if.outcomes))
    load = "At the objective's rate" if workload.is_by_objective else "At peak"
    st.caption(
        f"{what_if.question} {load} throughout, everything else as above. Random variation of single messages is not "
        "simulated."
    )
    return what_if


def _interruption() -> Interruption:
    st.selectbox(
        "What happens",
        [_OUTAGE, _ROLLING],
        help="outage: no node reads for a while. rolling-restart: nodes restart one after another, and the others read "
        "their partitions meanwhile.",
        **address.bound(parameters.WHAT_IF),
    )
    left, right = st.columns(2)
    with left:
        minutes = number_input(parameters.OUTAGE, "Outage (min)", step=10.0, help="How long no node reads.")
    with right:
        restart = number_input(
            parameters.NODE_RESTART,
            "Node restart (s)",
            step=10.0,
            help="How long each node is away in a rolling restart.",
        )
    if address.get(parameters.WHAT_IF) == _ROLLING:
        return rolling_restart(restart or 0.0)
    return outage((minutes or 0.0) * 60.0)


def _running(row: Row | None) -> RunningNodes:
    """What runs: as typed, or as the group's row knows it."""
    known = running_of(row)
    left, right = st.columns(2)
    with left:
        nodes = number_input(
            parameters.RUNNING_NODES,
            "Running nodes",
            step=1,
            placeholder="unknown" if known.nodes is None else f"{known.nodes}, from the group",
            help="Nodes that run now, to compare the advice with.",
        )
    with right:
        threads = number_input(
            parameters.RUNNING_THREADS,
            "Threads per node",
            step=1,
            placeholder="unknown" if known.threads_per_node is None else f"{known.threads_per_node}, from the group",
        )
    return RunningNodes(int(nodes) if nodes else known.nodes, int(threads) if threads else known.threads_per_node)
