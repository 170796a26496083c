"""``lagwise alert``: run the alerts, see them, and act on them."""

import click

from lagwise.platform.logs import clean
from lagwise_app.cli.alert.backtest import backtest_command
from lagwise_app.cli.alert.deliveries import deliveries, resend, test_channel_command
from lagwise_app.cli.alert.operate import ack, list_command, silence, unsilence
from lagwise_app.cli.shared import CommandSettings, LagwiseGroup, data_option, once_option
from lagwise_app.terminal.signals import Signals


@click.group(cls=LagwiseGroup, invoke_without_command=True, short_help="Run only the alerts, or show and handle them.")
@data_option
@once_option
@click.pass_context
def alert(context: click.Context, data: str | None, once: bool) -> None:
    """Decide which alerts fire or resolve, and deliver them. With a command, show and handle alerts.

    Without a command, runs until SIGINT or SIGTERM. Every message is stored before it is sent, so a kill loses nothing.
    The commands work while `lagwise alert` runs on the same --data.

    \b
      lagwise alert
      lagwise alert list
      lagwise alert ack billing --comment 'restarting the consumers'
    """
    if context.invoked_subcommand is not None:
        if data is not None or once:
            raise click.UsageError("put the options after the command: `lagwise alert COMMAND --data …`")
        return
    settings: CommandSettings = context.obj
    from lagwise.platform.health import ALERTS

    config = settings.load_for(ALERTS, data=data)
    from lagwise_alerts import run

    if once:
        click.echo(clean(run.alert_once(config).line))
    else:
        run.alert_forever(config, Signals().stop, config.state)


for _command in (list_command, silence, unsilence, ack, deliveries, resend, backtest_command, test_channel_command):
    alert.add_command(_command)
