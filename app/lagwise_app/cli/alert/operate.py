"""``lagwise alert list``, ``silence``, ``unsilence`` and ``ack``."""

import getpass
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from lagwise.platform.error_codes import ErrorCode
from lagwise.platform.errors import LagwiseError
from lagwise.platform.logs import clean
from lagwise_app.cli.option_types import duration_type
from lagwise_app.cli.shared import CommandSettings, cluster_option, data_option, json_option, print_answer
from lagwise_app.terminal.json_output import print_json

if TYPE_CHECKING:
    from lagwise_alerts.model import Alert
    from lagwise_alerts.notify.mute_state import Silence
    from lagwise_alerts.operate.actions import Operator

#: The keys of an alert in `lagwise alert list --json`.
_ALERT_KEYS = (
    "incident_id", "fingerprint", "kind", "cluster", "group", "rule", "severity", "status", "reason", "state", "since",
    "started_at", "fired_at", "resolved_at", "resolution", "sentence", "numbers", "on_hold", "channels", "labels",
    "notified_at", "flapping", "inhibited_by", "shared_incident",
)  # fmt: skip
by_option = click.option("--by", metavar="NAME", help="Your name. Default: the user of this terminal.")


def operator(name: str | None) -> "Operator":
    from lagwise_alerts.operate.actions import Operator, Via

    try:
        return Operator(name or getpass.getuser(), Via.CLI)
    except (OSError, KeyError):
        raise LagwiseError(
            "the user of this terminal has no name: give yours with --by NAME", code=ErrorCode.REQUEST_REJECTED
        ) from None


@click.command("list", short_help="Show open alerts and silences.")
@data_option
@json_option("the open alerts and the silences")
@click.pass_obj
def list_command(settings: CommandSettings, data: str | None, as_json: bool) -> None:
    """Show open alerts (most severe first, with acknowledgements and mutes) and the silences.

    \b
      lagwise alert list
      lagwise alert list --json | jq -r '.alerts[] | select(.muted == null) | .incident_id'
    """
    from lagwise_alerts.operate import queries

    config = settings.load_of_run(data)
    engine, now = queries.connect(config), datetime.now(UTC)
    orders = queries.mute_state(engine, config.alerts.maintenance, now)
    alerts = [(alert, queries.operator_state(alert, orders, now)) for alert in queries.open_alerts(engine)]
    silences = queries.silences(engine, now)
    if as_json:
        shown = [{**_alert_document(alert), **asdict(state)} for alert, state in alerts]
        print_json({"alerts": shown, "silences": [_silence_document(silence) for silence in silences]})
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


@click.command(short_help="Silence alerts for a while.")
@click.option("--group", metavar="PATTERN", help="Regular expression for the group; it must match the whole name.")
@click.option("--cluster", metavar="PATTERN", help="Regular expression for the cluster.")
@click.option(
    "--kind", metavar="PATTERN", help="Regular expression for the kind: group, collection, analysis, loss and others."
)
@click.option("--severity", metavar="PATTERN", help="Regular expression for the severity: page, warn or info.")
@click.option(
    "--for", "seconds", type=duration_type(), required=True, help="Length of the silence, such as 30m, 2h or 1d12h."
)
@click.option("--comment", metavar="TEXT", required=True, help="Reason, shown to whoever is on call.")
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
    """Send no notifications of matching alerts until the silence ends.

    The alerts are still decided and shown. An alert that began during the silence and still fires at its end is
    notified then. The end of an alert that was notified is always notified. An alert matches if all given patterns
    match; at least one is needed.

    \b
      lagwise alert silence --group 'billing|invoices-.*' --for 2h --comment 'migration, see CHG-17'
      lagwise alert silence --cluster staging --severity 'warn|info' --for 1d --comment 'load test' --by jo
    """
    from lagwise_alerts.notify.mute_state import Matcher
    from lagwise_alerts.operate import actions, queries

    engine = queries.connect(settings.load_of_run(data))
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
    words = actions.matcher_words(made.matcher)
    line = f"silence {made.id} until {made.ends_at:%Y-%m-%d %H:%M:%S} UTC: {words}"
    print_answer(_silence_document(made), line, as_json=as_json)


