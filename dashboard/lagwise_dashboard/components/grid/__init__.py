"""Draw a table. It is a component of our own, as Streamlit's is a picture: a picture is cut when it is printed, holds
the Tab key, and cannot be searched, copied or read aloud."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from lagwise_dashboard import settings
from lagwise_dashboard.tables.columns import Column
from lagwise_dashboard.tables.export import as_csv, file_name

_HERE = Path(__file__).parent
_COMPONENT = st.components.v2.component(
    "lagwise_table",
    css=(_HERE / "grid.css").read_text(encoding="utf-8"),
    js=(_HERE / "grid.js").read_text(encoding="utf-8"),
)
MOST_ROWS_SEEN = 25
#: JSON knows no infinity.
_LARGEST = 1e308


@dataclass(frozen=True, slots=True)
class Link:
    """A page of the dashboard with its query."""

    view: str
    query: Mapping[str, str]

    @property
    def href(self) -> str:
        """Relative, as all pages lie beside each other: ``group?cluster=prod&group=orders``."""
        page = self.view.removeprefix("views/").removesuffix(".py")
        return f"{page}?{urlencode(self.query)}" if self.query else page


@dataclass(frozen=True, slots=True)
class Order:
    """Sorting by whoever found the rows, where there may be more than are shown: ``by`` are orders by the title of a
    column, and ``choose`` hears of the one that is asked for; of ``otherwise``, where that is the ``current`` one."""

    by: Mapping[str, str]
    current: str
    choose: Callable[[str], None]
    otherwise: str


def show(
    columns: Sequence[Column],
    *,
    name: str,
    label: str,
    about: Iterable[str] = (),
    links: Sequence[Link] | None = None,
    linked: str = "Group",
    rows_seen: int = MOST_ROWS_SEEN,
    order: Order | None = None,
) -> None:
    """Draw the table; a click on a row goes where its link leads.

    ``name`` is its own on its page; with what the table is ``about`` it names the file of a CSV. ``label`` is what a
    screen reader says. The column ``linked`` holds the links. More than ``rows_seen`` rows can be scrolled to.
    """
    key = f"table_{name}"
    data: dict[str, Any] = {
        "label": label,
        "columns": [_column(column, links=links is not None and column.title == linked) for column in columns],
        "keys": _keys(columns, links),
        "links": None if links is None else [link.href for link in links],
        "rows_seen": rows_seen,
        "orders": order and dict(order.by),
        "ordered_by": order and order.current,
    }
    asked = st.session_state.pop(f"{key}_file", None)
    if asked is not None:
        data["file"] = {"id": asked, "name": file_name(name, about, settings.now()), "text": as_csv(columns)}

    def export() -> None:
        st.session_state[f"{key}_file"] = st.session_state[key].export

    def sort() -> None:
        if order is not None:
            asked_for = order.by.get(st.session_state[key].sort)
            order.choose(order.otherwise if asked_for in (None, order.current) else str(asked_for))

    _COMPONENT(
        key=key,
        data=data,
        on_export_change=export,
        on_sort_change=sort,
    )


def _column(column: Column, *, links: bool) -> dict[str, Any]:
    """What the browser is told of a column."""
    return {
        "title": column.title,
        "kind": column.kind,
        "shown": column.shown,
        "order": None if column.order is None else [_finite(value) for value in column.order],
        "help": column.help,
        "width": column.width,
        "wraps": column.wraps,
        "colours": column.colours,
        "links": links,
    }


def _keys(columns: Sequence[Column], links: Sequence[Link] | None) -> list[str]:
    """What a row is known by from one refresh to the next: where it leads, and its place among those that do."""
    number = len(columns[0].shown) if columns else 0
    named = [str(i) for i in range(number)] if links is None else [link.href for link in links]
    seen: dict[str, int] = {}
    for i, key in enumerate(named):
        seen[key] = times = seen.get(key, 0) + 1
        named[i] = f"{key}#{times}"
    return named


def _finite(value: float | None) -> float | None:
    return value if value is None or math.isfinite(value) else math.copysign(_LARGEST, value)
