"""How many threads, nodes and partitions does a workload need? Every input is editable and in the address."""

from datetime import datetime, timedelta

import pandas as pd
import streamlit as st

from lagwise.domain import humanise
from lagwise.domain.sizing_advice import SizingAdvice, advise
from lagwise.domain.sizing_ranges import OutOfRange
from lagwise.domain.sizing_search import Binding, largest_peak_per_second
from lagwise.domain.sizing_words import explain_concurrency, say_duration, say_number, say_share
from lagwise_dashboard import literal, plot_theme, settings
from lagwise_dashboard.cache import ask
from lagwise_dashboard.components import capacity_chart, capacity_command, capacity_inputs, freshness, page, tables
from lagwise_dashboard.components.boundary import boundary
from lagwise_dashboard.components.freshness import Freshness
from lagwise_dashboard.queries import capacity as queries
from lagwise_dashboard.queries import overview
from lagwise_dashboard.queries.capacity import Load

_GROUP = "capacity_group"
#: A week has its busiest hour in it, mostly.
_SPAN = timedelta(days=7)
#: The span moves on in steps, so that browsers that look at the same moment share one answer.
_STEP_SECONDS = 60
_MOST_CHOICES = 1000

_BINDS = {
    Binding.CPU: "the cores",
    Binding.WAITING: "waiting",
    Binding.PARTITIONS: "partitions",
    Binding.SKEW: "the hottest partition",
    Binding.ORDERING: "the order",
    Binding.DEMAND: "only the demand",
}


def body() -> None:
    now = settings.now()
    # Without a lake, or with a broken one, the page still calculates.
    fresh = None
    with boundary():
        fresh = freshness.read(now)
        freshness.strip(fresh)
    left, right = st.columns([1, 2], gap="large")
    with left:
        load = None
        with boundary():
            load = _group(fresh, now)
        try:
            workload = capacity_inputs.show(load)
        except OutOfRange as error:
            right.error(literal.markdown(capacity_inputs.complaint(error)), icon=":material/error:")
            return
        st.caption("T1 and T2 are typed in for now: measured capacity comes with the probe.")
    advice = advise(workload)
    with right:
        _answer(advice)
        st.subheader("What one node does", anchor=False)
        st.plotly_chart(
            capacity_chart.chart(advice),
            key="capacity_chart",
            config=plot_theme.CONFIG,
            alt="Messages per second of one node over its number of threads: straight lines and what really comes out",
        )
        _points(advice)
    _reasons(advice)


