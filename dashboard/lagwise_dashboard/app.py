"""The dashboard's entry: its pages and their addresses. Started by ``lagwise dashboard``."""

from pathlib import Path

import streamlit as st

from lagwise_dashboard import identity
from lagwise_dashboard.components.boundary import boundary

_HERE = Path(__file__).resolve().parent

st.set_page_config(page_title="Lagwise", page_icon=str(_HERE / "assets" / "icon.png"), layout="wide")
st.logo(str(_HERE / "assets" / "lagwise.svg"), size="medium", link=None)
may_look = False
with boundary():
    identity.gate()
    may_look = True
if not may_look:  # who it is could not be told: what went wrong has been said
    st.stop()
st.navigation(
    [
        st.Page(
            "views/overview.py",
            title="Overview",
            icon=":material/format_list_bulleted:",
            url_path="overview",
            default=True,
            help="Who is in trouble: every consumer group, the worst first.",
        ),
        st.Page(
            "views/group.py",
            title="Group",
            icon=":material/monitoring:",
            url_path="group",
            help="One consumer group: its verdict, history, partitions, members, and what to do.",
        ),
        st.Page(
            "views/topic.py",
            title="Topic",
            icon=":material/topic:",
            url_path="topic",
            help="One topic: who reads it, retention against the slowest reader, what is written, and its partitions.",
        ),
        st.Page(
            "views/retention.py",
            title="Retention risk",
            icon=":material/hourglass_bottom:",
            url_path="retention",
            help="What will be lost, soonest first: records that retention deletes unread, and commits that expire.",
        ),
        st.Page(
            "views/rebalances.py",
            title="Rebalances",
            icon=":material/sync_alt:",
            url_path="rebalances",
            help="Which groups are being rebalanced, and who came, went and owned what.",
        ),
        st.Page(
            "views/alerts.py",
            title="Alerts",
            icon=":material/notifications:",
            url_path="alerts",
            help="What fires now, what fired before, and whether it was delivered.",
        ),
        st.Page(
            "views/capacity.py",
            title="Capacity",
            icon=":material/speed:",
            url_path="capacity",
            help="How many threads, nodes and partitions a workload needs.",
        ),
        st.Page(
            "views/health.py",
            title="Collector health",
            icon=":material/health_and_safety:",
            url_path="health",
            help="Whether Lagwise itself is well: age of the data, errors, durations, size of the lake.",
        ),
    ],
    position="top",
).run()
