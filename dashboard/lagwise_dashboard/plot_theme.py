"""One style for every chart. Streamlit lays its light or dark theme over it; what is fixed here reads well on both."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

#: Lines: mid-tones with a contrast of at least 3:1 against the light and the dark background.
LAG = "#0D9488"
PRODUCED = "#D97706"
CONSUMED = "#3B82F6"
MARK = "#64748B"
GRID = "rgba(128,140,158,0.22)"
SERIES = ("#0D9488", "#3B82F6", "#D97706", "#8B5CF6", "#DC2626", "#65A30D", "#DB2777", "#64748B")

#: SVG is sharper and needs no WebGL; from here on it is too slow.
_WEBGL_FROM_POINTS = 1000

#: No floating toolbar over the chart, no logo; zoom by dragging stays.
CONFIG: dict[str, Any] = {"displayModeBar": False, "scrollZoom": False, "showTips": False}

_TEMPLATE = go.layout.Template(
    layout={
        "margin": {"l": 8, "r": 8, "t": 26, "b": 4},
        "hovermode": "x unified",
        "hoverlabel": {"namelength": -1},
        "legend": {"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 1.0, "xanchor": "right"},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "colorway": list(SERIES),
        "xaxis": {
            "type": "date",
            "gridcolor": GRID,
            "zeroline": False,
            "tickfont": {"size": 12},
            "hoverformat": "%H:%M:%S UTC",
            "automargin": True,
        },
        "yaxis": {
            "rangemode": "tozero",
            "gridcolor": GRID,
            "zeroline": False,
            "tickfont": {"size": 12},
            "automargin": True,
            "fixedrange": True,
            # 10,000 as in the text around it, not 10k.
            "separatethousands": True,
            "exponentformat": "none",
        },
    }
)


@dataclass(frozen=True, slots=True)
class Panel:
    """One of several charts above each other: its title, its height and the free space above it, in pixels."""

    title: str
    height: int
    gap: int = 44


def figure(*, height: int, zoom: str) -> go.Figure:
    """An empty time chart. ``zoom`` names what it shows: while it stays the same, a reader's zoom survives
    refreshes."""
    return _dressed(go.Figure(), height, zoom)


def stack(panels: Sequence[Panel], *, zoom: str) -> go.Figure:
    """Charts above each other, on one time axis and within the same margins."""
    inner = sum(panel.gap + panel.height for panel in panels) - panels[0].gap
    made = make_subplots(rows=len(panels), cols=1, shared_xaxes=True, subplot_titles=[panel.title for panel in panels])
    made.update_annotations(x=0.0, xanchor="left", font={"size": 13})
    top = inner
    for row, panel in enumerate(panels, start=1):
        if row > 1:
            top -= panel.gap
        made.update_yaxes(domain=[(top - panel.height) / inner, top / inner], row=row, col=1)
        made.layout.annotations[row - 1].y = top / inner
        top -= panel.height
    margin = _TEMPLATE.layout.margin
    return _dressed(made, inner + margin.t + margin.b, zoom)


def line(x: Sequence[Any], y: Sequence[Any], **style: Any) -> Any:
    """A line; WebGL where there are many points."""
    kind = go.Scattergl if len(x) > _WEBGL_FROM_POINTS else go.Scatter
    return kind(x=x, y=y, mode="lines", **style)


def label(made: go.Figure, x: Any, y: float, text: str, *, left: bool = False) -> None:
    """Write a text above a point, to the right of it or to its left."""
    made.add_annotation(
        x=x,
        y=y,
        text=text,
        showarrow=False,
        xanchor="right" if left else "left",
        yanchor="bottom",
        font={"size": 12},
    )


def upright(made: go.Figure, x: Any, top: float, text: str, colour: str, *, left: bool = False) -> None:
    """Draw a dotted line upwards from a place on the horizontal axis, with a label at its end."""
    made.add_shape(type="line", x0=x, x1=x, y0=0, y1=top, line={"color": colour, "width": 1.5, "dash": "dot"})
    label(made, x, top, text, left=left)


def _dressed(made: go.Figure, height: int, zoom: str) -> go.Figure:
    made.update_layout(template=_TEMPLATE, height=height, uirevision=zoom)
    # A template does not reach axes that Streamlit's own theme sets, too.
    made.update_layout(**{k: _TEMPLATE.layout[k] for k in ("margin", "hovermode", "legend")})
    made.update_xaxes(_TEMPLATE.layout.xaxis.to_plotly_json())
    made.update_yaxes(_TEMPLATE.layout.yaxis.to_plotly_json())
    return made
