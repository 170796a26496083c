"""``lagwise migrate``: brings the lake and the database of an older version up to date, or says what would be done."""

from typing import TYPE_CHECKING, Any

import click

from lagwise.platform.error_codes import ErrorCode
from lagwise.platform.errors import LakeError
from lagwise.platform.logs import clean
from lagwise_app.cli.shared import CommandSettings, data_option, json_option
from lagwise_app.terminal.json_output import print_json

if TYPE_CHECKING:
    from lagwise.config import Config


@click.command(short_help="Bring lake and database up to date.")
@data_option
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@json_option("versions, and what is or would be done,")
@click.pass_obj
def migrate(settings: CommandSettings, data: str | None, dry_run: bool, as_json: bool) -> None:
    """Bring the lake and the operational database of an older version of Lagwise up to date.

    Every part does so at its start, so this is for looking first, or for doing it before the start. It is safe to kill,
    and to run again.

    \b
      lagwise migrate --dry-run
      lagwise migrate --data /var/lib/lagwise
    """
    config = settings.load_of_run(data)
    done: list[str] = []
    before = _plans(config)
    if before["lake"]["version"] is None and before["database"]["version"] is None:
        raise LakeError(
            f"there is neither a lake at {config.lake_uri} nor a database: nothing to bring up to date. Check --data",
            code=ErrorCode.LAKE_MISSING,
        )
    if not dry_run:
        from lagwise_app.upgrade import upgrade

        upgrade(config, done.append)
    after = before if dry_run else _plans(config)
    if as_json:
        print_json({"dry_run": dry_run, **after, "to_do": _to_do(before) if dry_run else [], "done": done})
        return
    lines = [f"would be done: {line}" for line in _to_do(before)] if dry_run else done
    for line in lines or ["lake and database are up to date"]:
        click.echo(clean(line))


def _plans(config: "Config") -> dict[str, Any]:
    """The versions of both, and what is to be done. Raises LagwiseError."""
    from lagwise.operational.engine import open_engine
    from lagwise.operational.migrate import NEWEST, database_version
    from lagwise.tables.migrate import plan_of
    from lagwise.tables.store import Lake

    engine = open_engine(config.database_url)
    try:
        version = database_version(engine)
    finally:
        engine.dispose()
    plan = plan_of(Lake(config.lake_uri, config.lake.resolved_storage_options()))
    return {
        "database": {"version": version, "newest": NEWEST},
        "lake": {
            "version": plan.version,
            "newest": plan.newest,
            "steps": [{"version": step.version, "what": step.what} for step in plan.steps],
            "columns": plan.columns,
        },
    }


def _to_do(plans: dict[str, Any]) -> list[str]:
    database, lake = plans["database"], plans["lake"]
    lines = []
    if database["version"] is None:
        lines.append(f"make the tables of the database (version {database['newest']})")
    elif database["version"] != database["newest"]:
        lines.append(f"migrate the database from version {database['version']} to {database['newest']}")
    if lake["version"] is None:
        lines.append(f"make the lake (version {lake['newest']})")
    lines += [f"the lake, to version {step['version']}: {step['what']}" for step in lake["steps"]]
    lines += [f"the table {path} gets {', '.join(names)}" for path, names in lake["columns"].items()]
    return lines
