"""The jobs of a Flink cluster that read Kafka: who runs, what they have committed, and whether they make checkpoints.

A Flink job has no members in its consumer group, and commits to it, if at all, what a completed checkpoint holds. So
the job is the owner of what its sources read. What it has committed to Kafka, Kafka tells. Where it commits nothing
there (``commit.offsets.on.checkpoint`` off), the offsets that its sources had reached before the last completed
checkpoint was triggered are surely in that checkpoint: a lower bound, from the looks before. How far the sources are
*now* is not used: records wait inside a job, and when it is overloaded all of them do, while each of its lag metrics
says 0.
"""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Any

from lagwise.config import FlinkJobs
from lagwise.domain.vocabulary import RUNNING, Engine
from lagwise_collectors.external_offsets.flink_rest import FlinkRest, Offsets
from lagwise_collectors.external_offsets.flink_vertices import Vertices
from lagwise_collectors.external_offsets.model import (
    FoundOffsets,
    GroupFound,
    Job,
    Offset,
    Trouble,
    group_named,
    offset_of,
)

#: States in which a job will not run again.
_ENDED = frozenset({"FINISHED", "CANCELED", "FAILED", "SUSPENDED"})
#: Looks that are remembered of a job whose next checkpoint is not completed yet.
_MOST_LOOKS = 240


@dataclass(slots=True)
class _Memory:
    """What is known of a job from look to look: what it reads, and where its sources were when, in Flink's ms."""

    partitions: set[tuple[str, int]] = field(default_factory=set)
    looks: deque[tuple[int, Offsets]] = field(default_factory=deque)
    interval_seconds: float | None = None
    interval_is_known: bool = False
    vertices: Vertices = field(default_factory=Vertices)

    def look(self, at_ms: int, current: Offsets) -> None:
        """Remember where the sources were at the latest at this time."""
        self.looks.append((at_ms, {key: offset + 1 for key, offset in current.items() if offset >= 0}))
        if len(self.looks) > _MOST_LOOKS:
            self.looks = deque(list(self.looks)[::2])

    def in_checkpoint(self, triggered_ms: int) -> Offsets:
        """What is surely in a checkpoint that was triggered then: the next offsets to be read."""
        while len(self.looks) > 1 and self.looks[1][0] <= triggered_ms:
            self.looks.popleft()
        at_ms, offsets = self.looks[0] if self.looks else (triggered_ms + 1, {})
        return offsets if at_ms <= triggered_ms else {}