@click.command(short_help="End a silence now.")
@click.argument("number", type=int)
@by_option
@data_option
@json_option("the silence")
@click.pass_obj
def unsilence(settings: CommandSettings, number: int, by: str | None, data: str | None, as_json: bool) -> None:
    """End the silence with this NUMBER (see `lagwise alert list`).

    Alerts that it held back and that still fire are notified.

    \b
      lagwise alert unsilence 3
    """
    from lagwise_alerts.operate import actions, queries

    engine = queries.connect(settings.load_of_run(data))
    ended = actions.unsilence(engine, number, by=operator(by), now=datetime.now(UTC))
    print_answer(_silence_document(ended), f"silence {ended.id} has ended", as_json=as_json)


@click.command(short_help="Acknowledge an alert.")
@click.argument("alert", metavar="INCIDENT|GROUP")
@cluster_option
@click.option("--take-back", is_flag=True, help="Withdraw the acknowledgement, so that notifications resume.")
@click.option("--comment", metavar="TEXT", default="", help="Reason, shown to others.")
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
    """Acknowledge an alert: it is not notified again unless it becomes more severe. Ends with the alert.

    Name an incident (from `lagwise alert list` or from a message), or a group to acknowledge all its firing alerts.

    \b
      lagwise alert ack billing --comment 'restarting the consumers'
      lagwise alert ack 3f0c5a7e91b2d4c6-20261121T031415.926535Z --by jo
      lagwise alert ack billing --take-back
    """
    from lagwise_alerts.model import AlertState
    from lagwise_alerts.operate import actions, queries

    engine = queries.connect(settings.load_of_run(data))
    firing = [one for one in queries.open_alerts(engine) if one.state is AlertState.FIRING]
    named = _named_alerts(firing, alert, cluster)
    now, who = datetime.now(UTC), operator(by)
    for one in named:
        if take_back:
            actions.take_back(engine, one.incident_id, by=who, now=now)
        else:
            actions.acknowledge(engine, one.incident_id, comment=comment, by=who, now=now)
    if as_json:
        print_json({"incidents": [one.incident_id for one in named], "by": who.name, "taken_back": take_back})
        return
    for one in named:
        click.echo(clean(f"{'taken back' if take_back else 'acknowledged'}: {one.subject} ({one.status})"))


def _named_alerts(firing: "list[Alert]", name: str, cluster: str | None) -> "list[Alert]":
    """The firing alerts of an incident or of a group. Raises LagwiseError where there are none."""
    exact = [one for one in firing if one.incident_id == name]
    found = exact or [one for one in firing if one.subject.group == name and cluster in (None, one.subject.cluster)]
    if not found:
        raise LagwiseError(
            f"no firing alert has the incident or group {clean(name)!r}; `lagwise alert list` shows those that fire",
            code=ErrorCode.UNKNOWN_NAME,
        )
    clusters = sorted({one.subject.cluster or "" for one in found})
    if len(clusters) > 1:
        raise LagwiseError(
            f"group {clean(name)!r} fires in {clean(', '.join(clusters))}: choose one with --cluster",
            code=ErrorCode.AMBIGUOUS_NAME,
        )
    return found


def _alert_document(alert: "Alert") -> dict[str, Any]:
    """An alert as JSON: its subject's fields are keys of their own."""
    document = asdict(alert) | asdict(alert.subject)
    return {key: document[key] for key in _ALERT_KEYS}


def _silence_document(silence: "Silence") -> dict[str, Any]:
    """A silence as JSON: the patterns of its matcher are keys of their own."""
    document = asdict(silence)
    matcher = document.pop("matcher")
    return {"id": document.pop("id"), **matcher, **document}
