"""The jobs of a Flink cluster that read Kafka: their state, the offsets of their checkpoints, and their progress.

A Flink job has no members in its consumer group, so the job itself counts as the owner of its partitions. It commits to
its group, if at all, the offsets of a completed checkpoint; those are read from Kafka. Where it commits nothing
(``commit.offsets.on.checkpoint`` off), the offsets that its sources had reached before the last completed checkpoint
was triggered are certainly in it: a lower bound, from earlier samples. The *current* position of the sources is not
used: records wait inside a job, and in an overloaded job all of them do, while its lag metrics are 0.
"""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Any

from lagwise.config.external_offsets import FlinkJobs
from lagwise.domain.vocabulary import RUNNING, Engine
from lagwise_collectors.external_offsets.flink_rest import FlinkOffsets, FlinkRest
from lagwise_collectors.external_offsets.flink_vertices import VertexRates
from lagwise_collectors.external_offsets.model import (
    ExternalGroup,
    ExternalOffset,
    FlinkJob,
    OffsetSourceTrouble,
    SourceResult,
    group_named,
    offset_of,
)

#: States in which a job will not run again.
_ENDED = frozenset({"FINISHED", "CANCELED", "FAILED", "SUSPENDED"})
#: Samples that are kept of a job whose next checkpoint is not completed yet.
_MAX_POSITIONS = 240


@dataclass(slots=True)
class _Memory:
    """The state of a job that is kept from sample to sample."""

    partitions: set[tuple[str, int]] = field(default_factory=set)
    #: Where its sources were at which time of Flink's clock, in ms.
    positions: deque[tuple[int, FlinkOffsets]] = field(default_factory=deque)
    interval_seconds: float | None = None
    interval_is_known: bool = False
    vertices: VertexRates = field(default_factory=VertexRates)

    def add_position(self, at_ms: int, current: FlinkOffsets) -> None:
        """Add where the sources were at this time, or earlier."""
        self.positions.append((at_ms, {key: offset + 1 for key, offset in current.items() if offset >= 0}))
        if len(self.positions) > _MAX_POSITIONS:
            self.positions = deque(list(self.positions)[::2])

    def in_checkpoint(self, triggered_ms: int) -> FlinkOffsets:
        """What is certainly in a checkpoint that was triggered then: the next offsets to be read."""
        while len(self.positions) > 1 and self.positions[1][0] <= triggered_ms:
            self.positions.popleft()
        at_ms, offsets = self.positions[0] if self.positions else (triggered_ms + 1, {})
        return offsets if at_ms <= triggered_ms else {}


