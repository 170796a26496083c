"""Delta tables that are open, so that a newer version costs only what is new in the log; and how they are created."""

import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

from lagwise.platform.errors import UnreadableTable
from lagwise.tables.column_changes import add_columns
from lagwise.tables.engine_errors import in_a_line
from lagwise.tables.guard import check_columns, check_protocol
from lagwise.tables.schema import Table

#: A directory's time of change is that of the kernel's last tick, some milliseconds ago at most: another change in the
#: same tick would leave it as it is. One that is older than this is over.
_SETTLED_NS = 100_000_000

#: Pinned at creation; a later default of either engine must not change what the other can read.
TABLE_PROPERTIES = {
    "delta.enableChangeDataFeed": "false",
    "delta.enableDeletionVectors": "false",
    "delta.columnMapping.mode": "none",
    "delta.checkpointInterval": "50",
    "delta.logRetentionDuration": "interval 1 days",
    "delta.deletedFileRetentionDuration": "interval 1 hours",
}


def create(table: Table, location: str, storage_options: Mapping[str, str]) -> None:
    """Create a table, unless it exists. To one of an older version columns are added."""
    skipping = {} if table.clock is None else {"delta.dataSkippingStatsColumns": table.clock}
    delta = DeltaTable.create(
        location,
        schema=table.arrow,
        mode="ignore",
        partition_by=["day"] if table.partitioned else None,
        name=table.name,
        description=f"one row per {table.rows}",
        configuration=TABLE_PROPERTIES | skipping,
        storage_options=dict(storage_options) or None,
    )
    try:
        add_columns(delta, table)
    except CommitFailedError:  # another process adds them
        add_columns(DeltaTable(location, storage_options=dict(storage_options) or None), table)


class OpenTables:
    """The open tables of a lake. Safe to use from threads."""

    def __init__(self) -> None:
        self._open: dict[str, DeltaTable] = {}
        #: When the log's folder had last changed as the newest version was looked up, by table of a local lake.
        self._log_changed_at: dict[str, int] = {}
        self._lock = threading.Lock()
        #: Tables that are not looked up again for now; None: all are, each time.
        self._seen: set[str] | None = None

    def newest(self, table: Table, location: str, storage_options: Mapping[str, str]) -> DeltaTable | None:
        """A table at its newest version; None if it does not exist yet.

        Raises LakeError if it cannot be read or uses a feature that our readers do not understand.
        """
        with self._lock:
            delta = self._open.get(table.name)
            if delta is not None and self._seen is not None and table.name in self._seen:
                return delta
            looked_at, changed_at = time.time_ns(), _log_changed_at(location)
            if delta is not None and changed_at is not None and changed_at == self._log_changed_at.get(table.name):
                return delta
            self._log_changed_at.pop(table.name, None)
            try:
                if delta is None:
                    delta = DeltaTable(location, storage_options=dict(storage_options) or None)
                else:
                    delta.update_incremental()
            except TableNotFoundError:
                self._open.pop(table.name, None)
                return None
            except (DeltaError, OSError) as error:
                self._open.pop(table.name, None)
                raise UnreadableTable(f"cannot read the table {location}: {in_a_line(error)}") from error
            check_protocol(delta, location)
            if table.name not in self._open:
                check_columns(delta, table, location)
            self._open[table.name] = delta
            if changed_at is not None and looked_at - changed_at > _SETTLED_NS:
                self._log_changed_at[table.name] = changed_at
            if self._seen is not None:
                self._seen.add(table.name)
            return delta

    def forget(self, table: Table) -> None:
        """Open a table again the next time."""
        with self._lock:
            self._open.pop(table.name, None)

    def changed(self, table: Table) -> None:
        """A commit was made through this object: look for the newest version the next time."""
        with self._lock:
            if self._seen is not None:
                self._seen.discard(table.name)

    @contextmanager
    def unchanging(self) -> Iterator[None]:
        """Look each table up once until the end."""
        self._seen = set()
        try:
            yield
        finally:
            self._seen = None


def _log_changed_at(location: str) -> int | None:
    """When the folder of a local table's log last changed, as every commit does, in ns; None if that cannot be told."""
    if "://" in location:
        return None
    try:
        return os.stat(Path(location, "_delta_log")).st_mtime_ns
    except OSError:
        return None
