"""Reads the lake for the alerts: what the analysis says of the groups, and how fresh it and the collection are.

Each table is read only when it has a new version, so a cycle in which nothing happened costs a few file look-ups. What
cannot be read is kept as it was read last, and reported: its age then does the rest.
"""

import logging
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import duckdb

from lagwise.domain.aging import AgePace
from lagwise.domain.findings import FindingKind
from lagwise.domain.vocabulary import SIMPLE, Status, UnknownReason
from lagwise.platform.errors import LakeError
from lagwise.platform.logs import clean
from lagwise.tables import Table
from lagwise.tables.analysis import GROUP_STATUS, STATUS_CHANGES
from lagwise.tables.capacity import CAPACITY
from lagwise.tables.duckdb_connection import connected
from lagwise.tables.membership import REBALANCE_STATS
from lagwise.tables.raw import READ_SOMETHING, SAMPLES
from lagwise.tables.rounds import TICKS
from lagwise.tables.store import Lake
from lagwise_alerts.evaluate.group_facts import CAPACITY_SQL, STORMS_SQL, CapacityRow, Group, capacity_by_group
from lagwise_alerts.evaluate.observation import SIGNS_OF_LIFE, CollectionRow, GroupRow, LakeSnapshot
from lagwise_alerts.evaluate.unread_ages import LagObjective, UnreadAges, read_cadences, usual_objective
from lagwise_alerts.model import Numbers

log = logging.getLogger("lagwise.alerts")

#: How far back samples and ticks are looked for. What is older is as stale as what never was.
_LOOK_BACK = timedelta(days=2)
#: An error's example is a stranger's text of any length.
_LONGEST_EXAMPLE = 200

_NUMBERS = (
    "lag",
    "lag_seconds",
    "lag_seconds_is_lower_bound",
    "produce_rate_per_second",
    "consume_rate_per_second",
    "seconds_to_catch_up",
    "seconds_to_loss",
    "seconds_to_loss_is_upper_bound",
    "loss_cause",
    "records_lost",
    "transaction_seconds",
    "members",
    "worst_topic",
    "worst_partition",
    "stands_still",
    "known_partitions",
)

_GROUPS_SQL = f"""
with counted as (
    select *,
        list_sum([s.partitions for s in partitions_by_status if s.status not in ('unknown', 'ghost')])
            as known_partitions,
        list_sum([s.partitions for s in partitions_by_status if s.status = 'ghost']) as ghost_partitions
    from group_status
)
select cluster, "group", as_of, status, reason, since, sentence, commits_seen,
    coalesce(type = '{SIMPLE}', false)
        and coalesce(bool_or(type <> '{SIMPLE}') over (partition by "group"), false) as is_mirrored,
    findings, idle_members, ghost_partitions, topics,
    {", ".join(_NUMBERS)}
from counted
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
    max(finished_at) filter (where written_at <= read_until) as judged_until,
    min(written_at) filter (where read_until is null or written_at > read_until) as unread_since
from runs
group by cluster
"""  # noqa: S608 (a condition of our own)

_ACTIVE_SQL = """
select distinct cluster, "group"
from status_changes
where topic is null and (before in (select unnest(?)) or after in (select unnest(?)))
"""


