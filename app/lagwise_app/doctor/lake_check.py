"""The doctor's check of the lake."""

import contextlib
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from lagwise.config import Config
from lagwise.domain.humanise import plural, since
from lagwise.platform.errors import LakeError
from lagwise_app.doctor.diagnosis import Diagnosis, failed, ok, removed_afterwards, warning

if TYPE_CHECKING:
    from lagwise.tables.store import Lake

#: How many damaged files are named; the others are counted.
_DAMAGED_SHOWN = 5


def check_lake(config: Config) -> Iterator[Diagnosis]:
    """Whether the lake can be written and read, and which of its files are damaged. Raises LagwiseError."""
    import pyarrow as pa

    from lagwise.tables import ALL_TABLES
    from lagwise.tables.migrate import plan_of
    from lagwise.tables.quarantine import DAMAGED_FILES
    from lagwise.tables.repair import inspect
    from lagwise.tables.schema import Column, Table
    from lagwise.tables.store import Lake

    lake = Lake(config.lake_uri, config.lake.resolved_storage_options())
    probe = Table("doctor", "raw", "check of the doctor", (Column("pid", pa.int64(), "process that checked"),))
    with removed_afterwards(Path(lake.location(probe))) if lake.is_local else contextlib.nullcontext():
        lake.create(probe)
        lake.append(probe, pa.table({"pid": [os.getpid()]}))
        if os.getpid() not in lake.read(probe)["pid"].to_pylist():
            yield failed("lake", f"a test row written to {lake.uri} could not be read back")
            return
    try:
        lacking = plan_of(lake).columns
    except LakeError:  # the table with the damaged log is named below, and a newer lake by the check of versions
        lacking = {}
    there, errors = [], []
    for table in ALL_TABLES:
        if table.path in lacking:  # read once it has them
            continue
        try:
            if lake.open(table) is None:
                continue
            there.append(table)
            lake.query(f'select count(*) from "{table.name}"', over=[table])  # noqa: S608 (own names); opens every file
        except LakeError as error:
            errors.append(str(error))
    found = inspect(lake, error="\n".join(errors))
    advice = "run this again with `--repair` to quarantine it; the next analysis round that reads it does so too"
    for one in found.damaged[:_DAMAGED_SHOWN]:
        yield failed("lake", str(one), advice)
    if len(found.damaged) > _DAMAGED_SHOWN:
        more = plural(len(found.damaged) - _DAMAGED_SHOWN, "more damaged file")
        yield failed("lake", more, "run this again with `--repair`, which lists all of them first")
    damaged = {one.table.path for one in found.damaged}
    unchecked = [line for line in found.unchecked if not any(path in line for path in lacking)]
    other = [error for error in errors if not any(path in error for path in damaged)]
    for line in dict.fromkeys([*other, *unchecked]):
        advice = "check that the storage of the lake is reachable and its files are readable"
        yield failed("lake", line, advice)
    if not found.damaged and not errors and not unchecked:
        opened = f"{lake.uri} can be written and read; {plural(len(there), 'table')}, every file opens"
        if lacking:
            older = f"; {plural(len(lacking), 'more table')} of an older version, to be migrated"
            advice = "the next start migrates; `lagwise migrate --dry-run` says what it does"
            yield warning("lake", opened + older, advice)
        else:
            yield ok("lake", opened)
    if DAMAGED_FILES in there and DAMAGED_FILES.path not in damaged:
        yield from _quarantined(lake, datetime.now(UTC))


def _quarantined(lake: "Lake", now: datetime) -> Iterator[Diagnosis]:
    """Damaged files that were quarantined earlier."""
    from lagwise.tables.quarantine import CHECK_DISK_FOR, quarantined_files

    counts = quarantined_files(lake)
    if not counts:
        return
    by_table = ", ".join(f"{count.table} {count.files}" for count in counts)
    newest = max(count.newest_at for count in counts)
    found = (
        f"{plural(sum(count.files for count in counts), 'damaged file')} quarantined ({by_table}), the last "
        f"{since(newest, now)} ago"
    )
    if now - newest < CHECK_DISK_FOR:
        yield warning("damaged files", found, "check the disk; the table damaged_files lists the loss")
    else:
        yield ok("damaged files", found)