def _group(fresh: Freshness | None, now: datetime) -> Load | None:
    """Choose a group; its load."""
    if fresh is None or fresh.as_of is None:
        st.caption("No group is known yet. What stands grey in the fields below is an example.")
        return None
    known = [f"{r['cluster']}/{r['group']}" for r in ask(overview.names, "", _MOST_CHOICES)]
    chosen = st.selectbox(
        "Load of the group",
        known,
        index=None,
        key=_GROUP,
        bind="query-params",
        placeholder="Type a part of its name",
        format_func=literal.shown,
        # What was typed over one group's numbers is not the next one's.
        on_change=capacity_inputs.forget_load,
    )
    if chosen is None:
        st.caption("Without one, what stands grey in the fields below is an example.")
        return None
    cluster, _, group = chosen.partition("/")
    until = datetime.fromtimestamp(-(-now.timestamp() // _STEP_SECONDS) * _STEP_SECONDS, now.tzinfo)
    load = ask(queries.load, cluster, group, until - _SPAN, until)
    if load is not None:
        st.caption(_provenance(load, now))
    return load


def _provenance(load: Load, now: datetime) -> str:
    """What is known of the group's load, from how much history, and how old that is."""
    topics = f" of {load.topics} topics, taken together" if load.topics > 1 else ""
    said = [f"It reads {humanise.plural(load.partitions, 'partition')}{topics}."]
    if load.peak_rate_per_second is None or load.first_at is None or load.last_at is None:
        said.append("How much is written to them is not known yet: type the peak.")
    else:
        span = humanise.duration((load.last_at - load.first_at).total_seconds())
        said.append(
            f"Its peak was {say_number(load.peak_rate_per_second)} messages/s; 99 % of the time it was at most "
            f"{say_number(load.usual_peak_rate_per_second or 0.0)}. That is from "
            f"{humanise.plural(load.rounds, 'round')} of the analysis over {span} (of the last "
            f"{humanise.duration(_SPAN.total_seconds())}), the newest {humanise.since(load.last_at, now)} ago."
        )
        if load.last_at - load.first_at < timedelta(days=1):
            said.append("Less than a day: the daily peak may not be in it.")
    if load.hottest_share is not None:
        said.append(f"Its hottest partition now gets {say_share(load.hottest_share)} of the traffic.")
    if load.lag:
        said.append(f"Its lag of {humanise.count(load.lag)} is no backlog here unless you type it in.")
    return " ".join(said)


def _answer(advice: SizingAdvice) -> None:
    triple = advice.triple
    text = literal.markdown(advice.verdict)
    if triple is None:
        st.error(text, icon=":material/block:")
    elif advice.changes:
        st.warning(text, icon=":material/build:")
    else:
        st.success(text, icon=":material/check_circle:")
    if advice.changes:
        labels = ["Cheapest change", *("Or" for _ in advice.changes[1:])]
        st.markdown(
            "\n".join(
                f"- **{label}:** {literal.markdown(change.sentence)}"
                for label, change in zip(labels, advice.changes, strict=True)
            )
        )
    shown = [
        ("Partitions", f"{advice.partitions:,}", "As asked."),
        (
            "Nodes",
            humanise.DASH if triple is None else f"{triple.nodes:,}",
            None if triple is None else f"Of them {humanise.plural(triple.spare_nodes, 'spare node')}.",
        ),
        (
            "Threads a node",
            humanise.DASH if triple is None else f"{triple.threads_per_node:,}",
            "On each node, the spare ones included.",
        ),
        ("What binds", _BINDS[advice.binds], "What keeps the answer from being smaller, or from existing."),
        (
            "Good up to a peak of",
            humanise.DASH if triple is None else f"{say_number(largest_peak_per_second(advice.workload, triple))}/s",
            "The peak at which this answer would be used up, everything else as it stands.",
        ),
    ]
    with st.container(horizontal=True, gap="small"):
        for label, value, explained in shown:
            st.metric(label, value, help=explained, border=True)


def _points(advice: SizingAdvice) -> None:
    st.dataframe(
        pd.DataFrame(
            {
                "Threads": [p.node.threads for p in advice.points],
                "": [p.label for p in advice.points],
                "Straight lines": [f"{say_number(p.straight_line_rate_per_second)}/s" for p in advice.points],
                "What it does": [f"{say_number(p.node.rate_per_second)}/s" for p in advice.points],
                "Cores busy": [say_share(p.node.core_utilisation) for p in advice.points],
                "A message waits for a core": [say_duration(p.node.core_wait_seconds) for p in advice.points],
            }
        ),
        key="capacity_points",
        hide_index=True,
        height=tables.height(len(advice.points)),
        row_height=tables.ROW_HEIGHT,
        alt="One node with one thread, at the knee, filled, and as advised",
        column_config=dict.fromkeys(
            ("Straight lines", "What it does", "Cores busy", "A message waits for a core"),
            st.column_config.TextColumn(alignment="right"),
        ),
    )
    st.caption(
        "The formula C · (T1 + T2) / T2 is the knee where the two straight lines cross. Near it threads also queue for "
        "the cores, so a node does less than the lines promise: that is the curve, the machine-repairman model."
    )


def _reasons(advice: SizingAdvice) -> None:
    with st.expander("Where the numbers come from", expanded=True):
        st.dataframe(
            pd.DataFrame(
                {
                    "Figure": [f.label for f in advice.figures],
                    "Value": [_value(f.name, f.value) for f in advice.figures],
                    "Unit": [f.unit for f in advice.figures],
                    "Made of": [f.how for f in advice.figures],
                }
            ),
            key="capacity_figures",
            hide_index=True,
            height=tables.height(len(advice.figures)),
            row_height=tables.ROW_HEIGHT,
            alt="Every figure of the advice and what it was made of",
            column_config={
                "Value": st.column_config.TextColumn(alignment="right"),
                "Made of": st.column_config.TextColumn(width="large"),
            },
        )
        st.caption(f"{explain_concurrency(advice.workload)} The same in a terminal:")
        st.code(capacity_command.command(advice.workload), language="bash", wrap_lines=True)


def _value(name: str, value: float | None) -> str:
    if value is None:
        return "none"
    return say_share(value) if name == "hottest_share" else say_number(value)


page.show("Capacity", body, help_text="How many threads, nodes and partitions a workload needs, and why.")
