"""``lagwise health``: whether a process of this machine works, for the probes of whatever supervises it."""

from datetime import UTC, datetime

import click

from lagwise.domain.humanise import duration
from lagwise.platform import health as heartbeats
from lagwise.platform.error_codes import ErrorCode
from lagwise.platform.errors import LagwiseError
from lagwise_app.cli.option_types import duration_type
from lagwise_app.cli.shared import CommandSettings, data_option

#: The name of each process, as logs, the health page and `lagwise up` show it, by the command that runs it.
_BY_COMMAND = {
    command: process
    for process, (command, *_) in heartbeats.COMMANDS.items()
    if process != heartbeats.DASHBOARD  # it has a probe of its own
}


@click.command(short_help="Check that a process on this machine works.")
@click.argument(
    "process",
    metavar="PROCESS",
    type=click.Choice([*dict.fromkeys([*_BY_COMMAND.values(), *_BY_COMMAND])]),
    callback=lambda _context, _parameter, name: _BY_COMMAND.get(name, name),
)
@click.option(
    "--within",
    "within_seconds",
    type=duration_type("s", at_least=1),
    default="10m",
    show_default=True,
    help="The heartbeat must be younger than this.",
)
@data_option
@click.pass_obj
def health(settings: CommandSettings, process: str, within_seconds: float, data: str | None) -> None:
    """Check that a process on this machine works: that its last heartbeat is young enough.

    PROCESS is its name, as the page *Collector health* and `lagwise up` show it (collector, analysis, alerts, scaling,
    server, mcp), or the command that runs it (collect, analyze, alert, scaling, serve, mcp).

    Exits with 0 if it is, otherwise with 1. A standby has heartbeats, too. Reads one file of the state folder, and asks
    neither the lake nor a broker: a broker that is gone is no reason to restart the collector. The dashboard answers
    GET /_stcore/health instead.

    \b
      lagwise health collector --within 2m
      lagwise health collect --within 2m       # the same
    """
    beat = heartbeats.read(settings.load(data=data).state).get(process)
    if beat is None:
        command = " ".join(heartbeats.COMMANDS[process])
        raise LagwiseError(
            f"{process} (`lagwise {command}`) has no heartbeat on this machine", code=ErrorCode.NO_HEARTBEAT
        )
    age = beat.age_seconds(datetime.now(UTC))
    if age > within_seconds:
        raise LagwiseError(f"the last heartbeat of {process} is {duration(age)} old", code=ErrorCode.NO_HEARTBEAT)
    click.echo(f"{process}: {beat.line} ({duration(age)} ago)")
