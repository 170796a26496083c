"""Compaction on a disk: merges the small files of a day into larger ones whose pages have checksums.

delta-rs ignores the checksums of pages that it reads: a flipped bit would be copied into the merged file. Here the
pages of the small files are checked, and those of the merged file can be.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.transaction import AddAction, RemoveAction

from lagwise.platform.errors import LakeError
from lagwise.tables.engine_errors import as_lake_errors, in_a_line
from lagwise.tables.schema import Table
from lagwise.tables.store import Lake
from lagwise.tables.written_files import ROWS_PER_GROUP, new_file_name, rows_per_group, write_file

#: Files of this size are not merged with others, and no merged file is much larger.
LARGE_BYTES = 100 * 1024**2


def merge_day(lake: Lake, table: Table, delta: DeltaTable, day: str, *, sort_by: str | None = None) -> int:
    """Merge the small files of one day of a table; how many were merged.

    Raises LakeError; the message names a file that cannot be read.
    """
    merged = 0
    for files in _bins(delta, day):
        name = new_file_name(day)
        place = Path(lake.location(table), name)
        # Readers and repairs ignore names that begin with a dot.
        partial = place.with_name(f".{place.name}")
        try:
            with as_lake_errors(f"cannot write {place}"):
                stats = write_file(partial, _rows(lake, table, files, sort_by), table)
                partial.rename(place)
        finally:
            partial.unlink(missing_ok=True)
        now = round(datetime.now(UTC).timestamp() * 1000)
        added = AddAction(name, place.stat().st_size, {"day": day}, now, False, stats)
        removed = [RemoveAction(f["path"], False, now, f["size_bytes"], {"day": day}) for f in files]
        if lake.commit(table, [added, *removed]):
            merged += len(files)
        else:
            place.unlink()  # another process has rewritten one of the files: they are merged the next time
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
    parts: list[pa.Table] = []
    for batch in _batches(lake, table, files):
        # Row groups stay as they are where they hold a part of the topic-partitions each.
        if sort_by is None and parts and sum(part.num_rows for part in parts) + batch.num_rows > most:
            yield pa.concat_tables(parts)
            parts = []
        parts.append(pa.Table.from_batches([batch]).select(schema.names).cast(schema))
    if parts:
        rows = pa.concat_tables(parts)
        if sort_by is None:
            yield rows
            return
        rows = rows.sort_by(sort_by)
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
