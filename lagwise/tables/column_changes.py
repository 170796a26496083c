"""Columns that a table of an older version lacks, and how they are added: by Delta, without rewriting a file.

Data files that were written before stay as they are. Their rows have nulls in the new columns, and every reader of
files fills them in: see :func:`as_declared`.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from lagwise.tables.schema import Table

if TYPE_CHECKING:
    from deltalake import DeltaTable

#: The table's property that says that some of its files may lack columns. It is never taken back.
_PROPERTY = "lagwise.columnsWereAdded"


def has_added_columns(delta: "DeltaTable") -> bool:
    """Whether some data files may lack columns that the table has."""
    return _PROPERTY in delta.metadata().configuration


def lacking_and_surplus(delta: "DeltaTable", table: Table) -> tuple[list[str], list[str]]:
    """The columns that the table lacks, and those that it has and we do not know; fields of structs as ``a.b``."""
    there, ours = list(_names(pa.schema(delta.schema().to_arrow()))), list(_names(table.arrow))
    return [name for name in ours if name not in there], [name for name in there if name not in ours]


def can_be_added(table: Table, lacking: Iterable[str]) -> bool:
    """Whether rows that are there may do without these columns."""
    return all("." in name or table.arrow.field(name).nullable for name in lacking)


def add_columns(delta: "DeltaTable", table: Table) -> list[str]:
    """Add the columns that the table lacks, if nothing else differs; which were added. Two processes may do so at once:
    one of them fails with delta-rs's error, and finds nothing to do when it tries again."""
    from deltalake import Schema

    lacking, surplus = lacking_and_surplus(delta, table)
    if not lacking or surplus or not can_be_added(table, lacking):
        return []
    if not has_added_columns(delta):  # first: a kill in between leaves a table that is only read a little more slowly
        delta.alter.set_table_properties({_PROPERTY: "true"}, raise_if_not_exists=False)
    tops = {name.partition(".")[0] for name in lacking}
    delta.alter.add_columns([field for field in Schema.from_arrow(table.arrow).fields if field.name in tops])
    return lacking


def as_declared(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows of a data file in these columns: null in those that are younger than the file."""
    for field in schema:
        if field.name not in rows.column_names and field.nullable:
            rows = rows.append_column(field, pa.nulls(rows.num_rows, field.type))
    return rows.select(schema.names).cast(schema)


def _names(fields: Iterable[pa.Field], within: str = "") -> Iterator[str]:
    """The names of columns, and of the fields of those that are structs or lists of them."""
    for field in fields:
        yield f"{within}{field.name}"
        kind = (
            field.type.value_type if pa.types.is_list(field.type) or pa.types.is_large_list(field.type) else field.type
        )
        if pa.types.is_struct(kind):
            yield from _names(list(kind), f"{within}{field.name}.")
