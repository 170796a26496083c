"""Columns that several tables share."""

from collections.abc import Iterable, Mapping, Sequence
from math import ceil
from typing import Any

import pyarrow as pa
import streamlit as st

from lagwise_dashboard import words

WRITTEN_HELP = "Records written per second, the mean of the last 5 minutes (longer for groups that commit rarely)."
READ_HELP = (
    "Records committed per second, the mean of the last 5 minutes (longer for groups that commit rarely); 0 for "
    "partitions that are stopped or stalled."
)
#: Shown where nothing is known.
PLACEHOLDER = "—"
ROW_HEIGHT = 30
HEADER_HEIGHT = 31
MOST_ROWS_SEEN = 25
#: The lowest rows in which Streamlit wraps text; three lines fit.
WRAPPING_ROW_HEIGHT = 66
_LINE_HEIGHT = 18
_CHARACTER_WIDTH = 6.0
_CELL_PADDING = 16
_MOST_LINES = 5


def status_column(label: str = "Status", *, width: int | None = None) -> Any:
    """A column of badges: each cell is a list of labels (:func:`words.label`) or of plain status words."""
    return badge_column(label, [words.LOOKS[s] for s in words.DISPLAY_ORDER], width=width)


def badge_column(label: str, looks: Sequence[words.Look], *, width: int | None = None) -> Any:
    """A column of badges: each cell is a list of the looks' labels. The help explains them, the worst first."""
    column: Any = st.column_config.MultiselectColumn(
        label,
        options=[look.label for look in looks],
        color=[look.colour for look in looks],
        help="The worst that holds. " + " ".join(f"**{look.label}**: {look.meaning}" for look in looks),
    )
    if width is not None:
        column["width"] = width  # st.column_config.MultiselectColumn's own parameter knows three sizes only
    return column


def right_column(*, width: int | None = None, help: str | None = None) -> Any:
    """A column of humanised numbers: text, but aligned as numbers are."""
    return st.column_config.TextColumn(alignment="right", width=width, help=help)


def queue_column() -> Any:
    """A column of RocketMQ's queues."""
    return st.column_config.TextColumn(help="Broker and queue, as RocketMQ's own tools name them.")


def badges(statuses: Iterable[str | None]) -> list[str]:
    """Statuses as a cell of :func:`status_column`."""
    return [words.look(status).label for status in statuses]


def height(rows: int, row_height: int = ROW_HEIGHT) -> int:
    """Pixels for a table of so many rows, up to a page of them; beyond that it scrolls."""
    return HEADER_HEIGHT + row_height * min(max(rows, 1), MOST_ROWS_SEEN) + 3


def wrapped_height(texts: Iterable[str | None], width: int) -> int:
    """Pixels for rows in which the longest of the texts is wrapped in a column of so many pixels, and can be read."""
    a_line = (width - _CELL_PADDING) / _CHARACTER_WIDTH
    lines = ceil(max((len(text or "") for text in texts), default=0) / a_line)
    if lines <= 1:
        return ROW_HEIGHT
    return max(WRAPPING_ROW_HEIGHT, ROW_HEIGHT + _LINE_HEIGHT * (min(lines, _MOST_LINES) - 1))


def table(columns: Mapping[str, Sequence[Any]]) -> pa.Table:
    """Columns of equal length as what ``st.dataframe`` shows. A column without any value is one of text."""
    return pa.table({name: _array(values) for name, values in columns.items()})


def _array(values: Sequence[Any]) -> pa.Array:
    filled = [v for v in values if v is not None and v != []]
    if not filled:
        return pa.array(values, pa.list_(pa.string()) if any(v == [] for v in values) else pa.string())
    return pa.array(values)
