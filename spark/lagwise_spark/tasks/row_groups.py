"""Row groups of data files: what their statistics tell of them, and their rows."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lagwise.domain.verdicts.columns import Array

#: What topic-partitions go by.
KEY = ("cluster", "topic", "partition")
#: delta-rs cuts names in statistics at 64 bytes.
_LONGEST_WHOLE_NAME = 64


class Ends(NamedTuple):
    """The smallest and the largest value of a column of a row group, as names or as numbers (times in microseconds).
    None: not known; or there is nothing but nulls, if it ``is_constant``. Statistics do not tell of NaN, which our
    files do not hold (it is null there), and give 0.0 as the range from -0.0 to 0.0."""

    low: Any
    high: Any
    is_constant: bool


@dataclass(frozen=True)
class RowGroup:
    """Rows of a row group.

    Attributes:
        count: how many there are.
        columns: those with several values; names come as dictionaries.
        same: the value of each column that has only one: a name, a number, a time in microseconds, or None.
    """

    count: int
    columns: Mapping[str, pa.Array]
    same: Mapping[str, Any]

    def named(self, name: str) -> tuple[list[str], Array]:
        """A column of names: the distinct ones, and the place of each row's among them."""
        if name in self.same:
            return [self.same[name]], np.zeros(self.count, np.int8)
        encoded = self.columns[name]
        return encoded.dictionary.to_pylist(), encoded.indices.to_numpy(zero_copy_only=False)

    def number(self, name: str) -> Any:
        """A column of numbers none of which is null, or its only value."""
        return self.same[name] if name in self.same else self.columns[name].to_numpy(zero_copy_only=False)

    @property
    def bytes(self) -> int:
        """About how much memory they take."""
        return sum(values.nbytes for values in self.columns.values())

    def filtered(self, mask: Array) -> "RowGroup":
        """The rows that a mask holds for."""
        chosen = pa.array(mask)
        columns = {name: values.filter(chosen) for name, values in self.columns.items()}
        return RowGroup(int(mask.sum()), columns, self.same)

    def table(self, schema: pa.Schema) -> pa.Table:
        """The rows as a table of these columns; names stay dictionaries."""
        made = [
            _repeated(self.same[f.name], f.type, self.count) if f.name in self.same else self.columns[f.name]
            for f in schema
        ]
        return pa.Table.from_arrays(made, names=schema.names)


class RowGroups:
    """The row groups of a file, of which some columns are wanted. The file is open until :meth:`close`, and again while
    more of it is read."""

    def __init__(self, open_: Callable[[], pq.ParquetFile], wanted: pa.Schema) -> None:
        self._open, self._wanted = open_, wanted
        self._file: pq.ParquetFile | None = open_()
        self._metadata = self._file.metadata
        columns = range(self._metadata.num_columns)
        self._place = {self._metadata.schema.column(number).path: number for number in columns}
        #: Columns that are younger than the file: null in all of its rows.
        self._younger = set(wanted.names).difference(self._file.schema_arrow.names)
        self._known: dict[tuple[int, str], Ends] = {}
        self._keys: dict[int, tuple[tuple[Any, ...], tuple[Any, ...]]] = {}

    def open_with(self, open_: Callable[[], pq.ParquetFile]) -> None:
        """Open the file in this way when more of it is read: credentials of an object store may have changed."""
        self._open = open_

    def close(self) -> None:
        """Close the file. What is known of it stays known."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def __iter__(self) -> Iterator[int]:
        """The numbers of those that have rows."""
        return (n for n in range(self._metadata.num_row_groups) if self._metadata.row_group(n).num_rows)

    def ends(self, group: int, name: str) -> Ends:
        """What the statistics tell of a column."""
        if (group, name) not in self._known:
            its = self._metadata.row_group(group).column(self._place[name]) if name in self._place else None
            known = _ends_of(None if its is None else its.statistics)
            self._known[group, name] = Ends(None, None, True) if name in self._younger else known
        return self._known[group, name]

    def keys(self, group: int) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Two topic-partitions between which all of its rows lie, as far as that is known. The statistics are of each
        column by itself: no row need have one of these."""
        if group not in self._keys:
            known = list(takewhile(lambda its: its.low is not None, (self.ends(group, name) for name in KEY)))
            self._keys[group] = tuple(its.low for its in known), tuple(its.high for its in known)
        return self._keys[group]

    def read(self, group: int) -> RowGroup:
        """The rows of one. Columns that hold one value only are not read from the file."""
        same = {f.name: ends.high for f in self._wanted if (ends := self.ends(group, f.name)).is_constant}
        others = [f.name for f in self._wanted if f.name not in same]
        self._file = self._file or self._open()
        rows = self._file.read_row_group(group, columns=others, use_threads=False).combine_chunks()
        columns = {name: rows[name].chunk(0) for name in others}
        return RowGroup(self._metadata.row_group(group).num_rows, columns, same)


def _ends_of(its: Any) -> Ends:
    if its is None:
        return Ends(None, None, False)
    if its.has_null_count and its.num_values == 0:
        return Ends(None, None, True)
    if not its.has_min_max:
        return Ends(None, None, False)
    low, high = its.min_raw, its.max_raw
    is_whole = True
    if isinstance(low, bytes):
        is_whole = len(low) < _LONGEST_WHOLE_NAME
        low, high = low.decode(errors="replace"), high.decode(errors="replace")
    return Ends(low, high, is_whole and low == high and its.has_null_count and its.null_count == 0)


def _repeated(value: Any, kind: pa.DataType, count: int) -> pa.Array:
    if pa.types.is_string(kind):
        names = pa.array([] if value is None else [value], pa.string())
        index = pa.nulls(count, pa.int32()) if value is None else pa.repeat(pa.scalar(0, pa.int32()), count)
        return pa.DictionaryArray.from_arrays(index, names)
    if value is None:
        return pa.nulls(count, kind)
    return pa.repeat(pa.scalar(value).cast(kind) if pa.types.is_timestamp(kind) else pa.scalar(value, kind), count)
