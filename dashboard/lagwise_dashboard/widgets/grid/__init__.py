"""Draw a table. It is a component of our own, as Streamlit's is a picture: a picture is cut when it is printed, holds
the Tab key, and cannot be searched, copied or read aloud."""

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import streamlit as st

from lagwise.links.parameter_types import REVERSED, Parameter
from lagwise_dashboard import address, context
from lagwise_dashboard.csv_export import as_csv, file_name
from lagwise_dashboard.queries.listing import Orders
from lagwise_dashboard.tables import TableColumn
from lagwise_dashboard.widgets import component, reserved

_COMPONENT = component.declared("table", Path(__file__).parent, "grid")
MAX_VISIBLE_ROWS = 25
#: Pixels: of the headings, of a row of one line, and of what is below the rows (grid.css).
_HEADINGS_HEIGHT, _ROW_HEIGHT, _BELOW_HEIGHT = 33, 29, 22
#: JSON knows no infinity.
_LARGEST = 1e308
#: For so long every refresh sends a file that was asked for; the browser saves it once. A refresh may replace what was
#: sent before the browser has seen it.
_FILE_OFFERED_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Sorting:
    """Sorting in the query, where there may be more rows than are shown. The columns name their ``orders``, and
    ``parameter`` is where the address holds the one in force."""

    orders: Orders
    parameter: Parameter[str]

    def choose(self, order: str) -> None:
        """Sort by this order, reversed at the second click, and as usual at the third. To be called in a callback."""
        now = address.get(self.parameter)
        requested = {order: REVERSED + order, REVERSED + order: None}.get(now, order)
        address.change({self.parameter: requested})

    @property
    def direction(self) -> str:
        """Of what is in force, as ARIA calls it."""
        return "descending" if self.orders.is_descending(address.get(self.parameter)) else "ascending"


def show(
    columns: Sequence[TableColumn],
    *,
    name: str,
    label: str,
    about: Iterable[str] = (),
    links: Sequence[str] | None = None,
    linked: str = "Group",
    visible_rows: int = MAX_VISIBLE_ROWS,
    sorting: Sorting | None = None,
    sorts: bool = True,
    all_rows: Callable[[], Sequence[TableColumn]] | None = None,
) -> None:
    """Draw the table; a click on a row goes where its link leads.

    ``name`` is its own on its page; with what the table is ``about`` it names the file of a CSV. ``label`` is what a
    screen reader says. The column ``linked`` holds the links. More than ``visible_rows`` rows can be scrolled to.

    Where the rows are a page of a longer list, ``all_rows`` reads all of it for the CSV. Without ``sorting`` the
    browser sorts the rows it has; with ``sorts`` false it does not sort, as for one page of several.
    """
    key = f"table_{name}"
    data = data_of(
        columns, label=label, links=links, linked=linked, visible_rows=visible_rows, sorting=sorting, sorts=sorts
    )
    requested, requested_at = st.session_state.get(f"{key}_file", (None, -math.inf))
    if time.monotonic() - requested_at < _FILE_OFFERED_SECONDS:
        data["file"] = {
            "id": requested,
            "name": file_name(name, about, context.now()),
            "text": as_csv(all_rows() if all_rows else columns),
        }

    def export() -> None:
        st.session_state[f"{key}_file"] = st.session_state[key].export, time.monotonic()

    def sort() -> None:
        orders = _orders(columns)
        if sorting is not None and st.session_state[key].sort in orders:
            sorting.choose(orders[st.session_state[key].sort])

    with reserved.room(key, _HEADINGS_HEIGHT + _ROW_HEIGHT * min(data["rows"], visible_rows) + _BELOW_HEIGHT):
        _COMPONENT(key=key, data=data, on_export_change=export, on_sort_change=sort)


def data_of(
    columns: Sequence[TableColumn],
    *,
    label: str,
    links: Sequence[str] | None = None,
    linked: str = "Group",
    visible_rows: int = MAX_VISIBLE_ROWS,
    sorting: Sorting | None = None,
    sorts: bool = True,
) -> dict[str, Any]:
    """What the script of a table is given (arguments as of :func:`show`)."""
    return {
        "label": label,
        "columns": [
            _column_data(column, links=links is not None and column.title == linked, sorts=sorts and sorting is None)
            for column in columns
        ],
        "rows": len(columns[0].cells) if columns else 0,
        "links": links,
        "visible_rows": visible_rows,
        "orders": _orders(columns) if sorting else None if sorts else {},
        "ordered_by": sorting and address.get(sorting.parameter).removeprefix(REVERSED),
        "direction": sorting and sorting.direction,
    }


def _orders(columns: Sequence[TableColumn]) -> dict[str, str]:
    """The orders that headings ask the list for, by title."""
    return {column.title: column.list_order for column in columns if column.list_order}


def _column_data(column: TableColumn, *, links: bool, sorts: bool) -> dict[str, Any]:
    """The column definition sent to the browser, with what it sorts by if it ``sorts`` there."""
    return {
        "title": column.title,
        "kind": column.kind,
        "cells": column.cells,
        "order": None if column.order is None or not sorts else [_finite(value) for value in column.order],
        "help": column.help,
        "width": column.width,
        "wraps": column.max_lines if column.wraps else 0,
        "axis": column.axis,
        "colours": column.colours,
        "links": links,
    }


def _finite(value: float | None) -> float | None:
    return value if value is None or math.isfinite(value) else math.copysign(_LARGEST, value)
