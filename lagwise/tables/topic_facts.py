"""What sizing reads of topics: how uneven their partitions are, and the demand to come."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import pyarrow as pa

from lagwise.domain.capacity.inputs import Skew
from lagwise.domain.capacity.objective_demand import ObjectiveDemand, objective_demand
from lagwise.domain.capacity.outlook import DayAhead, Outlook, days_by_objective
from lagwise.domain.capacity.verdict import DemandAhead, busy_hours
from lagwise.domain.sizing.objective import ObjectiveRate
from lagwise.domain.sizing.workload import SizeBy
from lagwise.tables.capacity import FORECASTS, TOPIC_HOURS
from lagwise.tables.schema import TEXT
from lagwise.tables.store import Lake

#: The history that the skew is taken from. A few minutes show mostly chance: of twelve partitions that get as much, one
#: record a second, the hottest of five minutes seems to have an eighth in place of a twelfth.
_SKEW_HISTORY = timedelta(days=7)
#: Hours with at least this share of the busiest hour's rate are busy. A plan is made for these.
_BUSY_SHARE = 0.5
#: The hottest partition's share is known when it had so many records itself. Were all partitions alike, the one that
#: seems the hottest would then still have less than a tenth more than its share (three to four standard deviations of a
#: count of a thousand, for up to some thousand partitions).
_LEAST_RECORDS = 1_000

#: The hottest partition of each topic. Hours before the topic had as many partitions as now say nothing about these.
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

#: Of the 24 hours that have begun the peak may still come: their row is read too, for the peak alone.
_AHEAD = """
    with newest as (
        select *, max(made_at) over (partition by cluster, topic) as last from forecasts
    )
    select cluster, topic, "at", busiest_per_second as mean, busiest_high_per_second as mean_high,
           peak_per_second as peak, peak_high_per_second as high
    from newest
    where made_at = last and ("at" >= $now or peak_per_second is not null and "at" > $now - interval 24 hours)
    order by cluster, topic, "at"
"""


def skew_of(lake: Lake, topics: Collection[tuple[str, str]], now: datetime) -> dict[tuple[str, str], Skew]:
    """The skew of these topics by cluster and topic, without those where it is unknown. Raises LakeError."""
    schema = pa.schema([("cluster", TEXT), ("topic", TEXT)])
    named = pa.table({"cluster": [c for c, _ in topics], "topic": [t for _, t in topics]}, schema=schema)
    since = now - _SKEW_HISTORY
    found = lake.query(
        _SKEW, [since, _BUSY_SHARE, _LEAST_RECORDS], over=[TOPIC_HOURS], since=since, given={"topics": named}
    )
    return {
        (row["cluster"], row["topic"]): Skew(row["hottest_share"], row["records"], row["hours"], row["until"])
        for row in found.to_pylist()
    }


class TopicAhead(NamedTuple):
    """The forecast of a topic from now on, in order of time: of busy hours, and of the busiest minute
    of each day."""

    hours: tuple[DemandAhead, ...]
    minutes: tuple[DemandAhead, ...]


NOTHING_AHEAD = TopicAhead((), ())


def demand_ahead(lake: Lake, now: datetime) -> dict[tuple[str, str], TopicAhead]:
    """The forecast by cluster and topic, without topics that have none; 24 hours that have begun count from now on.
    Raises LakeError."""
    found = lake.query(_AHEAD, {"now": now}, over=[FORECASTS], since=now - _FORECAST_KEPT)
    rows: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in found.to_pylist():
        rows[row["cluster"], row["topic"]].append(row)
    return {
        topic: TopicAhead(
            busy_hours((row["at"], row["mean"], row["mean_high"]) for row in its if row["at"] >= now),
            tuple(DemandAhead(max(row["at"], now), row["peak"], row["high"]) for row in its if row["peak"] is not None),
        )
        for topic, its in rows.items()
    }


def objective_takes(
    demand: Mapping[str, Any], objective_seconds: float, hours_ahead: Sequence[DemandAhead]
) -> ObjectiveDemand | None:
    """What a lag objective takes of a topic, from its row of `demand`; None where too little is recorded."""
    so_far, forecast = demand["peak_per_second"], demand["forecast_peak_per_second"] or 0.0
    return objective_demand(
        [ObjectiveRate(**one) for one in demand["objective_rates"]],
        objective_seconds,
        minutes=demand["minutes"],
        peak_per_second=max(so_far, forecast),
        peak_high_per_second=max(so_far, forecast, demand["forecast_peak_high_per_second"] or 0.0),
        busy_hour_per_second=demand["busy_hour_per_second"],
        hours_ahead=hours_ahead,
    )


def days_by_verdict(row: Mapping[str, Any], outlook: Outlook) -> tuple[tuple[DayAhead, ...], SizeBy]:
    """The days ahead as the verdict in this row of `capacity` sees them, and by what: by what the objective takes of
    each where it goes by that and it is known, else by the busiest minutes."""
    demand, objective_seconds = outlook.demand, row["objective_seconds"]
    if row["size_by"] == SizeBy.OBJECTIVE and demand is not None and objective_seconds is not None:
        takes = objective_takes(demand, objective_seconds, outlook.hours)
        if takes is not None and (days := days_by_objective(outlook, takes)):
            return days, SizeBy.OBJECTIVE
    return outlook.days, SizeBy.PEAK
