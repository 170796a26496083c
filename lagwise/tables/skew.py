"""How unevenly a topic's traffic lies on its partitions: the share of the hottest, from days of history.

A share of what came in the last minutes is mostly chance: of twelve partitions that get the same, one record a second,
the hottest of five minutes seems to have an eighth in place of a twelfth, and on a quiet night all there was. So it is
taken over the busy hours of a week, which are what a plan is made for, and is not known of too few records.
"""

from collections.abc import Collection
from datetime import datetime, timedelta

import pyarrow as pa

from lagwise.domain.capacity.inputs import Skew
from lagwise.tables.capacity import TOPIC_HOURS
from lagwise.tables.store import Lake

#: The history that it is taken from.
HISTORY = timedelta(days=7)
#: Hours with at least this share of the busiest hour's rate are busy.
BUSY_SHARE = 0.5
#: The hottest partition's share is known when it had so many records itself. Were all partitions alike, the one that
#: seems the hottest would then still have less than a tenth more than its share (three to four standard deviations of a
#: count of a thousand, for up to some thousand partitions).
LEAST_RECORDS = 1_000

#: Hours before the topic had as many partitions as now say nothing about these.
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


def skew_of(lake: Lake, topics: Collection[tuple[str, str]], now: datetime) -> dict[tuple[str, str], Skew]:
    """By cluster and topic, of those named; where it is not known they are not there. Raises LakeError."""
    named = pa.table({"cluster": [c for c, _ in topics], "topic": [t for _, t in topics]}, schema=_TOPICS)
    since = now - HISTORY
    found = lake.query(
        _SKEW, [since, BUSY_SHARE, LEAST_RECORDS], over=[TOPIC_HOURS], since=since, given={"topics": named}
    )
    return {
        (row["cluster"], row["topic"]): Skew(row["hottest_share"], row["records"], row["hours"], row["until"])
        for row in found.to_pylist()
    }


_TOPICS = pa.schema([("cluster", pa.string()), ("topic", pa.string())])
