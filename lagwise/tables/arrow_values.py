"""Arrow's columns as Python's values, without pandas.

To convert a time with a time zone, pyarrow imports pandas (half a second) and is then several times slower than this.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from lagwise.tables.schema import TIMESTAMP

_EPOCH = datetime.fromtimestamp(0, UTC)
_MICROSECOND = timedelta(microseconds=1)


def values_of(column: pa.ChunkedArray) -> list[Any]:
    """All values of a column, times in UTC."""
    if column.type != TIMESTAMP:
        values: list[Any] = column.to_pylist()
        return values
    counted = (value for chunk in column.chunks for value in chunk.view(pa.int64()).to_pylist())
    return [None if value is None else _EPOCH + value * _MICROSECOND for value in counted]


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    """The rows, by the columns' names."""
    columns = [values_of(column) for column in table.columns]
    return [dict(zip(table.column_names, values, strict=True)) for values in zip(*columns, strict=True)]
