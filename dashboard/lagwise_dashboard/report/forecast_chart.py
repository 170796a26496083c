"""The forecast demand with its band, today's capacity, and where they cross."""

from datetime import UTC

import plotly.graph_objects as go

from lagwise.domain.capacity.outlook import Outlook
from lagwise.domain.humanise import per_cent, significant, significant_rate
from lagwise.domain.sizing.workload import SizeBy
from lagwise.tables.topic_facts import days_by_verdict
from lagwise_dashboard import plot_theme
from lagwise_dashboard.queries.base import Row
from lagwise_dashboard.report import current_capacity

_HEIGHT = 320
_BAND, _CAPACITY = "rgba(217,119,6,0.18)", "rgba(13,148,136,0.16)"


def chart(row: Row, outlook: Outlook, target: float) -> go.Figure:
    """Days over messages per second; the crossing is the verdict's own."""
    days, size_by = days_by_verdict(row, outlook)
    what = "what the objective takes" if size_by is SizeBy.OBJECTIVE else "forecast"
    name_of_mean = f"{what}, with its 90 % band"
    at = [day.at for day in days]
    made = plot_theme.figure(height=_HEIGHT, zoom=f"{row['cluster']}/{row['group']}/{row['topic']}")
    forecast = {"color": plot_theme.PRODUCED, "width": 2.4}
    invisible = {"line": {"width": 0}, "showlegend": False}
    for name, rates, style in (
        ("upper end", [d.high for d in days], invisible),
        ("lower end", [d.low for d in days], invisible | {"fill": "tonexty", "fillcolor": _BAND}),
        (name_of_mean, [d.peak for d in days], {"line": forecast}),
    ):
        texts = [significant_rate(rate) for rate in rates]
        made.add_trace(plot_theme.line(at, rates, name=name, customdata=texts, hovertemplate="%{customdata}", **style))
    top = max(d.high for d in days)
    low, high = row["capacity_low_per_second"], row["capacity_high_per_second"]
    if low is not None:
        top = max(top, high or low)
        if high is not None:
            made.add_hrect(y0=low, y1=high, fillcolor=_CAPACITY, line_width=0, layer="below")
        can = f"can do today: {current_capacity.can_do(row)}"
        free = f"with {per_cent(1 - target)} kept free: {significant(low * target)}/s"
        # At the two ends, so that the labels never meet.
        for y, text, dash, end in ((high or low, can, "solid", -1), (low * target, free, "dash", 0)):
            made.add_hline(y=y, line={"color": plot_theme.LAG, "width": 1.6, "dash": dash})
            plot_theme.label(made, at[end], y, text, left=end == -1)
    if row["enough_until"] is not None:
        day = f"{row['enough_until'].astimezone(UTC):%Y-%m-%d}"
        plot_theme.upright(made, row["enough_until"], 1.1 * top, f"enough until {day}", plot_theme.MARK)
    made.update_xaxes(range=[at[0], at[-1]], hoverformat="%Y-%m-%d %H:%M")
    made.update_yaxes(range=[0, 1.2 * top], ticksuffix="/s")
    return made
