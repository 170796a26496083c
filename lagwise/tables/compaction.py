"""Compaction on a disk: merges the small files of a day into larger ones whose pages have checksums.

delta-rs ignores the checksums of pages that it reads: a flipped bit would be copied into the merged file. Here the
pages of the small files are checked, and those of the merged file can be.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable

from lagwise.platform.errors import LakeError
from lagwise.tables.column_changes import as_declared
from lagwise.tables.commit_actions import added, removed
from lagwise.tables.data_files import DataFile
from lagwise.tables.engine_errors import as_lake_errors, in_a_line
from lagwise.tables.schema import Table
from lagwise.tables.store import Lake
from lagwise.tables.written_files import ROWS_PER_GROUP, joined_groups, rows_per_group, write_day

#: Files of this size are not merged with others, and no merged file is much larger.
LARGE_BYTES = 100 * 1024**2


def merge_day(lake: Lake, table: Table, delta: DeltaTable, day: str, *, sort_by: str | None = None) -> int:
    """Merge the small files of one day of a table; how many were merged.

    Raises LakeError; the message names a file that cannot be read.
    """
    merged = 0
    for files in _bins(delta, day):
        with as_lake_errors(f"cannot write to the table {lake.location(table)}"):
            written = write_day(lake.uri, lake.storage_options, table, day, _rows(lake, table, files, sort_by))
        gone = [DataFile(file["path"], file["size_bytes"]) for file in files]
        if lake.commit(table, [*removed(gone, day, are_gone=False), *added(written, are_new=False)]):
            merged += len(files)
        else:  # another process has rewritten one of the files: they are merged the next time
            Path(lake.location(table), written["path"][0].as_py()).unlink()
    return merged


def _bins(delta: DeltaTable, day: str) -> Iterator[Sequence[dict[str, Any]]]:
    """The small files of a day in order of time, in groups that each make one large file."""
    actions = pa.table(delta.get_add_actions(flatten=True))
    of_day = actions.filter(pc.equal(pc.cast(actions["partition.day"], pa.string()), day)).to_pylist()
    small = sorted((f for f in of_day if f["size_bytes"] < LARGE_BYTES), key=lambda f: f["modification_time"])
    files: list[dict[str, Any]] = []
    for file in small:
        if len(files) > 1 and sum(f["size_bytes"] for f in files) + file["size_bytes"] > LARGE_BYTES:
            yield files
            files = []
        files.append(file)
    if len(files) > 1:
        yield files


def _rows(lake: Lake, table: Table, files: Sequence[dict[str, Any]], sort_by: str | None) -> Iterator[pa.Table]:
    """The rows of these files, a row group at a time. Sorting keeps all of them in memory."""
    schema, most = table.without_day, rows_per_group(table)
    groups = (as_declared(pa.Table.from_batches([batch]), schema) for batch in _batches(lake, table, files))
    if sort_by is None:
        yield from joined_groups(groups, most)
        return
    parts = list(groups)
    if parts:
        rows = pa.concat_tables(parts).sort_by(sort_by)
        for first in range(0, rows.num_rows, most):
            yield rows.slice(first, most)


def _batches(lake: Lake, table: Table, files: Sequence[dict[str, Any]]) -> Iterator[pa.RecordBatch]:
    for file in files:
        place = f"{lake.location(table)}/{unquote(file['path'])}"
        try:
            with pq.ParquetFile(place, page_checksum_verification=True) as opened:
                for group in range(opened.num_row_groups):
                    yield from opened.iter_batches(ROWS_PER_GROUP, [group])
        except (pa.ArrowException, OSError) as error:
            raise LakeError(f"cannot read {place}: {in_a_line(error)}") from error
