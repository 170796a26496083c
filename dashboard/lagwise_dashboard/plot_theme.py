"""One style for every chart. Pages give it the colours of text and page, light or dark; what is fixed here reads well
on both.

Charts are made in UTC. :func:`in_zone` puts one into the zone of the reader, who sees which below its axis.
"""

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache
from itertools import groupby, pairwise
from typing import Any

import plotly.graph_objects as go
import pyarrow as pa
from plotly.subplots import make_subplots

from lagwise.domain import humanise
from lagwise_dashboard import escaping, packed
from lagwise_dashboard.time_zone import ShownZone

#: A figure as plain data, as Plotly's JSON has it: ``data`` and ``layout``.
Plain = dict[str, Any]

#: Lines: mid-tones with a contrast of at least 3:1 against the light and the dark background.
LAG = "#0D9488"
PRODUCED = "#D97706"
CONSUMED = "#3B82F6"
MARK = "#64748B"
GRID = "rgba(128,140,158,0.22)"
SERIES = ("#0D9488", "#3B82F6", "#D97706", "#8B5CF6", "#DC2626", "#65A30D", "#DB2777", "#64748B")

#: What of a trace, a shape, an annotation or an axis may be moments.
_PLACES = ("x", "base", "x0", "x1", "range")
_MAX_TITLE_LENGTH = 100

#: Stacks that are kept laid out: a few kinds of page, and the topics that some of them name.
_MAX_STACKS = 50

#: A gap of more than this many times the usual distance between points is drawn as a gap.
_GAP = 3.0

#: Pixels of the line below the axis that names its time zone.
_ZONE_HEIGHT = 18

