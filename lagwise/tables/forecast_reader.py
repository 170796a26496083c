"""The newest forecast of each topic, as capacity is judged by it."""

from collections import defaultdict
from datetime import datetime, timedelta

from lagwise.domain.capacity.verdict import DemandAhead, busy_minutes
from lagwise.tables.capacity import DEMAND, FORECASTS
from lagwise.tables.store import Lake

#: A topic whose forecast has not been made anew for so long is not read any more.
_NEWEST = timedelta(days=4)

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


def demand_ahead(lake: Lake, now: datetime) -> dict[tuple[str, str], tuple[DemandAhead, ...]]:
    """The busiest minutes to come from ``now`` on, by cluster and topic. Topics without a forecast are not there.

    Raises LakeError.
    """
    found = lake.query(_AHEAD, [now], over=[FORECASTS], since=now - _NEWEST, given={"demand": lake.read(DEMAND)})
    hours: dict[tuple[str, str], list[tuple[datetime, float, float]]] = defaultdict(list)
    peaks: dict[tuple[str, str], float] = {}
    for row in found.to_pylist():
        key = row["cluster"], row["topic"]
        hours[key].append((row["at"], row["mean"], row["high"]))
        peaks[key] = row["peak"]
    return {key: busy_minutes(of_topic, peaks[key]) for key, of_topic in hours.items()}
