"""The choice of the time zone: the team's, UTC, or that of the reader's browser.

It stands in the address, so that whoever opens a link sees the same hours; with ``time_zone=browser`` everybody sees
their own.
"""

import streamlit as st

from lagwise.domain import humanise
from lagwise.links import parameters
from lagwise.platform.time_zones import time_zone as load
from lagwise_dashboard import address, context, escaping, time_zone
from lagwise_dashboard.time_zone import IN_UTC, ShownZone

BROWSER, _UTC = "browser", "utc"
_NAMES_OF_UTC = ("UTC", "Etc/UTC")


def use() -> None:
    """Show all times of this run in the zone that the address asks for; one that is not known is UTC."""
    time_zone.use(_chosen() or IN_UTC)


def choose() -> None:
    """Draw the control, which says how far from UTC the times of the page are now."""
    shown = time_zone.shown()
    # The default is in the address by having no name there.
    offered = ["", _UTC, BROWSER] if context.config().dashboard.time_zone else ["", BROWSER]
    words = {one: _in_words(one) for one in offered}
    chosen = address.get(parameters.TIME_ZONE)
    # The browser draws what is in a popover only when that is opened, and a value that was set in a run before then is
    # lost. So each choice is a control of its own, which begins with it.
    key = f"time_zone_{chosen}"
    offset = humanise.utc_offset(shown.offset(context.now()).utcoffset(None))
    with st.popover(
        offset,
        icon=":material/schedule:",
        key="time_zones",
        type="tertiary",
        help=f"Time zone of this page: {escaping.markdown(shown.name)}",
    ):
        st.radio(
            "Show times in",
            offered,
            index=offered.index(chosen) if chosen in offered else 0,
            format_func=words.__getitem__,
            key=key,
            on_change=lambda: address.change({parameters.TIME_ZONE: st.session_state[key]}),
        )
        st.caption("The address keeps it. Exports are always UTC.")


def _chosen() -> ShownZone | None:
    """The zone that the address asks for; None where it is the browser's and that is not known."""
    word = address.get(parameters.TIME_ZONE)
    if word == BROWSER:
        return _of_browser()
    team = context.config().dashboard.time_zone
    return _named(team) if team and word != _UTC else IN_UTC


def _of_browser() -> ShownZone | None:
    """The zone of the reader's browser, which may send any text; None where it sends no zone that is known here."""
    try:
        return _named(st.context.timezone or "")
    except ValueError:
        return None


def _named(name: str) -> ShownZone:
    """The zone of this name. Raises ValueError where there is none."""
    return IN_UTC if name in _NAMES_OF_UTC else ShownZone(name, load(name))


def _in_words(word: str) -> str:
    """A choice as the reader sees it, in Markdown."""
    if word == BROWSER:
        found = _of_browser()
        return f"Browser ({escaping.markdown(found.name) if found else 'unknown, so UTC'})"
    team = context.config().dashboard.time_zone
    return f"Team ({escaping.markdown(team)})" if team and word != _UTC else "UTC"