class FlinkReader:
    """Reads one Flink cluster."""

    def __init__(self, settings: FlinkJobs, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._settings = settings
        self._clock = clock
        self._rest = FlinkRest(settings)
        self._memory: dict[str, _Memory] = {}

    def read(self) -> SourceResult:
        """A group per job that reads Kafka; of several jobs of one group the one that runs, or was started last.

        A job that cannot be read costs only its own group.
        """
        until = monotonic() + self._settings.timeout_seconds
        result = SourceResult()
        with self._rest.connected():
            jobs = self._rest.jobs()
            present = {job["jid"] for job in jobs}
            self._memory = {jid: memory for jid, memory in self._memory.items() if jid in present}
            for name, job in self._of_groups(jobs).items():
                try:
                    group = self._group(name, job)
                except OffsetSourceTrouble as trouble:
                    result.mark_unreadable(name, Engine.FLINK, trouble)
                    continue
                except (KeyError, TypeError, ValueError, AttributeError) as error:
                    detail = f"the answers about the job {name!r:.80}: {error}"
                    result.mark_unreadable(name, Engine.FLINK, OffsetSourceTrouble("malformed", detail))
                    continue
                if group is not None:
                    result.groups[name] = group
            self._add_task_slots(result, until)
        return result

    def _add_task_slots(self, result: SourceResult, until: float) -> None:
        """Add the cluster's task slots to its running jobs. An error costs only the slots: they are read last, and half
        of the remaining time is reserved for returning the result."""
        jobs = [group for group in result.groups.values() if group.job is not None]
        if not jobs:
            return
        try:
            total, free = self._rest.task_slots(within_seconds=max(0.0, until - monotonic()) / 2)
        except OffsetSourceTrouble as trouble:
            result.errors.note(trouble.kind, str(trouble))
            return
        for group in jobs:
            assert group.job is not None
            group.job = replace(group.job, slots_total=total, slots_free=free)

    def _of_groups(self, jobs: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
        """The job that stands for each group."""
        chosen: dict[str, dict[str, Any]] = {}
        for job in sorted(jobs, key=lambda job: (job.get("state") == RUNNING, job.get("start-time") or 0)):
            try:
                job_name = str(job.get("name"))
                chosen[group_named(self._settings.jobs.get(job_name, job_name))] = job
            except ValueError:
                continue  # no valid group name: the settings can give it one
        return chosen

    def _group(self, name: str, job: Mapping[str, Any]) -> ExternalGroup | None:
        """The job as a group; None where it does not seem to read Kafka."""
        jid, state = str(job["jid"]), str(job["state"])
        if state != RUNNING:
            memory = self._memory.get(jid)
            left = (
                [ExternalOffset(topic, partition, None) for topic, partition in sorted(memory.partitions)]
                if memory
                else []
            )
            # The partitions of a restarting job are known: it is not gone.
            return ExternalGroup(name, Engine.FLINK, state, offsets=[] if state in _ENDED else left)
        asked = monotonic()
        details = self._rest.get(f"jobs/{jid}")
        sources = [str(node["id"]) for node in details["plan"]["nodes"] if not node.get("inputs")]
        current, committed = self._rest.offsets(jid, sources)
        memory = self._memory.setdefault(jid, _Memory())
        if not current and not committed:
            if memory.partitions:
                raise OffsetSourceTrouble("missing", f"Flink has no metrics of the Kafka source of {name!r:.80} now")
            return None
        memory.partitions = current.keys() | committed.keys()
        if not memory.interval_is_known:
            memory.interval_seconds = self._rest.checkpoint_interval_seconds(jid)
            memory.interval_is_known = True
        checkpoints = self._rest.get(f"jobs/{jid}/checkpoints", absent={})
        # The sources have reached these positions by now: Flink's clock at its first answer, plus the time since then.
        now_ms = int(details["now"]) + int((monotonic() - asked) * 1000) + 1
        memory.add_position(now_ms, current)
        latest = checkpoints.get("latest") or {}
        completed = latest.get("completed")
        certain = memory.in_checkpoint(int(completed["trigger_timestamp"])) if completed else {}
        ages_ms = [
            int(at["latest_ack_timestamp"] if "latest_ack_timestamp" in at else at["restore_timestamp"])
            for at in (completed, latest.get("restored"))
            if at
        ]
        last_ms = max(ages_ms, default=int(job["start-time"]))
        # By the clock of this machine, with which the rules compare it.
        checkpointed_at = self._clock() - timedelta(milliseconds=max(0, now_ms - last_ms))
        counts = checkpoints.get("counts") or {}
        job_found = FlinkJob(
            jid,
            str(job["name"]),
            memory.vertices.rates(int(details["now"]), details["vertices"]),
            int(completed["end_to_end_duration"]) / 1000 if completed else None,
            counts.get("completed"),
            counts.get("failed"),
        )
        return ExternalGroup(
            name,
            Engine.FLINK,
            state,
            offsets=[_offset(key, committed, certain, checkpointed_at) for key in sorted(memory.partitions)],
            job=job_found,
            checkpointed_at=checkpointed_at,
            checkpoint_interval_seconds=memory.interval_seconds,
        )


def _offset(key: tuple[str, int], committed: FlinkOffsets, certain: FlinkOffsets, at: datetime) -> ExternalOffset:
    """The offset of a partition: the higher one of what is committed and what is in the checkpoint; none is -1."""
    topic, partition = key
    best = max(committed.get(key, -1), certain.get(key, -1))
    return offset_of({"topic": topic, "partition": partition, "offset": best, "updated_at": at})
