"""Data files of the lake, read and written by tasks themselves."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lagwise.domain.verdicts.columns import Array
from lagwise.tables.data_files import opened_file
from lagwise.tables.schema import Table, no_rows
from lagwise.tables.written_files import write_rows

_KEY = ("cluster", "topic", "partition")
#: delta-rs cuts names in statistics at 64 bytes.
_LONGEST_WHOLE_NAME = 64


@dataclass(frozen=True)
class KeyRange:
    """Topic-partitions from ``start`` up to, not including, ``stop``: (cluster, topic, partition) each, None is no
    limit. A task works on those of a range, with all groups that read them."""

    start: tuple[str, str, int] | None = None
    stop: tuple[str, str, int] | None = None

    def of(self, cluster: str) -> "KeyRange":
        """What of it belongs to a cluster."""
        start, stop = (cluster, "", 0), (f"{cluster}\0", "", 0)
        return KeyRange(max(self.start or start, start), min(self.stop or stop, stop))

    def may_hold(self, low: tuple[Any, ...], high: tuple[Any, ...]) -> bool:
        """Whether any of the rows whose keys, or the first parts of them, lie between these may belong to it."""
        return (self.stop is None or low < self.stop) and (self.start is None or high >= self.start[: len(high)])

    def holds_all(self, low: tuple[Any, ...], high: tuple[Any, ...]) -> bool:
        """Whether all of these belong to it for certain."""
        return (self.start is None or low >= self.start) and (self.stop is None or high < self.stop[: len(high)])

    def holds(self, rows: pa.Table) -> Array:
        """Which rows belong to it."""
        clusters, topics = (_dictionary_of(rows[name]) for name in ("cluster", "topic"))
        partition = rows["partition"].to_numpy()
        held = np.ones(len(partition), bool)
        if self.start is not None:
            held &= ~_is_below(clusters, topics, partition, self.start)
        if self.stop is not None:
            held &= _is_below(clusters, topics, partition, self.stop)
        return held


_Encoded = tuple[list[str], Array]


def _dictionary_of(names: pa.ChunkedArray) -> _Encoded:
    whole = names.combine_chunks()
    encoded = whole if pa.types.is_dictionary(whole.type) else whole.dictionary_encode()
    return encoded.dictionary.to_pylist(), encoded.indices.to_numpy(zero_copy_only=False)


def _is_below(clusters: _Encoded, topics: _Encoded, partition: Array, bound: tuple[str, str, int]) -> Array:
    cluster, topic, first = bound
    order = [
        np.array([(n > b) - (n < b) for n in names] or [0])[index]
        for (names, index), b in ((clusters, cluster), (topics, topic))
    ]
    below: Array = (order[0] < 0) | ((order[0] == 0) & ((order[1] < 0) | ((order[1] == 0) & (partition < first))))
    return below


@dataclass(frozen=True)
class LakeFiles:
    """Data files of a lake, and how to open them.

    Attributes:
        uri: of the lake.
        options: delta-rs's, for a lake that is not on a disk.
        paths: the files of each table, by its name.
        times: what is wanted of a table, by its name: rows whose clock lies between these times (microseconds since the
            epoch, the second one excluded). Row groups without any are left out; of others all rows are read.
    """

    uri: str
    options: Mapping[str, str]
    paths: Mapping[str, Sequence[str]] = field(default_factory=dict)
    times: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def rows(
        self,
        table: Table,
        columns: Sequence[str],
        within: KeyRange,
        only: Mapping[str, Collection[str]] | None = None,
        *,
        keep: Callable[[pa.Table], Array] | None = None,
    ) -> pa.Table:
        """These columns of the rows of a range; names come as dictionaries. ``only`` has the names that are wanted, by
        their column, and ``keep`` says of rows whether they are wanted: others never take up memory together.

        Raises OSError that names the file that cannot be read, as pyarrow's own words about its content do not.
        """
        schema = table.without_day
        keys = [name for name in (*_KEY, "sample_id") if name in schema.names]
        wanted = pa.schema([schema.field(name) for name in dict.fromkeys([*keys, *columns])])
        parts = [
            part
            for path in self.paths.get(table.name, ())
            for part in self._parts(path, table, wanted, within, only or {}, keep)
        ]
        return pa.concat_tables(parts) if parts else no_rows(wanted)

    def _parts(
        self,
        path: str,
        table: Table,
        wanted: pa.Schema,
        within: KeyRange,
        only: Mapping[str, Collection[str]],
        keep: Callable[[pa.Table], Array] | None,
    ) -> list[pa.Table]:
        parts = []
        try:
            with self._open(path, wanted) as file:
                groups = RowGroups(file, wanted)
                for group in range(len(groups)):
                    if not self._may_hold(groups, group, table, within, only):
                        continue
                    rows = groups.read(group)
                    masks = [] if within.holds_all(*groups.keys(group)) else [within.holds(rows)]
                    masks += [_is_in(rows[name], among) for name, among in only.items()]
                    masks += [] if keep is None else [keep(rows)]
                    held = np.logical_and.reduce(masks) if masks else np.True_
                    if held.all():
                        parts.append(rows)
                    elif held.any():
                        parts.append(rows.filter(pa.array(held)))
        except (pa.ArrowException, OSError) as error:
            raise OSError(f"cannot read {path}: {error}") from error
        return parts

    def _may_hold(
        self, groups: "RowGroups", group: int, table: Table, within: KeyRange, only: Mapping[str, Collection[str]]
    ) -> bool:
        """Whether by its statistics a row group may hold rows of a range, of a wanted name of each column, and of the
        time that is wanted."""

        def has_any(name: str, among: Collection[str]) -> bool:
            low, high, _ = groups.ends(group, name)
            return low is None or any(low <= one <= high for one in among)

        if not within.may_hold(*groups.keys(group)) or not all(has_any(name, among) for name, among in only.items()):
            return False
        if table.name not in self.times:
            return True
        since, until = self.times[table.name]
        earliest, latest, _ = groups.ends(group, str(table.clock))
        return earliest is None or (latest >= since and earliest < until)

    def _open(self, path: str, wanted: pa.Schema) -> Any:
        source = opened_file(self.uri, self.options, path)
        names = [field.name for field in wanted if field.type == pa.string()]
        return pq.ParquetFile(source, read_dictionary=names, page_checksum_verification=True)

    def write(self, table: Table, rows: pa.Table) -> pa.Table:
        """Write rows as new data files of a table: see :func:`lagwise.tables.written_files.write_rows`."""
        return write_rows(self.uri, self.options, table, rows)


class RowGroups:
    """The row groups of an open file, and what its statistics tell of them."""

    def __init__(self, file: pq.ParquetFile, wanted: pa.Schema) -> None:
        self._file, self._metadata, self._wanted = file, file.metadata, wanted
        columns = range(self._metadata.num_columns)
        self._place = {self._metadata.schema.column(number).path: number for number in columns}
        self._known: dict[tuple[int, str], _Ends] = {}

    def __len__(self) -> int:
        count: int = self._metadata.num_row_groups
        return count

    def ends(self, group: int, name: str) -> "_Ends":
        """The smallest and the largest value of a column."""
        if (group, name) not in self._known:
            its = self._metadata.row_group(group).column(self._place[name]) if name in self._place else None
            self._known[group, name] = _ends_of(None if its is None else its.statistics)
        return self._known[group, name]

    def keys(self, group: int) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """What lies between the first and the last topic-partition, as far as that is known."""
        low, high = [], []
        for name in _KEY:
            its = self.ends(group, name)
            if its.low is None:
                break
            low.append(its.low)
            high.append(its.high)
            if its.low != its.high:
                break
        return tuple(low), tuple(high)

    def read(self, group: int) -> pa.Table:
        """The rows of one. Columns that hold one value only are not read."""
        same = {f.name: ends for f in self._wanted if (ends := self.ends(group, f.name)).is_constant}
        others = [f.name for f in self._wanted if f.name not in same]
        rows = self._file.read_row_group(group, columns=others, use_threads=False).combine_chunks()
        count = self._metadata.row_group(group).num_rows
        return pa.Table.from_arrays(
            [rows[f.name] if f.name not in same else _repeated(same[f.name].low, f.type, count) for f in self._wanted],
            names=self._wanted.names,
        )


class _Ends(NamedTuple):
    """Ends of a column of a row group, as names or as numbers (times in microseconds). None: not known, or none but
    nulls if it ``is_constant``."""

    low: Any
    high: Any
    is_constant: bool


def _ends_of(its: Any) -> _Ends:
    if its is None:
        return _Ends(None, None, False)
    if its.has_null_count and its.num_values == 0:
        return _Ends(None, None, True)
    if not its.has_min_max:
        return _Ends(None, None, False)
    low, high = its.min_raw, its.max_raw
    # Writers may cut long names.
    is_whole = not isinstance(low, bytes) or len(low) < _LONGEST_WHOLE_NAME
    if isinstance(low, bytes):
        low, high = low.decode(errors="replace"), high.decode(errors="replace")
    return _Ends(low, high, is_whole and low == high and its.has_null_count and its.null_count == 0)


def _repeated(value: Any, kind: pa.DataType, count: int) -> pa.Array:
    if value is None:
        return pa.nulls(count, kind)
    if pa.types.is_string(kind):
        return pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), count), [value])
    return pa.repeat(pa.scalar(value).cast(kind) if pa.types.is_timestamp(kind) else pa.scalar(value, kind), count)


def _is_in(names: pa.ChunkedArray, wanted: Collection[str]) -> Array:
    known, index = _dictionary_of(names)
    return np.array([name in wanted for name in known] or [False])[index]
