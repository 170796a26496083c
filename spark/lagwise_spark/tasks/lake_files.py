"""Data files of the lake, read and written by tasks themselves."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lagwise.domain.verdicts.columns import Array
from lagwise.tables.data_files import opened_file
from lagwise.tables.schema import Table, no_rows
from lagwise.tables.written_files import write_rows
from lagwise_spark.tasks.kept_row_groups import KEPT
from lagwise_spark.tasks.row_groups import KEY, RowGroup, RowGroups


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

    def holds(self, rows: RowGroup) -> Array:
        """Which rows belong to it."""
        held = np.ones(rows.count, bool)
        if self.start is not None:
            held &= ~_is_below(rows, self.start)
        if self.stop is not None:
            held &= _is_below(rows, self.stop)
        return held


def _is_below(rows: RowGroup, bound: tuple[str, str, int]) -> Array:
    clusters, topics = (
        np.array([(name > end) - (name < end) for name in names] or [0])[index]
        for (names, index), end in ((rows.named("cluster"), bound[0]), (rows.named("topic"), bound[1]))
    )
    is_below = (topics < 0) | ((topics == 0) & (rows.number("partition") < bound[2]))
    below: Array = (clusters < 0) | ((clusters == 0) & is_below)
    return below


def _wanted(table: Table, columns: Sequence[str]) -> pa.Schema:
    schema = table.without_day
    keys = [name for name in (*KEY, "sample_id") if name in schema.names]
    return pa.schema([schema.field(name) for name in dict.fromkeys([*keys, *columns])])


@dataclass(frozen=True)
class LakeFiles:
    """Data files of a lake, and how to open them.

    Attributes:
        uri: of the lake.
        options: delta-rs's, for a lake that is not on a disk.
        paths: the files of each table, by its name.
        times: what is wanted of a table, by its name: rows whose clock lies between these times (microseconds since the
            epoch, the second one excluded). Row groups without any are left out; of others all rows are read.
        kept: names of the tables of which workers keep what they read, for the next round (``kept_row_groups``).
    """

    uri: str
    options: Mapping[str, str]
    paths: Mapping[str, Sequence[str]] = field(default_factory=dict)
    times: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    kept: frozenset[str] = frozenset()

    def rows(
        self,
        table: Table,
        columns: Sequence[str],
        within: KeyRange,
        only: Mapping[str, Collection[str]] | None = None,
        *,
        keep: Callable[[pa.Table], Array] | None = None,
    ) -> pa.Table:
        """As :meth:`parts`, in one table. ``keep`` says of rows whether they are wanted: others never take up memory
        together."""
        wanted = _wanted(table, columns)
        tables = (part.table(wanted) for part in self.parts(table, columns, within, only))
        kept = [rows if keep is None else rows.filter(pa.array(keep(rows))) for rows in tables]
        return pa.concat_tables(kept) if kept else no_rows(wanted)

    def parts(
        self,
        table: Table,
        columns: Sequence[str],
        within: KeyRange,
        only: Mapping[str, Collection[str]] | None = None,
    ) -> Iterator[RowGroup]:
        """These columns of the rows of a range, and those that keys consist of. ``only`` has the names that are wanted,
        by their column.

        Raises OSError that names the file that cannot be read, as pyarrow's own words about its content do not.
        """
        wanted, only = _wanted(table, columns), only or {}
        if table.name in self.kept:
            KEPT.drop_all_but((self.uri, table.name, *wanted.names), self.paths.get(table.name, ()))
        for path in self.paths.get(table.name, ()):
            try:
                yield from self._parts(path, table, wanted, within, only)
            except (pa.ArrowException, OSError) as error:
                raise OSError(f"cannot read {path}: {error}") from error

    def _parts(
        self, path: str, table: Table, wanted: pa.Schema, within: KeyRange, only: Mapping[str, Collection[str]]
    ) -> Iterator[RowGroup]:
        key = (self.uri, table.name, *wanted.names)
        is_kept, open_ = table.name in self.kept, partial(self._open, path, wanted)
        groups = KEPT.groups(key, path, open_, wanted) if is_kept else RowGroups(open_, wanted)
        with closing(groups):
            for group in groups:
                if not self._may_hold(groups, group, table, within, only):
                    continue
                rows = KEPT.read(key, path, group) if is_kept else groups.read(group)
                masks = [] if within.holds_all(*groups.keys(group)) else [within.holds(rows)]
                masks += [_is_in(rows, name, among) for name, among in only.items()]
                held = np.logical_and.reduce([np.ones(rows.count, bool), *masks])
                if held.all():
                    yield rows
                elif held.any():
                    yield rows.filtered(held)

    def _may_hold(
        self, groups: RowGroups, group: int, table: Table, within: KeyRange, only: Mapping[str, Collection[str]]
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


def _is_in(rows: RowGroup, name: str, wanted: Collection[str]) -> Array:
    known, index = rows.named(name)
    return np.array([one in wanted for one in known] or [False])[index]
