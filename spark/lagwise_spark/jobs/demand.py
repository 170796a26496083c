"""`demand` and `forecasts`: what each topic was sent and will be, a few topics after each round.

The work is done by Spark, a topic a group; the driver looks which topics are due and writes the results, some hundred
rows a topic.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
from deltalake.exceptions import DeltaError
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lagwise.config.model import ForecastSettings
from lagwise.domain.capacity import demand
from lagwise.platform.errors import LakeError
from lagwise.tables.capacity import DEMAND, FORECASTS, TOPIC_HOURS
from lagwise.tables.engine_errors import in_a_line
from lagwise.tables.store import Lake
from lagwise_spark.frames import frame, struct_type
from lagwise_spark.tasks.running import python_of_executors
from lagwise_spark.transforms import forecasting, topic_demand

# Executors of a cluster have Python, but nothing of ours.
for module in (demand, forecasting, topic_demand):
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]  # pyspark leaves it untyped

#: Topics without samples for so long are no longer forecast, and then forgotten.
FORECAST_FOR, KNOWN_FOR = timedelta(days=2), timedelta(days=7)

_OF_FORECASTS = ("cluster", "topic", "made_at", "model", "mase", "baseline_mase")
_AHEAD = pa.struct([pa.field(c.name, c.type) for c in FORECASTS.columns if c.name not in _OF_FORECASTS])
_MADE = pa.schema([*DEMAND.arrow, pa.field("ahead", pa.list_(_AHEAD))])


def forecast_topics(session: SparkSession, lake: Lake, settings: ForecastSettings) -> int:
    """Bring up to date the stalest topics that are due; how many these were. Raises MissingRequirement where the
    executors' Python lacks what the models need."""
    due = _due(lake, settings)
    if not due.num_rows:
        return 0
    with python_of_executors("forecasting", "numpy, scipy, pandas, pyarrow and statsforecast"):
        made = _made(session, lake, due, settings.horizon_days).toArrow().to_pylist()
    _write(lake, made)
    return len(made)


def _due(lake: Lake, settings: ForecastSettings) -> pa.Table:
    """Cluster, topic and the end of the last whole hour, of those to be forecast now.

    As soon as one is due, others follow that soon will be: reading the history costs the same for one as for many.
    """
    newest = lake.newest_day(TOPIC_HOURS)
    schema = pa.schema([("cluster", pa.string()), ("topic", pa.string()), ("until", pa.timestamp("us", "UTC"))])
    if newest is None:
        return schema.empty_table()
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
    return rows.cast(schema)


def _made(session: SparkSession, lake: Lake, due: pa.Table, horizon_days: int) -> DataFrame:
    """A row per topic: `demand` with its rows of `forecasts` as a list."""
    names = due["topic"].to_pylist()
    hours = session.read.format("delta").load(lake.location(TOPIC_HOURS)).drop("day", "partition_records")
    # They come in the order of their names: files that are sorted by them need not be read as a whole.
    hours = hours.where(F.col("topic").between(min(names), max(names)))
    history = hours.join(F.broadcast(frame(session, due)), ["cluster", "topic"]).where(F.col("hour") < F.col("until"))
    return history.groupBy("cluster", "topic").applyInArrow(_over(horizon_days, _MADE), struct_type(_MADE))


def _over(horizon_days: int, schema: pa.Schema) -> Callable[[pa.Table], pa.Table]:
    def made(history: pa.Table) -> pa.Table:
        row = topic_demand.demand_of(history, history["until"][0].as_py(), horizon_days)
        row |= {name: history[name][0].as_py() for name in ("cluster", "topic")}
        return pa.Table.from_pylist([row], schema=schema)

    return made


def _write(lake: Lake, made: list[dict[str, Any]]) -> None:
    topics = {(row["cluster"], row["topic"]) for row in made}
    newest = max(row["as_of"] for row in made)
    _forget(lake, made)
    ahead = [
        {name: row.get(name) for name in _OF_FORECASTS} | {"made_at": row["as_of"]} | one
        for row in made
        for one in row["ahead"]
    ]
    lake.append(FORECASTS, FORECASTS.from_rows(ahead))
    kept = [
        row
        for row in lake.read(DEMAND).to_pylist()
        if (row["cluster"], row["topic"]) not in topics and row["as_of"] > newest - KNOWN_FOR
    ]
    rows = sorted([*kept, *made], key=lambda row: (row["cluster"], row["topic"]))
    lake.replace(DEMAND, DEMAND.from_rows(rows))


def _forget(lake: Lake, made: list[dict[str, Any]]) -> None:
    """Delete what was forecast from the same hours before: by a round that was cut short before it wrote `demand`, or
    for another horizon. Usually there is nothing, which the files' statistics tell."""
    since = min(row["as_of"] for row in made)
    sql = "select distinct cluster, topic, made_at from forecasts where made_at >= ?"
    there = lake.query(sql, [since], over=[FORECASTS], since=since).to_pylist()
    known = {(row["cluster"], row["topic"], row["made_at"]) for row in there}
    again = [row for row in made if (row["cluster"], row["topic"], row["as_of"]) in known]
    delta = lake.open(FORECASTS)
    if not again or delta is None:
        return
    # With what was forecast earlier on the same day, which the new rows supersede.
    topics = (f"(cluster = {_quoted(row['cluster'])} and topic = {_quoted(row['topic'])})" for row in again)
    those = " or ".join(topics)
    lake.before_writing()
    try:
        delta.delete(f"day >= DATE '{since.astimezone(UTC):%Y-%m-%d}' and ({those})")
    except (DeltaError, OSError) as error:
        raise LakeError(f"cannot write to the table {lake.location(FORECASTS)}: {in_a_line(error)}") from error


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
