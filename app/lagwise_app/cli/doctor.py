"""``lagwise doctor``: checks of machine, clusters and settings, and the repair of a damaged lake."""

import itertools
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from lagwise.domain.humanise import plural
from lagwise.platform.error_codes import ErrorCode
from lagwise.platform.errors import LakeError
from lagwise.platform.logs import clean
from lagwise_app.cli.shared import CommandSettings, bootstrap_option, data_option, json_option, open_lake
from lagwise_app.terminal.json_output import print_json

if TYPE_CHECKING:
    from rich.text import Text

    from lagwise.config import Config
    from lagwise.tables.damage import Damage, Inspection
    from lagwise.tables.repair import Repaired
    from lagwise.tables.store import Lake
    from lagwise_app.doctor.diagnosis import Diagnosis


@click.command(short_help="Check everything, with advice for every problem.")
@bootstrap_option
@data_option
@click.option("--spark/--no-spark", default=True, help="Start Spark as a check, which takes 5 to 30 s. Default: yes.")
@click.option("--repair", is_flag=True, help="Read every file of the lake, and quarantine damaged ones after asking.")
@click.option("--yes", is_flag=True, help="With --repair: repair without asking.")
@json_option("the checks")
@click.pass_context
def doctor(
    context: click.Context, bootstrap: str | None, data: str | None, spark: bool, repair: bool, yes: bool, as_json: bool
) -> None:
    """Check Java, Spark, brokers and privileges, lake, database, disk and memory.

    Says for each whether it is ok, and if not, what to do. Exits with 1 if a check failed; a warning is not a failure.
    With --data and without a settings file, it uses the settings of the last run on that data.

    With --repair, only the lake is checked, and every file is read. It lists the damaged files and the consequences,
    and asks. It then removes the files from their tables and moves them to the folder `quarantine` of the lake. Exits
    with 1 if damage remains.

    \b
      lagwise doctor --bootstrap broker:9092
      lagwise doctor --no-spark --json
      lagwise doctor --repair
    """
    from dataclasses import asdict

    from lagwise.platform import logs
    from lagwise_app.doctor.checks import diagnoses
    from lagwise_app.doctor.diagnosis import CheckResult, ok
    from lagwise_app.terminal import output

    logs.configure("doctor")
    settings: CommandSettings = context.obj
    last_run = None if bootstrap else settings.load_last_run(data)
    config = last_run[0] if last_run else settings.load(bootstrap=bootstrap, data=data)
    if repair:
        context.exit(0 if repair_lake(config, yes=yes, as_json=as_json) else 1)
    if yes:
        raise click.UsageError("--yes works only with --repair")
    settings_used = [ok("settings", f"those of the last run on this data ({last_run[1]})")] if last_run else []
    if as_json:
        found = [*settings_used, *diagnoses(config, start_spark=spark)]
    else:
        found, console = [], output.console()
        with console.status("checking …") as progress:
            checks = diagnoses(config, start_spark=spark, progress=lambda what: progress.update(f"{what} …"))
            for diagnosis in itertools.chain(settings_used, checks):
                found.append(diagnosis)
                console.print(_diagnosis_line(diagnosis))
    has_failed = any(diagnosis.result is CheckResult.FAILED for diagnosis in found)
    if as_json:
        print_json({"ok": not has_failed, "checks": [asdict(diagnosis) for diagnosis in found]})
    context.exit(1 if has_failed else 0)


def _diagnosis_line(diagnosis: "Diagnosis") -> "Text":
    """One check, with its advice on a line of its own."""
    from rich.text import Text

    from lagwise_app.doctor.diagnosis import CheckResult
    from lagwise_app.terminal.safe_text import plain

    mark, style = {
        CheckResult.OK: ("✓", "green"),
        CheckResult.WARNING: ("!", "bold yellow"),
        CheckResult.FAILED: ("✗", "bold red"),
    }[diagnosis.result]
    line = Text(f"{mark} ", style=style).append_text(plain(diagnosis.check)).append(": ", style="")
    line.append_text(plain(diagnosis.found))
    if diagnosis.advice:
        line.append("\n  → ", style=style).append_text(plain(diagnosis.advice))
    return line


def repair_lake(config: "Config", *, yes: bool, as_json: bool) -> bool:
    """Inspect the lake, print the damage, and repair it if the user confirms. Returns whether no damage remains.

    With ``as_json`` it does not ask: it repairs only with ``yes``. Raises LagwiseError.
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
        _print_damage(found, lake.uri)
        yes = bool(found.damaged) and (yes or click.confirm("Repair now?", default=False))
    done: Repaired | None = None
    if yes and found.damaged:
        with _analysis_paused(config, lake, found):
            done = repair(lake, found, datetime.now(UTC))
    if as_json:
        print_json(
            {
                "damaged": [_damage_document(one) for one in found.damaged],
                "unchecked": [clean(line) for line in found.unchecked],
                "quarantined": None if done is None else len(done.quarantined),
                "recovered": None if done is None else done.recovered,
            }
        )
    elif done is not None:
        click.echo(done)
    return not found.unchecked and (done is not None or not found.damaged)


def _print_damage(found: "Inspection", uri: str) -> None:
    from lagwise.tables.quarantine import QUARANTINE
    from lagwise.tables.repair import consequence

    for line in found.unchecked:
        click.echo(f"cannot be checked now, so nothing is changed: {clean(line)}")
    for one in found.damaged:
        click.echo(clean(f"{one}: {consequence(one)}"))
    if found.damaged:
        files = plural(len(found.damaged), "damaged file")
        click.echo(
            f"{files}. A repair removes them from their tables and moves what is left of them to "
            f"{clean(uri)}/{QUARANTINE}"
        )
    elif not found.unchecked:
        click.echo(f"no file of {clean(uri)} is damaged")


def _require_lake(lake: "Lake") -> None:
    """Raise LakeError where there is no table: an empty folder must not pass as an undamaged lake."""
    from lagwise.tables import ALL_TABLES

    for table in ALL_TABLES:
        try:
            if lake.open(table) is not None:
                return
        except LakeError:
            return  # a table whose log is damaged
    raise LakeError(
        f"no lake at {lake.uri}: give the folder with --data, or its settings with --config",
        code=ErrorCode.LAKE_MISSING,
    )


@contextmanager
def _analysis_paused(config: "Config", lake: "Lake", found: "Inspection") -> Iterator[None]:
    """Keep the analysis from running during the repair of a damaged table log, because it holds logs in memory.

    Raises LagwiseError if the analysis runs.
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
        claim = Leadership(Lease(engine, "analysis"), "the analysis", logging.getLogger("lagwise.lake"))
        with claim.taken() as leadership:
            lake.before_writing = leadership.check
            yield
    finally:
        engine.dispose()


def _damage_document(one: "Damage") -> dict[str, Any]:
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
