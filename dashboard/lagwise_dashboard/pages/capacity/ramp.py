"""How to get from the threads that run to those that are advised."""

import streamlit as st

from lagwise.domain.sizing.ramp_plan import RampStep
from lagwise_dashboard import escaping
from lagwise_dashboard.report.ramp import columns
from lagwise_dashboard.widgets import grid


def show(plan: tuple[RampStep, ...]) -> None:
    """The table, and what to watch at every step; nothing where there is no plan."""
    if not plan:
        return
    st.subheader("How to get there", anchor=False)
    st.caption(
        "One node first, and each step under load: without a backlog a node only does what arrives. The steps for the "
        "threads of a node:"
    )
    grid.show(columns(plan), name="ramp", label="Steps from the threads that run to those that are advised")
    with st.expander("What to watch at each step"):
        st.markdown("\n".join(f"- {escaping.markdown(text)}" for text in plan[-1].watch))
