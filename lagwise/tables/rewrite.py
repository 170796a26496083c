"""Rewrites a table with other columns, in one commit: a reader sees the table as it was or as it is declared."""

import logging
from collections.abc import Callable
from datetime import date
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, Schema
from deltalake.transaction import AddAction, RemoveAction

from lagwise.platform.log_events import LogEvent, event
from lagwise.tables.column_changes import as_declared, lacking_and_surplus
from lagwise.tables.commit_actions import added
from lagwise.tables.data_files import data_files, opened_file
from lagwise.tables.engine_errors import as_lake_errors, in_a_line
from lagwise.tables.lake_version import exists
from lagwise.tables.schema import DAY, Table, no_rows
from lagwise.tables.store import Lake
from lagwise.tables.written_files import WRITTEN, write_rows

_LOG = logging.getLogger("lagwise.lake")


def rewrite(lake: Lake, table: Table, change: Callable[[pa.Table], pa.Table]) -> None:
    """Rewrite a table unless it has the declared columns. ``change`` makes rows of a file such that only columns that
    may be null are missing; others are dropped.

    After a kill, what was written is not part of the table, and the next call begins anew. Raises LakeError.
    """
    if not exists(lake, table):
        return
    with as_lake_errors(f"cannot migrate the table {lake.location(table)}"):
        delta = DeltaTable(lake.location(table), storage_options=dict(lake.storage_options) or None)
        if lacking_and_surplus(delta, table) == ([], []):
            return
        written = [no_rows(WRITTEN)]
        for file in data_files(delta, table):
            rows = _rows(lake, table, f"{lake.location(table)}/{file.path}")
            if rows is not None:
                changed = as_declared(change(rows), table.without_day)
                written.append(write_rows(lake.uri, lake.storage_options, table, changed))
        by = ["day"] if table.partitioned else None
        schema = Schema.from_arrow(table.arrow)
        delta.create_write_transaction(
            list[AddAction | RemoveAction](added(pa.concat_tables(written))), "overwrite", schema, by
        )
    lake.forget(table)


def _rows(lake: Lake, table: Table, path: str) -> pa.Table | None:
    """The rows of a file with the columns that it has; None if it is damaged, which costs its own rows only."""
    try:
        with pq.ParquetFile(opened_file(lake.uri, lake.storage_options, path)) as file:
            rows = file.read(use_threads=False)
    except (pa.ArrowException, FileNotFoundError) as error:
        if not table.partitioned:
            raise OSError(f"cannot read {path}: {in_a_line(error)}") from error
        _LOG.warning("rows are lost: cannot read %s: %s", path, in_a_line(error), extra=event(LogEvent.ROWS_LOST))
        return None
    if table.partitioned and "day" not in rows.column_names:
        day = date.fromisoformat(unquote(path).split("/day=")[-1].partition("/")[0])
        rows = rows.append_column("day", pa.repeat(pa.scalar(day, DAY), rows.num_rows))
    return rows