_TEMPLATE = go.layout.Template(
    layout={
        "margin": {"l": 8, "r": 8, "t": 26, "b": 4, "pad": 7},
        "hovermode": "x unified",
        "hoverlabel": {"namelength": -1},
        "legend": {"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 1.0, "xanchor": "right"},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "colorway": list(SERIES),
        "xaxis": {
            "showgrid": False,
            "ticks": "",
            "zeroline": False,
            "tickfont": {"size": 12},
            "hoverformat": "%H:%M:%S",
            "automargin": True,
        },
        "yaxis": {
            "rangemode": "tozero",
            "gridcolor": GRID,
            "ticks": "",
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
    """An empty time chart. ``zoom`` names what it shows: while that and the range of its axis stay the same, a
    reader's zoom survives refreshes."""
    return _dressed(go.Figure(), height, zoom)


def stack(panels: Sequence[Panel], *, zoom: str) -> go.Figure:
    """Charts above each other, on one time axis and within the same margins."""
    made = go.Figure(_empty_stack(tuple(panels)))
    made.layout.uirevision = zoom
    return made


@lru_cache(maxsize=_MAX_STACKS)
def _empty_stack(panels: tuple[Panel, ...]) -> go.Figure:
    """The charts without what they show, only to be copied: to lay them out takes Plotly ten times as long."""
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
    return _dressed(made, inner + margin.t + margin.b, "")


def plain_stack(panels: Sequence[Panel], *, zoom: str) -> Plain:
    """:func:`stack` as plain data, with one crosshair over all charts, and one box with what all of them say at its
    moment. For charts that are made anew in each refresh: Plotly checks and copies every value that is put into a
    figure, which takes it ten times as long as all the rest. Tests let it check them (``go.Figure(made)``)."""
    made = copy.deepcopy(_empty_plain_stack(tuple(panels)))
    made["layout"]["uirevision"] = zoom
    return made


@lru_cache(maxsize=_MAX_STACKS)
def _empty_plain_stack(panels: tuple[Panel, ...]) -> Plain:
    made = go.Figure(_empty_stack(panels))
    _share_crosshair(made, len(panels))
    plain: Plain = made.to_plotly_json()
    return plain


def _share_crosshair(made: go.Figure, rows: int) -> None:
    """Let the charts of a stack, which are empty so far, have their time axis itself in common, and not only its range:
    only then the browser shows one crosshair."""
    for one in made.layout.annotations:
        one.xref = "paper" if one.xref == "paper" else "x domain"
    for row in range(2, rows + 1):
        made.layout[f"xaxis{row}"] = None
    made.layout.xaxis.matches = None
    made.update_layout(hoversubplots="axis")
    made.layout.xaxis.update(
        anchor=f"y{rows}", showticklabels=True, showspikes=True, spikemode="across", spikesnap="cursor",
        spikethickness=1, spikedash="dot", spikecolor=MARK,
    )  # fmt: skip
    for row in range(1, rows + 1):
        made.layout[f"yaxis{'' if row == 1 else row}"].anchor = "x"


def add(made: Plain, row: int, *traces: dict[str, Any]) -> None:
    """Add traces (properties by Plotly's names) to a chart of a :func:`plain_stack`; rows are counted from 1."""
    made["data"] += [{**trace, "xaxis": "x", "yaxis": f"y{row}" if row > 1 else "y"} for trace in traces]


def value_axis(made: Plain, row: int) -> dict[str, Any]:
    """The properties of the vertical axis of a chart of a :func:`plain_stack`, to be changed."""
    axis: dict[str, Any] = made["layout"][f"yaxis{row}" if row > 1 else "yaxis"]
    return axis


def in_zone(made: Plain, zone: ShownZone, now: datetime) -> timezone:
    """Draw the moments of a chart by the clocks of a zone, and name that below the axis of time and at the pointer;
    a chart without such an axis stays as it is. Returns the offset from UTC that the axis has.

    It has one throughout, that of its end or of the present if that is sooner: so it runs evenly where clocks change,
    and no two moments have the same place. Plotly draws what it is given and knows no zones.
    """
    layout = made["layout"]
    names = sorted((name for name in layout if name.startswith("xaxis")), key=lambda name: int(name[5:] or 1))
    axes = [layout[name] for name in names if layout[name].get("type") == "date"]
    if not axes:
        return UTC
    since, until = axes[-1]["range"]
    offset = zone.offset(min(until, now))
    name = humanise.utc_offset(offset.utcoffset(None))
    if offset.utcoffset(None):
        for one in (*made["data"], *axes, *layout.get("shapes", ()), *layout.get("annotations", ())):
            one.update(_moved(one, offset))
        # A zoom of the reader holds while this is the same: in another zone it would show other moments.
        layout["uirevision"] = f"{layout['uirevision']} {name}"
    for axis in axes:
        axis["hoverformat"] = f"{axis['hoverformat']} {name}"
    title = escaping.plotly(zone.axis_title(since, until, offset), max_length=_MAX_TITLE_LENGTH)
    axes[-1]["title"] = {"text": title, "font": {"size": 12}, "standoff": 4}
    layout["height"] += _ZONE_HEIGHT
    return offset


def _moved(drawn: Mapping[str, Any], offset: timezone) -> dict[str, Any]:
    """What of a part of a chart are moments, as times without a zone."""
    found: dict[str, Any] = {}
    for name in _PLACES:
        value = drawn.get(name)
        if isinstance(value, datetime):
            found[name] = value.astimezone(offset).replace(tzinfo=None)
        elif isinstance(value, list | tuple) and isinstance(next(iter(value), None), datetime):
            found[name] = [at.astimezone(offset).replace(tzinfo=None) for at in value]
    return found


def line(x: Sequence[Any], y: Sequence[Any], **style: Any) -> Any:
    """A line."""
    return go.Scatter(x=x, y=y, mode="lines", **style)


def packed_line(at: Sequence[datetime], y: Sequence[float | None], **style: Any) -> dict[str, Any]:
    """A line over time, of at most a few hundred points, in fewer bytes where it is long."""
    return {"type": "scatter", "mode": "lines", **packed.times(at), "y": packed.values(y), **style}


def areas(at: Sequence[datetime], y: Sequence[float | None], colour: str) -> list[dict[str, Any]]:
    """The areas below a line with gaps, one for each part of it: Plotly would fill below the gaps as well. Each ends
    upright at the ends of its part."""
    parts = groupby(zip(at, y, strict=True), lambda point: point[1] is not None)
    known = [list(part) for is_known, part in parts if is_known]
    return [
        packed_line(
            [moment for moment, _ in part], [value for _, value in part],
            line={"width": 0}, fill="tozeroy", fillcolor=colour, hoverinfo="skip", showlegend=False,
        )
        for part in known if len(part) > 1
    ]  # fmt: skip


def with_gaps(history: pa.Table, bucket_seconds: float = 0.0) -> dict[str, list[Any]]:
    """The columns, with rows of nulls where points are missing, so that no line bridges a gap in the data.

    Points that fill buckets of ``bucket_seconds`` are moved within their buckets, so that all are equally far apart:
    then only the first time and the distance are sent. The last point stays where it is.
    """
    columns: dict[str, list[Any]] = {name: [] for name in history.column_names}
    rows = history.to_pylist()
    if bucket_seconds and (places := _buckets_of([row["at"] for row in rows], bucket_seconds)):
        by_place, last, none = dict(zip(places, rows, strict=True)), places[-1], dict.fromkeys(columns)
        step = timedelta(seconds=bucket_seconds)
        for place in range(places[0], last + 1):
            row = {**by_place.get(place, none), "at": rows[-1]["at"] - (last - place) * step}
            for name, values in columns.items():
                values.append(row[name])
        return columns
    steps = sorted(later["at"] - earlier["at"] for earlier, later in pairwise(rows))
    usual = steps[len(steps) // 2] if steps else timedelta(0)
    for i, row in enumerate(rows):
        if i and row["at"] - rows[i - 1]["at"] > _GAP * usual:
            for end in (rows[i - 1]["at"] + usual, row["at"] - usual):
                for name, values in columns.items():
                    values.append(end if name == "at" else None)
        for name, values in columns.items():
            values.append(row[name])
    return columns


def _buckets_of(times: Sequence[datetime], bucket_seconds: float) -> list[int]:
    """The numbers of the buckets whose last points have these times; empty where points are so rare that a bucket
    without one says nothing. Where they are frequent, the last one of nearly every bucket lies close to its end."""
    places = [math.floor(at.timestamp() / bucket_seconds) for at in times]
    left = sorted((place + 1) * bucket_seconds - at.timestamp() for place, at in zip(places, times, strict=True))
    return places if left and left[len(left) * 9 // 10] < bucket_seconds / 2 else []


def time_unit(largest_seconds: float) -> tuple[float, str]:
    """How many seconds the unit has in which such times are drawn, and its name."""
    if largest_seconds < 180:
        return 1.0, "s"
    if largest_seconds < 3 * 3600:
        return 60.0, "min"
    return (3600.0, "h") if largest_seconds < 3 * 86400 else (86400.0, "d")


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
    # What :func:`in_zone` reads stands on the axes themselves.
    return made.update_xaxes(type="date", hoverformat=_TEMPLATE.layout.xaxis.hoverformat)
