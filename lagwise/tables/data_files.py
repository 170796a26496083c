"""Data files of a table: which of them a reader wants, and their rows."""

import functools
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from lagwise.platform.errors import UnreadableTable
from lagwise.tables.engine_errors import in_a_line
from lagwise.tables.schema import DAY, Table

#: Statistics of times may be cut to the millisecond.
_ROUNDED = timedelta(milliseconds=1)


def wanted_files(
    table: Table, days: tuple[str, str] | None, since: datetime | None, until: datetime | None = None
) -> list[tuple[str, str, Any]] | None:
    """What delta-rs leaves files out by: see ``Lake.files``. None is every file."""
    if not table.partitioned:
        return None
    filters: list[tuple[str, str, Any]] = []
    filters += [("day", ">=", days[0]), ("day", "<=", days[1])] if days else []
    if since is not None:
        since = since.astimezone(UTC)
        filters += [("day", ">=", since.date().isoformat()), (str(table.clock), ">=", since - _ROUNDED)]
    if until is not None:
        until = until.astimezone(UTC)
        filters += [("day", "<=", until.date().isoformat()), (str(table.clock), "<", until)]
    return filters or None


def opened_file(uri: str, options: Mapping[str, str], path: str) -> Any:
    """What pyarrow reads a data file of a lake from: its path, or a file of the object store."""
    if "://" not in uri:
        return path
    return object_store(uri, options).open_input_file(path.removeprefix(uri).lstrip("/"))


def object_store(uri: str, options: Mapping[str, str]) -> Any:
    """The file system of a lake in an object store; paths in it are below the lake's URI."""
    return _object_store(uri, tuple(sorted(options.items())))


@functools.lru_cache(maxsize=4)
def _object_store(uri: str, options: tuple[tuple[str, str], ...]) -> Any:
    # Only where the lake is in an object store: a client takes a moment, and a package that disks need not.
    from deltalake.fs import DeltaStorageHandler
    from pyarrow.fs import PyFileSystem

    return PyFileSystem(DeltaStorageHandler(uri, dict(options)))


def rows_of_file(uri: str, options: Mapping[str, str], path: str, table: Table) -> pa.Table:
    """All rows of a data file of a lake; pages that have checksums are checked. Raises LakeError."""
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(opened_file(uri, options, path), page_checksum_verification=True) as file:
            rows = file.read(use_threads=False)
    except (pa.ArrowException, OSError) as error:
        raise UnreadableTable(f"cannot read {path}: {in_a_line(error)}") from error
    if table.partitioned and "day" not in rows.column_names:  # Spark also writes it into the file
        day = date.fromisoformat(unquote(path).split("/day=")[-1].partition("/")[0])
        rows = rows.append_column(table.arrow.field("day"), pa.repeat(pa.scalar(day, DAY), rows.num_rows))
    return rows.select(table.arrow.names).cast(table.arrow)


def empty(table: Table) -> pa.Table:
    """The table without any row."""
    # Not the schema's empty_table(), which imports pandas.
    return pa.Table.from_batches([], schema=table.arrow)
