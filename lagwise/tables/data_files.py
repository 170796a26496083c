"""Data files of a table: which of them a reader wants, and their rows."""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa

from lagwise.platform.errors import UnreadableTable
from lagwise.tables.column_changes import as_declared
from lagwise.tables.engine_errors import in_a_line
from lagwise.tables.schema import DAY, Table

if TYPE_CHECKING:
    from deltalake import DeltaTable  # Spark's tasks read files without it

#: Files of a table of up to so many bytes are read as a whole and kept; of larger ones only what a question needs.
_SMALL_BYTES = 4 * 2**20
#: Less of a table that has rows for each partition: they are new in each round, and would crowd out the rest.
_SMALL_BYTES_OF_PARTITIONS = 2**20
#: Statistics of times may be cut to the millisecond.
_ROUNDED = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class DataFile:
    """A data file by its path in the folder of its table, and its size in bytes."""

    path: str
    size: int


def data_files(
    delta: "DeltaTable",
    table: Table,
    days: tuple[str, str] | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> list[DataFile]:
    """The data files of a table, without those that ``days``, ``since`` and ``until`` leave out: see ``Lake.files``."""
    known = pa.table(delta.get_add_actions(flatten=True))
    if table.partitioned and known.num_rows:
        known = known.filter(_is_wanted(known, str(table.clock), days, since, until))
    return [
        DataFile(unquote(path), size)
        for path, size in zip(known["path"].to_pylist(), known["size_bytes"].to_pylist(), strict=True)
    ]


def _is_wanted(
    known: pa.Table, clock: str, days: tuple[str, str] | None, since: datetime | None, until: datetime | None
) -> pa.ChunkedArray:
    import pyarrow.compute as pc  # takes a tenth of a second: short commands do without

    day = known["partition.day"]
    conditions = [pc.is_valid(day)]
    if days is not None:
        first, last = map(date.fromisoformat, days)
        conditions += [pc.greater_equal(day, first), pc.less_equal(day, last)]
    if since is not None:
        since = since.astimezone(UTC)
        conditions.append(pc.greater_equal(day, since.date()))
        if (latest := f"max.{clock}") in known.column_names:
            conditions.append(pc.fill_null(pc.greater_equal(known[latest], since - _ROUNDED), True))
    if until is not None:
        until = until.astimezone(UTC)
        conditions.append(pc.less_equal(day, until.date()))
        if (earliest := f"min.{clock}") in known.column_names:
            conditions.append(pc.fill_null(pc.less(known[earliest], until), True))
    return functools.reduce(pc.and_, conditions)


def has_partitions(table: Table) -> bool:
    """Whether a table has rows for each partition."""
    return "partition" in table.arrow.names


def are_small(table: Table, files: Sequence[DataFile]) -> bool:
    """Whether files of a table are small enough to be read as a whole and kept."""
    limit = _SMALL_BYTES_OF_PARTITIONS if has_partitions(table) else _SMALL_BYTES
    return sum(file.size for file in files) <= limit


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
    if table.partitioned and "day" not in rows.column_names:  # other writers put it into the file, too
        day = date.fromisoformat(unquote(path).split("/day=")[-1].partition("/")[0])
        rows = rows.append_column(table.arrow.field("day"), pa.repeat(pa.scalar(day, DAY), rows.num_rows))
    return as_declared(rows, table.arrow)
