"""``lagwise up``: the whole product at once."""

import click

from lagwise_app.cli.shared import (
    CommandSettings,
    bootstrap_option,
    data_option,
    require_clients,
    require_package,
    stop_on_signals,
)


@click.command(short_help="Run the whole product against your cluster.")
@bootstrap_option
@data_option
@click.pass_obj
def up(settings: CommandSettings, bootstrap: str | None, data: str | None) -> None:
    """Run the whole product against your cluster: collector, analysis, alerts, dashboard.

    Each runs as a separate process and logs to DATA/logs. A process that ends is restarted after a pause, which grows
    with each failure. SIGINT or SIGTERM ends all of them within 10 seconds.

    \b
      lagwise up --bootstrap broker:9092
      lagwise up --bootstrap broker:9092 --data /var/lib/lagwise
      lagwise --config lagwise.yaml up
    """
    from lagwise.platform.errors import ConfigError
    from lagwise_app.supervisor.display import show
    from lagwise_app.supervisor.effective_settings import with_dashboard_port
    from lagwise_app.supervisor.processes import running_product
    from lagwise_app.supervisor.state_lock import locked

    config = with_dashboard_port(settings.load(bootstrap=bootstrap, data=data))
    if not config.clusters:
        raise ConfigError("no cluster to watch: add --bootstrap HOST:PORT, or `clusters` in the settings")
    require_clients(config)
    for module in ("pyspark", "streamlit"):
        require_package(module)
    stop = stop_on_signals()
    with locked(config.state), running_product(config) as supervisor:
        show(supervisor, config, stop)
