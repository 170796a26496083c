"""``lagwise lag``: the partitions of one group."""

from dataclasses import asdict
from datetime import UTC, datetime

import click

from lagwise_app.cli.shared import CommandSettings, cluster_option, data_option, json_option, open_lake
from lagwise_app.terminal.json_output import print_json

#: The columns of a partition in ``lag --json``.
PARTITION_KEYS = (
    "topic",
    "partition",
    "log_start",
    "committed",
    "high_watermark",
    "lag",
    "lag_seconds",
    "lag_seconds_is_lower_bound",
    "status",
    "reason",
    "reasons",
    "since",
    "produce_rate_per_second",
    "consume_rate_per_second",
    "seconds_to_catch_up",
    "seconds_to_catch_up_low",
    "seconds_to_catch_up_high",
    "seconds_to_breach",
    "seconds_to_breach_low",
    "seconds_to_breach_high",
    "seconds_to_loss",
    "seconds_to_loss_is_upper_bound",
    "loss_cause",
    "records_lost",
    "lost_at_least",
    "lost_at_most",
    "first_lost_at",
    "last_lost_at",
    "transaction_seconds",
    "owner",
    "client_id",
    "host",
)


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
    last_run = settings.load_last_run(str(config.data))
    run_config = last_run[0] if last_run else config
    lake = open_lake(config)
    fresh = lake_queries.freshness(lake, config, datetime.now(UTC))
    row = lake_queries.group(lake, group, cluster)
    rows = lake_queries.partitions(lake, group, row["cluster"])
    growth = trends(lake, row["cluster"], group, row["as_of"])
    subject: pages.Values = {parameters.CLUSTER: row["cluster"], parameters.GROUP: group}
    page = pages.link(pages.GROUP, subject, base=run_config.alerts.dashboard_url)
    if as_json:
        shown = [{key: r[key] for key in PARTITION_KEYS} for r in rows]
        print_json(
            {
                "freshness": asdict(fresh),
                **row,
                "dashboard_url": page,
                "trends": [asdict(trend) for trend in growth],
                "partitions_total": row["partitions"],
                "partitions": shown,
            }
        )
        return
    from lagwise_app.terminal import output

    console = output.console()
    console.print(*output.freshness_lines(fresh), sep="\n")
    console.print(output.verdict_line(row))
    for finding in row["findings"]:
        console.print(output.finding_line(finding))
    if row["status"] not in ("ok", "catching_up", "ghost"):
        console.print(output.first_step(row, run_config.clusters))
        console.print(output.page_line(page))
    if in_words(growth):
        console.print(output.growth_line(in_words(growth)))
    console.print(output.partition_table(rows))
