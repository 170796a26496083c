"""``lagwise up``, and each process that it supervises as a command of its own. Alerts: ``cli/alert``."""

from dataclasses import asdict

import click

from lagwise.platform.error_codes import ErrorCode
from lagwise.platform.errors import ConfigError
from lagwise.platform.java import find_java
from lagwise.platform.logs import clean
from lagwise_app.cli.shared import (
    CommandSettings,
    bootstrap_option,
    data_option,
    json_option,
    once_option,
    print_answer,
    require_clients,
    require_once_with_json,
    require_package,
)
from lagwise_app.terminal.json_output import print_json
from lagwise_app.terminal.signals import Signals

#: A collector gives its readers four seconds and its threads as much again; see ``collect_forever``.
_HANG_SECONDS = 30.0


@click.command(short_help="Run the whole product against your cluster.")
@bootstrap_option
@data_option
@click.pass_obj
def up(settings: CommandSettings, bootstrap: str | None, data: str | None) -> None:
    """Run the whole product against your cluster: collector, analysis, alerts, dashboard.

    Also the servers for other programs that have a port in the settings: `server.port`, `mcp.port`, `scaling.port`.
    Each process logs to DATA/logs. One that ends is restarted after a pause, which grows with each failure. SIGINT or
    SIGTERM ends all of them within 10 seconds.

    \b
      lagwise up --bootstrap broker:9092
      lagwise up --bootstrap broker:9092 --data /var/lib/lagwise
      lagwise --config lagwise.yaml up
    """
    from lagwise_app.supervisor.display import show
    from lagwise_app.supervisor.effective_settings import with_dashboard_port
    from lagwise_app.supervisor.processes import running_product
    from lagwise_app.supervisor.state_lock import locked
    from lagwise_app.upgrade import upgrade_at_start

    config = with_dashboard_port(settings.load(bootstrap=bootstrap, data=data))
    if not config.clusters:
        raise ConfigError(
            "no cluster to watch: add --bootstrap HOST:PORT, or `clusters` in the settings", code=ErrorCode.NO_CLUSTER
        )
    require_clients(config)
    for module in ("pyspark", "streamlit"):
        require_package(module)
    if config.mcp.port is not None:
        require_package("mcp", "`mcp.port` in the settings")
    if config.server.port is not None and config.server.metrics.otlp is not None:
        require_package("opentelemetry.exporter.otlp.proto.http", "`server.metrics.otlp` in the settings")
    find_java()  # else only the log of the analysis would say that it is missing
    stop = Signals().stop
    with locked(config.state):
        upgrade_at_start(config, lambda line: click.echo(clean(line), err=True), makes_lake=True)
        with running_product(config) as supervisor:
            show(supervisor, config, stop)


@click.command(short_help="Run only the collector.")
@bootstrap_option
@data_option
@once_option
@json_option("the cost of the round")
@click.pass_obj
def collect(settings: CommandSettings, bootstrap: str | None, data: str | None, once: bool, as_json: bool) -> None:
    """Sample the watched clusters into the lake.

    Runs until SIGINT or SIGTERM, which are safe at any moment. Needs the extra `kafka`.

    \b
      lagwise collect --bootstrap broker:9092 --data /var/lib/lagwise
      lagwise collect --once --json     # {"runs": [{"cluster": …, "wall_seconds": …, "errors": …}]}
    """
    require_once_with_json(as_json, once)
    from lagwise.platform.health import COLLECTOR

    config = settings.load_for(COLLECTOR, bootstrap=bootstrap, data=data)
    if not config.clusters:
        raise ConfigError(
            "no cluster to read: add --bootstrap HOST:PORT, or `clusters` in the settings", code=ErrorCode.NO_CLUSTER
        )
    require_clients(config)
    from lagwise_collectors import run

    if not once:
        run.collect_forever(config, Signals(hang_seconds=_HANG_SECONDS).stop, config.state)
        return
    costs = run.collect_once(config)
    if as_json:
        print_json({"runs": [asdict(cost) for cost in costs]})
    else:
        for cost in costs:
            click.echo(clean(run.summary_of(cost)))
    if any(cost.errors and not cost.groups for cost in costs):
        raise click.exceptions.Exit(1)


