"""The span of time that a page looks at, in its address: a range up to now, or what was zoomed into.

A zoom is asked of the lake anew, so that it shows finer points, and whoever opens the address sees the same.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import streamlit as st

from lagwise.domain import humanise

RANGES = {
    "15 min": timedelta(minutes=15),
    "1 h": timedelta(hours=1),
    "6 h": timedelta(hours=6),
    "24 h": timedelta(hours=24),
    "7 d": timedelta(days=7),
}
DEFAULT = "1 h"
_FROM, _TO = "from", "to"
_IN_THE_LAST = "in the last "
#: Ranges move on in steps, so that browsers that look at the same moment share one answer.
_STEP_SECONDS = 5
#: Less is not drawn: there are no more points to be seen.
_SHORTEST = timedelta(minutes=1)
_LONGEST = timedelta(days=90)


@dataclass(frozen=True, slots=True)
class Span:
    """From when until when. ``words`` follow a sentence about it: ``in the last 1 h``."""

    since: datetime
    until: datetime
    words: str
    is_zoom: bool = False

    @property
    def name(self) -> str:
        """The same while the reader's view of a chart is to survive refreshes."""
        return (
            f"{_written(self.since)}/{_written(self.until)}" if self.is_zoom else self.words.removeprefix(_IN_THE_LAST)
        )


def choose(now: datetime) -> Span:
    """The controls, and the span that they and the address ask for."""
    with st.container(horizontal=True, vertical_alignment="center"):
        chosen = st.segmented_control(
            "Time range",
            list(RANGES),
            default=DEFAULT,
            required=True,
            key="range",
            bind="query-params",
            on_change=_leave,
            label_visibility="collapsed",
        )
        zoomed = _of_address()
        if zoomed is not None:
            st.button("Leave the zoom", key="leave_zoom", on_click=_leave, icon=":material/zoom_out_map:")
        with st.popover("Zoom to …", icon=":material/zoom_in:", width="content"):
            _inputs(zoomed, now, RANGES[chosen or DEFAULT])
    if zoomed is not None:
        since, until = zoomed
        return Span(since, until, f"from {humanise.clock(since, now)} to {humanise.clock(until, now)}", is_zoom=True)
    until = datetime.fromtimestamp(-(-now.timestamp() // _STEP_SECONDS) * _STEP_SECONDS, now.tzinfo)
    return Span(until - RANGES[chosen or DEFAULT], until, f"{_IN_THE_LAST}{chosen or DEFAULT}")


def to_selection(key: str) -> Callable[[], None]:
    """What to do when a stretch of the chart with this key was dragged over: zoom to it."""

    def zoom() -> None:
        boxes: Any = st.session_state[key].selection.get("box", [])
        ends = sorted(filter(None, (_moment(str(x).replace(" ", "T")) for x in boxes[0]["x"]))) if boxes else []
        if len(ends) == 2:
            _go(ends[0], ends[1])

    return zoom


def _inputs(zoomed: tuple[datetime, datetime] | None, now: datetime, span: timedelta) -> None:
    """The zoom for those who do not drag: two moments to be typed in."""
    since, until = zoomed or (now - span, now)
    with st.form("zoom", border=False):
        ends = [
            st.datetime_input(label, value=at.astimezone(UTC).replace(tzinfo=None), key=f"zoom_{name}", step=60)
            for label, name, at in (("From, UTC", _FROM, since), ("To, UTC", _TO, until))
        ]
        if st.form_submit_button("Zoom", type="primary") and ends[0] is not None and ends[1] is not None:
            if ends[1] - ends[0] < _SHORTEST:
                st.error("The end must lie at least a minute after the beginning.")
            else:
                _go(ends[0].replace(tzinfo=UTC), ends[1].replace(tzinfo=UTC))
                st.rerun(scope="fragment")


def _go(since: datetime, until: datetime) -> None:
    since, until = since.replace(microsecond=0), until.replace(microsecond=0)
    if until - since < _SHORTEST:
        middle = since + (until - since) / 2
        since, until = middle - _SHORTEST / 2, middle + _SHORTEST / 2
    st.query_params[_FROM], st.query_params[_TO] = _written(since), _written(until)


def _leave() -> None:
    for name in (_FROM, _TO):
        if name in st.query_params:
            del st.query_params[name]


def _of_address() -> tuple[datetime, datetime] | None:
    """The zoom in the address; None where there is none that makes sense."""
    since, until = (_moment(st.query_params.get(name, "")) for name in (_FROM, _TO))
    if since is None or until is None or not _SHORTEST <= until - since <= _LONGEST:
        return None
    return since, until


def _written(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _moment(text: str) -> datetime | None:
    """A moment as it is written in an address or told by a chart; without a zone it is UTC."""
    try:
        at = datetime.fromisoformat(text)
        return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None
