"""Rows and data files of a table as views of a DuckDB connection."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from lagwise.tables.column_changes import has_added_columns
from lagwise.tables.schema import Table, no_rows

if TYPE_CHECKING:
    import duckdb
    from deltalake import DeltaTable


def show(connection: "duckdb.DuckDBPyConnection", table: Table, rows: Any) -> None:
    """Make rows a view of the table's name. Such a view hides one of files, which is why that one is made after
    unregistering this one."""
    connection.register(table.name, rows)


def show_files(
    connection: "duckdb.DuckDBPyConnection", table: Table, delta: "DeltaTable", files: Sequence[str]
) -> None:
    """Make data files on a disk a view of the table's name."""
    connection.unregister(table.name)
    are_younger = has_added_columns(delta)
    # By name, DuckDB opens every file before the query begins.
    found = connection.read_parquet(list(files), hive_partitioning=table.partitioned, union_by_name=are_younger)
    if not are_younger:
        found.create_view(table.name, replace=True)
        return
    nothing = f"{table.name} of no rows"
    connection.register(nothing, no_rows(table.arrow))
    found.create_view(f"{table.name} of files", replace=True)
    connection.execute(
        f'create or replace view "{table.name}" as select * from "{nothing}" '  # noqa: S608 (own names)
        f'union all by name select * from "{table.name} of files"'
    )


def show_stored_files(
    connection: "duckdb.DuckDBPyConnection", table: Table, delta: "DeltaTable", paths: Collection[str]
) -> None:
    """Make data files in an object store, by their path in the table's folder, a view of the table's name."""
    from pyarrow.dataset import FileSystemDataset  # takes a moment, and a lake on a disk does without

    rows = delta.to_pyarrow_dataset()
    fragments = [one for one in rows.get_fragments() if unquote(one.path) in paths]
    show(connection, table, FileSystemDataset(fragments, rows.schema, rows.format, rows.filesystem))
