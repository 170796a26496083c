"""A node's throughput by its number of threads: the formula's two straight lines, and the real curve."""

import math

import plotly.graph_objects as go

from lagwise.domain import humanise
from lagwise.domain.humanise import significant, significant_rate
from lagwise.domain.sizing.advice import SizingAdvice
from lagwise.domain.sizing.formulas import knee_threads, node_ceiling_per_second, thread_rate_per_second
from lagwise.domain.sizing.node_throughput import node_throughput
from lagwise.domain.sizing.triple_search import nodes_by_cpu, thread_limit, threads_that_fill_a_node
from lagwise_dashboard import plot_theme

_HEIGHT = 340
_MAX_POINTS = 240


def chart(advice: SizingAdvice) -> go.Figure:
    """Node throughput over threads, with the knee, the advised number and what each node must do marked."""
    w = advice.workload
    knee = knee_threads(w.cores, w.t1_seconds, w.t2_seconds)
    advised = advice.threads_per_node or thread_limit(w)
    limit = thread_limit(w)
    # What lies far beyond the advised number would squeeze the part that matters into a corner.
    shown_knee = knee if knee <= 4 * max(advised, limit if advice.triple is None else 0) else None
    last = max(8, math.ceil(1.5 * max(advised, shown_knee or 0.0, limit if limit <= 4 * advised else 0)))
    step = max(1, last // _MAX_POINTS)
    threads = sorted({1, *range(step, last + 1, step), advised})
    really = [node_throughput(w.cores, n, w.t1_seconds, w.t2_seconds).rate_per_second for n in threads]
    alone, ceiling = thread_rate_per_second(w.t1_seconds, w.t2_seconds), node_ceiling_per_second(w.cores, w.t2_seconds)
    # The corner of the lines lies between two whole numbers of threads.
    corners = sorted({0.0, *threads, *([knee] if knee < last else [])})
    lines = [min(n * alone, ceiling) for n in corners]

    made = plot_theme.figure(height=_HEIGHT, zoom=f"{w.t1_seconds}/{w.t2_seconds}/{w.cores}/{last}")
    for name, x, rates, style in (
        ("the formula's straight lines", corners, lines, {"color": plot_theme.MARK, "width": 1.6, "dash": "dash"}),
        ("what the node does", [0, *threads], [0.0, *really], {"color": plot_theme.LAG, "width": 2.6}),
    ):
        texts = [significant_rate(rate) for rate in rates]
        made.add_trace(
            plot_theme.line(x, rates, name=name, line=style, customdata=texts, hovertemplate="%{customdata}")
        )
    nodes = advice.triple.working_nodes if advice.triple else nodes_by_cpu(w)
    needed = w.required_rate_per_second / nodes
    top = max(*lines, needed)
    of = f"each of {humanise.plural(nodes, 'node')}" if nodes > 1 else "the node"
    if_allowed = "" if advice.triple else ", if the partitions allowed it,"
    made.add_hline(y=needed, line={"color": plot_theme.PRODUCED, "width": 1.6, "dash": "dot"})
    is_low = needed < 0.5 * top
    text = f"{of}{if_allowed} must do {significant(needed)}/s"
    plot_theme.label(made, last if is_low else 0, needed, text, left=is_low)
    fills = "fills the node" if threads_that_fill_a_node(w) else "the most it may have"
    label = "advised" if advice.triple else fills
    marks = [(float(advised), f"{label} {humanise.count(advised)}", plot_theme.LAG)]
    if shown_knee is not None:
        marks.append((shown_knee, f"knee {significant(shown_knee)}", plot_theme.MARK))
    # The lower one is labelled to its left, the higher one to its right: so they never overlap.
    for i, (at, text, colour) in enumerate(sorted(marks)):
        plot_theme.upright(made, at, 1.1 * top, text, colour, left=i == 0 and len(marks) > 1)
    made.add_trace(
        go.Scatter(
            x=[advised],
            y=[really[threads.index(advised)]],
            mode="markers",
            marker={"color": plot_theme.LAG, "size": 10},
            showlegend=False,
            hoverinfo="skip",
        )
    )
    made.update_xaxes(type="linear", range=[0, last], title={"text": "threads on one node"}, hoverformat=",d")
    made.update_yaxes(range=[0, 1.18 * top], ticksuffix="/s")
    return made
