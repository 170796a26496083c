"""What if all stand still, or every node is restarted: the advised set-up and the running one side by side."""

from collections.abc import Sequence

import streamlit as st

from lagwise.domain.simulation.scenario import Interruption
from lagwise.domain.simulation.what_if import (
    DEFAULT_OUTAGE_SECONDS,
    SetUp,
    WhatIf,
    outage,
    rolling_restart,
    say_outcome,
    set_ups,
    try_set_ups,
)
from lagwise.domain.sizing.advice import SizingAdvice
from lagwise.domain.sizing.known_workload import running_of
from lagwise.domain.sizing.ranges import OutOfRange
from lagwise.domain.sizing.workload import Workload
from lagwise_dashboard import literal, plot_theme
from lagwise_dashboard.queries.base import Row
from lagwise_dashboard.report import what_if_chart

_KIND, _OUTAGE, _RESTART = "capacity_what", "capacity_outage_min", "capacity_node_restart_s"
_NODES, _THREADS = "capacity_running_nodes", "capacity_running_threads"
_ALL, _ROLLING = "outage", "rolling-restart"


def show(advice: SizingAdvice, row: Row | None) -> tuple[SetUp | None, Interruption, WhatIf | None]:
    """Draw the inputs and the answer: what runs (None is not known), what happens, and what comes of it."""
    st.subheader("What if", anchor=False)
    left, right = st.columns([1, 2], gap="large")
    with left:
        interruption, question = _interruption()
        running, tried = set_ups(advice, _running(row))
    with right:
        return running, interruption, _answer(advice.workload, tried, interruption, question)


def _answer(workload: Workload, tried: Sequence[SetUp], interruption: Interruption, question: str) -> WhatIf | None:
    if not tried:
        st.caption("There is no advice to try. Type in what runs.")
        return None
    try:
        asked = try_set_ups(workload, tried, interruption, question)
    except OutOfRange as error:
        st.caption(literal.markdown(f"This cannot be simulated: {error}"))
        return None
    st.plotly_chart(
        what_if_chart.chart(asked),
        key="capacity_what_if",
        config=plot_theme.CONFIG,
        alt="Age of the oldest unread message over time, for what runs and for what is advised",
    )
    st.markdown("\n".join(f"- **{label}.** {literal.markdown(say_outcome(o))}" for label, o in asked.outcomes))
    st.caption(
        f"{question} At peak all the time, everything else as above. What chance does to single messages is not in it."
    )
    return asked


def _interruption() -> tuple[Interruption, str]:
    kind = st.selectbox(
        "What happens",
        [_ALL, _ROLLING],
        key=_KIND,
        bind="query-params",
        help="outage: all nodes read nothing for a while. rolling-restart: one node after the other is away, and the "
        "others read its partitions meanwhile.",
    )
    left, right = st.columns(2)
    minutes = left.number_input(
        "Outage (min)",
        min_value=0.0,
        max_value=10_080.0,
        value=DEFAULT_OUTAGE_SECONDS / 60.0,
        step=10.0,
        format="%g",
        key=_OUTAGE,
        bind="query-params",
        help="How long nothing is read.",
    )
    restart = right.number_input(
        "A node's restart (s)",
        min_value=0.0,
        max_value=86_400.0,
        value=60.0,
        step=10.0,
        format="%g",
        key=_RESTART,
        bind="query-params",
        help="How long each node is away in a rolling restart.",
    )
    return rolling_restart(restart) if kind == _ROLLING else outage(minutes * 60.0)


def _running(row: Row | None) -> tuple[int | None, int | None]:
    """What runs: as typed, or as the group's row knows it."""
    nodes_known, threads_known = running_of(row)
    left, right = st.columns(2)
    nodes = left.number_input(
        "Running nodes",
        min_value=1,
        max_value=1_000,
        value=None,
        step=1,
        placeholder="not known" if nodes_known is None else f"{nodes_known}, from the group",
        key=_NODES,
        bind="query-params",
        help="Nodes that run now, to compare the advice with.",
    )
    threads = right.number_input(
        "Threads on each",
        min_value=1,
        max_value=10_000,
        value=None,
        step=1,
        placeholder="not known" if threads_known is None else f"{threads_known}, from the group",
        key=_THREADS,
        bind="query-params",
    )
    return nodes or nodes_known, threads or threads_known


def forget() -> None:
    """Empty the fields that a group fills."""
    for key in (_NODES, _THREADS):
        st.session_state[key] = None
