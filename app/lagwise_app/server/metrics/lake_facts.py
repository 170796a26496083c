"""What metrics are made of, read from the lake: only what has changed since."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pyarrow as pa

from lagwise.tables.analysis import GROUP_STATUS, PARTITION_STATUS
from lagwise.tables.capacity import CAPACITY
from lagwise.tables.raw import GROUPS, SAMPLES, WATERMARKS
from lagwise.tables.rounds import TICKS
from lagwise.tables.schema import Table
from lagwise.tables.store import Lake

log = logging.getLogger("lagwise.server")

#: A cluster without a sample for so long has no metrics of its collection any more.
_COLLECTION_SPAN = timedelta(hours=1)

#: Asked after each round of the analysis: name, table, query.
_OF_A_ROUND: tuple[tuple[str, Table, str], ...] = (
    (
        "groups",
        GROUP_STATUS,
        """
        select cluster, "group", as_of, status, reason, since, state, members, idle_members, partitions, lag,
               lag_seconds, produce_rate_per_second, consume_rate_per_second, seconds_to_catch_up, seconds_to_loss,
               records_lost
        from group_status
        """,
    ),
    (
        "partitions",
        PARTITION_STATUS,
        """
        select cluster, "group", topic, partition, status, committed, high_watermark, lag, lag_seconds, owner,
               client_id, host
        from partition_status
        """,
    ),
    (
        "capacity",
        CAPACITY,
        """
        select cluster, "group", topic, verdict, members, demand_per_second, forecast_demand_high_per_second,
               capacity_low_per_second, capacity_high_per_second, enough_until
        from capacity
        """,
    ),
    (
        "rounds",
        TICKS,
        "select finished_at, wall_seconds, samples, group_partitions from ticks order by finished_at desc limit 1",
    ),
)
#: Asked after each sample: name, table, query.
_OF_A_SAMPLE: tuple[tuple[str, Table, str], ...] = (
    (
        "collections",
        SAMPLES,
        """
        select cluster, finished_at, wall_seconds, 1000 * wall_seconds as wall_ms,
               coalesce(list_sum(list_transform(errors, lambda one: one.count)), 0)::bigint as errors
        from samples where started_at >= $since
        qualify row_number() over (partition by cluster order by started_at desc) = 1
        """,
    ),
    (
        "topic_partitions",
        WATERMARKS,
        """
        with newest as (
            select cluster, arg_max(sample_id, sampled_at) as sample_id
            from watermarks where sampled_at >= $since group by cluster
        )
        select cluster, topic, partition, sampled_at, log_start, high_watermark, leader, len(replicas) as replicas,
               len(isr) as isr, (len(isr) < len(replicas))::int as is_under_replicated,
               -- Where the replicas are known, a partition without a leader has not the preferred one.
               case when len(replicas) > 0 then coalesce(leader = replicas[1], false)::int end as is_preferred
        from watermarks semi join newest using (cluster, sample_id)
        """,
    ),
    (
        "coordinated",
        GROUPS,
        """
        select cluster, "group", arg_max(coordinator, sampled_at) as coordinator,
               arg_max(assignor, sampled_at) as assignor
        from groups where sampled_at >= $since group by all
        """,
    ),
)
#: What is asked only for the names of exporters that have it.
_ONLY_FOR_NAME_SETS = frozenset({"topic_partitions", "coordinated"})


@dataclass
class LakeFacts:
    """Tables in memory, by name, as of the newest round and sample. For one thread."""

    lake: Lake
    #: Whether metrics of other exporters are wanted.
    has_name_sets: bool
    #: How far back the newest watermarks are looked for.
    stale_after_seconds: float
    tables: dict[str, pa.Table] = field(default_factory=dict)
    _versions: dict[str, int | None] = field(default_factory=dict)

    def refresh(self, now: datetime) -> bool:
        """Read what is new; whether anything was. Raises LakeError, having changed nothing.

        The table of rounds is written last in a round, so its version says that the others are complete. A round that
        is being written at this moment may be partly there: the next reading, a round later, replaces all of it.
        """
        recent = now - timedelta(seconds=self.stale_after_seconds)
        news: dict[str, pa.Table] = {}
        versions: dict[str, int | None] = {}
        for trigger, questions in ((TICKS, _OF_A_ROUND), (SAMPLES, _OF_A_SAMPLE)):
            version = versions[trigger.name] = self.lake.version(trigger)
            if version == self._versions.get(trigger.name, -1):
                continue
            for name, table, query in questions:
                if name in _ONLY_FOR_NAME_SETS and not self.has_name_sets:
                    continue
                since = now - _COLLECTION_SPAN if name == "collections" else recent
                values: Mapping[str, object] = {"since": since} if "$since" in query else {}
                news[name] = self.lake.query(
                    query, values, over=[table], since=since if values and table.clock is not None else None
                )
        self.tables |= news
        self._versions = versions
        return bool(news)
