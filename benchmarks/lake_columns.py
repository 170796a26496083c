"""Columns of made-up lakes, many rows at once."""

from datetime import datetime

import numpy as np
import pyarrow as pa

from lagwise.tables.schema import TIMESTAMP


def named(index: np.ndarray, names: pa.Array) -> pa.Array:
    """Names by their numbers."""
    return pa.DictionaryArray.from_arrays(pa.array(index.astype(np.int32)), names).cast(pa.string())


def same(at: datetime, rows: int) -> pa.Array:
    """One moment in every row."""
    return pa.array([at], TIMESTAMP).take(pa.array(np.zeros(rows, np.int32)))
