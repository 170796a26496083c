"""The lake for readers: answers of pages and commands leave out damaged files of histories, and state that."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from lagwise.platform.errors import LakeError
from lagwise.tables.schema import Table
from lagwise.tables.store import Lake

if TYPE_CHECKING:
    from lagwise.tables.damage import Damage

T = TypeVar("T")


class TolerantLake(Lake):
    """A lake that leaves out damaged files of tables with a clock, once reading them has failed.

    Tables of the present state are never read in part: a missing group would look as if it did not exist. Nothing is
    repaired here: the analysis and ``lagwise doctor --repair`` do that.
    """

    def __init__(self, uri: str, storage_options: Mapping[str, str] | None = None) -> None:
        super().__init__(uri, storage_options)
        self._left_out: dict[tuple[Table, str], Damage] = {}

    def _reading(self, tables: Sequence[Table], read: Callable[[], T]) -> T:
        try:
            return read()
        except LakeError as error:
            if not self.leave_out(tables, error):
                raise
            return read()

    def select(self, sql: str, table: Table, *, since: datetime | None = None) -> pa.Table | None:
        if not any(left_out is table for left_out, _ in self._left_out):
            try:
                return super().select(sql, table, since=since)
            except LakeError as error:
                if not self.leave_out([table], error):
                    raise
        # DataFusion reads all files of a table, so that DuckDB answers, which then also sees rows before ``since``.
        return self.query(sql, over=[table], since=since)

    def leave_out(self, tables: Sequence[Table], error: Exception) -> bool:
        """Leave out the damaged files that explain an error in reading these tables; False if there are none."""
        from lagwise.tables.damage import is_of_log
        from lagwise.tables.repair import inspect  # takes a moment, and is rarely needed

        found = inspect(self, error=str(error), tables=[table for table in tables if table.partitioned])
        new = {(one.table, one.file): one for one in found.damaged if not is_of_log(one)}
        is_explained = not new.keys() <= self._left_out.keys()
        self._left_out |= new
        return is_explained

    @property
    def left_out(self) -> "list[Damage]":
        """The damaged files that are left out at present. Raises LakeError."""
        there = {table: set(self.relative_files(table)) for table, _ in self._left_out}
        self._left_out = {key: one for key, one in self._left_out.items() if key[1] in there[key[0]]}
        return list(self._left_out.values())

    def _is_left_out(self, table: Table, file: str) -> bool:
        return (table, file) in self._left_out