_STATUSES = {status.value: status for status in Status}
_FINDINGS = {kind.value: kind for kind in FindingKind}
_REASONS = {reason.value: reason for reason in UnknownReason}


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
        self._active_before: frozenset[tuple[str, str]] | None = None
        self._storms: dict[Group, tuple[datetime, str]] = {}
        self._capacity: dict[Group, tuple[CapacityRow, ...]] = {}
        self._unreadable_since: datetime | None = None

    def close(self) -> None:
        """Let go of the memory."""
        self._duckdb.close()

    def read(self, now: datetime) -> LakeSnapshot:
        """What the lake holds now, or held when it could last be read. Raises nothing that a lake can do wrong."""
        trouble: list[str] = []
        days = (f"{now - _LOOK_BACK:%Y-%m-%d}", f"{now + timedelta(days=1):%Y-%m-%d}")
        steps = (
            ((GROUP_STATUS,), self._read_groups),
            ((SAMPLES, TICKS), lambda: self._read_collections(days)),
            ((STATUS_CHANGES,), self._read_active),
            ((REBALANCE_STATS,), lambda: self._read_storms(days)),
            ((CAPACITY,), self._read_capacity),
        )
        for tables, read in steps:
            try:
                if self._is_new(tables):
                    read()
                    self._versions.update(self._found)
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
        return LakeSnapshot(
            groups=self._groups,
            groups_are_current=GROUP_STATUS.name in self._versions,
            collections=self._collections,
            active_before=self._active_before,
            storms=self._storms,
            capacity=self._capacity,
            analysis_unreadable_since=self._unreadable_since,
            trouble=tuple(dict.fromkeys(trouble)),
        )

    def _is_new(self, tables: tuple[Table, ...]) -> bool:
        self._found = {table.name: self._lake.version(table) for table in tables}
        if tables == (STATUS_CHANGES,) and self._active_before is not None:
            return False  # what happens from now on is seen in group_status
        return any(self._versions.get(name, -1) != version for name, version in self._found.items())

    def _read_groups(self) -> None:
        self._lake.scan(self._duckdb, GROUP_STATUS)
        self._groups = tuple(_group_row(row) for row in self._duckdb.execute(_GROUPS_SQL).fetchall())
        self._are_followed = False

    def _follow(self) -> None:
        """Mark the groups whose oldest unread record keeps getting older."""
        behind = any((row.numbers.lag_seconds or 0.0) > self._interval_of(row.cluster) for row in self._groups)
        cadences = read_cadences(self._lake) if behind else {}

        def pace_of(group: Group) -> AgePace:
            return AgePace(self._objective_of(group), self._interval_of(group[0]), cadences.get(group))

        self._groups = tuple(self._ages.follow(self._lake, self._groups, pace_of))
        self._are_followed = True

    def _interval_of(self, cluster: str) -> float:
        """Seconds between samples of a cluster that are judged."""
        row = (self._collections or {}).get(cluster)
        return max(self._analysis_interval_seconds, row.interval_seconds if row else 0.0)

    def _read_collections(self, days: tuple[str, str]) -> None:
        self._lake.scan(self._duckdb, SAMPLES, days=days)
        self._lake.scan(self._duckdb, TICKS, days=days)
        rows = self._duckdb.execute(_COLLECTIONS_SQL).fetchall()
        self._collections = {row[0]: _collection_row(row) for row in rows}

    def _read_active(self) -> None:
        self._lake.scan(self._duckdb, STATUS_CHANGES)
        signs = sorted(status.value for status in SIGNS_OF_LIFE)
        self._active_before = frozenset(self._duckdb.execute(_ACTIVE_SQL, [signs, signs]).fetchall())

    def _read_storms(self, days: tuple[str, str]) -> None:
        self._lake.scan(self._duckdb, REBALANCE_STATS, days=days)
        rows = self._duckdb.execute(STORMS_SQL).fetchall()
        self._storms = {(cluster, group): (_utc(last_at), sentence) for cluster, group, last_at, sentence in rows}

    def _read_capacity(self) -> None:
        self._lake.scan(self._duckdb, CAPACITY)
        self._capacity = capacity_by_group(self._duckdb.execute(CAPACITY_SQL).fetchall())


def _in_a_line(error: Exception) -> str:
    return clean(str(error).strip().split("\n")[0] or type(error).__name__)


def _utc(value: Any) -> datetime:
    at: datetime = value
    return at.astimezone(UTC)


def _utc_or_none(value: Any) -> datetime | None:
    return None if value is None else _utc(value)


def _group_row(row: tuple[Any, ...]) -> GroupRow:
    cluster, group, as_of, status, reason, since, sentence, commits_seen, is_mirrored, *rest = row
    findings, idle_members, ghost_partitions, topics, *numbers = rest
    known = [None if isinstance(n, float) and not math.isfinite(n) else n for n in numbers]
    return GroupRow(
        cluster=cluster,
        group=group,
        as_of=_utc(as_of),
        # A word that this version does not know is not a verdict it can act on.
        status=_STATUSES.get(status, Status.UNKNOWN),
        reason=_REASONS.get(reason),
        since=_utc(since),
        sentence=sentence,
        commits_seen=commits_seen or 0,
        is_mirrored=is_mirrored,
        findings=_findings(findings),
        idle_members=idle_members,
        ghost_partitions=ghost_partitions or 0,
        topics=tuple(topics or ()),
        numbers=Numbers(*known),
    )


def _findings(rows: Sequence[Mapping[str, str]]) -> dict[FindingKind, str]:
    """The sentences by kind; a kind that this version does not know is none it can act on."""
    found: dict[FindingKind, str] = {}
    for row in rows:
        kind = _FINDINGS.get(row["kind"])
        if kind is not None:
            found[kind] = f"{found[kind]} {row['sentence']}" if kind in found else row["sentence"]
    return found


def _collection_row(row: tuple[Any, ...]) -> CollectionRow:
    cluster, newest_at, interval_seconds, errors, judged_until, unread_since = row
    return CollectionRow(
        cluster=cluster,
        newest_at=_utc_or_none(newest_at),
        interval_seconds=float(interval_seconds),
        errors=tuple(_error_words(error) for error in errors or ()),
        judged_until=_utc_or_none(judged_until),
        unread_since=_utc_or_none(unread_since),
    )


def _error_words(error: Mapping[str, Any]) -> str:
    example = clean(str(error.get("example") or ""))[:_LONGEST_EXAMPLE]
    return f"{clean(str(error.get('kind')))} ({error.get('count')}×{': ' + example if example else ''})"
