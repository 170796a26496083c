"""Brings the lake of an older version up to date: numbered steps first, then the columns that are new."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from deltalake import DeltaTable

from lagwise.tables import ALL_TABLES
from lagwise.tables.column_changes import lacking_and_surplus
from lagwise.tables.engine_errors import as_lake_errors
from lagwise.tables.lake_version import WRITER, check_version, exists
from lagwise.tables.migration_steps import STEPS, Step
from lagwise.tables.migrations_table import MIGRATIONS
from lagwise.tables.store import Lake


@dataclass(frozen=True)
class LakePlan:
    """What a migration would do.

    Attributes:
        version: of the lake; None where there is none yet.
        newest: the version that it would have.
        steps: to be done.
        columns: that tables lack, by the table's path. Steps may add some of them.
    """

    version: int | None
    newest: int
    steps: tuple[Step, ...]
    columns: dict[str, list[str]]

    @property
    def is_up_to_date(self) -> bool:
        """Whether there is nothing to do."""
        return not self.steps and not self.columns


def plan_of(lake: Lake, steps: Sequence[Step] = STEPS) -> LakePlan:
    """What is to be done. Raises LakeError, and NewerThanProgram where the lake is newer."""
    newest = steps[-1].version
    version = check_version(lake, newest)
    there = [table for table in ALL_TABLES if exists(lake, table)]
    if not there:
        return LakePlan(None, newest, (), {})
    columns = {}
    for table in there:
        with as_lake_errors(f"cannot read the table {lake.location(table)}"):
            delta = DeltaTable(lake.location(table), storage_options=dict(lake.storage_options) or None)
        lacking = lacking_and_surplus(delta, table)[0]
        if lacking:
            columns[table.path] = lacking
    return LakePlan(version, newest, tuple(step for step in steps if step.version > version), columns)


def migrate(lake: Lake, *, steps: Sequence[Step] = STEPS, say: Callable[[str], None] = lambda _line: None) -> None:
    """Bring the lake up to date; a lake that does not exist yet gets the newest version. Only one process at a time may
    do so. ``say`` is told what is done. A kill costs the step under way, which is done again. Raises LakeError."""
    plan = plan_of(lake, steps)
    if plan.version is None:
        _note(lake, plan.newest, "the lake was made")
        return
    for step in plan.steps:
        say(f"the lake {lake.uri}, to version {step.version}: {step.what}")
        step.run(lake)
        _note(lake, step.version, step.what)
    for table in ALL_TABLES:
        if exists(lake, table):
            lake.create(table)  # adds its columns
    added = {path: names for path, names in plan.columns.items() if names}
    for path, names in added.items():
        say(f"the table {path} got the columns {', '.join(names)}")


def _note(lake: Lake, version: int, what: str) -> None:
    lake.create(MIGRATIONS)
    row = {"version": version, "at": datetime.now(UTC), "what": what}
    lake.append(MIGRATIONS, MIGRATIONS.from_rows([row]), transactions={WRITER: version})
