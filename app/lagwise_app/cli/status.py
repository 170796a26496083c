"""``lagwise status``: the groups in trouble, once, as JSON, or continuously."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from lagwise.domain.vocabulary import DISPLAY_ORDER
from lagwise.platform.error_codes import ErrorCode
from lagwise.platform.errors import LagwiseError
from lagwise.platform.logs import clean
from lagwise_app.cli.shared import CommandSettings, data_option, json_option, open_lake
from lagwise_app.terminal.json_output import print_json
from lagwise_app.terminal.signals import Signals

if TYPE_CHECKING:
    from lagwise.config import Config


@click.command(short_help="Show the groups in trouble, worst first.")
@click.option("--all", "everything", is_flag=True, help="Also show groups that need no attention.")
@click.option(
    "--status",
    "statuses",
    type=click.Choice([str(status) for status in DISPLAY_ORDER]),
    metavar="STATUS",
    multiple=True,
    help=f"Only groups with this status: {', '.join(DISPLAY_ORDER)}. Repeatable, like the next three options.",
)
@click.option("--cluster", "clusters", metavar="NAME", multiple=True, help="Only groups in this cluster.")
@click.option(
    "--owner",
    "owners",
    metavar="TEAM",
    multiple=True,
    help="Only groups of this team (`owners` in the alert rules).",
)
@click.option(
    "--group",
    "patterns",
    metavar="PATTERN",
    multiple=True,
    help="Only groups whose name matches this pattern (* and ?).",
)
@click.option(
    "--watch",
    is_flag=True,
    help="Refresh until Ctrl-C and mark changes. Without a terminal, print one line per change.",
)
@data_option
@json_option("the groups and their freshness")
@click.pass_obj
def status(
    settings: CommandSettings,
    everything: bool,
    statuses: Sequence[str],
    clusters: Sequence[str],
    owners: Sequence[str],
    patterns: Sequence[str],
    watch: bool,
    data: str | None,
    as_json: bool,
) -> None:
    """Show the groups in trouble, worst first, and how fresh the data is.

    Groups that are ok, ghosts, or unknown without members are only counted, unless --all or --status selects them.
    Exits with 0 whatever the statuses are, also after Ctrl-C; with 1 if the lake cannot be read; with 2 on wrong usage.

    \b
      lagwise status
      lagwise status --cluster prod --status stopped --status stalled
      lagwise status --group 'billing-*' --all --watch
      lagwise status --json | jq -r '.groups[] | select(.status != "ok") | .group'
    """
    from lagwise_app.status.groups import StatusFilters, read_groups
    from lagwise_app.terminal import lake_queries

    if watch and as_json:
        raise click.UsageError("--watch and --json cannot be combined: repeat --json as often as needed")
    config = settings.load(data=data)
    lake = open_lake(config)
    filters = StatusFilters(
        statuses=frozenset(statuses),
        clusters=frozenset(clusters),
        patterns=tuple(patterns),
        # The owners are in the alert rules of the run that filled the lake.
        owned=_owned_by(owners, settings.load_of_run(data)) if owners else None,
    )
    if clusters:
        _check_clusters(
            clusters, {*(key[0] for key in read_groups(lake)), *(cluster.name for cluster in config.clusters)}
        )
    if as_json:
        with lake.unchanging():
            fresh = lake_queries.freshness(lake, config, datetime.now(UTC), clusters)
            groups = lake_queries.groups(lake)
        wanted = [group for group in groups if filters.match(group)]
        print_json({"freshness": asdict(fresh), "groups_total": len(groups), "groups": wanted})
        return
    from lagwise_app.status import display
    from lagwise_app.status.snapshots import SnapshotReader, StatusRequest
    from lagwise_app.terminal import output

    request = StatusRequest(lake, config, filters, everything)
    if watch:
        display.watch(request, output.console(), Signals().stop)
    else:
        display.show(SnapshotReader(request).read(datetime.now(UTC)), request, output.console())


def _check_clusters(names: Sequence[str], known: set[str]) -> None:
    for name in names:
        if name not in known:
            raise LagwiseError(
                f"no cluster is named {clean(name)!r}; known clusters: {_listed(known)}", code=ErrorCode.UNKNOWN_NAME
            )


def _owned_by(teams: Sequence[str], config: "Config") -> Callable[[str, str], bool]:
    """A filter for groups of these teams. Raises LagwiseError where the rules do not name a team."""
    from lagwise_alerts.rules.owners import owner_of
    from lagwise_alerts.rules.rule_file import load_rules

    owners = load_rules(config.alerts.rules_file, [channel.name for channel in config.alerts.channels]).owners
    known = {owner.team for owner in owners if owner.team is not None}
    for team in teams:
        if team not in known:
            raise LagwiseError(
                f"the alert rules have no team {clean(team)!r} under `owners`; known teams: {_listed(known)}",
                code=ErrorCode.UNKNOWN_NAME,
            )

    def is_owned(cluster: str, group: str) -> bool:
        owner = owner_of(owners, cluster, group)
        return owner is not None and owner.team in teams

    return is_owned


def _listed(names: set[str]) -> str:
    return clean(", ".join(sorted(names)) or "none")
