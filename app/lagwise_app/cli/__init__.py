"""The command line: one module per family of commands.

The commands import what they need when they run. So ``lagwise --help`` answers at once, and an installation without
Spark can still collect.
"""

import os
from pathlib import Path

import click

from lagwise import __version__
from lagwise.platform.logs import DEBUG_VARIABLE, redact_uncaught_errors
from lagwise_app.cli.alert import alert
from lagwise_app.cli.config import config_command
from lagwise_app.cli.demo import demo, sandbox
from lagwise_app.cli.doctor import doctor
from lagwise_app.cli.health import health
from lagwise_app.cli.lag import lag
from lagwise_app.cli.mcp import mcp
from lagwise_app.cli.migrate import migrate
from lagwise_app.cli.replay import replay
from lagwise_app.cli.services import analyze, collect, dashboard, scaling, serve, up
from lagwise_app.cli.shared import CommandSettings, LagwiseGroup
from lagwise_app.cli.ship_offsets import ship_offsets
from lagwise_app.cli.size import size
from lagwise_app.cli.status import status


@click.group(cls=LagwiseGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--config",
    "config_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Settings file (YAML). Default: $LAGWISE_CONFIG, else lagwise.yaml in this folder if there is one.",
)
@click.option("--debug", is_flag=True, help="Log more, and show stack traces.")
@click.version_option(__version__, message="%(prog)s %(version)s")
@click.pass_context
def cli(context: click.Context, config_file: Path | None, debug: bool) -> None:
    """Find consumer groups in trouble, the reason, and the capacity they need.

    \b
    Try it on a real broker, with consumers that misbehave on purpose:
      lagwise demo
    Watch your own cluster (check first that Lagwise may read it):
      lagwise doctor --bootstrap broker:9092
      lagwise up --bootstrap broker:9092
    Ask from another terminal:
      lagwise status
      lagwise lag my-group
    """
    if debug:
        os.environ[DEBUG_VARIABLE] = "1"
    context.obj = CommandSettings(config_file)


for _command in (
    demo,
    up,
    status,
    lag,
    doctor,
    migrate,
    size,
    collect,
    analyze,
    alert,
    dashboard,
    scaling,
    serve,
    mcp,
    health,
    ship_offsets,
    sandbox,
    replay,
    config_command,
):
    cli.add_command(_command)


def main() -> None:
    """The ``lagwise`` command. Exits with 0, 1 (failure; one line says why) or 2 (wrong usage)."""
    redact_uncaught_errors()
    cli.main(prog_name="lagwise")
