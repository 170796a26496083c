"""The queries of the terminal: groups worst first, the partitions of a group, and how fresh the data is."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from lagwise.config import Config
from lagwise.domain.staleness import DataAge, age_seconds, allowed_age_seconds
from lagwise.domain.vocabulary import display_rank
from lagwise.platform.error_codes import ErrorCode
from lagwise.platform.errors import LagwiseError
from lagwise.platform.logs import clean
from lagwise.platform.program import program
from lagwise.tables.analysis import GROUP_STATUS, PARTITION_STATUS, STATUS_CHANGES
from lagwise.tables.arrow_values import rows_of
from lagwise.tables.raw import READ_SOMETHING, SAMPLES
from lagwise.tables.rounds import TICKS
from lagwise.tables.schema import Table
from lagwise.tables.store import Lake

_GROUP_COLUMNS = tuple(column.name for column in GROUP_STATUS.columns)
#: The columns of a partition that are shown, in the order of `lagwise lag --json`.
PARTITION_COLUMNS = (
    "topic", "partition", "log_start", "committed", "high_watermark", "lag", "lag_seconds",
    "lag_seconds_is_lower_bound", "status", "reason", "reasons", "since", "produce_rate_per_second",
    "consume_rate_per_second", "seconds_to_catch_up", "seconds_to_catch_up_low", "seconds_to_catch_up_high",
    "seconds_to_breach", "seconds_to_breach_low", "seconds_to_breach_high", "seconds_to_loss",
    "seconds_to_loss_is_upper_bound", "loss_cause", "records_lost", "lost_at_least", "lost_at_most", "first_lost_at",
    "last_lost_at", "transaction_seconds", "owner", "client_id", "host",
)  # fmt: skip
_JUDGED = "select cluster, max(as_of) as as_of from group_status group by cluster"
_SAMPLED = f"""
    select cluster, read_at, interval_seconds, errors from (
        select cluster, interval_seconds, errors,
            max(case when {READ_SOMETHING} then finished_at end) over (partition by cluster) as read_at,
            row_number() over (partition by cluster order by finished_at desc) as place
        from samples
    ) newest where place = 1
