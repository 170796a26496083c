"""Alerts from the terminal: who fires, who has it, what is silenced, what was sent; and to act on it."""

import getpass
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from lagwise.platform.errors import LagwiseError
from lagwise.platform.logs import clean
from lagwise_app.cli.shared import CommandSettings, data_option, json_option
from lagwise_app.terminal.json_output import print_json

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from lagwise.config import Config
    from lagwise_alerts.operate.actions import Operator
    from lagwise_alerts.operate.queries import AlertRow

_BY = click.option("--by", metavar="NAME", help="Who does it. Default: the user of this terminal.")
_COMMENT = click.option("--comment", metavar="TEXT", default="", help="Why, for others.")


def _open(settings: CommandSettings, data: str | None) -> "tuple[Config, Engine]":
    """The settings and the operational database that go with a data folder."""
    from lagwise_alerts.operate import queries

    last_run = settings.load_last_run(data)
    config = last_run[0] if last_run else settings.load(data=data)
    return config, queries.connect(config)


def _operator(name: str | None) -> "Operator":
    from lagwise_alerts.operate.actions import Operator, Via

    try:
        return Operator(name or getpass.getuser(), Via.CLI)
    except (OSError, KeyError):
        raise LagwiseError("this terminal's user has no name: say who you are with --by NAME") from None


@click.command("list", short_help="What fires, who has it, what is silenced.")
@data_option
@json_option("the open alerts and the silences")
@click.pass_obj
def list_command(settings: CommandSettings, data: str | None, as_json: bool) -> None:
    """Show the open alerts, the loudest first: what fires, who has acknowledged it, what mutes it; and the silences.

    \b
      lagwise alert list
      lagwise alert list --json | jq -r '.alerts[] | select(.muted == null) | .incident_id'
    """
    from lagwise_alerts.operate import queries

    config, engine = _open(settings, data)
    now = datetime.now(UTC)
    orders = queries.mute_state(engine, config.alerts.maintenance, now)
    alerts = [(alert, queries.operator_state(alert, orders, now)) for alert in queries.open_alerts(engine)]
    silences = queries.silences(engine, now)
    if as_json:
        shown = [{**asdict(alert), **asdict(standing)} for alert, standing in alerts]
        print_json({"alerts": shown, "silences": [_flat(asdict(silence)) for silence in silences]})
        return
    from lagwise_app.cli import alert_tables
    from lagwise_app.terminal import output

    console = output.console()
    if alerts:
        console.print(alert_tables.alert_table(alerts, now))
    else:
        console.print("No alert is open.", highlight=False)
    if silences:
        console.print(alert_tables.silence_table(silences, now))


@click.command(short_help="Tell nobody of some alerts for a while.")
@click.option("--group", metavar="PATTERN", help="Groups: a regular expression on the whole name.")
@click.option("--cluster", metavar="PATTERN", help="Clusters, likewise.")
@click.option("--kind", metavar="PATTERN", help="Kinds, likewise: group, collection, analysis, loss, …")
@click.option("--severity", metavar="PATTERN", help="Severities, likewise: page, warn, info.")
@click.option("--for", "lasts", metavar="DURATION", required=True, help="How long, as in 30m, 2h or 1d12h.")
@click.option("--comment", metavar="TEXT", required=True, help="Why, for whoever wonders at night.")
@_BY
@data_option
@json_option("the silence")
@click.pass_obj
def silence(
    settings: CommandSettings,
    group: str | None,
    cluster: str | None,
    kind: str | None,
    severity: str | None,
    lasts: str,
    comment: str,
    by: str | None,
    data: str | None,
    as_json: bool,
) -> None:
    """Tell nobody of the alerts that match, until the silence ends.

    They are decided and shown as before. What began in the silence and still holds when it ends is told then; the end
    of what people know of is always told. All patterns that are given must match; one is needed.

    \b
      lagwise alert silence --group 'billing|invoices-.*' --for 2h --comment 'migration, see CHG-17'
      lagwise alert silence --cluster staging --severity 'warn|info' --for 1d --comment 'load test' --by jo
    """
    from lagwise.platform.durations import parse_duration
    from lagwise_alerts.notify.mute_state import Matcher
    from lagwise_alerts.operate import actions

    try:
        seconds = parse_duration(lasts)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--for") from None
    _, engine = _open(settings, data)
    now = datetime.now(UTC)
    made = actions.silence(
        engine,
        Matcher(cluster, group, kind, severity),
        starts_at=now,
        ends_at=now + timedelta(seconds=seconds),
        comment=comment,
        by=_operator(by),
        now=now,
    )
    if as_json:
        print_json(_flat(asdict(made)))
    else:
        words = actions.matcher_words(made.matcher)
        click.echo(clean(f"silence {made.id} until {made.ends_at:%Y-%m-%d %H:%M:%S} UTC: {words}"))


