"""Draws charts: the one place from which figures reach the browser, in the time zone that the page shows.

Streamlit's own element for charts brings all of Plotly, a script of 4.7 MB. While it starts, for more than a second,
nothing else is drawn. So charts are a component of ours, which has the part of Plotly that draws over a pair of axes,
and draws when the rest of the page is there.

To make a figure with Plotly takes longer than to ask the lake for what it shows, and in an incident twenty people look
at one group. So a chart can be made once for all of them: it is kept under what it is made from.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timezone
from pathlib import Path
from typing import ParamSpec

import plotly.graph_objects as go
import plotly.io
import streamlit as st

from lagwise.links import parameters
from lagwise_dashboard import context, plot_theme, time_zone
from lagwise_dashboard.cache import key_of
from lagwise_dashboard.plot_theme import Plain
from lagwise_dashboard.time_zone import ShownZone
from lagwise_dashboard.widgets import component

P = ParamSpec("P")

_FOLDER = Path(__file__).parent
#: See plotly/README.md. It leaves what it has made in a global name; ours is that of a module.
_PLOTLY = (_FOLDER / "plotly" / "plotly-cartesian.min.js").read_text(encoding="utf-8")
_LIBRARY = component.library("plotly", _PLOTLY + "\nexport default self.Plotly;\n")
#: In the page itself, whose style sheet has the rules for charts, on the screen and on paper.
_COMPONENT = component.declared("chart", _FOLDER, "chart", library=_LIBRARY, has_style_of_page=True)
#: A chart that was made for everybody is kept for so long, and so many are.
_TTL_SECONDS = 300
_MAX_CHARTS = 100


@dataclass(frozen=True, slots=True)
class ZonedChart:
    """A figure as JSON, whose moments are those of a zone; its height in pixels, and the offset from UTC that its axis
    of time has."""

    figure: str
    height: int
    offset: timezone


def made_once(make: Callable[P, go.Figure | Plain], *args: P.args, **kwargs: P.kwargs) -> ZonedChart:
    """The chart of the figure, in UTC, that ``make`` makes of these arguments alone. Whoever looks at the same, in the
    same time zone, shares it."""
    zone, now = time_zone.shown(), context.now()
    key = key_of(make, args, kwargs, zone.name, zone.offset(now))
    return _made(key=key, _make=lambda: make(*args, **kwargs), _zone=zone, _now=now)


@st.cache_resource(ttl=_TTL_SECONDS, max_entries=_MAX_CHARTS, show_spinner=False)
def _made(*, key: str, _make: Callable[[], go.Figure | Plain], _zone: ShownZone, _now: datetime) -> ZonedChart:
    return _zoned(_make(), _zone, _now)


def _zoned(made: go.Figure | Plain, zone: ShownZone, now: datetime) -> ZonedChart:
    plain: Plain = made.to_plotly_json() if isinstance(made, go.Figure) else made
    offset = plot_theme.in_zone(plain, zone, now)
    # What is in a figure was checked when it was put there, or by tests.
    return ZonedChart(plotly.io.to_json(plain, validate=False), plain["layout"]["height"], offset)


def draw(
    made: go.Figure | Plain | ZonedChart,
    *,
    key: str,
    alt: str,
    on_stretch: Callable[[datetime, datetime], None] | None = None,
) -> None:
    """Draw a figure, which was made in UTC, or a chart. ``alt`` is what a screen reader says.

    ``on_stretch`` gets the ends, UTC, of a stretch of time that a reader drags over. Without it, dragging zooms in the
    browser.
    """
    if not isinstance(made, ZonedChart):
        made = _zoned(made, time_zone.shown(), context.now())
    offset = made.offset

    def dragged() -> None:
        ends = sorted(filter(None, (_moment(str(end), offset) for end in st.session_state[key].stretch or ())))
        if on_stretch is not None and len(ends) == 2:
            on_stretch(ends[0], ends[1])

    about = json.dumps({"alt": alt, "reports_stretch": on_stretch is not None})
    # As bytes: Streamlit looks through everything else for tables, and writes it as JSON anew for each reader.
    data = f'{about[:-1]}, "figure": {made.figure}}}'.encode()
    _COMPONENT(key=key, data=data, on_stretch_change=dragged, height=made.height)


def _moment(text: str, offset: timezone) -> datetime | None:
    """A moment, UTC, as a chart whose axis has this offset writes it; None where it is none."""
    try:
        at = parameters.FROM.read([text.replace(" ", "T")])
    except ValueError:
        return None
    return None if at is None else at.replace(tzinfo=offset).astimezone(UTC)
