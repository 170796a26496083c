"""The command line. One module per family of commands; what they need is imported when they run.

So ``lagwise --help`` takes a moment and not seconds, and an installation without Spark can still collect.
"""

import os
from pathlib import Path

import click

from lagwise.cli.alert_operate import ack, deliveries, list_command, resend, silence, unsilence
from lagwise.cli.alert_test import alert_test
from lagwise.cli.check import config_command, doctor
from lagwise.cli.group import LagwiseGroup, Settings
from lagwise.cli.lag import lag
from lagwise.cli.one_part import alert, analyze, collect, dashboard, scaling
from lagwise.cli.product import demo, sandbox, up
from lagwise.cli.replay import replay
from lagwise.cli.ship_offsets import ship_offsets
from lagwise.cli.size import size
from lagwise.cli.status import status
from lagwise.cli.try_channel import try_channel
from lagwise.logs import DEBUG_VARIABLE, redact_uncaught_errors


@click.group(cls=LagwiseGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--config",
    "config_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Settings file (YAML). Default: $LAGWISE_CONFIG, else lagwise.yaml in this folder if there is one.",
)
@click.option("--debug", is_flag=True, help="Log more, and show stack traces.")
@click.version_option(package_name="lagwise", message="%(prog)s %(version)s")
@click.pass_context
def cli(context: click.Context, config_file: Path | None, debug: bool) -> None:
    """Which consumer groups are in trouble, why, and how much they need.

    \b
    Try it, with a real broker and consumers that misbehave on purpose:
      lagwise demo
    Watch your own cluster (and check first that Lagwise may read it):
      lagwise doctor --bootstrap broker:9092
      lagwise up --bootstrap broker:9092
    Ask from another terminal:
      lagwise status
      lagwise lag my-group
    """
    if debug:
        os.environ[DEBUG_VARIABLE] = "1"
    context.obj = Settings(config_file)


for _command in (list_command, silence, unsilence, ack, deliveries, resend, alert_test, try_channel):
    alert.add_command(_command)

for _command in (
    demo,
    up,
    status,
    lag,
    doctor,
    size,
    collect,
    analyze,
    alert,
    dashboard,
    scaling,
    ship_offsets,
    sandbox,
    replay,
    config_command,
):
    cli.add_command(_command)


def main() -> None:
    """The ``lagwise`` command. Exits 0, 1 (it did not work; one line says why) or 2 (wrong usage)."""
    redact_uncaught_errors()
    cli.main(prog_name="lagwise")
