"""What if all stand still, or every node is restarted: the advised set-up and the running one side by side."""

from dataclasses import dataclass
from functools import lru_cache

import plotly.graph_objects as go
import streamlit as st

from lagwise.domain import humanise
from lagwise.domain.simulation.fluid import Outcome, simulate
from lagwise.domain.simulation.scenario import Interruption, Scenario, Traffic
from lagwise.domain.sizing.advice import SizingAdvice
from lagwise.domain.sizing.ranges import OutOfRange
from lagwise.domain.sizing.workload import Workload
from lagwise_dashboard import literal, plot_theme
from lagwise_dashboard.queries.base import Row

_KIND, _OUTAGE, _RESTART = "capacity_what", "capacity_outage_min", "capacity_node_restart_s"
_NODES, _THREADS = "capacity_running_nodes", "capacity_running_threads"
_ALL, _ROLLING = "outage", "rolling-restart"
_HEIGHT = 280
#: What happens begins after this, so that the chart shows how it was before.
_BEFORE_SECONDS = 300.0
_POINTS = 300
#: Above this a simulation of a rolling restart takes seconds: so many times all partitions are dealt out.
_MOST_DEALT = 200_000


@dataclass(frozen=True, slots=True)
class SetUp:
    """Nodes with threads, and what they are called."""

    name: str
    nodes: int
    threads_per_node: int

    @property
    def label(self) -> str:
        threads = humanise.plural(self.threads_per_node, "thread")
        return f"{self.name}: {humanise.plural(self.nodes, 'node')} of {threads}"


@dataclass(frozen=True, slots=True)
class WhatIf:
    """What was asked, in words, and what came of it."""

    question: str
    interruption: Interruption
    outcomes: tuple[tuple[SetUp, Outcome], ...]


def show(advice: SizingAdvice, row: Row | None) -> tuple[SetUp | None, Interruption, WhatIf | None]:
    """Draw the inputs and the answer: what runs (None is not known), what happens, and what comes of it."""
    st.subheader("What if", anchor=False)
    left, right = st.columns([1, 2], gap="large")
    with left:
        interruption, question = _interruption()
        running = _running(advice.workload, row)
    set_ups = [running] if running else []
    if advice.triple is not None:
        set_ups.append(SetUp("Advised", advice.triple.nodes, advice.triple.threads_per_node))
    with right:
        return running, interruption, _answer(advice.workload, set_ups, interruption, question)


def _answer(workload: Workload, set_ups: list[SetUp], interruption: Interruption, question: str) -> WhatIf | None:
    if not set_ups:
        st.caption("There is no advice to try. Type in what runs.")
        return None
    try:
        asked = WhatIf(
            question, interruption, tuple((s, _outcome(scenario(workload, s, interruption))) for s in set_ups)
        )
    except OutOfRange as error:
        st.caption(literal.markdown(f"This cannot be simulated: {error}"))
        return None
    st.plotly_chart(
        chart(asked),
        key="capacity_what_if",
        config=plot_theme.CONFIG,
        alt="Age of the oldest unread message over time, for what runs and for what is advised",
    )
    st.markdown("\n".join(f"- **{s.label}.** {literal.markdown(words(o))}" for s, o in asked.outcomes))
    st.caption(
        f"{question} At peak all the time, with T1, T2, cores and partitions as above. What chance does to single "
        "messages is not in it."
    )
    return asked


def scenario(workload: Workload, set_up: SetUp, interruption: Interruption) -> Scenario:
    """The set-up under the workload's peak, until some time after what happens. Raises OutOfRange."""
    away = interruption.seconds * (set_up.nodes if interruption.rolling else 1)
    seconds = _BEFORE_SECONDS + away + max(1_800.0, 2.0 * away)
    if interruption.rolling and set_up.nodes * workload.partitions > _MOST_DEALT:
        most = _MOST_DEALT // workload.partitions
        raise OutOfRange("nodes", f"at most {most:,} here, one after the other", set_up.nodes)
    return Scenario(
        traffic=Traffic.constant(workload.peak_rate_per_second, seconds),
        t1_seconds=workload.t1_seconds,
        t2_seconds=workload.t2_seconds,
        cores=workload.cores,
        nodes=set_up.nodes,
        threads_per_node=set_up.threads_per_node,
        partitions=workload.partitions,
        hottest_share=workload.hottest_share,
        lag=workload.lag,
        concurrency=workload.concurrency,
        ordering=workload.ordering,
        interruption=interruption,
    )


