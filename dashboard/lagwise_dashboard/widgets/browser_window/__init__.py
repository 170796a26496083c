"""The reader's window: whether it is narrow, as a phone's is, and what is needed to print it."""

import re
from pathlib import Path

import streamlit as st

from lagwise_dashboard.widgets import component

_KEY = "window"
_COMPONENT = component.declared("window", Path(__file__).parent, "window")
#: Colours of the theme that components use. Paper has those of the light one.
_COLOURS = (
    "primaryColor",
    "backgroundColor",
    "secondaryBackgroundColor",
    "textColor",
    "linkColor",
    "borderColor",
    "dataframeBorderColor",
    "dataframeHeaderBackgroundColor",
    "dataframeHeaderTextColor",
)
_CAPITAL = re.compile("(?=[A-Z])")
#: What browsers on a phone call themselves (the recommendation of those who make them).
_PHONE = "Mobi"


def is_narrow() -> bool:
    """Whether the window is too narrow for a table. Until the browser has reported it, phones are taken to be."""
    reported = st.session_state.get(_KEY, {}).get("is_narrow")
    return _PHONE in (st.context.headers.get("User-Agent") or "") if reported is None else bool(reported)


def watch() -> None:
    """Have the browser report its width, and prepare the page when it is printed. Where it becomes narrow or wide, the
    page is drawn anew."""
    data = {"is_narrow": is_narrow(), "paper": _paper_colours()}
    _COMPONENT(key=_KEY, data=data, on_is_narrow_change=lambda: None, height=1)


def _paper_colours() -> dict[str, str]:
    """The colours of paper by the names that components know them by: ``--st-text-color``."""
    colours = {name: st.get_option(f"theme.light.{name}") for name in _COLOURS}
    return {f"--st-{_CAPITAL.sub('-', name).lower()}": colour for name, colour in colours.items() if colour}
