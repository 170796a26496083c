"""The advice: the triple and what binds, what one node does, and where the numbers come from."""

from collections.abc import Mapping, Sequence

import streamlit as st

from lagwise.domain import humanise
from lagwise.domain.humanise import per_cent, precise_duration, significant, significant_rate
from lagwise.domain.sizing.advice import SizingAdvice
from lagwise.domain.sizing.advice_text import explain_concurrency
from lagwise.domain.sizing.figures import SUFFICIENT
from lagwise.domain.sizing.group_workload import missing_sentence
from lagwise.domain.sizing.ramp_plan import RampStep
from lagwise.domain.sizing.ranges import OutOfRange
from lagwise.domain.sizing.task_slots import TaskSlots
from lagwise.domain.sizing.triple_search import Triple, largest_planned_rate_per_second
from lagwise.domain.sizing.workload import Unit
from lagwise_dashboard import escaping, tables
from lagwise_dashboard.report import advice_tables, node_chart
from lagwise_dashboard.report.advice_tables import BINDS, LABELS
from lagwise_dashboard.report.command import command
from lagwise_dashboard.widgets import charts, grid, tiles


def missing(names: Sequence[str]) -> None:
    """That there is no advice, and what would help."""
    st.info(escaping.markdown(missing_sentence(names)), icon=":material/help:")


def complaint(error: OutOfRange) -> None:
    """That two inputs do not fit together, in the page's words."""
    allowed = error.allowed.replace("t1_seconds", "T1").replace(" (in seconds)", "")
    st.error(
        escaping.markdown(f"{LABELS.get(error.argument, error.argument)} must be {allowed}."), icon=":material/error:"
    )


def show(advice: SizingAdvice, slots: TaskSlots | None) -> None:
    """What is advised, the cheapest changes, and what one node does; of a Flink job whether there are slots for it."""
    _verdict(advice, slots)
    if not advice.points:
        return
    st.subheader("What one node does", anchor=False)
    charts.draw(
        node_chart.chart(advice),
        key="capacity_chart",
        alt="Messages per second of one node over its number of threads: straight lines and what really comes out",
    )
    _points(advice)


def _verdict(advice: SizingAdvice, slots: TaskSlots | None) -> None:
    triple, unit = advice.triple, advice.workload.unit
    text = escaping.markdown(advice.verdict)
    if triple is None:
        st.error(text, icon=":material/block:")
    elif advice.changes:
        st.warning(text, icon=":material/build:")
    else:
        st.success(text, icon=":material/check_circle:")
    if slots is not None:
        st.caption(escaping.markdown(slots.sentence))
    if advice.changes:
        labels = ["Cheapest change", *("Or" for _ in advice.changes[1:])]
        st.markdown(
            "\n".join(
                f"- **{label}:** {escaping.markdown(change.sentence)} {escaping.markdown(change.cost)}".rstrip()
                for label, change in zip(labels, advice.changes, strict=True)
            )
        )
    shown = [
        ("Partitions", f"{advice.workload.partitions:,}", "As entered."),
        (
            f"{unit.capitalize()}s",
            humanise.DASH if triple is None else f"{triple.nodes:,}",
            _of_them(triple, unit),
        ),
        (
            "Threads per node",
            humanise.DASH if triple is None or advice.workload.by_members else f"{triple.threads_per_node:,}",
            "On each node, including the spare ones.",
        ),
        ("Limited by", BINDS[advice.binds], "What limits the answer."),
        (
            SUFFICIENT[advice.workload.is_by_objective].capitalize(),
            humanise.DASH
            if triple is None
            else f"{significant(largest_planned_rate_per_second(advice.workload, triple))}/s",
            "The highest rate that this answer carries, everything else unchanged.",
        ),
    ]
    tiles.show(shown, name="advice")


def _of_them(triple: Triple | None, unit: Unit) -> str | None:
    """What the number of nodes counts."""
    if triple is None:
        return None
    if unit is Unit.SUBTASK:
        return "The parallelism of the vertex that limits the job. None of them is spare."
    return f"Including {humanise.plural(triple.spare_nodes, f'spare {unit}')}."


def _points(advice: SizingAdvice) -> None:
    nodes = [p.node for p in advice.points]
    grid.show(
        [
            tables.count("Threads", [node.threads for node in nodes]),
            tables.text("", [p.label for p in advice.points]),
            tables.count(
                "Straight lines",
                [p.straight_line_rate_per_second for p in advice.points],
                of="per_second",
                formatter=significant_rate,
            ),
            tables.count(
                "What it does", [node.rate_per_second for node in nodes], of="per_second", formatter=significant_rate
            ),
            tables.count("Cores busy", [node.core_utilisation for node in nodes], of="share", formatter=per_cent),
            tables.count(
                "Wait for a core",
                [node.core_wait_seconds for node in nodes],
                of="seconds",
                formatter=precise_duration,
            ),
        ],
        name="node",
        label="One node with one thread, at the knee, filled, and as advised",
    )
    st.caption(
        "The formula C · (T1 + T2) / T2 is the knee where the two straight lines cross. Near it threads also queue for "
        "the cores, so a node does less than the lines promise: that is the curve, the machine-repairman model."
    )


def reasons(advice: SizingAdvice, sources: Mapping[str, str]) -> None:
    """Every input and its source, every figure and how it was computed, and the command that says the same."""
    with st.expander("Where the numbers come from", expanded=True):
        grid.show(
            advice_tables.input_columns(advice.workload, sources),
            name="asked",
            label="Every input and its source",
        )
        grid.show(
            advice_tables.figure_columns(advice.figures),
            name="figures",
            label="Every figure of the advice and how it was computed",
        )
        if advice.downstream is not None:
            return  # the command would ask with a T1 that is what a full downstream makes of it
        st.caption(f"{explain_concurrency(advice.workload, advice.threads)} The same in a terminal:")
        st.code(command(advice.workload), language=None, wrap_lines=True)


def show_ramp(plan: tuple[RampStep, ...]) -> None:
    """The table, and what to watch at every step; nothing where there is no plan."""
    if not plan:
        return
    st.subheader("How to get there", anchor=False)
    st.caption(
        "Change one node first, and take each step under load: without a backlog, a node does only what arrives. The "
        "steps for the threads of a node:"
    )
    grid.show(
        advice_tables.ramp_columns(plan), name="ramp", label="Steps from the threads that run to those that are advised"
    )
    with st.expander("What to watch at each step"):
        st.markdown("\n".join(f"- {escaping.markdown(text)}" for text in plan[-1].watch))
