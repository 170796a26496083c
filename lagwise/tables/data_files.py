"""Data files of a table: which of them a reader wants, and the rows of those on a disk."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

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


def rows_of_files(paths: Sequence[str], table: Table) -> pa.Table:
    """All rows of a table's data files on a disk; pages that have checksums are checked. Raises LakeError."""
    import pyarrow.parquet as pq

    parts = [empty(table)]
    for path in paths:
        try:
            with pq.ParquetFile(path, page_checksum_verification=True) as file:
                rows = file.read()
        except (pa.ArrowException, OSError) as error:
            raise UnreadableTable(f"cannot read {path}: {in_a_line(error)}") from error
        if table.partitioned and "day" not in rows.column_names:  # Spark also writes it into the file
            day = date.fromisoformat(Path(path).parent.name.removeprefix("day="))
            rows = rows.append_column(table.arrow.field("day"), pa.repeat(pa.scalar(day, DAY), rows.num_rows))
        parts.append(rows.select(table.arrow.names).cast(table.arrow))
    return pa.concat_tables(parts)


def empty(table: Table) -> pa.Table:
    """The table without any row."""
    # Not the schema's empty_table(), which imports pandas.
    return pa.Table.from_batches([], schema=table.arrow)
