"""Find anything by a part of its name, from any page: a button in the frame that opens a dialog.

The dialog is the browser's own: it holds the focus, gives it back, and a refresh of the page does not touch it. What is
typed asks for one answer at a time, by a fragment of its own. Until it is opened, nothing of it is read or sent.
"""

import logging
from pathlib import Path
from typing import Any

import streamlit as st

from lagwise.platform.errors import LagwiseError
from lagwise.platform.log_events import LogEvent, event
from lagwise.platform.logs import clean
from lagwise_dashboard import appearance, escaping
from lagwise_dashboard.widgets import component
from lagwise_dashboard.widgets.error_boundary import boundary
from lagwise_dashboard.widgets.finder import hits
from lagwise_dashboard.widgets.finder.hits import Hit, Kind

log = logging.getLogger("lagwise.dashboard")

_COMPONENT = component.declared("finder", Path(__file__).parent, "finder")
_KEY = "finder"
#: The text that is looked for in this run.
_ASKED = "finder_asked"
#: A name of Kafka's or RocketMQ's has at most 255 characters, and the name of a partition a few more.
_MAX_LENGTH = 500


@st.fragment
def show() -> None:
    """Draw the button."""
    with boundary():
        text = st.session_state.pop(_ASKED, None)
        _COMPONENT(
            key=_KEY,
            data=None if text is None else _answer(text),
            on_question_change=_ask,
            width="content",
            height="content",
        )


def _ask() -> None:
    st.session_state[_ASKED] = str(st.session_state[_KEY].question["text"])[:_MAX_LENGTH]


def _answer(text: str) -> dict[str, Any]:
    """What the browser is sent: what was found, and in ``says`` what is to be said about it."""
    try:
        kinds = hits.found(text)
    except LagwiseError as error:
        log.warning("nothing can be found: %s", error, extra=event(LogEvent.PAGE_ERROR))
        return {"text": text, "kinds": [], "says": escaping.visible(clean(str(error)))}
    shown, total = sum(len(kind.hits) for kind in kinds), sum(kind.total for kind in kinds)
    says = ""
    if not total:
        says = "Nothing has this in its name."
    elif text and total > shown:
        says = f"{shown} of {total:,}: type more of the name to find the others."
    elif text:
        says = f"{total} found."
    return {"text": text, "kinds": [_kind(kind) for kind in kinds], "says": says}


def _kind(kind: Kind) -> dict[str, Any]:
    more = kind.total > len(kind.hits)
    return {
        "title": kind.title,
        "counted": f"{len(kind.hits)} of {kind.total:,}" if more else "",
        "hits": [_hit(hit) for hit in kind.hits],
    }


def _hit(hit: Hit) -> dict[str, Any]:
    shown = {"href": hit.href, "name": escaping.visible(hit.name) or "(empty name)", "about": hit.about}
    if hit.status is None:
        return shown
    status = appearance.of_status(hit.status)
    return shown | {"sign": status.sign, "word": status.word, "colour": status.colour}
