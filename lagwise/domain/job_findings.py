"""Findings about the job that reads for a group: the vertex that bounds it, and how its checkpoints go."""

from collections.abc import Sequence
from dataclasses import dataclass

from lagwise.domain.findings import Finding, FindingKind
from lagwise.domain.humanise import duration, plural, rate

#: A vertex that is busy for this share of the time can hardly do more.
BUSY_SHARE = 0.9
#: Vertices that wait for it for less than this share of the time are not mentioned.
BACKPRESSURED_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class VertexLoad:
    """What a vertex did over some minutes: means of its subtasks. None is not known."""

    name: str
    #: Its subtasks.
    parallelism: int
    #: Share of their time in which they worked.
    busy_share: float | None
    #: Share of their time in which they waited for a later vertex.
    backpressured_share: float | None
    #: Records that all of them took; of a source, that they handed on.
    records_per_second: float | None


@dataclass(frozen=True, slots=True)
class JobLoad:
    """A running job. None is not known."""

    name: str
    vertices: Sequence[VertexLoad]
    checkpoint_interval_seconds: float | None = None
    #: How long the last checkpoint took.
    checkpoint_duration_seconds: float | None = None
    #: Of the last hour.
    checkpoints_completed: int = 0
    #: Of the last hour.
    checkpoints_failed: int = 0
    #: Task slots of its cluster that no job has.
    slots_free: int | None = None


def job_findings(job: JobLoad) -> list[Finding]:
    """The vertex that bounds the job, where one does; checkpoints that fail or take longer than they are apart."""
    return [*_bottleneck(job), *_checkpoints(job)]


def _bottleneck(job: JobLoad) -> list[Finding]:
    busiest = max(job.vertices, key=lambda v: v.busy_share or 0.0, default=None)
    if busiest is None or busiest.busy_share is None or busiest.busy_share < BUSY_SHARE:
        return []
    does = ""
    if busiest.records_per_second:
        most = busiest.records_per_second / busiest.busy_share
        does = f" with {rate(busiest.records_per_second)} records/s, so it can do about {rate(most)} at most"
    held = [v for v in job.vertices if v is not busiest and (v.backpressured_share or 0.0) >= BACKPRESSURED_SHARE]
    waits = max(held, key=lambda v: v.backpressured_share or 0.0, default=None)
    slots = ""
    if job.slots_free is not None:
        slots = f" {plural(job.slots_free, 'task slot')} of its cluster {'is' if job.slots_free == 1 else 'are'} free."
    behind = f", and {waits.name} waits for it {_percent(waits.backpressured_share)} of the time" if waits else ""
    return [
        Finding(
            FindingKind.JOB,
            f"The vertex {busiest.name} of the job {job.name} ({plural(busiest.parallelism, 'subtask')}) is busy "
            f"{_percent(busiest.busy_share)} of the time{does}; that bounds the job{behind}.",
            "Give that vertex more subtasks, or make a record cheaper there. Sources can use no more subtasks than "
            f"their topics have partitions.{slots}",
        )
    ]


def _checkpoints(job: JobLoad) -> list[Finding]:
    """A few failed checkpoints among many completed ones are normal: they happen at every start."""
    remedy = (
        "Nothing is committed until a checkpoint completes, and a restart reads again all that came since the last "
        "one. Checkpoints are slow where records wait in front of a busy vertex; unaligned ones do not wait for those."
    )
    if job.checkpoints_failed > job.checkpoints_completed:
        ended = plural(job.checkpoints_failed, "checkpoint")
        well = f"{job.checkpoints_completed} completed" if job.checkpoints_completed else "none completed"
        return [Finding(FindingKind.JOB, f"{ended} of the job {job.name} failed within the hour, {well}.", remedy)]
    took, due = job.checkpoint_duration_seconds, job.checkpoint_interval_seconds
    if took is not None and due is not None and took > due:
        said = f"The last checkpoint of the job {job.name} took {duration(took)}, and one is due every {duration(due)}."
        return [Finding(FindingKind.JOB, said, remedy)]
    return []


def _percent(share: float | None) -> str:
    return f"{round(100 * (share or 0.0))} %"
