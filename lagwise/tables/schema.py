"""How a table is declared: an Arrow type and a sentence per column. Everything else is derived from that."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import pyarrow as pa

BOOLEAN = pa.bool_()
DAY = pa.date32()
FLOAT = pa.float64()
INT32 = pa.int32()
INT64 = pa.int64()
TEXT = pa.string()
TIMESTAMP = pa.timestamp("us", tz="UTC")


def list_of(**fields: pa.DataType) -> pa.DataType:
    """A list of structs with these fields."""
    return pa.list_(pa.struct(fields))


def no_rows(schema: pa.Schema) -> pa.Table:
    """A table without any row. The schema's own ``empty_table()`` imports pandas."""
    return pa.Table.from_batches([], schema=schema)


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its name (carrying its unit), Arrow type, and what it means."""

    name: str
    type: pa.DataType
    meaning: str
    nullable: bool = True


@dataclass(frozen=True)
class Table:
    """One Delta table of the lake.

    ``layer`` is the folder it lives in; ``rows`` completes the sentence "one row per …". A table with a ``clock``
    (the timestamp column that dates a row) is partitioned by ``day``, the UTC date of that column, and is subject
    to retention. Its files have statistics of the clock, by which readers leave them out. A table without one holds the
    present state and is replaced as a whole.
    """

    name: str
    layer: Literal["raw", "analysis"]
    rows: str
    columns: tuple[Column, ...]
    clock: str | None = None

    @property
    def path(self) -> str:
        """Path below the lake's URI."""
        return f"{self.layer}/{self.name}"

    @property
    def partitioned(self) -> bool:
        return self.clock is not None

    @cached_property
    def arrow(self) -> pa.Schema:
        """The Arrow schema, the ``day`` partition column last."""
        fields = [pa.field(c.name, c.type, nullable=c.nullable) for c in self.columns]
        if self.partitioned:
            fields.append(pa.field("day", DAY, nullable=False))
        return pa.schema(fields)

    @cached_property
    def without_day(self) -> pa.Schema:
        """The schema of rows that are appended: ``day`` follows from the clock."""
        return pa.schema([f for f in self.arrow if f.name != "day"])

    def with_day(self, rows: pa.Table) -> pa.Table:
        """Rows as the table declares them: ``day`` is added where it is missing."""
        if self.clock is not None and "day" not in rows.column_names:
            rows = rows.append_column("day", rows[self.clock].cast(DAY))
        return rows.select(self.arrow.names).cast(self.arrow)

    def from_rows(self, rows: Iterable[Mapping[str, Any]]) -> pa.Table:
        """Rows as Arrow, without ``day``; columns that a row does not name are null."""
        names = self.without_day.names
        return pa.Table.from_pylist([{name: row.get(name) for name in names} for row in rows], schema=self.without_day)
