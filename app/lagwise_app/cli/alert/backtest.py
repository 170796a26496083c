"""``lagwise alert backtest``: alert rules over the history of the lake, or over traces."""

from pathlib import Path

import click

from lagwise_app.cli.option_types import duration_type
from lagwise_app.cli.shared import CommandSettings, data_option, json_option
from lagwise_app.terminal.json_output import print_json


@click.command("backtest", short_help="Backtest alert rules on the last day or on a trace.")
@click.argument("traces", metavar="[TRACE…]", nargs=-1, type=click.Path(exists=True, file_okay=False, path_type=Path))
@data_option
@click.option(
    "--rules",
    "rules_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File of rules. Default: `alerts.rules_file` in the settings, otherwise the built-in rules.",
)
@click.option(
    "--last",
    "last_seconds",
    type=duration_type(),
    default="24h",
    show_default=True,
    help="How much of the lake's history to test.",
)
@click.option("--cluster", default="trace", show_default=True, help="Cluster name of a trace, for the rules.")
@json_option("every message")
@click.pass_obj
def backtest_command(
    settings: CommandSettings,
    traces: tuple[Path, ...],
    data: str | None,
    rules_file: Path | None,
    last_seconds: float,
    cluster: str,
    as_json: bool,
) -> None:
    """Show which alerts a file of rules would have raised, and when. Nothing is sent or stored.

    Without a TRACE (a folder, see docs/traces.md), it backtests the last day of the lake. The lake keeps the history of
    status, lag and its age, rebalance storms, findings on clusters, and freshness. Rules about anything else are
    listed as not tested.

    \b
      lagwise alert backtest --rules rules.yaml
      lagwise alert backtest --rules rules.yaml --last 7d --json | jq '.backtests[0].events[].summary'
      lagwise alert backtest tests/traces/retention-overrun
    """
    from datetime import UTC, datetime, timedelta

    from lagwise_alerts.rules.rule_file import load_rules
    from lagwise_app.replay import alert_backtest

    config = settings.load(data=data)
    file = rules_file or config.alerts.rules_file
    book = load_rules(file, [channel.name for channel in config.alerts.channels])
    if traces:
        outcomes = [alert_backtest.of_trace(folder, book, cluster) for folder in traces]
    else:
        now = datetime.now(UTC)
        outcomes = [alert_backtest.of_lake(config, book, now - timedelta(seconds=last_seconds), now)]
    if as_json:
        print_json({"backtests": [alert_backtest.as_json(outcome) for outcome in outcomes]})
        return
    name = "Lagwise" if file is None else file.name
    for outcome in outcomes:
        for line in alert_backtest.lines(outcome, name):
            click.echo(line)
