"""What a worker keeps of data files that rounds read again.

The minutes of the last hour are the same in every round, but for the newest. Data files never change and workers live
from round to round, so what has been read once need not be read again. (Spark ends workers that have nothing to do for
a minute: of rounds that are farther apart, nothing is kept.)
"""

import os
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq

from lagwise_spark.tasks.row_groups import RowGroup, RowGroups

#: A worker keeps so much: the history of some 8,000 group-partitions. What comes when there is no room for it is read
#: in each round: whatever made room for it would be missed before it is asked for, because rounds read everything.
MOST_BYTES = 64 * 2**20

#: URI of a lake, name of a table, and the columns that are read of it.
_Key = tuple[str, ...]
#: Of a file on a disk, when it was written and its size; None in an object store, where nothing is written twice.
_Stamp = tuple[int, int] | None


@dataclass
class _KeptFile:
    groups: RowGroups
    stamp: _Stamp
    rows: dict[int, RowGroup] = field(default_factory=dict)
    bytes: int = 0


class KeptRowGroups:
    """Row groups of files that are read again, up to ``most_bytes`` in all."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most, self.bytes = most_bytes, 0
        self._files: dict[_Key, dict[str, _KeptFile]] = {}

    def drop_all_but(self, key: _Key, paths: Collection[str]) -> None:
        """Forget the files of a table that are not among these."""
        kept = self._files.setdefault(key, {})
        for path in kept.keys() - set(paths):
            self._drop(kept, path)

    def groups(self, key: _Key, path: str, open_: Callable[[], pq.ParquetFile], wanted: pa.Schema) -> RowGroups:
        """The row groups of a file, whose footer is read once. Raises OSError where the file has gone."""
        kept, stamp = self._files.setdefault(key, {}), _stamp_of(path)
        if path in kept and kept[path].stamp != stamp:
            self._drop(kept, path)
        if path in kept:
            kept[path].groups.open_with(open_)
        else:
            kept[path] = _KeptFile(RowGroups(open_, wanted), stamp)
        return kept[path].groups

    def read(self, key: _Key, path: str, group: int) -> RowGroup:
        """The rows of a row group of such a file."""
        file = self._files[key][path]
        if group in file.rows:
            return file.rows[group]
        rows = file.groups.read(group)
        if self.bytes + rows.bytes <= self._most:
            file.rows[group] = rows
            file.bytes += rows.bytes
            self.bytes += rows.bytes
        return rows

    def _drop(self, kept: dict[str, _KeptFile], path: str) -> None:
        self.bytes -= kept.pop(path).bytes


def _stamp_of(path: str) -> _Stamp:
    if "://" in path:
        return None
    seen = os.stat(path)
    return seen.st_mtime_ns, seen.st_size


#: Of this process.
KEPT = KeptRowGroups()
