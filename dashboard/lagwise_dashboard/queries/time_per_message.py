"""What messages cost a group's consumers over time, as these measured it."""

from datetime import datetime, timedelta

import pyarrow as pa

from lagwise.tables.service_times import SERVICE_TIMES
from lagwise.tables.store import Lake
from lagwise_dashboard.queries.base import bucket_seconds, days, reads, run

#: Consumers measure over some seconds each: shorter buckets would have single members in them.
_LEAST_BUCKET_SECONDS = 15.0


@reads(SERVICE_TIMES)
def history(lake: Lake, cluster: str, group: str, since: datetime, until: datetime) -> pa.Table:
    """T1 and T2 per message, in order of time, of the topic that takes most of the consumers' time; empty without a
    probe. ``t2_seconds`` is null where T1 holds the whole time per message.

    Distinct: a restarted collector writes the last measurements again.
    """
    return run(
        lake,
        {SERVICE_TIMES: days(since, until + timedelta(minutes=5))},
        """
        with told as (
            select distinct topic, coalesce(host, '') as host, coalesce(member_id, '') as member, measured_at, messages,
                coalesce(t1_seconds, seconds_per_message) as t1_seconds, t2_seconds
            from service_times
            where cluster = $cluster and "group" = $group and measured_at between $since and $until and messages > 0
        ), busiest as (
            select topic from told group by topic
            order by sum((t1_seconds + coalesce(t2_seconds, 0)) * messages) desc, topic limit 1
        )
        select topic, to_timestamp(floor(epoch(measured_at) / $width) * $width) as "at",
            sum(messages)::bigint as messages, sum(t1_seconds * messages) / sum(messages) as t1_seconds,
            case when bool_and(t2_seconds is not null) then sum(t2_seconds * messages) / sum(messages) end as t2_seconds
        from told semi join busiest using (topic)
        where t1_seconds is not null
        group by topic, floor(epoch(measured_at) / $width) order by "at"
        """,
        {
            "cluster": cluster,
            "group": group,
            "since": since,
            "until": until,
            "width": bucket_seconds(since, until, at_least=_LEAST_BUCKET_SECONDS),
        },
    )
