"""Repair of a lake: damaged files are quarantined, so that each costs its own rows and nothing else.

A quarantined file is moved to the quarantine folder, removed from its table, and listed in the table of damaged
files. :func:`inspect` finds damage and :func:`repair` quarantines the files. Both may run at any time: tables are
changed by ordinary commits, which do not disturb the appends of others.
"""

import logging
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TypeVar

from deltalake.transaction import RemoveAction

from lagwise.domain.humanise import plural
from lagwise.platform.errors import LagwiseError, LakeError
from lagwise.platform.log_events import LogEvent, event
from lagwise.platform.logs import clean
from lagwise.tables import ALL_TABLES
from lagwise.tables.damage import Damage, Fault, Inspection, files_named_in, inspect_files, is_of_log
from lagwise.tables.delta_log import inspect_log, repair_log
from lagwise.tables.orphans import orphan_files, recover
from lagwise.tables.quarantine import DAMAGED_FILES, QUARANTINE
from lagwise.tables.schema import Table
from lagwise.tables.storage import Storage
from lagwise.tables.store import Lake

log = logging.getLogger("lagwise.lake")

T = TypeVar("T")

#: How many damaged files a line of the log names; it counts the others.
_NAMED = 5
#: A reader's message about a file may go on for pages.
_LONGEST_DETAIL = 300
#: How often work is done again after a repair: each time other files were damaged.
_MAX_REPAIRS = 20
#: How often the removal of files is tried again because others removed some of them meanwhile.
_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class Repaired:
    """What a repair did: the quarantined files, and how many files were added again that a damaged log had named."""

    quarantined: tuple[Damage, ...] = ()
    recovered: int = 0

    def __str__(self) -> str:
        moved = f"{plural(len(self.quarantined), 'damaged file')} quarantined"
        return f"{moved}, {plural(self.recovered, 'file')} recovered" if self.recovered else moved


def inspect(
    lake: Lake,
    *,
    error: str = "",
    thorough: bool = False,
    tables: Sequence[Table] = ALL_TABLES,
    progress: Callable[[Table], None] = lambda _table: None,
) -> Inspection:
    """Look for damage: in the logs, and whether every data file exists with the size that was written.

    The files that an ``error`` names, or with ``thorough`` all files, are read from the first byte to the last.
    """
    storage, found, named = Storage(lake), Inspection(), files_named_in(error)
    for table in tables:
        progress(table)
        try:
            # While its log is damaged, the table's files are unknown.
            damaged = inspect_log(table, storage).damaged if lake.is_local else []
            of_table = Inspection(damaged) if damaged else inspect_files(lake, table, named=named, thorough=thorough)
        except LakeError as trouble:
            found.unchecked.append(str(trouble))
            if not lake.is_local and not thorough:
                break  # a store that does not answer would be waited for once per table
        else:
            found.damaged += of_table.damaged
            found.unchecked += of_table.unchecked
    return found


def consequence(damage: Damage) -> str:
    """What setting a damaged file aside costs, as the end of a sentence."""
    if is_of_log(damage):
        return "the rest of the log is kept, and what it no longer names is recovered where that is possible"
    if damage.table.clock is None:
        return "the next round of the analysis writes the table again"
    if damage.rows is None:
        return "its rows are lost"
    return f"{plural(damage.rows, 'row')} {'is' if damage.rows == 1 else 'are'} lost"


def repair(lake: Lake, found: Inspection, now: datetime) -> Repaired:
    """Set the damaged files aside. Raises LakeError if the lake cannot be written.

    Each file is first added to the table of damaged files, then removed from its own table, then moved: what an
    interrupted repair did not do, the next inspection and repair do.
    """
    work = _Repair(lake, Storage(lake), f"{QUARANTINE}/{now:%Y-%m-%d}", now)
    # The table that lists the damage of the others comes first.
    for table in sorted(
        {one.table for one in found.damaged}, key=lambda table: (table is not DAMAGED_FILES, table.path)
    ):
        work.repair(table, [one for one in found.damaged if one.table is table])
    return Repaired(tuple(work.quarantined), work.recovered)


