"""How many threads, nodes and partitions does a workload need? Every input is editable and in the address."""

import streamlit as st

from lagwise.domain.sizing_advice import advise
from lagwise.domain.sizing_ranges import OutOfRange
from lagwise_dashboard import literal, settings
from lagwise_dashboard.components import capacity_answer, capacity_group, capacity_inputs, freshness, page
from lagwise_dashboard.components.boundary import boundary
from lagwise_dashboard.components.capacity_group import Chosen


def body() -> None:
    now = settings.now()
    # Without a lake, or with a broken one, the page still calculates.
    fresh = None
    with boundary():
        fresh = freshness.read(now)
        freshness.strip(fresh)
    chosen = Chosen()
    with boundary():
        chosen = capacity_group.choose(fresh, now)
    st.subheader("What it takes", anchor=False)
    left, right = st.columns([1, 2], gap="large")
    with left:
        try:
            workload = capacity_inputs.show(chosen.known)
        except OutOfRange as error:
            right.error(literal.markdown(capacity_inputs.complaint(error)), icon=":material/error:")
            return
    advice = advise(workload)
    with right:
        capacity_answer.show(advice)
    capacity_answer.reasons(advice)


page.show("Capacity", body, help_text="How many threads, nodes and partitions a workload needs, and why.")
