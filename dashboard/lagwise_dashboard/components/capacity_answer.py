"""The advice: the triple and what binds, what one node does, and where the numbers come from."""

from collections.abc import Mapping, Sequence

import pandas as pd
import streamlit as st

from lagwise.domain import humanise
from lagwise.domain.sizing.advice import SizingAdvice
from lagwise.domain.sizing.known_workload import say_missing
from lagwise.domain.sizing.search import Triple, largest_peak_per_second
from lagwise.domain.sizing.task_slots import TaskSlots
from lagwise.domain.sizing.words import explain_concurrency, say_duration, say_number, say_share
from lagwise.domain.sizing.workload import Unit
from lagwise_dashboard import literal, plot_theme
from lagwise_dashboard.components import tables, tiles
from lagwise_dashboard.report import asked, node_chart
from lagwise_dashboard.report.command import command
from lagwise_dashboard.report.figures import BINDS, say_value


def missing(names: Sequence[str]) -> None:
    """That there is no advice, and what would help."""
    st.info(literal.markdown(say_missing(names)), icon=":material/help:")


def show(advice: SizingAdvice, slots: TaskSlots | None) -> None:
    """What is advised, the cheapest changes, and what one node does; of a Flink job whether there are slots for it."""
    _verdict(advice, slots)
    if not advice.points:
        return
    st.subheader("What one node does", anchor=False)
    st.plotly_chart(
        node_chart.chart(advice),
        key="capacity_chart",
        config=plot_theme.CONFIG,
        alt="Messages per second of one node over its number of threads: straight lines and what really comes out",
    )
    _points(advice)


def _verdict(advice: SizingAdvice, slots: TaskSlots | None) -> None:
    triple, unit = advice.triple, advice.workload.unit
    text = literal.markdown(advice.verdict)
    if triple is None:
        st.error(text, icon=":material/block:")
    elif advice.changes:
        st.warning(text, icon=":material/build:")
    else:
        st.success(text, icon=":material/check_circle:")
    if slots is not None:
        st.caption(literal.markdown(slots.sentence))
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
            f"{unit.capitalize()}s",
            humanise.DASH if triple is None else f"{triple.nodes:,}",
            _of_them(triple, unit),
        ),
        (
            "Threads a node",
            humanise.DASH if triple is None or advice.workload.by_members else f"{triple.threads_per_node:,}",
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


def _of_them(triple: Triple | None, unit: Unit) -> str | None:
    """What the number of nodes counts."""
    if triple is None:
        return None
    if unit is Unit.SUBTASK:
        return "The parallelism of the vertex that bounds the job. None of them is spare."
    return f"Of them {humanise.plural(triple.spare_nodes, f'spare {unit}')}."


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


def reasons(advice: SizingAdvice, sources: Mapping[str, str]) -> None:
    """Every input and where it is from, every figure and what it was made of, and the command that says the same."""
    with st.expander("Where the numbers come from", expanded=True):
        _asked(advice, sources)
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
        st.code(command(advice.workload), language="bash", wrap_lines=True)


def _asked(advice: SizingAdvice, sources: Mapping[str, str]) -> None:
    lines = asked.rows(advice.workload, sources)
    st.dataframe(
        tables.table({name: [line[i] for line in lines] for i, name in enumerate(("Asked", "Value", "From"))}),
        key="capacity_asked",
        hide_index=True,
        height=tables.height(len(lines)),
        row_height=tables.ROW_HEIGHT,
        alt="Every input and where it is from",
        column_config={"Value": tables.right_column(), "From": st.column_config.TextColumn(width="large")},
    )
