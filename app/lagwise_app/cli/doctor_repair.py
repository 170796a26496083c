"""``lagwise doctor --repair``: lists the damaged files of the lake, says what will be done, and sets them aside."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from lagwise.domain.humanise import plural
from lagwise.platform.errors import LakeError
from lagwise.platform.logs import clean
from lagwise_app.cli.shared import open_lake
from lagwise_app.terminal.json_output import print_json

if TYPE_CHECKING:
    from lagwise.config import Config
    from lagwise.tables.damage import Damage, Inspection
    from lagwise.tables.repair import Repaired
    from lagwise.tables.store import Lake


def repair_lake(config: "Config", *, yes: bool, as_json: bool) -> bool:
    """Inspect the lake, print what is damaged, and repair it if that is confirmed; whether no damage remains.

    As JSON it does not ask: without ``yes`` nothing is repaired. Raises LagwiseError.
    """
    from lagwise.tables.repair import inspect, repair
    from lagwise_app.terminal import output

    lake, console = open_lake(config), output.console()
    _require_lake(lake)
    if as_json:
        found = inspect(lake, thorough=True)
    else:
        with console.status("reading every file of the lake …") as progress:
            found = inspect(
                lake, thorough=True, progress=lambda table: progress.update(f"reading every file of {table.path} …")
            )
        _print(found, lake.uri)
        yes = bool(found.damaged) and (yes or click.confirm("Repair now?", default=False))
    done: Repaired | None = None
    if yes and found.damaged:
        with _alone(config, lake, found):
            done = repair(lake, found, datetime.now(UTC))
    if as_json:
        print_json(
            {
                "damaged": [_document(one) for one in found.damaged],
                "unchecked": [clean(line) for line in found.unchecked],
                "set_aside": None if done is None else len(done.set_aside),
                "recovered": None if done is None else done.recovered,
            }
        )
    elif done is not None:
        click.echo(done)
    return not found.unchecked and (done is not None or not found.damaged)


def _print(found: "Inspection", uri: str) -> None:
    from lagwise.tables.quarantine import QUARANTINE
    from lagwise.tables.repair import consequence

    for line in found.unchecked:
        click.echo(f"cannot be checked now, and is left alone: {clean(line)}")
    for one in found.damaged:
        click.echo(clean(f"{one}: {consequence(one)}"))
    if found.damaged:
        files = plural(len(found.damaged), "damaged file")
        click.echo(
            f"{files}. A repair removes damaged files from their tables and moves what is left of them to "
            f"{clean(uri)}/{QUARANTINE}"
        )
    elif not found.unchecked:
        click.echo(f"no file of {clean(uri)} is damaged")


def _require_lake(lake: "Lake") -> None:
    """Raise LakeError where there is no table: whoever looks into an empty folder is not told that all is well."""
    from lagwise.tables import ALL_TABLES

    for table in ALL_TABLES:
        try:
            if lake.open(table) is not None:
                return
        except LakeError:
            return  # a table whose log is damaged
    raise LakeError(f"there is no lake at {lake.uri}: give the folder with --data, or its settings with --config")


@contextmanager
def _alone(config: "Config", lake: "Lake", found: "Inspection") -> Iterator[None]:
    """Where a log is damaged, keep the analysis from running meanwhile: it has logs in memory that it has read.

    Raises LagwiseError if it runs.
    """
    from lagwise.operational.engine import open_engine
    from lagwise.operational.leadership import Leadership
    from lagwise.operational.lease import Lease
    from lagwise.tables.damage import is_of_log

    if not any(map(is_of_log, found.damaged)):
        yield
        return
    engine = open_engine(config.database_url)
    try:
        with Leadership(Lease(engine, "analysis"), "the analysis", logging.getLogger("lagwise.lake")).taken() as turn:
            lake.before_writing = turn.check
            yield
    finally:
        engine.dispose()


def _document(one: "Damage") -> dict[str, Any]:
    from lagwise.tables.repair import consequence

    return {
        "table": one.table.path,
        "file": one.file,
        "fault": str(one.fault),
        "detail": clean(one.detail),
        "rows": one.rows,
        "first_at": one.first_at,
        "last_at": one.last_at,
        "consequence": consequence(one),
    }
