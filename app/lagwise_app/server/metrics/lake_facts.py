"""What metrics are made of, read from the lake: only what has changed since."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import duckdb
import pyarrow as pa

from lagwise.config import Config
from lagwise.domain.staleness import allowed_age_seconds
from lagwise.platform.errors import LakeError
from lagwise.tables.analysis import GROUP_STATUS, PARTITION_STATUS
from lagwise.tables.capacity import CAPACITY
from lagwise.tables.duckdb_connection import OUR_MISTAKES
from lagwise.tables.raw import GROUPS, SAMPLES, WATERMARKS
from lagwise.tables.rounds import TICKS
from lagwise.tables.schema import Table
from lagwise.tables.store import Lake
from lagwise_app.server.metrics.limits import stale_after_seconds

#: The longest interval between samples that the settings allow.
_LONGEST_INTERVAL_SECONDS = 3600.0
#: How far back the newest round is looked for first.
_ROUND_SPAN = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class _Question:
    name: str
    table: Table
    sql: str
    #: Whether only the metrics of other exporters have it.
    is_only_for_name_sets: bool = False


#: By the table whose new version says that the answers have changed.
_QUESTIONS: Mapping[Table, tuple[_Question, ...]] = {
    SAMPLES: (
        _Question(
            "collections",
            SAMPLES,
            """
            select cluster, system, finished_at, interval_seconds, wall_seconds, 1000 * wall_seconds as wall_ms,
                   coalesce(list_sum(list_transform(errors, lambda one: one.count)), 0)::bigint as errors
            from samples where started_at >= $since
            qualify row_number() over (partition by cluster order by started_at desc) = 1
            """,
        ),
        _Question(
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
            is_only_for_name_sets=True,
        ),
        _Question(
            "coordinated",
            GROUPS,
            """
            select cluster, "group", arg_max(coordinator, sampled_at) as coordinator,
                   arg_max(assignor, sampled_at) as assignor
            from groups where sampled_at >= $since group by all
            """,
            is_only_for_name_sets=True,
        ),
    ),
    # A round writes this table right after that of the partitions, so that both are of one round, and long before it
    # is finished.
    GROUP_STATUS: (
        _Question(
            "groups",
            GROUP_STATUS,
            """
            select cluster, "group", as_of, status, reason, since, state, members, idle_members, partitions, lag,
                   lag_seconds, produce_rate_per_second, consume_rate_per_second, seconds_to_catch_up, seconds_to_loss,
                   records_lost
            from group_status
            """,
        ),
        _Question(
            "partitions",
            PARTITION_STATUS,
            """
            select cluster, "group", topic, partition, status, reason, committed, high_watermark, lag, lag_seconds,
                   owner, client_id, host
            from partition_status
            """,
        ),
    ),
    CAPACITY: (
        _Question(
            "capacity",
            CAPACITY,
            """
            select cluster, "group", topic, verdict, demand_per_second, capacity_low_per_second, enough_until
            from capacity
            """,
        ),
    ),
    TICKS: (
        _Question(
            "rounds",
            TICKS,
            """
            select finished_at, wall_seconds, group_partitions, progress
            from ticks where started_at >= $since order by finished_at desc limit 1
            """,
        ),
    ),
}


@dataclass
class LakeFacts:
    """Tables in memory, by name, as of the newest round and sample. For one thread."""

    lake: Lake
    config: Config
    tables: dict[str, pa.Table] = field(default_factory=dict)
    #: How often something new was read.
    readings: int = 0
    _versions: dict[Table, int | None] = field(default_factory=dict)

    def refresh(self, now: datetime) -> Exception | None:
        """Read what is new. Returns why something could not be read: that stays as it was, and the rest is read."""
        trouble: Exception | None = None
        for trigger, questions in _QUESTIONS.items():
            try:
                version = self.lake.version(trigger)
                if version == self._versions.get(trigger, -1):
                    continue
                news: dict[str, pa.Table] = {}
                for question in questions:
                    if not question.is_only_for_name_sets or self.config.server.metrics.name_sets:
                        news[question.name] = self._answer(question, {**self.tables, **news}, now)
            except OUR_MISTAKES:
                raise
            except (LakeError, duckdb.Error, OSError) as error:
                trouble = trouble or error
                continue
            self.tables |= news
            self._versions[trigger] = version
            self.readings += 1
        return trouble

    def _answer(self, question: _Question, tables: Mapping[str, pa.Table], now: datetime) -> pa.Table:
        if "$since" not in question.sql:
            return self.lake.query(question.sql, over=[question.table])
        found = self._since(question, now - self._span(question, tables))
        day = self.lake.newest_day(TICKS) if question.table is TICKS and not found.num_rows else None
        if day is not None:
            # The analysis has stood still for longer: its last round may be of any day.
            found = self._since(question, datetime.fromisoformat(day).replace(tzinfo=UTC))
        return found

    def _since(self, question: _Question, since: datetime) -> pa.Table:
        return self.lake.query(question.sql, {"since": since}, over=[question.table], since=since)

    def _span(self, question: _Question, tables: Mapping[str, pa.Table]) -> timedelta:
        """How far back the newest rows are looked for."""
        if question.table is TICKS:
            return _ROUND_SPAN
        least = self.config.server.metrics.stale_after_seconds
        if question.table is SAMPLES:  # which says how often each cluster is sampled
            longest = allowed_age_seconds(_LONGEST_INTERVAL_SECONDS, self.config.analysis.interval_seconds)
            return timedelta(seconds=max(least, longest))
        return timedelta(seconds=max(stale_after_seconds(self.config, tables).values(), default=least))