"""  # noqa: S608 (a condition of our own)
_ANALYZED = "select max(finished_at) as at from ticks"


@dataclass(frozen=True, slots=True)
class ClusterFreshness:
    """How old the data about one cluster is. Times and ages are None where nothing has happened yet."""

    cluster: str
    #: The newest sample that was analysed.
    as_of: datetime | None
    age_seconds: float | None
    stale: bool
    #: The newest sample that read anything.
    sampled_at: datetime | None
    sample_age_seconds: float | None
    #: Number of errors of the newest sample, by kind.
    errors: dict[str, int]


@dataclass(frozen=True, slots=True)
class LakeFreshness:
    """How old the data is."""

    #: That of the cluster with the oldest data.
    as_of: datetime | None
    age_seconds: float | None
    #: Whether the data of any cluster is stale.
    stale: bool
    #: The end of the last round of the analysis.
    analyzed_at: datetime | None
    analysis_age_seconds: float | None
    clusters: tuple[ClusterFreshness, ...]


def freshness(lake: Lake, config: Config, now: datetime, only: Collection[str] = ()) -> LakeFreshness:
    """How old the data is at ``now``, and whether that is more than the intervals of collector and analysis explain.

    Covers the clusters in the settings and those that have been analysed, or ``only`` these of them.
    """
    judged = {r["cluster"]: r["as_of"] for r in _selected(lake, GROUP_STATUS, _JUDGED)}
    intervals = {cluster.name: cluster.interval_seconds for cluster in config.clusters}
    samples = _newest_samples(lake, {*judged, *intervals}, now)
    analyzed_at = _analyzed_at(lake, now)
    clusters = []
    for name in sorted({*judged, *(intervals or samples)}):
        if only and name not in only:
            continue
        sample = samples.get(name, {"read_at": None, "interval_seconds": intervals.get(name, 15.0), "errors": None})
        allowed = allowed_age_seconds(sample["interval_seconds"], config.analysis.interval_seconds)
        age = DataAge(judged.get(name), now, allowed)
        clusters.append(
            ClusterFreshness(
                cluster=name,
                as_of=age.at,
                age_seconds=age.seconds,
                stale=age.is_stale,
                sampled_at=sample["read_at"],
                sample_age_seconds=age_seconds(sample["read_at"], now),
                errors={error["kind"]: error["count"] for error in sample["errors"] or ()},
            )
        )
    as_of = min((c.as_of for c in clusters if c.as_of is not None), default=None)
    return LakeFreshness(
        as_of=as_of,
        age_seconds=age_seconds(as_of, now),
        stale=not clusters or any(c.stale for c in clusters),
        analyzed_at=analyzed_at,
        analysis_age_seconds=age_seconds(analyzed_at, now),
        clusters=tuple(clusters),
    )


def groups(lake: Lake) -> list[dict[str, Any]]:
    """All groups as ``group_status`` has them, worst first; among equals the one whose oldest record is older."""
    rows = _selected(lake, GROUP_STATUS, f"select {_listed(_GROUP_COLUMNS)} from group_status")  # noqa: S608 (own)
    for row in rows:
        row["partitions_by_status"] = {c["status"]: c["partitions"] for c in row["partitions_by_status"]}
    return sorted(rows, key=worst_first)


def worst_first(row: Mapping[str, Any]) -> tuple[float, float, str, str]:
    """The order of groups; among equals the one whose oldest unread record is older comes first."""
    age = row["lag_seconds"]
    return display_rank(row["status"]), -(age if age is not None else -1.0), row["cluster"], row["group"]


def group(lake: Lake, name: str, cluster: str | None) -> dict[str, Any]:
    """The row of one group. Raises LagwiseError where there is none, or one in several clusters."""
    found = [r for r in groups(lake) if r["group"] == name and cluster in (None, r["cluster"])]
    if not found and lake.open(GROUP_STATUS) is None:
        raise LagwiseError(
            f"the lake {clean(lake.uri)} has no results: no analysis has written to it yet", code=ErrorCode.NO_RESULTS
        )
    if not found:
        where = f" in cluster {clean(cluster)}" if cluster else ""
        raise LagwiseError(
            f"no group {clean(name)!r}{where} has been analysed; `{program()} status --all` lists the groups",
            code=ErrorCode.UNKNOWN_NAME,
        )
    if len(found) > 1:
        names = ", ".join(sorted(r["cluster"] for r in found))
        raise LagwiseError(
            f"group {clean(name)!r} is in several clusters ({clean(names)}): choose one with --cluster",
            code=ErrorCode.AMBIGUOUS_NAME,
        )
    return found[0]


def partitions(lake: Lake, name: str, cluster: str) -> list[dict[str, Any]]:
    """What is shown of the partitions of one group, by topic and partition."""
    question = f"""
        select {_listed(PARTITION_COLUMNS)} from partition_status where "group" = ? and cluster = ?
        order by topic, partition
    """  # noqa: S608 (own)
    return rows_of(lake.query(question, [name, cluster], over=[PARTITION_STATUS]))


def status_changes(lake: Lake) -> list[dict[str, Any]]:
    """Changes of whole groups, oldest first."""
    question = 'from status_changes where topic is null order by "at"'
    return rows_of(lake.query(question, over=[STATUS_CHANGES]))


def _listed(columns: Iterable[str]) -> str:
    return ", ".join(f'"{column}"' for column in columns)


def _newest_samples(lake: Lake, clusters: Collection[str], now: datetime) -> dict[str, dict[str, Any]]:
    """By cluster: when it was last read, and the interval and errors of its newest sample."""
    found: dict[str, dict[str, Any]] = {}
    for since in _search_steps(now):
        found = {row["cluster"]: row for row in _selected(lake, SAMPLES, _SAMPLED, since=since)}
        if found and all(name in found and found[name]["read_at"] is not None for name in {*clusters, *found}):
            break
    return found


def _analyzed_at(lake: Lake, now: datetime) -> datetime | None:
    newest = (row["at"] for since in _search_steps(now) for row in _selected(lake, TICKS, _ANALYZED, since=since))
    return next((at for at in newest if at is not None), None)


def _search_steps(now: datetime) -> tuple[datetime | None, ...]:
    """How far back the newest row is searched for, step by step until there is one; None is everything."""
    return now - timedelta(hours=1), now - timedelta(days=1), None


def _selected(lake: Lake, table: Table, question: str, *, since: datetime | None = None) -> list[dict[str, Any]]:
    found = lake.select(question, table, since=since)
    return [] if found is None else rows_of(found)
