"""`demand` and `forecasts`: what each topic was sent and will be, a few topics after each round."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark import SparkContext

from lagwise.config.model import ForecastSettings
from lagwise.tables.capacity import DEMAND, FORECASTS, TOPIC_HOURS
from lagwise.tables.store import Lake
from lagwise_spark.jobs import read, write
from lagwise_spark.tasks.demand import made_demand
from lagwise_spark.tasks.running import gathered

#: Topics without samples for so long are no longer forecast, and then forgotten.
FORECAST_FOR, KNOWN_FOR = timedelta(days=2), timedelta(days=7)


def forecast_topics(context: SparkContext, lake: Lake, settings: ForecastSettings) -> int:
    """Bring up to date the stalest topics that are due; how many these were. Raises MissingRequirement where the
    executors' Python lacks what the models need."""
    due = _due(lake, settings)
    if not due:
        return 0
    files = read.files_of(lake, {}, {TOPIC_HOURS: lake.files(TOPIC_HOURS)})
    made = gathered(
        context,
        partial(made_demand, files, settings.horizon_days),
        list(_shares(due, context.defaultParallelism)),
        name="forecasting",
        packages="numpy, scipy, pandas, pyarrow and statsforecast",
    )
    _write(lake, made[DEMAND.name], made[FORECASTS.name])
    return int(made[DEMAND.name].num_rows)


def _shares(due: list[dict[str, Any]], cores: int) -> Iterator[Sequence[dict[str, Any]]]:
    """One share a core, each of topics that are next to one another by name: in files that are sorted by it, they lie
    together. Every further share would open all files once more."""
    due = sorted(due, key=lambda row: (row["topic"], row["cluster"]))
    size = -(-len(due) // cores)
    for first in range(0, len(due), size):
        yield due[first : first + size]


def _due(lake: Lake, settings: ForecastSettings) -> list[dict[str, Any]]:
    """Cluster, topic and the end of the last whole hour, of those to be forecast now.

    As soon as one is due, others follow that soon will be: reading the history costs the same for one as for many.
    """
    newest = lake.newest_day(TOPIC_HOURS)
    if newest is None:
        return []
    since = datetime.fromisoformat(newest).replace(tzinfo=UTC) - FORECAST_FOR
    rows = lake.query(
        """
        with topics as (
            select cluster, topic, max(max(hour)) over (partition by cluster) + interval 1 hour as until,
                   max(hour) as last_hour
            from topic_hours group by cluster, topic
        ), known as (
            select t.cluster, t.topic, t.until, d.as_of,
                   case when d.horizon_days <> ? then 0 when d.reason is not null then 1 else ? end as every_hours,
                   epoch(t.until - d.as_of) / 3600 as hours
            from topics t left join demand d using (cluster, topic) where t.last_hour >= t.until - to_hours(?)
        )
        select cluster, topic, until from known
        where (as_of is null or hours >= every_hours / 2)
          and exists (select 1 from known where as_of is null or hours >= every_hours)
        order by as_of nulls first, cluster, topic limit ?
        """,
        [
            settings.horizon_days,
            settings.interval_hours,
            FORECAST_FOR // timedelta(hours=1),
            settings.max_topics_per_round,
        ],
        over=[TOPIC_HOURS, DEMAND],
        since=since,
    )
    due: list[dict[str, Any]] = rows.to_pylist()
    return due


def _write(lake: Lake, demand: pa.Table, ahead: pa.Table) -> None:
    _write_ahead(lake, demand, ahead)
    made = demand.to_pylist()
    topics = {(row["cluster"], row["topic"]) for row in made}
    newest = max(row["as_of"] for row in made)
    kept = [
        row
        for row in lake.read(DEMAND).to_pylist()
        if (row["cluster"], row["topic"]) not in topics and row["as_of"] > newest - KNOWN_FOR
    ]
    rows = sorted([*kept, *made], key=lambda row: (row["cluster"], row["topic"]))
    lake.replace(DEMAND, DEMAND.from_rows(rows))


def _write_ahead(lake: Lake, demand: pa.Table, ahead: pa.Table) -> None:
    """Write forecasts in the place of those that were made of the same hours before: by a round that was cut short
    before it wrote `demand`, or for another horizon. Usually there are none, which the files' statistics tell."""
    made = demand.select(["cluster", "topic", "as_of"]).rename_columns(["cluster", "topic", "made_at"])
    since = min(made["made_at"].to_pylist())
    sql = "select 1 from forecasts semi join made using (cluster, topic, made_at) limit 1"
    if not lake.query(sql, over=[FORECASTS], since=since, given={"made": made}).num_rows:
        lake.append(FORECASTS, ahead)
        return
    topics: dict[str, list[str]] = {}
    for cluster, topic in zip(made["cluster"].to_pylist(), made["topic"].to_pylist(), strict=True):
        topics.setdefault(write.quoted(cluster), []).append(write.quoted(topic))
    those = " OR ".join(f"(cluster = {cluster} AND topic IN ({', '.join(its)}))" for cluster, its in topics.items())
    # With what was forecast earlier on the same day, which the new rows supersede.
    day = f"{since.astimezone(UTC):%Y-%m-%d}"
    lake.replace(FORECASTS, ahead, f"day >= DATE '{day}' AND ({those})")