@click.command(short_help="End a silence now.")
@click.argument("number", type=int)
@_BY
@data_option
@json_option("the silence")
@click.pass_obj
def unsilence(settings: CommandSettings, number: int, by: str | None, data: str | None, as_json: bool) -> None:
    """End the silence of this NUMBER (`lagwise alert list` shows them). What it held back and still holds is told.

    \b
      lagwise alert unsilence 3
    """
    from lagwise_alerts.operate import actions

    _, engine = _open(settings, data)
    ended = actions.unsilence(engine, number, by=_operator(by), now=datetime.now(UTC))
    if as_json:
        print_json(_flat(asdict(ended)))
    else:
        click.echo(f"silence {ended.id} has ended")


@click.command(short_help="Say that you have an alert.")
@click.argument("alert", metavar="INCIDENT|GROUP")
@click.option(
    "--cluster", metavar="NAME", help="The group's cluster, where several clusters have a group of this name."
)
@click.option("--take-back", is_flag=True, help="You do not have it any more: tell others again.")
@_COMMENT
@_BY
@data_option
@json_option("the alerts")
@click.pass_obj
def ack(
    settings: CommandSettings,
    alert: str,
    cluster: str | None,
    take_back: bool,
    comment: str,
    by: str | None,
    data: str | None,
    as_json: bool,
) -> None:
    """Say that you have an alert: nobody is told of it again, unless it becomes louder. Ends with the alert.

    Name the incident (`lagwise alert list`, or the message that you were sent), or a group: that is all that fires for
    it.

    \b
      lagwise alert ack billing --comment 'restarting the consumers'
      lagwise alert ack 3f0c5a7e91b2d4c6-20261121T031415.926535Z --by jo
      lagwise alert ack billing --take-back
    """
    from lagwise_alerts.model import AlertState
    from lagwise_alerts.operate import actions, queries

    _, engine = _open(settings, data)
    firing = [one for one in queries.open_alerts(engine) if one.state is AlertState.FIRING]
    meant = _meant(firing, alert, cluster)
    now, who = datetime.now(UTC), _operator(by)
    for one in meant:
        if take_back:
            actions.take_back(engine, one.incident_id, by=who, now=now)
        else:
            actions.acknowledge(engine, one.incident_id, comment=comment, by=who, now=now)
    if as_json:
        print_json({"incidents": [one.incident_id for one in meant], "by": who.name, "taken_back": take_back})
        return
    for one in meant:
        click.echo(clean(f"{'taken back' if take_back else 'acknowledged'}: {one.subject} ({one.status})"))


def _meant(firing: "list[AlertRow]", named: str, cluster: str | None) -> "list[AlertRow]":
    """The firing alerts that are named by incident or by group."""
    exact = [one for one in firing if one.incident_id == named]
    found = exact or [one for one in firing if one.group == named and cluster in (None, one.cluster)]
    if not found:
        raise LagwiseError(f"nothing fires under {clean(named)!r}; `lagwise alert list` shows what does")
    clusters = sorted({one.cluster or "" for one in found})
    if len(clusters) > 1:
        raise LagwiseError(f"group {clean(named)!r} fires in {clean(', '.join(clusters))}: name one with --cluster")
    return found


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

    _, engine = _open(settings, data)
    rows = queries.deliveries(engine, incident_id=incident, state=state, channel=channel, limit=limit)
    if as_json:
        print_json({"deliveries": [asdict(row) for row in rows]})
        return
    from lagwise_app.cli import alert_tables
    from lagwise_app.terminal import output

    console = output.console()
    if rows:
        console.print(alert_tables.delivery_table(rows, datetime.now(UTC)))
    else:
        console.print("No message fits.", highlight=False)


@click.command(short_help="Send dead letters again.")
@click.argument("numbers", metavar="[NUMBER]...", type=int, nargs=-1)
@click.option("--all", "everything", is_flag=True, help="All that were given up.")
@click.option("--channel", metavar="NAME", help="Only those to this channel.")
@_BY
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

    _, engine = _open(settings, data)
    now, who = datetime.now(UTC), _operator(by)
    done = send_again(engine, None if everything else numbers, channel=channel, by=who, now=now)
    if as_json:
        print_json(asdict(done))
        return
    click.echo(f"{done.queued} queued again" + (f", {done.outdated} outdated and left" if done.outdated else ""))


def _flat(silence: dict[str, Any]) -> dict[str, Any]:
    """A silence without the level that only the program needs."""
    matcher = silence.pop("matcher")
    return {"id": silence.pop("id"), **matcher, **silence}
