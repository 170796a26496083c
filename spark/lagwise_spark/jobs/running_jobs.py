"""Findings about the jobs that read for groups, from the collector's own table: the driver does it."""

from collections.abc import Sequence
from datetime import timedelta
from itertools import pairwise
from statistics import fmean
from typing import Any

from lagwise.domain.findings import Finding
from lagwise.domain.job_findings import JobLoad, VertexLoad, job_findings
from lagwise.domain.sizing.task_slots import free_of
from lagwise.tables.raw import GROUPS
from lagwise.tables.service_times import JOBS
from lagwise.tables.store import Lake
from lagwise_spark.jobs.progress import News

#: Over how long the load of a vertex is told: less is a burst.
LOAD_WINDOW = timedelta(minutes=5)
#: Over how long checkpoints are counted.
CHECKPOINT_WINDOW = timedelta(hours=1)

_MEASURED = ("busy_share", "backpressured_share", "records_in_per_second", "records_out_per_second")

Row = dict[str, Any]


def of_jobs(lake: Lake, news: Sequence[News]) -> dict[tuple[str, str], list[Finding]]:
    """Findings by cluster and group, of the jobs that each cluster's latest sample shows to run."""
    start = min(n.as_of for n in news) - CHECKPOINT_WINDOW
    rows = lake.query(
        """
        select j.*, g.checkpoint_interval_seconds
        from jobs j join groups g using (sample_id, cluster, "group")
        where j.sampled_at >= ? order by j.sampled_at
        """,
        [start],
        over=[JOBS, GROUPS],
        since=start,
    ).to_pylist()
    latest = {n.cluster: n.latest_id for n in news}
    running = {_job(row): row for row in rows if row["sample_id"] == latest.get(row["cluster"])}
    by_job: dict[tuple[str, str, str], list[Row]] = {key: [] for key in running}
    for row in rows:
        if _job(row) in running and row["sampled_at"] <= running[_job(row)]["sampled_at"]:
            by_job[_job(row)].append(row)
    found = {key[:2]: job_findings(_load(running[key], its)) for key, its in by_job.items()}
    return {group: findings for group, findings in found.items() if findings}


def _job(row: Row) -> tuple[str, str, str]:
    return row["cluster"], row["group"], row["job_id"]


def _load(now: Row, rows: Sequence[Row]) -> JobLoad:
    lately = [row for row in rows if row["sampled_at"] > now["sampled_at"] - LOAD_WINDOW]
    by_name: dict[str, list[Row]] = {}
    for row in lately:
        for vertex in row["vertices"]:
            by_name.setdefault(vertex["name"], []).append(vertex)
    return JobLoad(
        now["job"],
        [_vertex(vertex, by_name[vertex["name"]]) for vertex in now["vertices"]],
        now["checkpoint_interval_seconds"],
        now["checkpoint_duration_seconds"],
        _grown(rows, "checkpoints_completed"),
        _grown(rows, "checkpoints_failed"),
        free_of(now["slots_total"], now["slots_free"]),
    )


def _vertex(now: Row, seen: Sequence[Row]) -> VertexLoad:
    busy, waits, taken, handed_on = (_mean(v[what] for v in seen) for what in _MEASURED)
    return VertexLoad(now["name"], now["parallelism"], busy, waits, taken or handed_on)


def _mean(values: Any) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _grown(rows: Sequence[Row], counter: str) -> int:
    """By how much a counter grew, beginning anew wherever it fell."""
    values = [row[counter] for row in rows if row[counter] is not None]
    return sum(b - a if b >= a else b for a, b in pairwise(values))