def outcome_of(workload: Workload, set_up: SetUp, interruption: Interruption) -> Outcome | None:
    """What comes of it; None where it cannot be simulated."""
    try:
        return _outcome(scenario(workload, set_up, interruption))
    except OutOfRange:
        return None


def words(outcome: Outcome) -> str:
    """Peak lag and drain time, in a sentence or two."""
    if outcome.peak_lag <= 0.0:
        return "No lag worth speaking of."
    said = (
        f"The lag rises to {humanise.count(outcome.peak_lag)} messages, the oldest of them "
        f"{humanise.duration(outcome.peak_lag_seconds)} old."
    )
    if outcome.drain_seconds is None:
        return f"{said} It is never worked off: more arrives than this can do."
    return f"{said} {humanise.duration(outcome.drain_seconds)} later all is read."


def chart(asked: WhatIf) -> go.Figure:
    """Age of the oldest unread message over time."""
    interruption = asked.interruption
    made = plot_theme.figure(height=_HEIGHT, zoom=f"{interruption}")
    colours = {"Running": plot_theme.PRODUCED, "Advised": plot_theme.LAG}
    for set_up, outcome in asked.outcomes:
        made.add_trace(
            plot_theme.line(
                [(m.at_seconds - _BEFORE_SECONDS) / 60.0 for m in outcome.moments],
                [m.lag_seconds / 60.0 for m in outcome.moments],
                name=set_up.label,
                line={"color": colours.get(set_up.name, plot_theme.MARK), "width": 2.2},
                text=[humanise.duration(m.lag_seconds) for m in outcome.moments],
                hovertemplate="%{text}",
            )
        )
    made.add_vrect(
        x0=0.0,
        x1=interruption.seconds / 60.0,
        fillcolor=plot_theme.GRID,
        line_width=0,
        layer="below",
        annotation={"text": "one node away" if interruption.rolling else "all stand still", "font": {"size": 12}},
        annotation_position="top left",
    )
    made.update_xaxes(type="linear", title={"text": "minutes since it began"}, hoverformat=",.0f", ticksuffix="")
    made.update_yaxes(title={"text": "oldest unread, minutes"}, tickformat=",.4~r")
    return made


@lru_cache(maxsize=64)
def _outcome(of: Scenario) -> Outcome:
    """The same question is asked at every refresh."""
    return simulate(of, of.traffic.seconds / _POINTS)


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
    outage = left.number_input(
        "Outage (min)",
        min_value=0.0,
        max_value=10_080.0,
        value=60.0,
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
    if kind == _ROLLING:
        every = Interruption(at_seconds=_BEFORE_SECONDS, seconds=restart, rolling=True, reassigned_after_seconds=0.0)
        return every, f"One node after the other is away for {humanise.duration(restart)}."
    all_away = Interruption(at_seconds=_BEFORE_SECONDS, seconds=outage * 60.0)
    return all_away, f"Nothing is read for {humanise.duration(outage * 60.0)}."


def _running(workload: Workload, row: Row | None) -> SetUp | None:
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
    nodes, threads = nodes or nodes_known, threads or threads_known
    return SetUp("Running", nodes, threads) if nodes and threads else None


def running_of(row: Row | None) -> tuple[int | None, int | None]:
    """Nodes and threads on each, as far as they are known. Where only the time per message of a member is known,
    a member is taken as a node of one thread, as in the advice."""
    if row is None:
        return None, None
    if row["threads_per_node"] is None and row["t2_seconds"] == 0.0:
        return row["members"] or None, 1
    return row["nodes"] or None, row["threads_per_node"]


def forget() -> None:
    """Empty the fields that a group fills."""
    for key in (_NODES, _THREADS):
        st.session_state[key] = None
