"""The reader's window: whether it is narrow, as a phone's is, and what is needed to print it."""

from pathlib import Path

import streamlit as st

_KEY = "window"
_COMPONENT = st.components.v2.component(
    "lagwise_window", js=(Path(__file__).parent / "window.js").read_text(encoding="utf-8")
)
#: What browsers on a phone call themselves (the recommendation of those who make them).
_PHONE = "Mobi"


def is_narrow() -> bool:
    """Whether the window is too narrow for a table. Until the browser has reported it, phones are taken to be."""
    reported = st.session_state.get(_KEY, {}).get("is_narrow")
    return _PHONE in (st.context.headers.get("User-Agent") or "") if reported is None else bool(reported)


def watch() -> None:
    """Have the browser report its width; where it becomes narrow or wide, the page is drawn anew."""
    _COMPONENT(key=_KEY, data={"is_narrow": is_narrow()}, on_is_narrow_change=lambda: None, height=1)
