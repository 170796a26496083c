"""``lagwise ship-offsets``: runs next to RocketMQ's broadcasting consumers, which keep their offsets on their disk."""

from dataclasses import asdict
from pathlib import Path

import click

from lagwise.domain.humanise import plural
from lagwise.platform.logs import clean
from lagwise_app.cli.option_types import duration_type
from lagwise_app.cli.shared import json_option, once_option, print_answer, require_once_with_json
from lagwise_app.terminal.signals import Signals

_FOLDER = Path("~/.rocketmq_offsets")


@click.command("ship-offsets", short_help="Copy the offset files of broadcasting RocketMQ clients.")
@click.option(
    "--to", "place", metavar="PLACE", required=True, help="Destination: a folder or a URI (s3://…, gs://…, abfss://…)."
)
@click.option(
    "--from",
    "folder",
    type=click.Path(path_type=Path),
    default=_FOLDER,
    show_default=True,
    help="Folder with the files: rocketmq.client.localOffsetStoreDir of the clients.",
)
@click.option(
    "--every",
    "every_seconds",
    type=duration_type("s", at_least=1, at_most=3600),
    default="10s",
    show_default=True,
    help="Time between rounds.",
)
@click.option(
    "--max-age",
    "max_age_seconds",
    type=duration_type("h", at_least=1, at_most=365 * 86400),
    default="24h",
    show_default=True,
    help="Maximum age of a file. Older files are not copied.",
)
@once_option
@json_option("the result of the round (with --once)")
def ship_offsets(
    place: str, folder: Path, every_seconds: float, max_age_seconds: float, once: bool, as_json: bool
) -> None:
    """Copy offsets.json files of RocketMQ clients to a place that the collector can read.

    Members of broadcasting groups keep their offsets on their own disk. The collector asks those that are online. For
    those that are offline, or do not answer, run this on their machine as a user who may read their files, and set
    `local_offsets` of the cluster:

    \b
      lagwise ship-offsets --to /mnt/shared/rocketmq-offsets
      lagwise ship-offsets --from /srv/app/.rocketmq_offsets --to s3://ops/rocketmq-offsets --every 30s
      # local_offsets: {path: /mnt/shared/rocketmq-offsets/*/*/offsets.json}

    Copies only files that have changed. Runs until SIGINT or SIGTERM, and continues after a failed copy.
    """
    require_once_with_json(as_json, once)
    from lagwise_collectors.rocketmq.ship_offsets import OffsetShipper

    shipper = OffsetShipper(folder.expanduser(), place, max_age_seconds=max_age_seconds)
    stop = Signals().stop
    printed = None
    while True:
        shipped = shipper.round()
        line = f"{plural(shipped.found, 'file')} found, {shipped.old} too old to copy"
        if shipped.failed:
            line += f"; {len(shipped.failed)} could not be copied, such as {shipped.failed[0]}"
        if once:
            print_answer(asdict(shipped), f"{shipped.copied} copied; {line}", as_json=as_json)
            raise click.exceptions.Exit(1 if shipped.failed else 0)
        if line != printed:
            click.echo(clean(line), err=bool(shipped.failed))
            printed = line
        if stop.wait(every_seconds):
            return
