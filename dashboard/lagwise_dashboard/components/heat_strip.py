"""A group's partitions as a picture: a line for each, the darker the more lag, so that the odd ones are seen."""

import math
from datetime import datetime

import numpy as np
import plotly.graph_objects as go
import pyarrow as pa
import streamlit as st

from lagwise.domain import humanise
from lagwise_dashboard import literal, plot_theme
from lagwise_dashboard.cache import ask
from lagwise_dashboard.components import time_range
from lagwise_dashboard.components.time_range import Span
from lagwise_dashboard.queries import heat

#: Pixels: of all lines together, of the thinnest one, around them, and from one name to the next.
_LINES, _THINNEST, _FRAME, _NAME = 300, 2.2, 60, 15
#: Light to dark on either background: one hue, so that nobody needs to tell red from green.
_COLOURS = ((0.0, "#E6F4F1"), (0.35, "#7CC5BA"), (0.7, "#0D9488"), (1.0, "#053B36"))
#: Answers are shared for so long: a picture of an hour does not change by the second.
_STEP_SECONDS = 60
_TICKS = (0, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000)


def show(cluster: str, group: str, partitions: int, span: Span) -> None:
    """Draw the picture of a group of many partitions; nothing for others."""
    if partitions < heat.FEWEST_PARTITIONS:
        return
    until = span.until if span.is_zoom else _whole(span.until)
    found = ask(heat.lags, cluster, group, until - (span.until - span.since), until, partitions)
    if found.num_rows == 0:
        return
    st.subheader("Lag by partition over time", anchor=False)
    key = f"group_heat/{span.name if span.is_zoom else ''}"
    st.plotly_chart(
        chart(found, span.since, span.until, zoom=f"{cluster}/{group}/{span.name}"),
        key=key,
        config=plot_theme.CONFIG,
        on_select=time_range.to_selection(key),
        selection_mode="box",
        alt="Lag of each partition over time: a line for each, the darker the more; the table below has the numbers",
    )
    st.caption(
        "A line is a partition, in the order of topics and numbers; the darker, the more were unread (each step "
        "of the scale is ten times as many). Nothing is drawn where nothing is known."
        + (
            f" The {heat.MOST_PARTITIONS} of {partitions:,} partitions with most lag are drawn."
            if partitions > heat.MOST_PARTITIONS
            else ""
        )
    )


def chart(found: pa.Table, since: datetime, until: datetime, *, zoom: str) -> go.Figure:
    """The picture of what :func:`lagwise_dashboard.queries.heat.lags` found."""
    line, bucket = found["line"].to_numpy(), found["bucket"].to_numpy()
    lines = list(dict.fromkeys(zip(found["topic"].to_pylist(), found["partition"].to_pylist(), strict=True)))
    width = found["width_seconds"][0].as_py()
    # As arrays of numbers: lists would be looked through number by number, and sent as text.
    lags = np.full((len(lines), bucket.max() - bucket.min() + 1), np.nan, np.float32)
    lags[line, bucket - bucket.min()] = found["lag"].to_numpy(zero_copy_only=False)
    middles = [datetime.fromtimestamp((bucket.min() + i + 0.5) * width, since.tzinfo) for i in range(lags.shape[1])]
    cells = np.log10(1 + np.maximum(lags, 0))
    most = 0.0 if np.isnan(cells).all() else float(np.nanmax(cells))
    names = _names(lines)
    tall = max(_LINES, _THINNEST * len(lines))
    made = plot_theme.figure(height=round(_FRAME + tall), zoom=zoom)
    ticks = [n for n in _TICKS if math.log10(1 + n) <= max(1.0, most)]
    made.add_trace(
        go.Heatmap(
            x=middles, y=names, z=cells, zmin=0, zmax=max(1.0, most),
            colorscale=_COLOURS, hoverongaps=False, customdata=lags,
            colorbar={"thickness": 10, "outlinewidth": 0, "tickvals": [math.log10(1 + n) for n in ticks],
                      "ticktext": [humanise.count(n) for n in ticks], "title": {"text": "lag", "side": "top"}},
            hovertemplate="%{y}, %{x|%H:%M} UTC: %{customdata:,} records<extra></extra>",
        )
    )  # fmt: skip
    made.update_yaxes(
        type="category",
        tickvals=list(range(0, len(lines), math.ceil(len(lines) * _NAME / tall))),
        autorange="reversed",
        showgrid=False,
        rangemode="normal",
    )
    made.update_layout(hovermode="closest")
    made.update_xaxes(range=[since, until], showgrid=False)
    return made


def _names(lines: list[tuple[str, int]]) -> list[str]:
    """``topic-partition``, no two alike even where long names were cut."""
    topics = list(dict.fromkeys(topic for topic, _ in lines))
    cut = [literal.plotly(topic, longest=24) for topic in topics]
    alike = {
        topic: f"{name} #{i}" if cut.count(name) > 1 else name
        for i, (topic, name) in enumerate(zip(topics, cut, strict=True))
    }
    return [f"{alike[topic]}-{partition}" for topic, partition in lines]


def _whole(at: datetime) -> datetime:
    return datetime.fromtimestamp(-(-at.timestamp() // _STEP_SECONDS) * _STEP_SECONDS, at.tzinfo)
