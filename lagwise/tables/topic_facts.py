"""What sizing reads of topics: how uneven their partitions are, and the demand to come."""

from collections import defaultdict
from collections.abc import Collection
from datetime import datetime, timedelta

import pyarrow as pa

from lagwise.domain.capacity.skew import BUSY_SHARE, HISTORY, TELLING_RECORDS, Skew
from lagwise.domain.capacity.verdict import DemandAhead, busy_minutes
from lagwise.tables.capacity import DEMAND, FORECASTS, TOPIC_HOURS
from lagwise.tables.schema import TEXT
from lagwise.tables.store import Lake

#: The hottest partition of each topic, from the hours of the last week (:mod:`lagwise.domain.capacity.skew`). Hours
#: before the topic had its present number of partitions are left out.
_SKEW = """
    with wanted as (
        select *, records / seconds as rate,
               last_value(partitions) over (partition by cluster, topic order by hour
                                            rows between unbounded preceding and unbounded following) as now
        from topic_hours semi join topics using (cluster, topic) where hour >= ? and seconds > 0
    ), alike as (
        select *, max(rate) over (partition by cluster, topic) as busiest from wanted where partitions = now
    ), busy as (
        select * from alike where rate >= ? * busiest
    ), hours as (
        select cluster, topic, sum(records)::bigint as records, count(*) as hours,
               max(hour) + interval 1 hour as until
        from busy group by all
    ), partitions as (
        select cluster, topic, p.partition, sum(p.records)::bigint as records
        from (select cluster, topic, unnest(partition_records) as p from busy) group by all
    )
    select cluster, topic, max(p.records) / h.records as hottest_share, h.records, h.hours, h.until
    from partitions p join hours h using (cluster, topic)
    group by cluster, topic, h.records, h.hours, h.until having max(p.records) >= ?
"""

#: The forecast of a topic is not read any more once it is older than this.
_FORECAST_KEPT = timedelta(days=4)

_AHEAD = """
    with newest as (
        select *, max(made_at) over (partition by cluster, topic) as last from forecasts
    )
    select cluster, topic, "at", busiest_per_second as mean, busiest_high_per_second as high,
           forecast_peak_per_second as peak
    from newest join demand using (cluster, topic)
    where newest.made_at = newest.last and "at" >= ? and forecast_peak_per_second is not null
    order by cluster, topic, "at"
"""


def skew_of(lake: Lake, topics: Collection[tuple[str, str]], now: datetime) -> dict[tuple[str, str], Skew]:
    """The skew of these topics by cluster and topic, without those where it is unknown. Raises LakeError."""
    schema = pa.schema([("cluster", TEXT), ("topic", TEXT)])
    named = pa.table({"cluster": [c for c, _ in topics], "topic": [t for _, t in topics]}, schema=schema)
    since = now - HISTORY
    found = lake.query(
        _SKEW, [since, BUSY_SHARE, TELLING_RECORDS], over=[TOPIC_HOURS], since=since, given={"topics": named}
    )
    return {
        (row["cluster"], row["topic"]): Skew(row["hottest_share"], row["records"], row["hours"], row["until"])
        for row in found.to_pylist()
    }


def demand_ahead(lake: Lake, now: datetime) -> dict[tuple[str, str], tuple[DemandAhead, ...]]:
    """The busiest minutes from ``now`` on by cluster and topic, without topics that have no forecast.

    Raises LakeError.
    """
    found = lake.query(_AHEAD, [now], over=[FORECASTS], since=now - _FORECAST_KEPT, given={"demand": lake.read(DEMAND)})
    hours: dict[tuple[str, str], list[tuple[datetime, float, float]]] = defaultdict(list)
    peaks: dict[tuple[str, str], float] = {}
    for row in found.to_pylist():
        key = row["cluster"], row["topic"]
        hours[key].append((row["at"], row["mean"], row["high"]))
        peaks[key] = row["peak"]
    return {key: busy_minutes(of_topic, peaks[key]) for key, of_topic in hours.items()}
