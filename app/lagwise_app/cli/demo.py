"""``lagwise demo``: the whole product on a real broker; and ``lagwise sandbox``, that broker alone."""

from pathlib import Path

import click

from lagwise.platform.java import find_java
from lagwise_app.cli.option_types import duration_type
from lagwise_app.cli.shared import json_option, require_package


@click.command(short_help="Try Lagwise on a real broker, with groups in trouble.")
@click.option(
    "--for",
    "for_seconds",
    type=duration_type("s", at_least=1),
    help="Stop after this long (2m, 120), counted from the start of the workload. Default: run until Ctrl-C.",
)
@click.option("--rocketmq", is_flag=True, help="Use RocketMQ instead of Kafka. Needs a JDK.")
@click.option("--no-past", is_flag=True, help="Leave out the made-up cluster, which has a past of five weeks.")
@click.option("--no-dashboard", is_flag=True, help="Run without the dashboard.")
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Keep all data in this folder. Default: a temporary folder, removed at the end.",
)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port of the dashboard. Default: any free port.")
@json_option("the result", "Progress goes to stderr.")
@click.pass_context
def demo(
    context: click.Context,
    for_seconds: float | None,
    rocketmq: bool,
    no_past: bool,
    no_dashboard: bool,
    data: Path | None,
    port: int,
    as_json: bool,
) -> None:
    """Run everything on a real broker, Kafka or RocketMQ, with consumers that misbehave on purpose.

    Starts a broker on loopback, producers, consumers (healthy, falling behind, stalled, stopped, …) and the whole
    product. Then compares the status of each group with the expected one, which it has within two minutes: in a live
    table, or, where the output is no terminal, change by change with the table at the end. The first run downloads
    the broker's jars. Needs Java 17 or newer.

    Capacity and forecasts need a past. For these, a second cluster, made-up, has five weeks of invented samples and
    keeps producing more. The analysis judges them as any others, before the pages open. No alert about its groups is
    sent.

    With --for, exits with 0 if every group has the expected status at the end, otherwise with 1. Without, Ctrl-C ends
    it with 0.

    \b
      lagwise demo
      lagwise demo --for 120 --no-dashboard --json
      lagwise demo --rocketmq
      lagwise demo --no-past
    """
    from lagwise.platform import logs
    from lagwise_app.demo.run import DemoOptions, run_demo
    from lagwise_app.terminal.signals import Signals

    for module in (*(() if rocketmq else ("confluent_kafka",)), "pyspark", "streamlit"):
        require_package(module)
    find_java()
    logs.configure("demo")
    spark = context.obj.load().analysis.spark
    options = DemoOptions(
        for_seconds=for_seconds,
        dashboard=not no_dashboard,
        data=data,
        port=port,
        as_json=as_json,
        rocketmq=rocketmq,
        past=not no_past,
        spark=spark,
    )
    context.exit(run_demo(options, Signals()))


@click.command(short_help="Run only a Kafka broker on loopback.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port on 127.0.0.1. Default: any free port.")
@click.pass_context
def sandbox(context: click.Context, port: int) -> None:
    """Run only a Kafka broker on loopback, for experiments.

    Prints the line `BOOTSTRAP host:port` when it is ready. Runs until SIGINT or SIGTERM, and then removes its data.

    \b
      lagwise sandbox --port 9092
    """
    from lagwise.platform import logs
    from lagwise_sandbox.broker import main

    logs.configure("sandbox")
    context.exit(main(port))
