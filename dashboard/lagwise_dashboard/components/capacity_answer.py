"""The advice: the triple and what binds, what one node does, and where the numbers come from."""

import pandas as pd
import streamlit as st

from lagwise.domain import humanise
from lagwise.domain.sizing.advice import SizingAdvice
from lagwise.domain.sizing.search import Binding, largest_peak_per_second
from lagwise.domain.sizing.words import explain_concurrency, say_duration, say_number, say_share
from lagwise_dashboard import literal, plot_theme
from lagwise_dashboard.components import capacity_chart, capacity_command, tables, tiles

#: What binds, as it reads in a metric.
BINDS = {
    Binding.CPU: "the cores",
    Binding.WAITING: "waiting",
    Binding.PARTITIONS: "partitions",
    Binding.SKEW: "the hottest partition",
    Binding.ORDERING: "the order",
    Binding.DEMAND: "only the demand",
}


def show(advice: SizingAdvice) -> None:
    """What is advised, the cheapest changes, and what one node does."""
    _verdict(advice)
    st.subheader("What one node does", anchor=False)
    st.plotly_chart(
        capacity_chart.chart(advice),
        key="capacity_chart",
        config=plot_theme.CONFIG,
        alt="Messages per second of one node over its number of threads: straight lines and what really comes out",
    )
    _points(advice)


def _verdict(advice: SizingAdvice) -> None:
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
                f"- **{label}:** {literal.markdown(change.sentence)} {literal.markdown(change.cost)}".rstrip()
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
        ("What binds", BINDS[advice.binds], "What keeps the answer from being smaller, or from existing."),
        (
            "Good up to a peak of",
            humanise.DASH if triple is None else f"{say_number(largest_peak_per_second(advice.workload, triple))}/s",
            "The peak at which this answer would be used up, everything else as it stands.",
        ),
    ]
    tiles.show(shown)


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


def reasons(advice: SizingAdvice) -> None:
    """Every figure and what it was made of, and the command that says the same."""
    with st.expander("Where the numbers come from", expanded=True):
        st.dataframe(
            pd.DataFrame(
                {
                    "Figure": [f.label for f in advice.figures],
                    "Value": [say_value(f.name, f.value) for f in advice.figures],
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
        st.caption(f"{explain_concurrency(advice.workload, advice.threads)} The same in a terminal:")
        st.code(capacity_command.command(advice.workload), language="bash", wrap_lines=True)


def say_value(name: str, value: float | None) -> str:
    """A figure's value; ``none`` where it is infinite."""
    if value is None:
        return "none"
    return say_share(value) if name in ("hottest_share", "hottest_key_share") else say_number(value)
