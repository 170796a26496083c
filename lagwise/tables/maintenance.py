"""Keeping the lake small: compaction of small files, deletion of old days, removal of files that no version needs.

One process does this (the analysis), so that no two rewrite the same files. Appending collectors are not disturbed:
an append never conflicts with a compaction.
"""

import time
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from deltalake import DeltaTable, WriterProperties

from lagwise.config import RetentionSettings
from lagwise.tables import ALL_TABLES
from lagwise.tables.analysis import GROUP_HISTORY
from lagwise.tables.capacity import FORECASTS, TOPIC_HOURS
from lagwise.tables.compaction import merge_day
from lagwise.tables.engine_errors import as_lake_errors
from lagwise.tables.minutes import FIVE_MINUTES, MINUTES, WATERMARK_FIVE_MINUTES, WATERMARK_MINUTES
from lagwise.tables.orphans import APPEND_ONLY
from lagwise.tables.quarantine import QUARANTINE
from lagwise.tables.raw import COMMITS, GROUPS, MEMBERS, TOPICS, WATERMARKS
from lagwise.tables.schema import Table
from lagwise.tables.storage import Storage
from lagwise.tables.store import Lake
from lagwise.tables.written_files import ROWS_PER_GROUP

#: A day's partition with at least this many files is worth compacting; once the day is over, two are.
COMPACT_FROM_FILES = 40
#: A topic is forecast again every day; older forecasts are of no use.
FORECASTS_DAYS = 3
#: Readers finish within this time; older files that no version needs are removed.
KEEP_FILES_HOURS = 1

_RAW = (WATERMARKS, COMMITS, GROUPS, MEMBERS)
_MINUTES = (MINUTES, WATERMARK_MINUTES, FIVE_MINUTES, WATERMARK_FIVE_MINUTES, GROUP_HISTORY)


@dataclass(frozen=True, slots=True)
class Maintained:
    """What was done: files merged into larger ones, days deleted, files removed from storage."""

    compacted_files: int = 0
    deleted_days: int = 0
    removed_files: int = 0


def days_kept(table: Table, retention: RetentionSettings) -> int | None:
    """How many days of a table are kept; None is all."""
    if not table.partitioned or table is TOPICS:
        # The newest row of a topic may be old, and is still its configuration.
        return None
    if table in _RAW:
        return retention.raw_days
    if table is TOPIC_HOURS:
        return retention.demand_days
    if table is FORECASTS:
        return FORECASTS_DAYS
    return retention.minute_stats_days if table in _MINUTES else retention.history_days


def maintain(lake: Lake, retention: RetentionSettings, *, now: datetime | None = None) -> Maintained:
    """Compact, delete and clean every table. Raises LakeError naming the table that could not be maintained."""
    today = (now or datetime.now(UTC)).astimezone(UTC).date()
    compacted = deleted = removed = 0
    for table in ALL_TABLES:
        delta = lake.open(table)
        if delta is None:
            continue
        lake.before_writing()
        with as_lake_errors(f"cannot maintain the table {lake.location(table)}"):
            kept = days_kept(table, retention)
            if kept is not None:
                deleted += _delete_days(delta, today - timedelta(days=kept))
            compacted += _compact(lake, delta, table, today)
            delta = lake.open(table) or delta
            removed += len(_vacuum(delta, table)) + _remove_partial_files(lake, table)
            delta.cleanup_metadata()
    _empty_quarantine(Storage(lake), today - timedelta(days=retention.history_days))
    return Maintained(compacted, deleted, removed)


def _vacuum(delta: DeltaTable, table: Table) -> list[str]:
    """Remove files that no version needs. Those that were never part of one, as a killed analysis leaves them, only
    where they cannot be rows that a damaged log has lost."""
    return delta.vacuum(
        retention_hours=KEEP_FILES_HOURS,
        enforce_retention_duration=False,
        dry_run=False,
        full=table not in APPEND_ONLY,
    )


def _remove_partial_files(lake: Lake, table: Table) -> int:
    """Remove what a killed process had begun to write on a disk, which vacuum does not know; how many files."""
    if not lake.is_local:
        return 0
    oldest = time.time() - KEEP_FILES_HOURS * 3600
    partial = [f for f in Path(lake.location(table)).rglob(".part-*.parquet") if f.stat().st_mtime < oldest]
    for file in partial:
        file.unlink(missing_ok=True)
    return len(partial)


def _empty_quarantine(storage: Storage, first_kept: date) -> None:
    """Damaged files are kept as long as the rows of `damaged_files` that list them."""
    for day in storage.folders(QUARANTINE):
        if day < first_kept.isoformat():
            storage.delete_folder(f"{QUARANTINE}/{day}")


def _delete_days(delta: DeltaTable, first_kept: date) -> int:
    old = sorted({p["day"] for p in delta.partitions() if p["day"] < first_kept.isoformat()})
    if old:
        delta.delete(f"day < '{first_kept.isoformat()}'")
    return len(old)


def _compact(lake: Lake, delta: DeltaTable, table: Table, today: date) -> int:
    if not table.partitioned:
        return 0  # replaced as a whole
    merged = 0
    for partition in delta.partitions():
        day = partition["day"]
        files = delta.file_uris(file_pruning_predicate=[("day", "=", day)])
        # Late samples may still come for yesterday. A file an hour for more than a year would be ten thousand.
        is_over = day < (today - timedelta(days=1)).isoformat()
        if len(files) < (2 if is_over else COMPACT_FROM_FILES):
            continue
        # Topics are read a few at a time: sorted, the others' row groups are left out.
        by_topic = is_over and table is TOPIC_HOURS
        if lake.is_local:
            merged += merge_day(lake, table, delta, day, sort_by="topic" if by_topic else None)
        else:  # an object store looks at checksums itself
            only = [("day", "=", day)]
            how = WriterProperties(compression="ZSTD", max_row_group_size=ROWS_PER_GROUP)
            metrics = (
                delta.optimize.z_order(["topic"], only, writer_properties=how)
                if by_topic
                else delta.optimize.compact(only, writer_properties=how)
            )
            merged += int(metrics["numFilesRemoved"])
    return merged