@click.command(short_help="Run only the analysis (Spark).")
@data_option
@once_option
@json_option("the cost of the round")
@click.pass_obj
def analyze(settings: CommandSettings, data: str | None, once: bool, as_json: bool) -> None:
    """Analyse the history in the lake with Spark: rates, trends, and the status of every group.

    Runs until SIGINT or SIGTERM. The next run repeats a round that was interrupted. Needs the extra `spark` and Java.

    \b
      lagwise analyze
      lagwise analyze --once --json     # {"wall_seconds": …, "cpu_seconds": …, …}
    """
    require_once_with_json(as_json, once)
    from lagwise.platform.health import ANALYSIS

    require_package("pyspark")
    find_java()  # before anything is migrated
    config = settings.load_for(ANALYSIS, data=data)
    from lagwise_spark import run

    if not once:
        run.analyze_forever(config, Signals().stop, config.state)
        return
    cost = run.analyze_once(config)
    print_answer(asdict(cost), run.line_of(cost), as_json=as_json)


@click.command(short_help="Run only the dashboard.")
@data_option
@click.pass_obj
def dashboard(settings: CommandSettings, data: str | None) -> None:
    """Serve the dashboard. Needs the extra `dashboard`.

    Listens on loopback unless `dashboard.host` is set. With `dashboard.sign_in`, every user has to sign in, and nothing
    is served while that does not work. Without it, only a browser on this machine may acknowledge and silence alerts,
    and only without a proxy in between.

    \b
      lagwise dashboard
      lagwise --config /etc/lagwise.yaml dashboard
    """
    from lagwise.platform.health import DASHBOARD
    from lagwise_app.supervisor.effective_settings import dashboard_address, with_dashboard_port

    require_package("streamlit")
    config = with_dashboard_port(settings.load_for(DASHBOARD, data=data))
    from lagwise_dashboard.server.serve import serve_forever

    address = dashboard_address(config.dashboard.host, config.dashboard.port)
    serve_forever(config, lambda: click.echo(f"dashboard: {address}", err=True))


@click.command(short_help="Run only the endpoint for autoscalers.")
@data_option
@click.option("--host", metavar="ADDRESS", help="Address to listen on. Default: `scaling.host` in the settings.")
@click.option(
    "--port", type=click.IntRange(1, 65535), help="Port to listen on. Default: `scaling.port` in the settings."
)
@click.pass_obj
def scaling(settings: CommandSettings, data: str | None, host: str | None, port: int | None) -> None:
    """Serve the number of replicas that each group should have, for autoscalers. Needs the extra `server`.

    Answers GET /scaling/CLUSTER/GROUP with JSON, and nothing else. KEDA's metrics-api scaler reads `replicas` from it.
    `lagwise serve` answers the same; this endpoint is for an address and a token that autoscalers have to themselves.
    `lagwise up` runs it as well where `scaling.port` is set.

    \b
      lagwise scaling --port 8602
      curl 'http://127.0.0.1:8602/scaling/kafka/billing?min=2&max=24&utilisation=0.7'
    """
    from lagwise.platform.health import SCALING

    config = settings.load_for(SCALING, data=data)
    address = {"host": host or config.scaling.host, "port": port or config.scaling.port}
    if address["port"] is None:
        raise ConfigError("no port to listen on: add --port, or set `scaling.port`")
    config = config.model_copy(update={"scaling": config.scaling.model_copy(update=address)})
    require_package("uvicorn")
    require_package("starlette")
    from lagwise_app.server.serve import serve_scaling_forever

    serve_scaling_forever(config, Signals().stop, config.state)


@click.command(short_help="Run only the HTTP server for other programs.")
@data_option
@click.option("--host", metavar="ADDRESS", help="Address to listen on. Default: `server.host` in the settings.")
@click.option(
    "--port", type=click.IntRange(1, 65535), help="Port to listen on. Default: `server.port` in the settings."
)
@click.pass_obj
def serve(settings: CommandSettings, data: str | None, host: str | None, port: int | None) -> None:
    """Serve metrics for Prometheus, and answers about groups as JSON. Needs the extra `server`.

    Answers GET /metrics with Lagwise's own metrics, GET /metrics/EXPORTER with those of the exporters in
    `server.metrics.name_sets`, and GET /api/v1/groups and others (docs/api.md). `lagwise up` runs this server as well
    where `server.port` is set.

    \b
      lagwise serve --port 8603
      curl http://127.0.0.1:8603/metrics
      curl 'http://127.0.0.1:8603/api/v1/groups?status=stopped'
    """
    from lagwise.platform.health import SERVER

    config = settings.load_for(SERVER, data=data)
    address = {"host": host or config.server.host, "port": port or config.server.port}
    if address["port"] is None:
        raise ConfigError("no port to listen on: add --port, or set `server.port`")
    config = config.model_copy(update={"server": config.server.model_copy(update=address)})
    require_package("uvicorn")
    require_package("starlette")
    if config.server.metrics.otlp is not None:
        require_package("opentelemetry.exporter.otlp.proto.http")
    from lagwise_app.server.serve import serve_forever

    serve_forever(config, Signals().stop, config.state)
