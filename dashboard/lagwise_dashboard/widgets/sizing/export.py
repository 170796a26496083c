"""The whole advice to take away: figures as CSV, and a report of one HTML file that needs nothing else.

A button of Streamlit's puts its file under an address, which the server gives to whoever asks, signed in or not. So the
file goes to the page on its own connection, and the script of a component of our own hands it to the browser.
"""

import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import streamlit as st

from lagwise_dashboard import address
from lagwise_dashboard.csv_export import file_name
from lagwise_dashboard.report.capacity_report import CapacityReport
from lagwise_dashboard.report.csv_file import as_csv
from lagwise_dashboard.report.html_file import as_html
from lagwise_dashboard.widgets import component

_COMPONENT = component.declared("export", Path(__file__).parent, "export")
_KEY, _ASKED = "capacity_export", "capacity_export_asked"
_MADE = {"csv": as_csv, "html": as_html}
#: For so long every drawing sends a file that was asked for; the browser saves it once. Another drawing may replace
#: what was sent before the browser has seen it.
_OFFERED_SECONDS = 30.0


@dataclass(slots=True)
class _ExportState:
    """What the page shows at this moment, and whether its buttons were drawn as ones that can be clicked."""

    report: CapacityReport | None = None
    can_be_clicked: bool | None = None


def _state() -> _ExportState:
    """That of the page which is drawn: what another one showed is not offered here."""
    key = f"exported_{address.current_page().path}"
    state: _ExportState = st.session_state.setdefault(key, _ExportState())
    return state


def offer(report: CapacityReport | None) -> None:
    """From now on the buttons give this; None where there is nothing to take away."""
    state = _state()
    state.report = report
    is_drawn_otherwise = state.can_be_clicked not in (None, report is not None)
    state.can_be_clicked = report is not None
    if is_drawn_otherwise:
        st.rerun()


def show() -> None:
    """Two buttons; a file is made when it is asked for, of what the page shows then. They are not part of what is
    refreshed, which would draw them for nothing."""
    state = _state()
    data = {"can_be_clicked": bool(state.can_be_clicked), "file": _file(state.report)}
    _COMPONENT(key=_KEY, data=data, on_asked_change=_ask, width="content", height="content")


def _ask() -> None:
    asked = st.session_state[_KEY].asked
    st.session_state[_ASKED] = asked["kind"], asked["id"], time.monotonic()


def _file(report: CapacityReport | None) -> dict[str, Any] | None:
    """What was asked for a moment ago; None where nothing was, or there is nothing to take away."""
    kind, id_, asked_at = st.session_state.get(_ASKED, (None, None, -math.inf))
    if report is None or kind not in _MADE or time.monotonic() - asked_at >= _OFFERED_SECONDS:
        return None
    about = () if report.row is None else (report.row["cluster"], report.row["group"])
    name = file_name("capacity", about, report.now, kind)
    return {"kind": kind, "id": id_, "name": name, "text": _MADE[kind](report)}
