"""Reads the lake for the alerts: the verdicts on the groups, and how fresh samples and analysis are.

Each table is read only when it has a new version, so a cycle in which nothing happened costs a few file look-ups. What
cannot be read is kept as it was read last, and reported: its age then does the rest.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import duckdb

from lagwise.domain.aging import AgePace
from lagwise.domain.cluster_findings import cluster_findings
from lagwise.domain.correlation import GroupTraits
from lagwise.domain.group_record import record_of
from lagwise.domain.staleness import STALE_INTERVALS
from lagwise.domain.vocabulary import SIMPLE
from lagwise.platform.errors import LakeError
from lagwise.platform.logs import clean
from lagwise.tables.analysis import GROUP_STATUS, PARTITION_STATUS, STATUS_CHANGES
from lagwise.tables.capacity import CAPACITY
from lagwise.tables.duckdb_connection import connected
from lagwise.tables.membership import REBALANCE_STATS
from lagwise.tables.raw import MEMBERS, READ_SOMETHING, SAMPLES
from lagwise.tables.rounds import TICKS
from lagwise.tables.store import Lake
from lagwise_alerts.evaluate.group_facts import (
    CAPACITY_SQL,
    STORMS_SQL,
    CapacityFinding,
    Group,
    Storm,
    capacity_by_group,
)
from lagwise_alerts.evaluate.group_traits import (
    LEADERS_SQL,
    MEMBERS_LOOKBACK,
    MEMBERS_SQL,
    have_got_worse,
    traits_by_group,
)
from lagwise_alerts.evaluate.observation import SIGNS_OF_LIFE, CollectionRow, GroupRow, LakeSnapshot
from lagwise_alerts.evaluate.unread_ages import LagObjective, UnreadAges, read_cadences, usual_objective

#: How far back samples and ticks are read. Older ones are as stale as none.
_LOOKBACK = timedelta(days=2)
#: No sample takes longer.
_LONGEST_SAMPLE = timedelta(minutes=10)
#: The example of an error is untrusted text of any length.
_LONGEST_EXAMPLE = 200

_COLUMNS = ", ".join(f'"{column.name}"' for column in GROUP_STATUS.columns)
_GROUPS_SQL = f"""
select {_COLUMNS},
    coalesce(type = '{SIMPLE}', false)
        and coalesce(bool_or(type <> '{SIMPLE}') over (partition by "group"), false) as is_mirrored
from group_status
"""  # noqa: S608 (column names of our own)

_COLLECTIONS_SQL = f"""
with progress as (
    select p.cluster as cluster, max(p.read_until) as read_until
    from (select unnest(progress) as p from ticks)
    group by 1
),
runs as (
    select s.*, r.read_until, {READ_SOMETHING} as useful
    from samples s left join progress r using (cluster)
)
select
    cluster,
    max(finished_at) filter (where useful) as newest_at,
    arg_max(interval_seconds, finished_at) as interval_seconds,
    arg_max(errors, finished_at) as errors,
    min(finished_at) filter (where useful) as oldest_at,
    max(finished_at) filter (where written_at <= read_until) as judged_until,
    min(written_at) filter (where read_until is null or written_at > read_until) as unread_since
