"""Orphan files: data files that no readable part of a table's log names.

After damage to a log, an orphan is a file that a lost entry added, or what is left of a failed write or of a merge. Its
rows show which: it is added to the table again only if the table has none of them.
"""

import json
from collections.abc import Collection, Mapping
from datetime import datetime
from pathlib import PurePosixPath

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake.transaction import AddAction

from lagwise.platform.errors import LakeError
from lagwise.tables.analysis import GROUP_HISTORY, STATUS_CHANGES
from lagwise.tables.damage import day_of, unreadable
from lagwise.tables.duckdb_connection import connected
from lagwise.tables.engine_errors import in_a_line
from lagwise.tables.quarantine import DAMAGED_FILES
from lagwise.tables.raw import RAW_TABLES
from lagwise.tables.rounds import TICKS
from lagwise.tables.schema import Table
from lagwise.tables.storage import Storage
from lagwise.tables.store import Lake

#: Tables in which a row, once written, is never replaced by another. In the others (minutes, statuses) an orphan may
#: hold an older version of rows that the table has.
APPEND_ONLY = (*RAW_TABLES, GROUP_HISTORY, STATUS_CHANGES, TICKS, DAMAGED_FILES)


def orphan_files(table: Table, storage: Storage, named: Collection[str]) -> dict[str, int]:
    """The readable data files of an append-only table that its log does not name, with their rows."""
    found: dict[str, int] = {}
    if table not in APPEND_ONLY:
        return found
    for file in storage.sizes(table.path):
        is_whole = not PurePosixPath(file).name.startswith(".")
        if is_whole and day_of(file) is not None and file.endswith(".parquet") and file not in named:
            content = storage.read(f"{table.path}/{file}")
            if unreadable(content, table, None, None) is None:
                found[file] = pq.read_metadata(pa.BufferReader(content)).num_rows
    return found


def recover(lake: Lake, table: Table, orphans: Mapping[str, int], now: datetime) -> int:
    """Add the orphan files whose rows a table on a disk lacks to the table again; how many. Raises LakeError."""
    added = 0
    sizes = Storage(lake).sizes(table.path) if orphans else {}
    with connected() as connection:
        # The largest first: a file that was merged from others makes these superfluous.
        for file, rows in sorted(orphans.items(), key=lambda one: -one[1]):
            if rows and _holds_none_of(lake, connection, table, file):
                at, stats = round(now.timestamp() * 1000), json.dumps({"numRecords": rows})
                lake.commit(table, [AddAction(file, sizes[file], {"day": day_of(file)}, at, True, stats)])
                added += 1
    return added


def _holds_none_of(lake: Lake, connection: duckdb.DuckDBPyConnection, table: Table, file: str) -> bool:
    """Whether the table has none of the rows of this data file."""
    place, day = f"{lake.location(table)}/{file}", str(day_of(file))
    names = table.without_day.names
    # The rows of a sample are written in one file.
    columns = ", ".join(f'"{name}"' for name in (["sample_id"] if "sample_id" in names else names))
    try:
        lake.scan(connection, table, days=(day, day))
        common = connection.execute(
            f"select {columns} from read_parquet(?, hive_partitioning=false) "  # noqa: S608 (own names)
            f'intersect select {columns} from "{table.name}" limit 1',
            [place],
        ).fetchall()
    except duckdb.Error as error:
        raise LakeError(f"cannot read {place}: {in_a_line(error)}") from error
    return not common
