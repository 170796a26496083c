"""Draws charts: the one place from which figures reach the browser, in the time zone that the page shows.

To make a figure with Plotly takes longer than to ask the lake for what it shows, and in an incident twenty people look
at one group. So a chart can be made once for all of them: it is kept under what it is made from.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timezone
from typing import Any, ParamSpec

import plotly.graph_objects as go
import plotly.io
import streamlit as st

from lagwise.links import parameters
from lagwise_dashboard import context, plot_theme, time_zone
from lagwise_dashboard.cache import key_of
from lagwise_dashboard.time_zone import ShownZone

P = ParamSpec("P")

#: No floating toolbar over the chart, no logo; zoom by dragging stays.
_CONFIG: dict[str, Any] = {"displayModeBar": False, "scrollZoom": False, "showTips": False}
#: A chart that was made for everybody is kept for so long, and so many are.
_TTL_SECONDS = 300
_MAX_CHARTS = 100


@dataclass(frozen=True, slots=True)
class ZonedChart:
    """A figure whose moments are those of a zone, and the offset from UTC that its axis of time has."""

    figure: go.Figure
    offset: timezone


def made_once(make: Callable[P, go.Figure], *args: P.args, **kwargs: P.kwargs) -> ZonedChart:
    """The chart of the figure, in UTC, that ``make`` makes of these arguments alone. Whoever looks at the same, in the
    same time zone, shares it: change nothing in it."""
    zone, now = time_zone.shown(), context.now()
    key = key_of(make, args, kwargs, zone.name, zone.offset(now))
    return _made(key=key, _make=lambda: make(*args, **kwargs), _zone=zone, _now=now)


@st.cache_resource(ttl=_TTL_SECONDS, max_entries=_MAX_CHARTS, show_spinner=False)
def _made(*, key: str, _make: Callable[[], go.Figure], _zone: ShownZone, _now: datetime) -> ZonedChart:
    figure = _make()
    offset = plot_theme.in_zone(figure, _zone, _now)
    # Plotly copies a figure and converts its times whenever it is sent. This one is finished, in JSON's own types.
    finished = json.loads(plotly.io.to_json(figure, validate=False))
    figure.to_dict = lambda: finished
    return ZonedChart(figure, offset)


def draw(
    made: go.Figure | ZonedChart, *, key: str, alt: str, on_stretch: Callable[[datetime, datetime], None] | None = None
) -> None:
    """Draw a figure, which was made in UTC, or a chart. ``alt`` is what a screen reader says.

    ``on_stretch`` gets the ends, UTC, of a stretch of time that a reader drags over. Without it, dragging zooms in the
    browser.
    """
    if not isinstance(made, ZonedChart):
        made = ZonedChart(made, plot_theme.in_zone(made, time_zone.shown(), context.now()))
    offset = made.offset
    if on_stretch is None:
        st.plotly_chart(made.figure, key=key, config=_CONFIG, alt=alt)
        return

    def dragged() -> None:
        boxes: Any = st.session_state[key].selection.get("box", [])
        ends = sorted(filter(None, (_moment(str(x), offset) for x in boxes[0]["x"]))) if boxes else []
        if len(ends) == 2:
            on_stretch(ends[0], ends[1])

    st.plotly_chart(made.figure, key=key, config=_CONFIG, alt=alt, on_select=dragged, selection_mode="box")


def _moment(text: str, offset: timezone) -> datetime | None:
    """A moment, UTC, as a chart whose axis has this offset writes it; None where it is none."""
    try:
        at = parameters.FROM.read([text.replace(" ", "T")])
    except ValueError:
        return None
    return None if at is None else at.replace(tzinfo=offset).astimezone(UTC)