@dataclass(slots=True)
class _Repair:
    """A repair under way, and what it has done so far."""

    lake: Lake
    storage: Storage
    quarantine: str
    now: datetime
    quarantined: list[Damage] = field(default_factory=list)
    recovered: int = 0

    def repair(self, table: Table, damaged: Sequence[Damage]) -> None:
        """Repair one table, its log first."""
        if any(is_of_log(one) for one in damaged):
            orphans = self._repair_log(table)
            self._remove(table, inspect_files(self.lake, table).damaged)
            self.recovered += recover(self.lake, table, orphans, self.now)
        self._remove(table, [one for one in damaged if not is_of_log(one)])

    def _repair_log(self, table: Table) -> dict[str, int]:
        """Make the log readable. Returns the orphan files that this leaves, with their rows."""
        log = inspect_log(table, self.storage, whole=True)
        orphans = orphan_files(table, self.storage, log.named)
        if table is not DAMAGED_FILES:
            self._list(log.damaged)
        repair_log(self.lake, table, log, self.storage, self.quarantine, self.now)
        if table is DAMAGED_FILES:  # which could not be appended to before
            self._list(log.damaged)
        self.quarantined += log.damaged
        return orphans

    def _remove(self, table: Table, damaged: Sequence[Damage]) -> None:
        """Remove data files from their table and move them, except those that others have removed meanwhile."""
        for attempt in range(_ATTEMPTS):
            active = set(self.lake.relative_files(table))
            there = [one for one in damaged if one.file in active]
            if not there:
                return
            if attempt == 0:
                self._list(there)
            at = round(self.now.timestamp() * 1000)
            # Not marked as a change of rows: that would make appends fail that others commit meanwhile.
            removals = [
                RemoveAction(one.file, False, at, one.size_bytes, {"day": one.day} if one.day else {}) for one in there
            ]
            if self.lake.commit(table, removals):
                for one in there:
                    self.storage.move(f"{table.path}/{one.file}", f"{self.quarantine}/{table.path}/{one.file}")
                self.quarantined += there
                return
        raise LakeError(f"the table {self.lake.location(table)} changes too fast to remove damaged files from it")

    def _list(self, damaged: Sequence[Damage]) -> None:
        """Add files to the table of damaged files."""
        rows = [
            {
                "found_at": self.now,
                "table": one.table.path,
                "file": one.file,
                "fault": str(one.fault),
                "detail": clean(one.detail)[:_LONGEST_DETAIL],
                "rows": one.rows,
                "size_bytes": one.size_bytes,
                "first_at": one.first_at,
                "last_at": one.last_at,
                "quarantined": None if one.fault is Fault.MISSING else f"{self.quarantine}/{one.table.path}/{one.file}",
            }
            for one in damaged
        ]
        self.lake.create(DAMAGED_FILES)
        self.lake.append(DAMAGED_FILES, DAMAGED_FILES.from_rows(rows))


def repairing(lake: Lake, work: Callable[[], T]) -> T:
    """Do some work on the lake. If it fails because files are damaged, set these aside and do the work again. Otherwise
    raise its error."""
    for _ in range(_MAX_REPAIRS):
        try:
            return work()
        except Exception as error:  # readers of files raise all kinds
            is_of_the_lake = isinstance(error, LakeError) or not isinstance(error, LagwiseError)
            if not is_of_the_lake or repair_cause(lake, error) is None:
                raise
    return work()


def repair_cause(lake: Lake, error: BaseException | None = None) -> Repaired | None:
    """Repair the damage that explains an error (None: any that a quick inspection finds), and log what was done.

    None if there is no such damage, or it could not be repaired.
    """
    message = "" if error is None else "\n".join(map(str, _chain(error)))
    found = inspect(lake, error=message)
    if not found.damaged and not files_named_in(message):
        # The error names no file; it may name a table.
        tables = [table for table in ALL_TABLES if re.search(rf"{re.escape(table.path)}\b", message)]
        if tables:
            found = inspect(lake, thorough=True, tables=tables)
    if not found.damaged:
        return None
    if found.unchecked:
        others = f"; and {len(found.unchecked) - 1} more" if len(found.unchecked) > 1 else ""
        log.warning(
            "could not be checked for damage: %s%s", found.unchecked[0], others, extra=event(LogEvent.DAMAGE_UNCHECKED)
        )
    try:
        done = repair(lake, found, datetime.now(UTC))
    except LakeError as trouble:
        log.error("damaged files cannot be quarantined: %s", trouble, extra=event(LogEvent.DAMAGED_FILES_QUARANTINED))
        return None
    named = "; ".join(map(str, done.quarantined[:_NAMED]))
    more = f"; and {len(done.quarantined) - _NAMED} more" if len(done.quarantined) > _NAMED else ""
    log.error(
        "%s in %s/%s: %s%s", done, lake.uri, QUARANTINE, named, more, extra=event(LogEvent.DAMAGED_FILES_QUARANTINED)
    )
    return done


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An error and those that led to it."""
    seen = set[int]()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        cause = cause.__cause__ or cause.__context__
