"""``lagwise lag``: the partitions of one group."""

from dataclasses import asdict
from datetime import UTC, datetime

import click

from lagwise_app.cli.shared import CommandSettings, cluster_option, data_option, json_option, open_lake
from lagwise_app.terminal.json_output import print_json


@click.command(short_help="Show one group's partitions: offsets, lag, age, status.")
@click.argument("group")
@cluster_option
@data_option
@json_option("the group and its partitions")
@click.pass_obj
def lag(settings: CommandSettings, group: str, cluster: str | None, data: str | None, as_json: bool) -> None:
    """Show the partitions of a GROUP: offsets, lag, age of the oldest unread record, status.

    \b
      lagwise lag orders
      lagwise lag orders --cluster shop --json | jq '.partitions[] | {topic, partition, lag}'
    """
    from lagwise.links import pages, parameters
    from lagwise.tables.trends import in_words, trends
    from lagwise_app.terminal import lake_queries

    config = settings.load(data=data)
    # The addresses of cluster and dashboard come from the run that filled the folder, where there is one.
    run_config = settings.load_of_run(str(config.data))
    lake = open_lake(config)
    row = lake_queries.group(lake, group, cluster)
    fresh = lake_queries.freshness(lake, config, datetime.now(UTC), [row["cluster"]])
    partitions = lake_queries.partitions(lake, group, row["cluster"])
    growth = trends(lake, row["cluster"], group, row["as_of"])
    subject: pages.Values = {parameters.CLUSTER: row["cluster"], parameters.GROUP: group}
    page = pages.link(pages.GROUP, subject, base=run_config.alerts.dashboard_url)
    if as_json:
        print_json(
            {
                "freshness": asdict(fresh),
                **row,
                "dashboard_url": page,
                "trends": [asdict(trend) for trend in growth],
                "partitions_total": row["partitions"],
                "partitions": partitions,
            }
        )
        return
    from lagwise_app.terminal import output

    console = output.console()
    console.print(*output.freshness_lines(fresh), sep="\n")
    console.print(*output.group_lines(row, run_config.clusters, page, in_words(growth)), sep="\n")
    console.print(output.partition_table(partitions))
