"""How to get from the threads that run to those that are advised, as a table."""

import streamlit as st

from lagwise.domain.sizing.advice import SizingAdvice
from lagwise.domain.sizing.ramp_plan import RampStep, ramp_plan
from lagwise.domain.sizing.words import say_number, say_share
from lagwise_dashboard import literal
from lagwise_dashboard.components import tables
from lagwise_dashboard.components.capacity_what_if import SetUp


def steps(advice: SizingAdvice, running: SetUp | None) -> tuple[RampStep, ...]:
    """The plan for one node; empty where nothing is to be changed, or it is not known what runs."""
    if running is None or advice.triple is None or running.threads_per_node == advice.triple.threads_per_node:
        return ()
    w = advice.workload
    return ramp_plan(
        w.cores,
        w.t1_seconds,
        w.t2_seconds,
        running_threads=running.threads_per_node,
        advised_threads=advice.triple.threads_per_node,
    )


def columns(plan: tuple[RampStep, ...]) -> dict[str, list[str]]:
    """The plan as it is shown."""
    return {
        "Threads": [f"{step.expected.threads:,}" for step in plan],
        "A node should do": [f"{say_number(step.expected.rate_per_second)}/s" for step in plan],
        "Cores busy": [say_share(step.expected.core_utilisation) for step in plan],
        "Gain": ["" if i == 0 else f"{say_number(step.gain_per_second)}/s" for i, step in enumerate(plan)],
        "When to go back": [step.stop for step in plan],
    }


def show(plan: tuple[RampStep, ...]) -> None:
    """The table, and what to watch at every step; nothing where there is no plan."""
    if not plan:
        return
    st.subheader("How to get there", anchor=False)
    st.caption(
        "One node first, and each step under load: without a backlog a node only does what arrives. The steps for the "
        "threads of a node:"
    )
    st.dataframe(
        tables.table(columns(plan)),
        key="capacity_ramp",
        hide_index=True,
        height=tables.height(len(plan)),
        row_height=tables.ROW_HEIGHT,
        alt="Steps from the threads that run to those that are advised",
        column_config={
            "Threads": tables.right_column(width=70),
            "A node should do": tables.right_column(width=120),
            "Cores busy": tables.right_column(width=84),
            "Gain": tables.right_column(width=76),
            "When to go back": st.column_config.TextColumn(width=780),
        },
    )
    with st.expander("What to watch at each step"):
        st.markdown("\n".join(f"- {literal.markdown(text)}" for text in plan[-1].watch))
