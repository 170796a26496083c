"""How often a page refreshes itself: the switch that holds it, and the interval.

The interval stands in the address, so that a reload, the menu and the bookmark of a screen on the wall keep it. That a
page is held does not: whoever opened such a link would see neither what the sender saw nor anything newer.
"""

from datetime import timedelta

import streamlit as st

from lagwise.domain import humanise
from lagwise.links import parameters
from lagwise_dashboard import address, context

LIVE = "live"
#: Whether the reader holds the pages: the switch itself is another one on every page.
_PAUSED = "paused"
#: What the parameter `refresh` may be.
INTERVALS = {
    "5s": timedelta(seconds=5),
    "15s": timedelta(seconds=15),
    "1m": timedelta(minutes=1),
    "5m": timedelta(minutes=5),
}


def choose() -> float | None:
    """Draw the controls. Returns the seconds between two refreshes; None while the page is held."""
    default = context.config().dashboard.refresh_seconds
    seconds = {name: length.total_seconds() for name, length in INTERVALS.items()}
    # The default is in the address by having no name there.
    offered = {name: every for name, every in seconds.items() if every != default} | {"": default}
    is_live = st.toggle(
        "Live",
        value=not st.session_state.get(_PAUSED, False),
        key=LIVE,
        on_change=_remember_pause,
        help="Switch it off to keep what you see.",
    )
    st.selectbox(
        "Refresh",
        sorted(offered, key=lambda name: offered[name]),
        format_func=lambda name: f"every {humanise.duration(offered[name])}",
        label_visibility="collapsed",
        filter_mode=None,
        disabled=not is_live,
        width=116,
        **address.bound(parameters.REFRESH, empty="", options=list(offered)),
    )
    return seconds.get(address.get(parameters.REFRESH), default) if is_live else None


def _remember_pause() -> None:
    st.session_state[_PAUSED] = not st.session_state[LIVE]
