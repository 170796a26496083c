"""Data files of the lake, read and written by tasks themselves."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lagwise.domain.verdicts.columns import Array
from lagwise.tables.data_files import object_store, opened_file
from lagwise.tables.schema import Table, no_rows
from lagwise.tables.written_files import ROWS_PER_GROUP, new_file_name, write_file

_ROWS_PER_BATCH = 200_000
_KEY = ("cluster", "topic", "partition")


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

    def holds(self, rows: pa.RecordBatch) -> Array | None:
        """Which rows belong to it; None is all."""
        if self.start is None and self.stop is None:
            return None
        clusters, topics = (_dictionary_of(rows[name]) for name in ("cluster", "topic"))
        partition = rows["partition"].to_numpy(zero_copy_only=False)
        held = np.ones(len(partition), bool)
        if self.start is not None:
            held &= ~_is_below(clusters, topics, partition, self.start)
        if self.stop is not None:
            held &= _is_below(clusters, topics, partition, self.stop)
        return None if held.all() else held


_Encoded = tuple[list[str], Array]


def _dictionary_of(names: pa.Array) -> _Encoded:
    encoded = names if pa.types.is_dictionary(names.type) else names.dictionary_encode()
    return encoded.dictionary.to_pylist(), encoded.indices.to_numpy(zero_copy_only=False)


def _is_below(clusters: _Encoded, topics: _Encoded, partition: Array, bound: tuple[str, str, int]) -> Array:
    cluster, topic, first = bound
    order = [
        np.array([(n > b) - (n < b) for n in names] or [0])[index]
        for (names, index), b in ((clusters, cluster), (topics, topic))
    ]
    below: Array = (order[0] < 0) | ((order[0] == 0) & ((order[1] < 0) | ((order[1] == 0) & (partition < first))))
    return below


#: Data files that have been written and are not yet part of their table.
WRITTEN = pa.schema([("path", pa.string()), ("day", pa.string()), ("size", pa.int64()), ("statistics", pa.string())])


@dataclass(frozen=True)
class LakeFiles:
    """Data files of a lake, and how to open them.

    Attributes:
        uri: of the lake.
        options: delta-rs's, for a lake that is not on a disk.
        paths: the files of each table, by its name.
    """

    uri: str
    options: Mapping[str, str]
    paths: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def rows(
        self,
        table: Table,
        columns: Sequence[str],
        within: KeyRange,
        only: Mapping[str, Collection[str]] | None = None,
        *,
        keep: Callable[[pa.RecordBatch], Array] | None = None,
    ) -> pa.Table:
        """These columns of the rows of a range; names come as dictionaries. ``only`` has the names that are wanted, by
        their column, and ``keep`` says of rows whether they are wanted: others never take up memory together.

        Raises OSError that names the file that cannot be read, as pyarrow's own words about its content do not.
        """
        schema = table.without_day
        keys = [name for name in (*_KEY, "sample_id") if name in schema.names]
        wanted = list(dict.fromkeys([*keys, *columns]))
        parts = [
            part
            for path in self.paths.get(table.name, ())
            for part in self._parts(path, wanted, schema, within, only or {}, keep)
        ]
        if not parts:
            return no_rows(pa.schema([schema.field(name) for name in wanted]))
        return pa.concat_tables([pa.Table.from_batches([part]) for part in parts])

    def _parts(
        self,
        path: str,
        columns: list[str],
        schema: pa.Schema,
        within: KeyRange,
        only: Mapping[str, Collection[str]],
        keep: Callable[[pa.RecordBatch], Array] | None,
    ) -> list[pa.RecordBatch]:
        names = [name for name in columns if schema.field(name).type == pa.string()]
        parts = []
        try:
            with self._open(path, names) as file:
                groups = _row_groups(file.metadata, within, only)
                for batch in file.iter_batches(_ROWS_PER_BATCH, groups, columns=columns, use_threads=False):
                    masks = [within.holds(batch), *(_is_in(batch[name], wanted) for name, wanted in only.items())]
                    masks += [] if keep is None else [keep(batch)]
                    held = np.logical_and.reduce([mask for mask in masks if mask is not None])
                    if held.all():
                        parts.append(batch)
                    elif held.any():
                        parts.append(batch.filter(pa.array(held)))
        except (pa.ArrowException, OSError) as error:
            raise OSError(f"cannot read {path}: {error}") from error
        return parts

    def _open(self, path: str, names: list[str]) -> Any:
        source = opened_file(self.uri, self.options, path)
        return pq.ParquetFile(source, read_dictionary=names, page_checksum_verification=True)

    def write(self, table: Table, rows: pa.Table) -> pa.Table:
        """Write rows as new data files of a table, one for each day. They belong to the table once the answer, a row of
        :data:`WRITTEN` for each of them, has been committed to its log."""
        schema = table.without_day
        if rows.num_rows > ROWS_PER_GROUP:
            rows = rows.sort_by(
                [(name, "ascending") for name in ("cluster", "topic", "partition") if name in schema.names]
            )
        days = pc.strftime(rows[str(table.clock)], "%Y-%m-%d")
        written = [
            self._written(table, day, rows.filter(pc.equal(days, day)).select(schema.names).cast(schema))
            for day in sorted(days.unique().to_pylist())
        ]
        return pa.Table.from_pylist(written, schema=WRITTEN)

    def _written(self, table: Table, day: str, rows: pa.Table) -> dict[str, Any]:
        name = new_file_name(day)
        place = f"{table.path}/{name}"
        if "://" in self.uri:
            with object_store(self.uri, self.options).open_output_stream(place) as sink:
                statistics = write_file(sink, [rows], table)
                size = sink.tell()
            return {"path": name, "day": day, "size": size, "statistics": statistics}
        final = Path(self.uri, place)
        final.parent.mkdir(exist_ok=True)
        # Readers and repairs ignore names that begin with a dot.
        partial = final.with_name(f".{final.name}")
        try:
            statistics = write_file(partial, [rows], table)
            partial.rename(final)
        finally:
            partial.unlink(missing_ok=True)
        return {"path": name, "day": day, "size": final.stat().st_size, "statistics": statistics}


def _row_groups(metadata: pq.FileMetaData, within: KeyRange, only: Mapping[str, Collection[str]]) -> list[int]:
    """The row groups that by their statistics may hold rows of a range, and a wanted name of each column: where rows
    are sorted, few do."""
    if within == KeyRange() and not only:
        return list(range(metadata.num_row_groups))
    place = {metadata.schema.column(i).path: i for i in range(metadata.num_columns)}

    def ends(group: int, name: str) -> tuple[Any, Any] | None:
        known = metadata.row_group(group).column(place[name]).statistics if name in place else None
        return (known.min, known.max) if known is not None and known.has_min_max else None

    def has_any(group: int, name: str, wanted: Collection[str]) -> bool:
        its = ends(group, name)
        return its is None or any(its[0] <= one <= its[1] for one in wanted)

    def is_within(group: int) -> bool:
        low, high = [], []
        for name in _KEY:
            if (its := ends(group, name)) is None:
                break
            low.append(its[0])
            high.append(its[1])
            if its[0] != its[1]:
                break
        return within.may_hold(tuple(low), tuple(high))

    return [
        group
        for group in range(metadata.num_row_groups)
        if is_within(group) and all(has_any(group, name, wanted) for name, wanted in only.items())
    ]


def _is_in(names: pa.Array, wanted: Collection[str]) -> Array:
    known, index = _dictionary_of(names)
    return np.array([name in wanted for name in known] or [False])[index]
