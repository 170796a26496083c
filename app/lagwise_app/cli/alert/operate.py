"""Alerts from the terminal: who fires, who has it, what is silenced, what was sent; and to act on it."""

import getpass
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from lagwise.platform.errors import LagwiseError
from lagwise.platform.logs import clean
from lagwise_app.cli.option_types import Duration
from lagwise_app.cli.shared import CommandSettings, data_option, json_option
from lagwise_app.terminal.json_output import print_json

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from lagwise.config import Config
    from lagwise_alerts.operate.actions import Operator
    from lagwise_alerts.operate.queries import AlertRow

by_option = click.option("--by", metavar="NAME", help="Who does it. Default: the user of this terminal.")


def open_database(settings: CommandSettings, data: str | None) -> "tuple[Config, Engine]":
    """The settings and the operational database that go with a data folder."""
    from lagwise_alerts.operate import queries

    last_run = settings.load_last_run(data)
    config = last_run[0] if last_run else settings.load(data=data)
    return config, queries.connect(config)


def operator(name: str | None) -> "Operator":
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

    config, engine = open_database(settings, data)
    now = datetime.now(UTC)
    orders = queries.mute_state(engine, config.alerts.maintenance, now)
    alerts = [(alert, queries.operator_state(alert, orders, now)) for alert in queries.open_alerts(engine)]
    silences = queries.silences(engine, now)
    if as_json:
        shown = [{**asdict(alert), **asdict(standing)} for alert, standing in alerts]
        print_json({"alerts": shown, "silences": [_silence_document(asdict(silence)) for silence in silences]})
        return
    from lagwise_app.cli.alert.tables import alert_table, silence_table
    from lagwise_app.terminal import output

    console = output.console()
    if alerts:
        console.print(alert_table(alerts, now))
    else:
        console.print("No alert is open.", highlight=False)
    if silences:
        console.print(silence_table(silences, now))


@click.command(short_help="Tell nobody of some alerts for a while.")
@click.option("--group", metavar="PATTERN", help="Groups: a regular expression on the whole name.")
@click.option("--cluster", metavar="PATTERN", help="Clusters, likewise.")
@click.option("--kind", metavar="PATTERN", help="Kinds, likewise: group, collection, analysis, loss, …")
@click.option("--severity", metavar="PATTERN", help="Severities, likewise: page, warn, info.")
@click.option("--for", "seconds", type=Duration(), required=True, help="How long, as in 30m, 2h or 1d12h.")
@click.option("--comment", metavar="TEXT", required=True, help="Why, for whoever wonders at night.")
@by_option
@data_option
@json_option("the silence")
@click.pass_obj
def silence(
    settings: CommandSettings,
    group: str | None,
    cluster: str | None,
    kind: str | None,
    severity: str | None,
    seconds: float,
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
    from lagwise_alerts.notify.mute_state import Matcher
    from lagwise_alerts.operate import actions

    _, engine = open_database(settings, data)
    now = datetime.now(UTC)
    made = actions.silence(
        engine,
        Matcher(cluster, group, kind, severity),
        starts_at=now,
        ends_at=now + timedelta(seconds=seconds),
        comment=comment,
        by=operator(by),
        now=now,
    )
    if as_json:
        print_json(_silence_document(asdict(made)))
    else:
        words = actions.matcher_words(made.matcher)
        click.echo(clean(f"silence {made.id} until {made.ends_at:%Y-%m-%d %H:%M:%S} UTC: {words}"))


@click.command(short_help="End a silence now.")
@click.argument("number", type=int)
@by_option
@data_option
@json_option("the silence")
@click.pass_obj
def unsilence(settings: CommandSettings, number: int, by: str | None, data: str | None, as_json: bool) -> None:
    """End the silence of this NUMBER (`lagwise alert list` shows them). What it held back and still holds is told.

    \b
      lagwise alert unsilence 3
    """
    from lagwise_alerts.operate import actions

    _, engine = open_database(settings, data)
    ended = actions.unsilence(engine, number, by=operator(by), now=datetime.now(UTC))
    if as_json:
        print_json(_silence_document(asdict(ended)))
    else:
        click.echo(f"silence {ended.id} has ended")


@click.command(short_help="Say that you have an alert.")
@click.argument("alert", metavar="INCIDENT|GROUP")
@click.option(
    "--cluster", metavar="NAME", help="The group's cluster, where several clusters have a group of this name."
)
@click.option("--take-back", is_flag=True, help="You do not have it any more: tell others again.")
@click.option("--comment", metavar="TEXT", default="", help="Why, for others.")
@by_option
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

    _, engine = open_database(settings, data)
    firing = [one for one in queries.open_alerts(engine) if one.state is AlertState.FIRING]
    meant = _named_alerts(firing, alert, cluster)
    now, who = datetime.now(UTC), operator(by)
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


def _named_alerts(firing: "list[AlertRow]", named: str, cluster: str | None) -> "list[AlertRow]":
    """The firing alerts that are named by incident or by group."""
    exact = [one for one in firing if one.incident_id == named]
    found = exact or [one for one in firing if one.group == named and cluster in (None, one.cluster)]
    if not found:
        raise LagwiseError(f"nothing fires under {clean(named)!r}; `lagwise alert list` shows what does")
    clusters = sorted({one.cluster or "" for one in found})
    if len(clusters) > 1:
        raise LagwiseError(f"group {clean(named)!r} fires in {clean(', '.join(clusters))}: name one with --cluster")
    return found


def _silence_document(silence: dict[str, Any]) -> dict[str, Any]:
    """A silence without the level that only the program needs."""
    matcher = silence.pop("matcher")
    return {"id": silence.pop("id"), **matcher, **silence}
