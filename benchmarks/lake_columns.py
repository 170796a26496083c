"""Columns of made-up lakes, many rows at once."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from lagwise.tables.schema import TIMESTAMP, Table


def named(index: np.ndarray, names: pa.Array) -> pa.Array:
    """Names by their numbers."""
    return pa.DictionaryArray.from_arrays(pa.array(index.astype(np.int32)), names).cast(pa.string())


def same(at: datetime, rows: int) -> pa.Array:
    """One moment in every row."""
    return pa.array([at], TIMESTAMP).take(pa.array(np.zeros(rows, np.int32)))


def rows_of(table: Table, rows: int, columns: Mapping[str, Any]) -> pa.Table:
    """Columns of a table as Arrow, without ``day``; those that are not given are null in all ``rows``."""
    schema = table.without_day
    return pa.table([columns.get(f.name, pa.nulls(rows, f.type)) for f in schema], schema=schema)
