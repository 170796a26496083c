"""The monitor's own health: how old the data is, what went wrong on the way, and what it costs."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc
from deltalake.exceptions import DeltaError

from lagwise.platform.errors import LakeError
from lagwise.tables import ALL_TABLES
from lagwise.tables.analysis import GROUP_STATUS
from lagwise.tables.engine_errors import in_a_line
from lagwise.tables.quarantine import DAMAGED_FILES, QuarantinedFiles, quarantined_files
from lagwise.tables.raw import READ_SOMETHING, SAMPLES
from lagwise.tables.rounds import TICKS
from lagwise.tables.schema import Table
from lagwise.tables.store import Lake
from lagwise_dashboard.queries.base import Row, bucket_seconds, days, reads, rows, run

#: Within this time the newest sample and tick are looked for first; only where there is none, in the whole table.
_RECENT = timedelta(days=1)
#: How long a round takes is the median of so many: a single slow one is no trouble.
_ROUNDS = 20
_NEWEST_ROUNDS = """
    select arg_max(recent, finished_at) as newest, median(wall_seconds) as wall_seconds
    from (select * from ticks order by finished_at desc limit $rounds) recent
"""
_NEWEST_JUDGED = "select cluster, max(as_of) as as_of from group_status group by cluster"
MAX_CLUSTERS = 1000
MAX_ERRORS = 200


@dataclass(frozen=True, slots=True)
class Newest:
    """The newest sample of each cluster, and the newest finished tick (None: the analysis never finished one).

    ``read_at`` of a sample is the end of the newest one of its cluster that read anything (null: none ever did).
    ``tick_seconds`` is the median duration of the last rounds, ``as_of`` the newest judged sample of each cluster.
    ``first_sample_at`` is the beginning of the first sample of the last day or two. ``trouble`` is why rounds or judged
    samples are unknown: one line for each table that cannot be read.
    """

    samples: tuple[Row, ...]
    tick: Row | None
    tick_seconds: float | None
    as_of: Mapping[str, datetime]
    first_sample_at: datetime | None
    trouble: tuple[str, ...] = ()


@reads(SAMPLES, TICKS, GROUP_STATUS)
def newest(lake: Lake, now_day: datetime) -> Newest:
    """What is newest in the lake. ``now_day`` is the present moment cut to the day, UTC.

    Raises LakeError if the samples cannot be read: without them nothing else means anything.
    """
    recent = days(now_day - _RECENT, now_day + _RECENT)
    samples = f"""
        select arg_max(samples, finished_at) as newest, max(finished_at) filter ({READ_SOMETHING}) as read_at,
            min(started_at) as first_at
        from samples group by cluster order by cluster limit $limit
    """  # noqa: S608 (a condition of our own)
    result = rows(lake, {SAMPLES: recent}, samples, {"limit": MAX_CLUSTERS})
    if not any(r["read_at"] for r in result):
        result = rows(lake, {SAMPLES: None}, samples, {"limit": MAX_CLUSTERS})
    trouble: list[str] = []
    rounds: Row = {"newest": None, "wall_seconds": None}
    try:
        (rounds,) = rows(lake, {TICKS: recent}, _NEWEST_ROUNDS, {"rounds": _ROUNDS})
        if rounds["newest"] is None:
            (rounds,) = rows(lake, {TICKS: None}, _NEWEST_ROUNDS, {"rounds": _ROUNDS})
    except LakeError as error:
        trouble.append(str(error))
    judged: list[Row] = []
    try:
        judged = rows(lake, {GROUP_STATUS: None}, _NEWEST_JUDGED)
    except LakeError as error:
        trouble.append(str(error))
    return Newest(
        tuple({**r["newest"], "read_at": r["read_at"]} for r in result),
        rounds["newest"],
        rounds["wall_seconds"],
        {r["cluster"]: r["as_of"] for r in judged},
        min((r["first_at"] for r in result), default=None),
        tuple(trouble),
    )


@reads(DAMAGED_FILES)
def damaged(lake: Lake) -> list[QuarantinedFiles]:
    """By table, the quarantined files."""
    return quarantined_files(lake)


@reads(SAMPLES)
def runs(lake: Lake, since: datetime, until: datetime) -> list[Row]:
    """Per cluster, the collection runs of a span: how many, how long, how far apart, and how many had errors.

    ``missing`` are those that were due between the first and the last, and are not there.
    """
    return rows(
        lake,
        {SAMPLES: days(since, until)},
        """
        select cluster, any_value(system) as system, count(*) as runs,
            count(*) filter (len(errors) > 0) as runs_with_errors,
            median(wall_seconds) as median_seconds, max(wall_seconds) as longest_seconds,
            arg_max(interval_seconds, finished_at) as interval_seconds,
            greatest(0, 1 - count(*) + coalesce(round(
                epoch(max(started_at) - min(started_at)) / nullif(max(interval_seconds), 0)
            ), 0))::bigint as missing
        from samples where started_at between $since and $until
        group by cluster order by cluster limit $limit
        """,
        {"since": since, "until": until, "limit": MAX_CLUSTERS},
    )


@reads(SAMPLES)
def durations(lake: Lake, since: datetime, until: datetime) -> pa.Table:
    """Longest collection run per cluster and bucket, at most 400 buckets; the clusters with the longest
    runs, at most 20."""
    return run(
        lake,
        {SAMPLES: days(since, until)},
        """
        with slowest as (
            select cluster from samples where started_at between $since and $until
            group by cluster order by max(wall_seconds) desc limit 20
        )
        select cluster, max(finished_at) as "at", max(wall_seconds) as wall_seconds
        from samples semi join slowest using (cluster)
        where started_at between $since and $until
        group by cluster, floor(epoch(finished_at) / $width) order by cluster, "at"
        """,
        {"since": since, "until": until, "width": bucket_seconds(since, until)},
    )


@reads(SAMPLES)
def errors(lake: Lake, since: datetime, until: datetime) -> list[Row]:
    """Errors of the span's collection runs, per cluster and kind, latest first. ``count`` is null where the reader does
    not see all groups of the cluster."""
    return rows(
        lake,
        {SAMPLES: days(since, until)},
        """
        with each as (select cluster, finished_at, unnest(errors) as error from samples
            where started_at between $since and $until)
        select cluster, error.kind as kind, sum(error.count)::bigint as "count", count(*) as runs,
            max(finished_at) as last_at, arg_max(error.example, finished_at) as example
        from each group by cluster, error.kind order by last_at desc, "count" desc limit $limit
        """,
        {"since": since, "until": until, "limit": MAX_ERRORS},
    )


@reads(TICKS)
def ticks(lake: Lake, since: datetime, until: datetime) -> pa.Table:
    """The analysis' rounds: longest per bucket, at most 400."""
    return run(
        lake,
        {TICKS: days(since, until)},
        """
        select max(finished_at) as "at", max(wall_seconds) as wall_seconds, sum(samples)::bigint as samples
        from ticks where finished_at between $since and $until
        group by floor(epoch(finished_at) / $width) order by "at"
        """,
        {"since": since, "until": until, "width": bucket_seconds(since, until)},
    )


@reads(*ALL_TABLES)
def sizes(lake: Lake) -> list[Row]:
    """Per table: bytes, rows and files of its newest version, and the most files of any day.

    ``loose_files`` is null for tables that are not compacted, because each round replaces them. ``trouble`` is why a
    table cannot be read; null where it can, or is not there yet.
    """
    nothing = dict.fromkeys(("bytes", "rows", "files", "loose_files", "trouble"))
    return [{"table": t.path, "rows_mean": t.rows, **nothing, **_size(lake, t)} for t in ALL_TABLES]


def _size(lake: Lake, table: Table) -> Row:
    """What can be said of the size of a table."""
    try:
        delta = lake.open(table)
        if delta is None:
            return {}
        actions = pa.table(delta.get_add_actions(flatten=True))
    except (LakeError, DeltaError) as error:
        return {"trouble": in_a_line(error)}
    files_by_day = Counter(actions["partition.day"].to_pylist()) if table.partitioned else None
    return {
        "bytes": pc.sum(actions["size_bytes"]).as_py() or 0,
        "rows": pc.sum(actions["num_records"]).as_py() or 0,
        "files": actions.num_rows,
        "loose_files": None if files_by_day is None else max(files_by_day.values(), default=0),
    }
