"""``lagwise mcp``: answers for assistants."""

import click

from lagwise.platform.errors import ConfigError
from lagwise_app.cli.shared import CommandSettings, data_option, open_lake, require_package
from lagwise_app.terminal.signals import Signals


@click.command(short_help="Answer assistants, by the Model Context Protocol.")
@click.option("--http", is_flag=True, help="Answer over HTTP. Default: over stdin and stdout.")
@click.option(
    "--host", metavar="ADDRESS", help="Address to listen on with --http. Default: `mcp.host` in the settings."
)
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    help="Port to listen on with --http. Default: `mcp.port` in the settings.",
)
@data_option
@click.pass_obj
def mcp(settings: CommandSettings, http: bool, host: str | None, port: int | None, data: str | None) -> None:
    """Answer assistants: groups in trouble, the story of one, its partitions, what-if sizing, forecasts.

    Needs the extra `mcp`. All tools only read. Over stdin and stdout, the assistant starts this command, and sees
    everything in the lake. Over HTTP (POST /mcp), `server.token` and `server.tokens` say who may ask and what they see,
    with the rate limits of `server` (docs/assistants.md). `lagwise up` runs this server as well where `mcp.port` is
    set.

    \b
      lagwise mcp --data /var/lib/lagwise
      lagwise --config /etc/lagwise.yaml mcp --http --port 8604
    """
    from lagwise.platform import logs
    from lagwise.platform.health import ASSISTANTS

    if not http and (host is not None or port is not None):
        raise click.UsageError("--host and --port go with --http")
    require_package("mcp")
    if not http:
        # An assistant starts this as it likes: unlike a service, it brings no lake up to date.
        logs.configure(ASSISTANTS)
        config = settings.load(data=data)
        logs.configure(ASSISTANTS, as_json=config.log_format == "json")
        from lagwise_app.assistants.serve import serve_streams

        serve_streams(config, open_lake(config))
        return
    config = settings.load_for(ASSISTANTS, data=data)
    given = {"host": host or config.mcp.host, "port": port or config.mcp.port}
    if given["port"] is None:
        raise ConfigError("no port to listen on: add --port, or set `mcp.port`")
    config = config.model_copy(update={"mcp": config.mcp.model_copy(update=given)})
    from lagwise_app.assistants.serve import serve_http

    serve_http(config, Signals().stop, config.state)
