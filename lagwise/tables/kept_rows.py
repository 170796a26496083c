"""Rows of small data files, kept for the next question: a data file never changes."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence

import pyarrow as pa

from lagwise.tables.data_files import DataFile, are_small, has_partitions
from lagwise.tables.schema import Table


class KeptRows:
    """Rows of data files, by the file, up to a number of bytes in memory: those asked for least recently go first.

    Whoever asks the same every few seconds, about a window that moves, reads only the files that are new. Safe to use
    from threads. Without ``of_partitions``, tables with a row for each partition are left out: of those that a round
    writes anew, only what a question needs is worth reading.
    """

    def __init__(self, most_bytes: int = 64 * 2**20, *, of_partitions: bool = True) -> None:
        self._most_bytes = most_bytes
        self._of_partitions = of_partitions
        self._rows: OrderedDict[str, pa.Table] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def keeps(self, table: Table, files: Sequence[DataFile]) -> bool:
        """Whether these files of a table are read as a whole and kept."""
        return (self._of_partitions or not has_partitions(table)) and are_small(table, files)

    def of(self, files: Sequence[str], read: Callable[[str], pa.Table]) -> list[pa.Table]:
        """The rows of each of these files; ``read`` reads those of one that are not there."""
        return [self._of(file, read) for file in files]

    def _of(self, file: str, read: Callable[[str], pa.Table]) -> pa.Table:
        with self._lock:
            if (known := self._rows.get(file)) is not None:
                self._rows.move_to_end(file)
                return known
        rows = read(file)
        with self._lock:
            if file not in self._rows:
                self._bytes += rows.nbytes
            self._rows[file] = rows
            while self._bytes > self._most_bytes:
                _, gone = self._rows.popitem(last=False)
                self._bytes -= gone.nbytes
        return rows
