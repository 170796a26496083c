"""What will arrive and what can be done: the forecast with its band, today's capacity, and where they cross."""

from datetime import UTC, datetime

import plotly.graph_objects as go

from lagwise.domain.capacity.outlook import Outlook
from lagwise.domain.humanise import per_cent, significant, significant_rate
from lagwise_dashboard import plot_theme
from lagwise_dashboard.queries.base import Row

_HEIGHT = 320
_BAND, _CAPACITY = "rgba(217,119,6,0.18)", "rgba(13,148,136,0.16)"


def chart(row: Row, outlook: Outlook, target: float) -> go.Figure:
    """Days over messages per second; the crossing is the verdict's own."""
    days = outlook.days
    at = [day.at for day in days]
    made = plot_theme.figure(height=_HEIGHT, zoom=f"{row['cluster']}/{row['group']}/{row['topic']}")
    made.add_trace(plot_theme.line(at, [d.high for d in days], name="upper end", line={"width": 0}, showlegend=False))
    made.add_trace(
        plot_theme.line(
            at,
            [d.low for d in days],
            name="lower end",
            line={"width": 0},
            fill="tonexty",
            fillcolor=_BAND,
            showlegend=False,
        )
    )
    made.add_trace(
        plot_theme.line(
            at,
            [d.peak for d in days],
            name="forecast, with its 90 % band",
            line={"color": plot_theme.PRODUCED, "width": 2.4},
        )
    )
    for trace in made.data:
        trace.update(customdata=[significant_rate(y) for y in trace.y], hovertemplate="%{customdata}")
    top = max(d.high for d in days)
    low, high = row["capacity_low_per_second"], row["capacity_high_per_second"]
    if low is not None:
        top = max(top, high or low)
        _mark_capacity(made, low, high, target, at)
    if row["enough_until"] is not None:
        _mark_crossing(made, row["enough_until"], top)
    made.update_xaxes(range=[at[0], at[-1]], hoverformat="%Y-%m-%d")
    made.update_yaxes(range=[0, 1.2 * top], ticksuffix="/s")
    return made


def _mark_capacity(made: go.Figure, low: float, high: float | None, target: float, at: list[datetime]) -> None:
    if high is not None:
        made.add_hrect(y0=low, y1=high, fillcolor=_CAPACITY, line_width=0, layer="below")
    can = f"can do today: {'at least ' if high is None else ''}{significant(low)}"
    can += f" to {significant(high)}/s" if high is not None and significant(high) != significant(low) else "/s"
    free = f"with {per_cent(1 - target)} kept free: {significant(low * target)}/s"
    # At the two ends, so that the labels never meet.
    for y, text, dash, x, anchor in (
        (high or low, can, "solid", at[-1], "right"),
        (low * target, free, "dash", at[0], "left"),
    ):
        made.add_hline(y=y, line={"color": plot_theme.LAG, "width": 1.6, "dash": dash})
        made.add_annotation(
            x=x,
            y=y,
            text=text,
            showarrow=False,
            xanchor=anchor,
            yanchor="bottom",
            font={"size": 12},
        )


def _mark_crossing(made: go.Figure, until: datetime, top: float) -> None:
    made.add_shape(
        type="line",
        x0=until,
        x1=until,
        y0=0,
        y1=1.1 * top,
        line={"color": plot_theme.MARK, "width": 1.6, "dash": "dot"},
    )
    made.add_annotation(
        x=until,
        y=1.1 * top,
        text=f"enough until {until.astimezone(UTC):%Y-%m-%d}",
        showarrow=False,
        xanchor="left",
        yanchor="bottom",
        font={"size": 12},
    )
