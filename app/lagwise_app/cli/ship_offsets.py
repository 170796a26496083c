"""``lagwise ship-offsets``: runs beside RocketMQ's broadcasting consumers, whose offsets nobody else can see."""

from dataclasses import asdict
from pathlib import Path

import click

from lagwise.domain.humanise import plural
from lagwise.platform.logs import clean
from lagwise_app.cli.option_types import Duration
from lagwise_app.cli.shared import json_option, once_option, stop_on_signals
from lagwise_app.terminal.json_output import print_json

_FOLDER = Path("~/.rocketmq_offsets")


@click.command("ship-offsets", short_help="Copy offsets that RocketMQ's broadcasting members keep themselves.")
@click.option("--to", "place", metavar="PLACE", required=True, help="A folder or a URI (s3://…, gs://…, abfss://…).")
@click.option(
    "--from",
    "folder",
    type=click.Path(path_type=Path),
    default=_FOLDER,
    show_default=True,
    help="Where clients keep them: what rocketmq.client.localOffsetStoreDir says.",
)
@click.option(
    "--every",
    "every_seconds",
    type=Duration("s", at_least=1, at_most=3600),
    default="10s",
    show_default=True,
    help="Time between rounds.",
)
@click.option(
    "--max-age",
    "max_age_seconds",
    type=Duration("h", at_least=1, at_most=365 * 86400),
    default="24h",
    show_default=True,
    help="A file that was not written for longer is not copied.",
)
@once_option
@json_option("what the round did (with --once)")
def ship_offsets(
    place: str, folder: Path, every_seconds: float, max_age_seconds: float, once: bool, as_json: bool
) -> None:
    """Copy offsets.json files of RocketMQ clients to where the collector can read them.

    Members of broadcasting groups keep their offsets on their own disk. Those that are online are asked by the
    collector; for those that are not, or do not answer, run this beside them (as their user, or one who may read their
    files), and set `local_offsets` of the cluster:

    \b
      lagwise ship-offsets --to /mnt/shared/rocketmq-offsets
      lagwise ship-offsets --from /srv/app/.rocketmq_offsets --to s3://ops/rocketmq-offsets --every 30s
      # local_offsets: {path: /mnt/shared/rocketmq-offsets/*/*/offsets.json}

    Only files that were written anew are copied. Runs until SIGINT or SIGTERM, and goes on where a copy fails.
    """
    if as_json and not once:
        raise click.UsageError("--json prints what one round did: use it with --once")
    from lagwise_collectors.rocketmq.ship_offsets import OffsetShipper

    shipping = OffsetShipper(folder.expanduser(), place, max_age_seconds=max_age_seconds)
    stop = stop_on_signals()
    said = None
    while True:
        shipped = shipping.round()
        line = f"{plural(shipped.found, 'file')} found, {shipped.old} too old to copy"
        if shipped.failed:
            line += f"; {len(shipped.failed)} could not be copied, such as {shipped.failed[0]}"
        if as_json:
            print_json(asdict(shipped))
        elif once:
            click.echo(clean(f"{shipped.copied} copied; {line}"))
        elif line != said:  # what stays as it was is said once
            click.echo(clean(line), err=bool(shipped.failed))
            said = line
        if once:
            raise click.exceptions.Exit(1 if shipped.failed else 0)
        if stop.wait(every_seconds):
            return
