"""One group in the terminal: its partitions."""

from dataclasses import asdict
from datetime import UTC, datetime

import click

from lagwise.cli.group import Settings, data_option, json_option, open_lake, print_json

#: What ``lag --json`` shows of a partition; the rest of the table is in the lake.
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


@click.command(short_help="One group's partitions: offsets, lag, age, status.")
@click.argument("group")
@click.option("--cluster", help="The group's cluster, where several clusters have a group of this name.")
@data_option
@json_option("the group and its partitions")
@click.pass_obj
def lag(settings: Settings, group: str, cluster: str | None, data: str | None, as_json: bool) -> None:
    """Show the partitions of one GROUP: offsets, lag, the age of the oldest unread record, status.

    \b
      lagwise lag orders
      lagwise lag orders --cluster shop --json | jq '.partitions[] | {topic, partition, lag}'
    """
    from lagwise import answers
    from lagwise.addresses import pages, query
    from lagwise.tables.trends import in_words, trends

    config = settings.load(data=data)
    # How the cluster and the dashboard are reached, the settings of the run that filled the folder say best.
    last_run = settings.load_last_run(str(config.data))
    places = last_run[0] if last_run else config
    lake = open_lake(config)
    fresh = answers.freshness(lake, config, datetime.now(UTC))
    row = answers.group(lake, group, cluster)
    rows = answers.partitions(lake, group, row["cluster"])
    growth = trends(lake, row["cluster"], group, row["as_of"])
    subject: pages.Values = {query.CLUSTER: row["cluster"], query.GROUP: group}
    page = pages.link(pages.GROUP, subject, base=places.alerts.dashboard_url)
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
    from lagwise import screen

    console = screen.console()
    console.print(*screen.freshness_lines(fresh), sep="\n")
    console.print(screen.verdict_line(row))
    for finding in row["findings"]:
        console.print(screen.finding_line(finding))
    if row["status"] not in ("ok", "catching_up", "ghost"):
        console.print(screen.first_step(row, places.clusters))
        console.print(screen.page_line(page))
    if in_words(growth):
        console.print(screen.growth_line(in_words(growth)))
    console.print(screen.partition_table(rows))
