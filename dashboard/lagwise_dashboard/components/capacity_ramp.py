"""How to get from the threads that run to those that are advised."""

import streamlit as st

from lagwise.domain.sizing.ramp_plan import RampStep
from lagwise_dashboard import literal
from lagwise_dashboard.components import tables
from lagwise_dashboard.report.ramp import columns


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
