"""The span of time that a page looks at, in its address: a range up to now, or what was zoomed into.

A zoom is asked of the lake anew, so that it shows finer points, and whoever opens the address sees the same.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from lagwise.domain import humanise
from lagwise.links import parameters
from lagwise_dashboard import address, context, plot_theme

#: What the parameter `range` may be.
RANGES = {
    "15m": timedelta(minutes=15),
    "1h": timedelta(hours=1),
    "6h": timedelta(hours=6),
    "24h": timedelta(hours=24),
    "7d": timedelta(days=7),
}
_IN_THE_LAST = "in the last "
#: Ranges move on in steps, so that browsers that look at the same moment share one answer.
_STEP_SECONDS = 5
#: Less is not drawn: there are no more points to be seen.
_MIN_SPAN = timedelta(minutes=1)
_MAX_SPAN = timedelta(days=90)
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


def choose(now: datetime) -> TimeRange:
    """The controls, and the span that they and the address ask for."""
    zoomed, complaint = _zoom()
    chosen = address.get(parameters.RANGE)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.segmented_control(
            "Time range",
            list(RANGES),
            format_func=in_words,
            label_visibility="collapsed",
            **address.bound(parameters.RANGE, resets=_ENDS, required=True),
        )
        if zoomed is not None:
            st.button("Leave the zoom", key="leave_zoom", on_click=_leave, icon=":material/zoom_out_map:")
        with st.popover("Zoom to …", icon=":material/zoom_in:", width="content"):
            _inputs(zoomed, now, RANGES[chosen])
    if complaint:
        st.warning(complaint, icon=":material/link_off:")
    if zoomed is not None:
        since, until = zoomed
        return TimeRange(
            since, until, f"from {humanise.clock(since, now)} to {humanise.clock(until, now)}", is_zoom=True
        )
    until = context.rounded_up(now, _STEP_SECONDS)
    return TimeRange(until - RANGES[chosen], until, f"{_IN_THE_LAST}{in_words(chosen)}")


def chart(made: go.Figure, span: TimeRange, *, name: str, alt: str) -> None:
    """Draw a chart of the span, which a reader zooms by dragging over a stretch of it. ``name`` is its own on its
    page."""
    key = f"{name}/{span.name if span.is_zoom else ''}"

    def zoom() -> None:
        boxes: Any = st.session_state[key].selection.get("box", [])
        ends = sorted(filter(None, (_moment(str(x).replace(" ", "T")) for x in boxes[0]["x"]))) if boxes else []
        if len(ends) == 2:
            _go(ends[0], ends[1])

    st.plotly_chart(made, key=key, config=plot_theme.CONFIG, on_select=zoom, selection_mode="box", alt=alt)


def _inputs(zoomed: tuple[datetime, datetime] | None, now: datetime, span: timedelta) -> None:
    """The zoom for those who do not drag: two moments to be typed in."""
    since, until = zoomed or (now - span, now)
    with st.form("zoom", border=False):
        ends = [
            st.datetime_input(label, value=at.astimezone(UTC).replace(tzinfo=None), key=f"zoom_{name}", step=60)
            for label, name, at in (("From, UTC", "from", since), ("To, UTC", "to", until))
        ]
        if st.form_submit_button("Zoom", type="primary") and ends[0] is not None and ends[1] is not None:
            if ends[1] - ends[0] < _MIN_SPAN:
                st.error("The end must lie at least a minute after the beginning.")
            else:
                _go(ends[0].replace(tzinfo=UTC), ends[1].replace(tzinfo=UTC))


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


def _moment(text: str) -> datetime | None:
    """A moment as a chart writes it, UTC; None where it is none."""
    try:
        return parameters.FROM.read([text])
    except ValueError:
        return None
