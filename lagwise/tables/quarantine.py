"""Files that were found damaged and quarantined: the folder that holds them and the table that lists them."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from lagwise.tables.schema import INT64, TEXT, TIMESTAMP, Column, Table

if TYPE_CHECKING:
    from lagwise.tables.store import Lake

#: The folder of the lake that damaged files are moved to, each below the day it was found on.
QUARANTINE = "quarantine"
#: How long a damaged file is a reason to check the disk.
CHECK_DISK_FOR = timedelta(days=7)

DAMAGED_FILES = Table(
    "damaged_files",
    "analysis",
    "file that was found damaged and quarantined",
    (
        Column("found_at", TIMESTAMP, "when it was found", nullable=False),
        Column("table", TEXT, "the table it belongs to, as a path below the lake: `raw/commits`", nullable=False),
        Column("file", TEXT, "its path in the table's folder", nullable=False),
        Column("fault", TEXT, "missing, truncated or corrupt", nullable=False),
        Column("detail", TEXT, "what is wrong with it", nullable=False),
        Column("rows", INT64, "rows that it held; null where unknown, as for a file of the table's log"),
        Column(
            "size_bytes",
            INT64,
            "the size it was written with (of a file of the log: its size when found); null where unknown",
        ),
        Column("first_at", TIMESTAMP, "the first time in these rows, to the millisecond; null where unknown"),
        Column("last_at", TIMESTAMP, "the last time in these rows; null where unknown"),
        Column("quarantined", TEXT, "where it is now, as a path below the lake; null where it was missing"),
    ),
    clock="found_at",
)


@dataclass(frozen=True, slots=True)
class QuarantinedFiles:
    """How many files of a table were quarantined, how many rows they held where known, and when the last was found."""

    table: str
    files: int
    rows: int
    newest_at: datetime


def quarantined_files(lake: "Lake") -> list[QuarantinedFiles]:
    """The quarantined files, by table, for as long as they are kept. Raises LakeError."""
    found = lake.query(
        """
        select "table", count(*) as files, coalesce(sum(rows), 0)::bigint as rows, max(found_at) as newest_at
        -- a repair that was interrupted adds a file again
        from (select "table", file, max(rows) as rows, max(found_at) as found_at from damaged_files group by all)
        group by "table" order by "table"
        """,
        over=[DAMAGED_FILES],
    )
    return [QuarantinedFiles(**row) for row in found.to_pylist()]