from runs
group by cluster
"""  # noqa: S608 (a condition of our own)

#: The newest sample of each cluster that read anything, as far as findings on clusters need it.
_CLUSTERS_SQL = f"""
select cluster, system, finished_at, errors, brokers, replicas, offsets_topic_replicas, offsets_retention_seconds
from samples
where started_at >= ? and ({READ_SOMETHING})
qualify row_number() over (partition by cluster order by finished_at desc) = 1
"""  # noqa: S608 (a condition of our own)

_ACTIVE_SQL = """
select distinct cluster, "group"
from status_changes
where topic is null and (before in (select unnest(?)) or after in (select unnest(?)))
"""


class LakeReader:
    """Reads one lake for one process; remembers what it has read. Not for use from several threads."""

    def __init__(
        self, lake: Lake, objective_of: LagObjective = usual_objective, analysis_interval_seconds: float = 15.0
    ) -> None:
        self._lake = lake
        self._objective_of = objective_of
        self._analysis_interval_seconds = analysis_interval_seconds
        self._duckdb = connected(threads=1, memory_limit="512MB")
        self._versions: dict[str, int | None] = {}
        self._groups: tuple[GroupRow, ...] = ()
        self._ages = UnreadAges()
        self._are_followed = True
        self._collections: Mapping[str, CollectionRow] | None = None
        self._active_before: frozenset[Group] | None = None
        self._storms: dict[Group, Storm] = {}
        self._capacity: dict[Group, tuple[CapacityFinding, ...]] = {}
        self._traits: dict[Group, GroupTraits] = {}
        self._unreadable_since: datetime | None = None

    def close(self) -> None:
        """Let go of the memory."""
        self._duckdb.close()

    def read(self, now: datetime) -> LakeSnapshot:
        """What the lake holds now, or held when it could last be read. Raises nothing that a lake can do wrong."""
        trouble: list[str] = []
        days = (f"{now - _LOOKBACK:%Y-%m-%d}", f"{now + timedelta(days=1):%Y-%m-%d}")
        steps = (
            ((GROUP_STATUS,), self._read_groups),
            ((SAMPLES, TICKS), lambda: self._read_collections(days, now)),
            ((STATUS_CHANGES,), self._read_active),
            ((REBALANCE_STATS,), lambda: self._read_storms(days)),
            ((CAPACITY,), self._read_capacity),
        )
        for tables, read in steps:
            try:
                versions = {table.name: self._lake.version(table) for table in tables}
                if not versions.items() <= self._versions.items():
                    read()
                    self._versions.update(versions)
            except (LakeError, duckdb.Error, OSError) as error:
                for table in tables:
                    self._versions.pop(table.name, None)
                trouble.append(_in_a_line(error))
        if not self._are_followed:
            try:
                self._follow()
            except (LakeError, duckdb.Error, OSError) as error:
                trouble.append(_in_a_line(error))
        self._unreadable_since = (self._unreadable_since or now) if trouble else None
        try:
            self._read_traits(now)
        except (LakeError, duckdb.Error, OSError) as error:
            self._traits = {}
            trouble.append(_in_a_line(error))  # no verdict rests on what groups share: the analysis is not stale
        return LakeSnapshot(
            groups=self._groups,
            groups_are_current=GROUP_STATUS.name in self._versions,
            collections=self._collections,
            active_before=self._active_before,
            storms=self._storms,
            capacity=self._capacity,
            traits=self._traits,
            analysis_unreadable_since=self._unreadable_since,
            trouble=tuple(dict.fromkeys(trouble)),
        )

    def _read_groups(self) -> None:
        self._lake.scan(self._duckdb, GROUP_STATUS)
        self._groups = tuple(
            GroupRow(record_of(row), is_mirrored=row["is_mirrored"]) for row in self._rows(_GROUPS_SQL)
        )
        self._are_followed = False

    def _follow(self) -> None:
        """Mark the groups whose oldest unread record keeps getting older."""
        behind = any(
            (r.numbers.lag_seconds or 0.0) > self._interval_of(r.cluster) for r in (g.record for g in self._groups)
        )
        cadences = read_cadences(self._lake) if behind else {}

        def pace_of(group: Group) -> AgePace:
            return AgePace(self._objective_of(group), self._interval_of(group[0]), cadences.get(group))

        self._groups = tuple(self._ages.follow(self._lake, self._groups, pace_of))
        self._are_followed = True

    def _interval_of(self, cluster: str) -> float:
        """Seconds between samples of a cluster that are judged."""
        row = (self._collections or {}).get(cluster)
        return max(self._analysis_interval_seconds, row.interval_seconds if row else 0.0)

    def _read_collections(self, days: tuple[str, str], now: datetime) -> None:
        self._lake.scan(self._duckdb, SAMPLES, days=days)
        self._lake.scan(self._duckdb, TICKS, days=days)
        rows = list(self._rows(_COLLECTIONS_SQL))
        # Older ones no longer count (`ClusterView.valid_for_seconds`).
        longest = max((row["interval_seconds"] for row in rows), default=0.0) + self._analysis_interval_seconds
        since = now - _LONGEST_SAMPLE - timedelta(seconds=STALE_INTERVALS * longest)
        clusters = {row["cluster"]: cluster_findings(row) for row in self._rows(_CLUSTERS_SQL, [since])}
        self._collections = {
            row["cluster"]: CollectionRow(
                **row | {"errors": tuple(map(_error_words, row["errors"] or ()))},
                findings=clusters.get(row["cluster"]),
            )
            for row in rows
        }

    def _read_active(self) -> None:
        if self._active_before is not None:
            return  # groups that become active from now on are seen in group_status
        self._lake.scan(self._duckdb, STATUS_CHANGES)
        signs = sorted(status.value for status in SIGNS_OF_LIFE)
        self._active_before = frozenset((r["cluster"], r["group"]) for r in self._rows(_ACTIVE_SQL, [signs, signs]))

    def _read_storms(self, days: tuple[str, str]) -> None:
        self._lake.scan(self._duckdb, REBALANCE_STATS, days=days)
        rows = self._rows(STORMS_SQL)
        self._storms = {(r["cluster"], r["group"]): Storm(r["last_at"], r["sentence"]) for r in rows}

    def _read_capacity(self) -> None:
        self._lake.scan(self._duckdb, CAPACITY)
        self._capacity = capacity_by_group(self._rows(CAPACITY_SQL))

    def _read_traits(self, now: datetime) -> None:
        """Read what groups may share while that matters: the tables are large."""
        if not have_got_worse(self._groups):
            self._traits = {}
            self._versions.pop(PARTITION_STATUS.name, None)
            return
        version = self._lake.version(PARTITION_STATUS)
        if self._versions.get(PARTITION_STATUS.name) != version or not self._traits:
            self._lake.scan(self._duckdb, PARTITION_STATUS)
            self._lake.scan(self._duckdb, MEMBERS, since=now - MEMBERS_LOOKBACK)
            self._traits = traits_by_group(self._rows(LEADERS_SQL), self._rows(MEMBERS_SQL, [now - MEMBERS_LOOKBACK]))
            self._versions[PARTITION_STATUS.name] = version

    def _rows(self, sql: str, values: Sequence[object] = ()) -> Iterator[dict[str, Any]]:
        """Rows by the names of their columns."""
        found = self._duckdb.execute(sql, list(values))
        names = [name for name, *_ in found.description or ()]
        return (dict(zip(names, row, strict=True)) for row in found.fetchall())


def _in_a_line(error: Exception) -> str:
    return clean(str(error).strip().split("\n")[0] or type(error).__name__)


def _error_words(error: Mapping[str, Any]) -> str:
    example = clean(str(error.get("example") or ""))[:_LONGEST_EXAMPLE]
    return f"{clean(str(error.get('kind')))} ({error.get('count')}×{': ' + example if example else ''})"
