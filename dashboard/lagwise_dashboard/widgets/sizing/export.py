"""The whole advice to take away: figures as CSV, and a report of one HTML file that needs nothing else."""

from collections.abc import Callable
from dataclasses import dataclass

import streamlit as st

from lagwise_dashboard import address
from lagwise_dashboard.report.capacity_report import CapacityReport
from lagwise_dashboard.report.csv_file import as_csv
from lagwise_dashboard.report.html_file import as_html


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
    """Two buttons; a file is made when it is asked for, of what the page shows then.

    They are not part of what is refreshed: Streamlit forgets at every refresh how the file of the button before it is
    made, and a click that comes before the browser has the new button is lost.
    """
    state = _state()
    with st.container(horizontal=True):
        _button("Figures as CSV", "csv", "text/csv", state, as_csv)
        _button("Report as HTML", "html", "text/html", state, as_html)


def _button(label: str, kind: str, mime: str, state: _ExportState, made: Callable[[CapacityReport], str]) -> None:
    def data() -> bytes:
        assert state.report is not None, "the button cannot be clicked"
        return made(state.report).encode()

    st.download_button(
        label,
        data=data,
        file_name=f"lagwise-capacity.{kind}",
        mime=mime,
        key=f"capacity_{kind}",
        on_click="ignore",
        icon=":material/download:",
        disabled=not state.can_be_clicked,
    )
