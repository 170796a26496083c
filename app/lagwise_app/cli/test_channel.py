"""Does a channel work: a message by hand, and what the receiver says to it."""

from dataclasses import asdict
from datetime import UTC, datetime

import click

from lagwise.platform.logs import clean
from lagwise_app.cli.shared import CommandSettings, data_option, json_option
from lagwise_app.terminal.json_output import print_json


@click.command("test-channel", short_help="Send a test message through a channel.")
@click.argument("name")
@click.option(
    "--severity",
    type=click.Choice(["page", "warn", "info"]),
    default="info",
    help="How urgent the test is, to see whom it wakes. Default: info.",
)
@click.option("--over", is_flag=True, help="Tell the end of the test instead, for receivers that keep what is open.")
@data_option
@json_option("the answer")
@click.pass_obj
def try_channel(
    settings: CommandSettings, name: str, severity: str, over: bool, data: str | None, as_json: bool
) -> None:
    """Send a message that is marked as a test through the channel NAME of the settings, and show the answer.

    It is sent at once and once, beside the outbox. Exits 1 where the receiver did not take it.

    \b
      lagwise alert test-channel on-call
      lagwise alert test-channel on-call --over    # ends it at PagerDuty, in Alertmanager
    """
    from lagwise.platform import logs
    from lagwise.platform.health import ALERTS
    from lagwise_alerts.model import Severity
    from lagwise_alerts.operate.test_message import send_test

    logs.configure(ALERTS)
    config = settings.load(data=data)
    answer = send_test(config, name, lambda: datetime.now(UTC), severity=Severity(severity), over=over)
    if as_json:
        print_json(asdict(answer))
    else:
        verdict = "took it" if answer.delivered else "did not take it"
        click.echo(
            clean(f"{answer.channel} ({answer.type}, {answer.receiver}) {verdict}: {answer.answer or 'no answer'}")
        )
    if not answer.delivered:
        raise click.exceptions.Exit(1)