class FlinkReader:
    """Reads one Flink cluster."""

    def __init__(self, settings: FlinkJobs, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._settings = settings
        self._clock = clock
        self._rest = FlinkRest(settings)
        self._memory: dict[str, _Memory] = {}

    def read(self) -> FoundOffsets:
        """A group per job that reads Kafka; of several jobs of one group the one that runs, or was started last.

        A job that cannot be read costs only its own group.
        """
        with self._rest.connected():
            return self._read()

    def _read(self) -> FoundOffsets:
        until = monotonic() + self._settings.timeout_seconds
        jobs = self._rest.jobs()
        self._memory = {jid: memory for jid, memory in self._memory.items() if jid in {job["jid"] for job in jobs}}
        found = FoundOffsets()
        for name, job in self._of_groups(jobs).items():
            try:
                group = self._group(name, job)
            except Trouble as trouble:
                found.spoil(name, Engine.FLINK, trouble)
                continue
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                found.spoil(
                    name, Engine.FLINK, Trouble("malformed", f"the answers about the job {name!r:.80}: {error}")
                )
                continue
            if group is not None:
                found.groups[name] = group
        self._add_task_slots(found, until)
        return found

    def _add_task_slots(self, found: FoundOffsets, until: float) -> None:
        """Let the jobs that run know the cluster's task slots. Whatever is wrong with that costs no more than these: it
        is asked last, and half of the time that is left is kept for handing on what was found."""
        jobs = [group for group in found.groups.values() if group.job is not None]
        if not jobs:
            return
        try:
            total, free = self._rest.task_slots(within_seconds=max(0.0, until - monotonic()) / 2)
        except Trouble as trouble:
            found.errors.note(trouble.kind, str(trouble))
            return
        for group in jobs:
            assert group.job is not None
            group.job = replace(group.job, slots_total=total, slots_free=free)

    def _of_groups(self, jobs: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
        """The job that stands for each group."""
        chosen: dict[str, dict[str, Any]] = {}
        for job in sorted(jobs, key=lambda job: (job.get("state") == RUNNING, job.get("start-time") or 0)):
            try:
                called = str(job.get("name"))
                chosen[group_named(self._settings.jobs.get(called, called))] = job
            except ValueError:
                continue  # nameless, or with a name that no group can have: the settings can give it one
        return chosen

    def _group(self, name: str, job: Mapping[str, Any]) -> GroupFound | None:
        """The job as a group; None where it does not read Kafka, as far as anybody can tell."""
        jid, state = str(job["jid"]), str(job["state"])
        if state != RUNNING:
            memory = self._memory.get(jid)
            left = [Offset(topic, partition, None) for topic, partition in sorted(memory.partitions)] if memory else []
            # Of one that is being restarted it is known what it reads: it is not gone.
            return GroupFound(name, Engine.FLINK, state, offsets=[] if state in _ENDED else left)
        asked = monotonic()
        details = self._rest.get(f"jobs/{jid}")
        sources = [str(node["id"]) for node in details["plan"]["nodes"] if not node.get("inputs")]
        current, committed = self._rest.offsets(jid, sources)
        memory = self._memory.setdefault(jid, _Memory())
        if not current and not committed:
            if memory.partitions:
                raise Trouble("missing", f"Flink has no metrics of the Kafka source of {name!r:.80} at the moment")
            return None
        memory.partitions = current.keys() | committed.keys()
        if not memory.interval_is_known:
            memory.interval_seconds = self._rest.checkpoint_interval_seconds(jid)
            memory.interval_is_known = True
        checkpoints = self._rest.get(f"jobs/{jid}/checkpoints", absent={})
        # The sources were there by now at the latest: Flink's clock when it answered first, and the time since.
        now_ms = int(details["now"]) + int((monotonic() - asked) * 1000) + 1
        memory.look(now_ms, current)
        latest = checkpoints.get("latest") or {}
        completed = latest.get("completed")
        surely = memory.in_checkpoint(int(completed["trigger_timestamp"])) if completed else {}
        ages_ms = [
            int(at["latest_ack_timestamp"] if "latest_ack_timestamp" in at else at["restore_timestamp"])
            for at in (completed, latest.get("restored"))
            if at
        ]
        last_ms = max(ages_ms, default=int(job["start-time"]))
        # By our clock: rules compare it with that.
        checkpointed_at = self._clock() - timedelta(milliseconds=max(0, now_ms - last_ms))
        counts = checkpoints.get("counts") or {}
        job_found = Job(
            jid,
            str(job["name"]),
            memory.vertices.look(int(details["now"]), details["vertices"]),
            int(completed["end_to_end_duration"]) / 1000 if completed else None,
            counts.get("completed"),
            counts.get("failed"),
        )
        return GroupFound(
            name,
            Engine.FLINK,
            state,
            offsets=[_offset(key, committed, surely, checkpointed_at) for key in sorted(memory.partitions)],
            job=job_found,
            checkpointed_at=checkpointed_at,
            checkpoint_interval_seconds=memory.interval_seconds,
        )


def _offset(key: tuple[str, int], committed: Offsets, surely: Offsets, at: datetime) -> Offset:
    """The offset of a partition: the higher one of what is committed and what is in the checkpoint; none is -1."""
    topic, partition = key
    best = max(committed.get(key, -1), surely.get(key, -1))
    return offset_of({"topic": topic, "partition": partition, "offset": best, "updated_at": at})
