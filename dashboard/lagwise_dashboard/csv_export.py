"""A table as a CSV to take away: raw values under names that carry the unit, in a file that says what it is of."""

import csv
import io
import math
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from lagwise_dashboard import escaping
from lagwise_dashboard.tables import TableColumn

#: Longer names are cut: a file's name holds 255 bytes.
_MAX_PART_LENGTH = 60


def as_csv(columns: Sequence[TableColumn]) -> str:
    """The table; one column may make several, a trend makes none."""
    raw = ((name, *values) for column in columns for name, values in column.raw.items())
    return rows_as_csv(zip(*raw, strict=True))


def rows_as_csv(rows: Iterable[Iterable[object]]) -> str:
    """Rows, the first of which holds the names of the columns."""
    made = io.StringIO()
    csv.writer(made, lineterminator="\n").writerows([_cell(value) for value in row] for row in rows)
    return made.getvalue()


def file_name(table: str, about: Iterable[str], now: datetime, kind: str = "csv") -> str:
    """``lagwise-partitions-prod-orders-2026-11-21T120005Z.csv``: the table, what it is about, and when."""
    parts = ("lagwise", table, *about, f"{now.astimezone(UTC):%Y-%m-%dT%H%M%SZ}")
    return "-".join(filter(None, map(_plain, parts))) + f".{kind}"


def _plain(part: Any) -> str:
    return re.sub(r"[^\w.]+", "-", str(part))[:_MAX_PART_LENGTH].strip("-.")


#: A spreadsheet takes a text that begins so for a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def _cell(value: object) -> object:
    """Text on one line and never a formula, moments as ISO 8601 in UTC; what is not known is empty."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, str):
        text = escaping.visible(value)
        return f"'{text}" if text.startswith(_FORMULA) else text
    return value
