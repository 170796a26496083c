"""Rows of a made-up lake: what every test and benchmark that fills tables by itself builds them with."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake

from lagwise.tables.schema import Table
from lagwise.tables.store import Lake

#: A moment for columns that need one.
AT = datetime(2026, 11, 21, 3, 14, 15, tzinfo=UTC)
_FILLERS: dict[str, Any] = {
    "string": "x",
    "int32": 0,
    "int64": 0,
    "double": 0.0,
    "bool": False,
    "timestamp[us, tz=UTC]": AT,
}


def row(table: Table, **values: Any) -> dict[str, Any]:
    """A row with these values; other columns that may not be null hold something harmless."""
    filled: dict[str, Any] = {}
    for column in table.columns:
        filler = [] if pa.types.is_list(column.type) else _FILLERS.get(str(column.type))
        filled[column.name] = values.pop(column.name, None if column.nullable else filler)
    assert not values, f"no such column: {sorted(values)}"
    return filled


def append(lake: Lake, table: Table, rows: Iterable[Mapping[str, Any]]) -> None:
    """Append rows; columns that a row does not name are null."""
    lake.append(table, table.from_rows(rows))


def overwrite(lake: Lake, table: Table, rows: Iterable[Mapping[str, Any]]) -> None:
    """Replace the table's rows, as the analysis does with the present state."""
    write_deltalake(lake.location(table), table.from_rows(rows).cast(table.arrow), mode="overwrite")
