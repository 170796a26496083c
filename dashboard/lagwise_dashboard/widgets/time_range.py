"""The span of time that a page looks at, in its address: a range up to now, or what was zoomed into.

A zoom is asked of the lake anew, so that it shows finer points, and whoever opens the address sees the same.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

import plotly.graph_objects as go
import streamlit as st

from lagwise.links import parameters
from lagwise_dashboard import address, context, time_zone
from lagwise_dashboard.widgets import charts
from lagwise_dashboard.widgets.charts import ZonedChart

#: What the parameter `range` may be.
RANGES = {
    "15m": timedelta(minutes=15),
    "1h": timedelta(hours=1),
    "6h": timedelta(hours=6),
    "24h": timedelta(hours=24),
    "7d": timedelta(days=7),
}
#: What is shown where neither the address nor the page asks for another one.
DEFAULT_RANGE = "1h"
_IN_THE_LAST = "in the last "
#: Ranges move on in steps, so that browsers that look at the same moment share one answer and one chart: of a pixel, as
#: a part of a range, and of so many seconds at least.
_STEP_PART, _LEAST_STEP_SECONDS = 1 / 1440, 5.0
#: Less is not drawn: there are no more points to be seen.
_MIN_SPAN = timedelta(minutes=1)
_MAX_SPAN = timedelta(days=90)
#: An axis is not shorter than that, however new its data is.
_MIN_AXIS = timedelta(minutes=5)
_ENDS = (parameters.FROM, parameters.TO)


@dataclass(frozen=True, slots=True)
class TimeRange:
    """From when until when. ``words`` follow a sentence about it: ``in the last 1 h``."""

    since: datetime
    until: datetime
    words: str
    is_zoom: bool = False

    @property
    def name(self) -> str:
        """The same while the reader's view of a chart is to survive refreshes."""
        if not self.is_zoom:
            return self.words.removeprefix(_IN_THE_LAST)
        return "/".join(end for at in (self.since, self.until) for end in parameters.FROM.written(at))


def is_chosen() -> bool:
    """Whether the address says which span to show."""
    return bool(address.get(parameters.RANGE)) or _zoom()[0] is not None


def shortest_since(at: datetime | None, now: datetime) -> str:
    """The shortest range from the default on that reaches back to a moment; the default where none does, or for
    None."""
    if at is None:
        return DEFAULT_RANGE
    fitting = (name for name, length in RANGES.items() if length >= max(RANGES[DEFAULT_RANGE], now - at))
    return next(fitting, DEFAULT_RANGE)


def choose(now: datetime, default: str = DEFAULT_RANGE) -> TimeRange:
    """The controls, and the span that they and the address ask for, which is ``default`` where neither does."""
    zoomed, complaint = _zoom()
    chosen = address.get(parameters.RANGE) or default
    with st.container(horizontal=True, vertical_alignment="center"):
        st.segmented_control(
            "Time range",
            list(RANGES),
            format_func=in_words,
            label_visibility="collapsed",
            **address.bound(parameters.RANGE, empty=default, resets=_ENDS, required=True),
        )
        if zoomed is not None:
            st.button("Leave the zoom", key="leave_zoom", on_click=_leave, icon=":material/zoom_out_map:")
        with st.popover("Zoom to …", icon=":material/zoom_in:", width="content"):
            _inputs(zoomed, now, RANGES[chosen])
    if complaint:
        st.warning(complaint, icon=":material/link_off:")
    if zoomed is not None:
        since, until = zoomed
        words = f"from {time_zone.clock_markdown(since, now)} to {time_zone.clock_markdown(until, now)}"
        return TimeRange(since, until, words, is_zoom=True)
    length = RANGES[chosen]
    until = context.rounded_up(now, max(_LEAST_STEP_SECONDS, length.total_seconds() * _STEP_PART))
    return TimeRange(until - length, until, f"{_IN_THE_LAST}{in_words(chosen)}")


def axis_start(span: TimeRange, first: datetime | None) -> datetime:
    """Where the axis of a chart of the span begins: with its ``first`` data, if that is younger than the span. Minutes
    at the end of an empty hour cannot be read. A zoom is drawn as it was asked for."""
    if span.is_zoom or first is None:
        return span.since
    return max(span.since, min(first, span.until - _MIN_AXIS))


def chart(made: go.Figure | ZonedChart, *, name: str, alt: str) -> None:
    """Draw a chart over time, of which a reader zooms into a stretch by dragging over it. ``name`` is its own on its
    page."""
    charts.draw(made, key=name, alt=alt, on_stretch=_go)


def _inputs(zoomed: tuple[datetime, datetime] | None, now: datetime, span: timedelta) -> None:
    """The zoom for those who do not drag: two times of the shown zone to be typed in. Of a time that occurs twice, as
    clocks go back, the stretch has both."""
    since, until = zoomed or (now - span, now)
    zone = time_zone.shown()
    with st.form("zoom", border=False):
        first, last = (
            st.datetime_input(
                f"{label}, {zone.name}",
                value=zone.local(at).replace(tzinfo=None),
                key=f"zoom_{name}_{zone.name}",
                step=60,
            )
            for label, name, at in (("From", "from", since), ("To", "to", until))
        )
        if st.form_submit_button("Zoom", type="primary") and first is not None and last is not None:
            since, until = zone.typed(first), zone.typed(last, latest=True)
            if until - since < _MIN_SPAN:
                st.error("The end must lie at least a minute after the beginning.")
            else:
                _go(since, until)


def in_words(name: str) -> str:
    """A length of time of the address as people write it: ``15 min`` for ``15m``."""
    return f"{name[:-1]} {'min' if name.endswith('m') else name[-1]}"


def _go(since: datetime, until: datetime) -> None:
    since, until = since.replace(microsecond=0), until.replace(microsecond=0)
    if until - since < _MIN_SPAN:
        middle = since + (until - since) / 2
        since, until = middle - _MIN_SPAN / 2, middle + _MIN_SPAN / 2
    address.change({parameters.FROM: since, parameters.TO: until})


def _leave() -> None:
    address.change(dict.fromkeys(_ENDS))


def _zoom() -> tuple[tuple[datetime, datetime] | None, str]:
    """The zoom in the address, if there is one that makes sense; and what is wrong with one that does not."""
    since, until = address.get(parameters.FROM), address.get(parameters.TO)
    if since is None and until is None:
        return None, ""
    if since is None or until is None:
        return None, "**The zoom in the address was ignored.** It needs both `from` and `to`."
    if not _MIN_SPAN <= until - since <= _MAX_SPAN:
        return None, (
            "**The zoom in the address was ignored.** `to` must lie after `from`, by a minute at least and "
            f"{_MAX_SPAN.days} days at most."
        )
    return (since, until), ""
