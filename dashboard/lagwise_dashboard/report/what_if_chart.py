"""The age of the oldest unread message over time, for what runs and for what is advised."""

import plotly.graph_objects as go

from lagwise.domain import humanise
from lagwise.domain.simulation.what_if import ADVISED, BEFORE_SECONDS, RUNNING, WhatIf
from lagwise_dashboard import plot_theme

_HEIGHT = 280
_COLOURS = {RUNNING: plot_theme.PRODUCED, ADVISED: plot_theme.LAG}


def chart(what_if: WhatIf) -> go.Figure:
    """Age of the oldest unread message over time."""
    interruption = what_if.interruption
    made = plot_theme.figure(height=_HEIGHT, zoom=f"{interruption}")
    for label, outcome in what_if.outcomes:
        made.add_trace(
            plot_theme.line(
                [(m.at_seconds - BEFORE_SECONDS) / 60.0 for m in outcome.moments],
                [m.lag_seconds / 60.0 for m in outcome.moments],
                name=label,
                line={"color": _COLOURS.get(label.partition(":")[0], plot_theme.MARK), "width": 2.2},
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
        annotation={"text": "one node away" if interruption.rolling else "nothing is read", "font": {"size": 12}},
        annotation_position="top left",
    )
    made.update_xaxes(type="linear", title={"text": "minutes since it began"}, hoverformat=",.0f", ticksuffix="")
    made.update_yaxes(title={"text": "oldest unread, minutes"})
    return made
