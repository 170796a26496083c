"""One part of the product each: what ``lagwise up`` supervises, for those who supervise by other means."""

from dataclasses import asdict

import click

from lagwise.platform.errors import ConfigError
from lagwise.platform.logs import clean
from lagwise_app.cli.shared import (
    CommandSettings,
    LagwiseGroup,
    bootstrap_option,
    data_option,
    json_option,
    require_clients,
    require_package,
    stop_on_signals,
)
from lagwise_app.terminal.json_output import print_json

_ONCE = click.option("--once", is_flag=True, help="One round, then exit.")


def _only_once(as_json: bool, once: bool) -> None:
    if as_json and not once:
        raise click.UsageError("--json prints what one round cost: use it with --once")


@click.command(short_help="Run the collector alone.")
@bootstrap_option
@data_option
@_ONCE
@json_option("what the round cost")
@click.pass_obj
def collect(settings: CommandSettings, bootstrap: str | None, data: str | None, once: bool, as_json: bool) -> None:
    """Read the watched clusters and append what was seen to the lake.

    Runs until SIGINT or SIGTERM; both are safe at any moment. Needs the extra `kafka`.

    \b
      lagwise collect --bootstrap broker:9092 --data /var/lib/lagwise
      lagwise collect --once --json     # {"runs": [{"cluster": …, "wall_seconds": …, "errors": …}]}
    """
    _only_once(as_json, once)
    from lagwise.platform.health import COLLECTOR

    config = settings.load_for(COLLECTOR, bootstrap=bootstrap, data=data)
    if not config.clusters:
        raise ConfigError("there is no cluster to read: add --bootstrap HOST:PORT, or `clusters` in the settings")
    require_clients(config)
    from lagwise_collectors import run

    if not once:
        run.collect_forever(config, stop_on_signals(), config.state)
        return
    costs = run.collect_once(config)
    if as_json:
        print_json({"runs": [asdict(cost) for cost in costs]})
    else:
        for cost in costs:
            click.echo(clean(run.summary_of(cost)))
    if any(cost.errors and not cost.groups for cost in costs):
        raise click.exceptions.Exit(1)


@click.command(short_help="Run the analysis (Spark) alone.")
@data_option
@_ONCE
@json_option("what the round cost")
@click.pass_obj
def analyze(settings: CommandSettings, data: str | None, once: bool, as_json: bool) -> None:
    """Judge the history in the lake: rates, trends, status of every group. Runs Spark.

    Runs until SIGINT or SIGTERM; a round that is cut short is done again by the next. Needs the extra `spark` and Java.

    \b
      lagwise analyze
      lagwise analyze --once --json     # {"wall_seconds": …, "cpu_seconds": …, …}
    """
    _only_once(as_json, once)
    from lagwise.platform.health import ANALYSIS

    config = settings.load_for(ANALYSIS, data=data)
    from lagwise_spark import run

    if not once:
        run.analyze_forever(config, stop_on_signals(), config.state)
        return
    cost = run.analyze_once(config)
    if as_json:
        print_json(asdict(cost))
    else:
        click.echo(clean(run.line_of(cost)))


@click.group(
    cls=LagwiseGroup, invoke_without_command=True, short_help="Run the alerts alone, or see them and act on them."
)
@data_option
@_ONCE
@click.pass_context
def alert(context: click.Context, data: str | None, once: bool) -> None:
    """Decide which alerts fire or resolve, and deliver them; or, with a command, see them and act on them.

    Without a command it runs until SIGINT or SIGTERM. What was decided is kept before it is sent: nothing is lost by a
    kill. The commands work beside a running one, on the same --data.

    \b
      lagwise alert
      lagwise alert list
      lagwise alert ack billing --comment 'restarting the consumers'
    """
    if context.invoked_subcommand is not None:
        if data is not None or once:
            raise click.UsageError("options of `lagwise alert` itself do not go with a command: put them behind it")
        return
    settings: CommandSettings = context.obj
    from lagwise.platform.health import ALERTS

    config = settings.load_for(ALERTS, data=data)
    from lagwise_alerts import run

    if once:
        click.echo(clean(run.alert_once(config).line))
    else:
        run.alert_forever(config, stop_on_signals(), config.state)


@click.command(short_help="Run the dashboard alone.")
@data_option
@click.pass_obj
def dashboard(settings: CommandSettings, data: str | None) -> None:
    """Serve the dashboard. Needs the extra `dashboard`.

    It listens on the loopback address unless `dashboard.host` says otherwise. `dashboard.sign_in` asks people who they
    are; if that cannot be done, nothing is served. Without it, only a browser on this machine that opens the page
    directly, without a proxy, may acknowledge and silence.

    \b
      lagwise dashboard
      lagwise --config /etc/lagwise.yaml dashboard
    """
    from lagwise.platform.health import DASHBOARD
    from lagwise_app.supervisor.processes import dashboard_address, with_dashboard_port

    require_package("streamlit")
    config = with_dashboard_port(settings.load_for(DASHBOARD, data=data))
    from lagwise_dashboard.server.serve import serve_forever

    address = dashboard_address(config.dashboard.host, config.dashboard.port)
    serve_forever(config, lambda: click.echo(f"dashboard: {address}", err=True))


@click.command(short_help="Run the endpoint that autoscalers ask alone.")
@data_option
@click.option("--host", metavar="ADDRESS", help="Address to listen on. Default: that of the settings, 127.0.0.1.")
@click.option("--port", type=click.IntRange(1, 65535), help="Port to listen on. Default: that of the settings.")
@click.pass_obj
def scaling(settings: CommandSettings, data: str | None, host: str | None, port: int | None) -> None:
    """Tell autoscalers how many replicas each group should have.

    Answers GET /scaling/CLUSTER/GROUP with JSON whose `replicas` KEDA's metrics-api scaler reads. `lagwise up` runs it,
    too, where `scaling.port` is set.

    \b
      lagwise scaling --port 8602
      curl 'http://127.0.0.1:8602/scaling/kafka/billing?min=2&max=24&utilisation=0.7'
    """
    from lagwise.platform.health import SCALING

    config = settings.load_for(SCALING, data=data)
    asked = {"host": host or config.scaling.host, "port": port or config.scaling.port}
    if asked["port"] is None:
        raise ConfigError("no port to listen on: add --port, or `scaling.port` in the settings")
    config = config.model_copy(update={"scaling": config.scaling.model_copy(update=asked)})
    from lagwise_app.scaling.server import serve_forever

    serve_forever(config, stop_on_signals(), config.state)
