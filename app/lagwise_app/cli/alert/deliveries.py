"""Messages to channels: what was sent, dead letters sent again, and a test of a channel."""

from dataclasses import asdict
from datetime import UTC, datetime

import click

from lagwise_app.cli.alert.operate import by_option, operator
from lagwise_app.cli.shared import CommandSettings, data_option, json_option, print_answer
from lagwise_app.terminal.json_output import print_json


@click.command(short_help="Show messages to channels and their state.")
@click.option(
    "--state", type=click.Choice(["queued", "delivered", "dead", "summarised"]), help="Only messages in this state."
)
@click.option("--channel", metavar="NAME", help="Only messages to this channel.")
@click.option("--incident", metavar="ID", help="Only messages about this incident.")
@click.option(
    "--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="Maximum number of messages."
)
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
    """Show messages to channels, latest first, with their attempts and last error.

    Lagwise gave up on a dead message: the receiver rejected it five times, or was unreachable for a day. A summarised
    message was part of a summary, which is a message of its own.

    \b
      lagwise alert deliveries --state dead
      lagwise alert deliveries --channel on-call --json | jq '.deliveries[0]'
    """
    from lagwise_alerts.operate import queries

    engine = queries.connect(settings.load_of_run(data))
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
        console.print("No message matches.", highlight=False)


@click.command(short_help="Send dead letters again.")
@click.argument("numbers", metavar="[NUMBER]...", type=int, nargs=-1)
@click.option("--all", "everything", is_flag=True, help="All dead messages.")
@click.option("--channel", metavar="NAME", help="Only messages to this channel.")
@by_option
@data_option
@json_option("how many are queued again")
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
    """Queue dead messages again: those with these NUMBERs (see `lagwise alert deliveries`), or --all.

    The dead messages of an incident are sent together, in order and with their old keys. A message is not sent where a
    later one of its incident was delivered: the beginning must not arrive after the end. The running `lagwise alert`
    sends them.

    \b
      lagwise alert resend 4711
      lagwise alert resend --all --channel team-chat
    """
    if bool(numbers) == everything:
        raise click.UsageError("give the numbers of messages, or --all")
    from lagwise_alerts.operate import queries
    from lagwise_alerts.operate.resend import resend as send_again

    engine = queries.connect(settings.load_of_run(data))
    now, who = datetime.now(UTC), operator(by)
    done = send_again(engine, None if everything else numbers, channel=channel, by=who, now=now)
    line = f"{done.queued} queued again" + (f", {done.outdated} outdated and not sent" if done.outdated else "")
    print_answer(asdict(done), line, as_json=as_json)


@click.command("test-channel", short_help="Send a test message through a channel.")
@click.argument("name")
@click.option(
    "--severity",
    type=click.Choice(["page", "warn", "info"]),
    default="info",
    help="Severity of the test. Default: info.",
)
@click.option(
    "--over", is_flag=True, help="Send the resolution of the test alert instead, for receivers that track open alerts."
)
@data_option
@json_option("the answer")
@click.pass_obj
def test_channel_command(
    settings: CommandSettings, name: str, severity: str, over: bool, data: str | None, as_json: bool
) -> None:
    """Send a message marked as a test through the channel NAME in the settings, and show the answer.

    It is sent immediately and once, without the outbox. Exits with 1 if the receiver did not accept it.

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
    verdict = "accepted it" if answer.delivered else "did not accept it"
    line = f"{answer.channel} ({answer.type}, {answer.receiver}) {verdict}: {answer.answer or 'no answer'}"
    print_answer(asdict(answer), line, as_json=as_json)
    if not answer.delivered:
        raise click.exceptions.Exit(1)
