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
from lagwise.tables.schema import Table
from lagwise.tables.written_files import new_file_name, write_file

_ROWS_PER_BATCH = 200_000


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
        *,
        samples: Collection[str] | None = None,
        keep: Callable[[pa.RecordBatch], Array] | None = None,
    ) -> pa.Table:
        """These columns of the rows of a range; names come as dictionaries. ``samples`` are the only ones wanted, and
        ``keep`` says of rows whether they are: others never take up memory together.

        Raises OSError that names the file that cannot be read, as pyarrow's own words about its content do not.
        """
        schema = table.without_day
        keys = [name for name in ("cluster", "topic", "partition", "sample_id") if name in schema.names]
        wanted = list(dict.fromkeys([*keys, *columns]))
        parts = [
            part
            for path in self.paths.get(table.name, ())
            for part in self._parts(path, wanted, schema, within, samples, keep)
        ]
        if not parts:
            return pa.Table.from_batches([], schema=pa.schema([schema.field(name) for name in wanted]))
        return pa.concat_tables([pa.Table.from_batches([part]) for part in parts])

    def _parts(
        self,
        path: str,
        columns: list[str],
        schema: pa.Schema,
        within: KeyRange,
        samples: Collection[str] | None,
        keep: Callable[[pa.RecordBatch], Array] | None,
    ) -> list[pa.RecordBatch]:
        names = [name for name in columns if schema.field(name).type == pa.string()]
        parts = []
        try:
            with self._open(path, names) as file:
                for batch in file.iter_batches(_ROWS_PER_BATCH, columns=columns, use_threads=False):
                    masks = [within.holds(batch)]
                    masks += [] if samples is None else [_is_in(batch["sample_id"], samples)]
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
        source: Any = path
        if not self._is_local:
            source = self._store().open_input_file(path.removeprefix(self.uri).lstrip("/"))
        return pq.ParquetFile(source, read_dictionary=names, page_checksum_verification=True)

    def write(self, table: Table, rows: pa.Table) -> pa.Table:
        """Write rows as new data files of a table, one for each day. They belong to the table once the answer, a row of
        :data:`WRITTEN` for each of them, has been committed to its log."""
        schema, days = table.without_day, pc.strftime(rows[str(table.clock)], "%Y-%m-%d")
        written = [
            self._written(table, day, rows.filter(pc.equal(days, day)).select(schema.names).cast(schema))
            for day in sorted(days.unique().to_pylist())
        ]
        return pa.Table.from_pylist(written, schema=WRITTEN)

    def _written(self, table: Table, day: str, rows: pa.Table) -> dict[str, Any]:
        name = new_file_name(day)
        place = f"{table.path}/{name}"
        if not self._is_local:
            with self._store().open_output_stream(place) as sink:
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

    @property
    def _is_local(self) -> bool:
        return "://" not in self.uri

    def _store(self) -> Any:
        # Only where the lake is in an object store: a client takes a moment, and a package that disks need not.
        from deltalake.fs import DeltaStorageHandler
        from pyarrow.fs import PyFileSystem

        return PyFileSystem(DeltaStorageHandler(self.uri, dict(self.options)))


def _is_in(names: pa.Array, wanted: Collection[str]) -> Array:
    known, index = _dictionary_of(names)
    return np.array([name in wanted for name in known] or [False])[index]
