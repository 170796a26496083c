"""Messages to channels: what was sent, dead letters sent again, and a test of a channel."""

from dataclasses import asdict
from datetime import UTC, datetime

import click

from lagwise.platform.logs import clean
from lagwise_app.cli.alert.operate import by_option, open_database, operator
from lagwise_app.cli.shared import CommandSettings, data_option, json_option
from lagwise_app.terminal.json_output import print_json


@click.command(short_help="What was sent to whom, and what became of it.")
@click.option("--state", type=click.Choice(["queued", "delivered", "dead", "summarised"]), help="Only those.")
@click.option("--channel", metavar="NAME", help="Only those to this channel.")
@click.option("--incident", metavar="ID", help="Only those of this incident.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="How many at most.")
@data_option
@json_option("the messages")
@click.pass_obj
def deliveries(
    settings: CommandSettings,
    state: str | None,
    channel: str | None,
    incident: str | None,
    limit: int,
    data: str | None,
    as_json: bool,
) -> None:
    """Show messages to channels, the latest first: when, how often tried, the last error.

    A dead one was given up: the receiver refused it five times, or could not be reached for a day. A summarised one
    went out in a summary, which is a message of its own.

    \b
      lagwise alert deliveries --state dead
      lagwise alert deliveries --channel on-call --json | jq '.deliveries[0]'
    """
    from lagwise_alerts.operate import queries

    _, engine = open_database(settings, data)
    rows = queries.deliveries(engine, incident_id=incident, state=state, channel=channel, limit=limit)
    if as_json:
        print_json({"deliveries": [asdict(row) for row in rows]})
        return
    from lagwise_app.cli.alert.tables import delivery_table
    from lagwise_app.terminal import output

    console = output.console()
    if rows:
        console.print(delivery_table(rows, datetime.now(UTC)))
    else:
        console.print("No message fits.", highlight=False)


@click.command(short_help="Send dead letters again.")
@click.argument("numbers", metavar="[NUMBER]...", type=int, nargs=-1)
@click.option("--all", "everything", is_flag=True, help="All that were given up.")
@click.option("--channel", metavar="NAME", help="Only those to this channel.")
@by_option
@data_option
@json_option("how many go again")
@click.pass_obj
def resend(
    settings: CommandSettings,
    numbers: tuple[int, ...],
    everything: bool,
    channel: str | None,
    by: str | None,
    data: str | None,
    as_json: bool,
) -> None:
    """Send messages again that were given up: those of these NUMBERs (`lagwise alert deliveries`), or --all.

    Each goes with the others of its incident, in order and with its old key. Those after which a later message of their
    incident was delivered do not go: whoever heard of the end must not hear of the beginning afterwards. The running
    `lagwise alert` sends them.

    \b
      lagwise alert resend 4711
      lagwise alert resend --all --channel team-chat
    """
    if bool(numbers) == everything:
        raise click.UsageError("name messages by their numbers, or say --all")
    from lagwise_alerts.operate.resend import resend as send_again

    _, engine = open_database(settings, data)
    now, who = datetime.now(UTC), operator(by)
    done = send_again(engine, None if everything else numbers, channel=channel, by=who, now=now)
    if as_json:
        print_json(asdict(done))
        return
    click.echo(f"{done.queued} queued again" + (f", {done.outdated} outdated and left" if done.outdated else ""))


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
def test_channel_command(
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
