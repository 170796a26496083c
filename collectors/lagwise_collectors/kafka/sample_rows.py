"""The rows of one sample of a Kafka cluster while they come together."""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

import pyarrow as pa

from lagwise.config import Cluster
from lagwise.domain.vocabulary import RECORDED
from lagwise.tables.raw import COMMITS, GROUPS, MEMBERS, SAMPLES, TOPICS, WATERMARKS
from lagwise.tables.schema import Table
from lagwise.tables.service_times import JOBS
from lagwise_collectors.external_offsets.sources import Elsewhere
from lagwise_collectors.kafka.requests.committed_offsets import Commits
from lagwise_collectors.kafka.requests.group_members import KafkaGroup
from lagwise_collectors.kafka.requests.watermarks import Watermarks
from lagwise_collectors.protocol import ErrorTally, Snapshot, encoded, rows_of, run_row

SYSTEM = "kafka"


class KafkaSampleRows:
    """One sample: tables are kept as they are read, :meth:`finish` comes last."""

    def __init__(self, cluster: Cluster, sample_id: str) -> None:
        self._cluster = cluster
        self._sample_id = sample_id
        self._tables: dict[str, pa.Table] = {}
        self._counts = {"groups": 0, "group_partitions": 0, "partitions": 0}
        self._commits_read_at: datetime | None = None
        self._watermarks_read_at: datetime | None = None
        self.errors = ErrorTally()
        self.offsets_retention_seconds: float | None = None

    def snapshot(self) -> Snapshot:
        """What has been kept."""
        return Snapshot(self._cluster.name, self._sample_id, self._tables)

    def keep_groups(self, groups: list[KafkaGroup], at: datetime) -> None:
        """Rows of ``groups`` and ``members``. Called after the commits were read, which may add an error."""
        readable = [group for group in groups if group.error is None]
        self._counts["groups"] = len(readable)
        columns: dict[str, Any] = {
            "group": [g.name for g in groups],
            "state": encoded([g.state for g in groups]),
            "type": encoded([g.type for g in groups]),
            "assignor": encoded([g.assignor for g in groups]),
            "coordinator": [g.coordinator for g in groups],
            "member_count": [None if g.state in (None, RECORDED) else len(g.members) for g in groups],
            "error": encoded([g.error for g in groups]),
            "source": encoded([g.source for g in groups]),
            "checkpointed_at": [g.checkpointed_at for g in groups],
            "checkpoint_interval_seconds": [g.checkpoint_interval_seconds for g in groups],
        }
        self._keep(GROUPS, columns, at)
        members = [(group.name, member) for group in groups for member in group.members]
        columns = {
            "group": encoded([name for name, _ in members]),
            "member_id": [m.member_id for _, m in members],
            "client_id": [m.client_id for _, m in members],
            "host": encoded([m.host for _, m in members]),
            "static_instance_id": [m.static_instance_id for _, m in members],
            "assignment": [
                [{"topic": t, "partitions": p} for t, p in sorted(m.assignment.items())] for _, m in members
            ],
            "assigned_partitions": [sum(map(len, m.assignment.values())) for _, m in members],
        }
        self._keep(MEMBERS, columns, at)

    def keep_jobs(self, elsewhere: Elsewhere, at: datetime) -> None:
        """Rows of ``jobs``."""
        running = [(source, g.name, g.job) for source, g in elsewhere.groups if g.job is not None]
        columns: dict[str, Any] = {
            "group": [group for _, group, _ in running],
            "source": [source for source, _, _ in running],
            "job_id": [job.id for *_, job in running],
            "job": [job.name for *_, job in running],
            "checkpoint_duration_seconds": [job.checkpoint_duration_seconds for *_, job in running],
            "checkpoints_completed": [job.checkpoints_completed for *_, job in running],
            "checkpoints_failed": [job.checkpoints_failed for *_, job in running],
            "slots_total": [job.slots_total for *_, job in running],
            "slots_free": [job.slots_free for *_, job in running],
            "vertices": [[asdict(vertex) for vertex in job.vertices] for *_, job in running],
        }
        self._keep(JOBS, columns, at)

    def keep_commits(self, commits: Commits, now: datetime) -> None:
        """Rows of ``commits``; ``now`` dates them where no group could be read."""
        self._commits_read_at = commits.read_at
        self._counts["group_partitions"] = len(commits.committed) - commits.committed.count(None)
        indices: list[int] = []
        for position, rows in enumerate(commits.rows):
            indices += [position] * rows
        columns = {
            "group": pa.DictionaryArray.from_arrays(
                pa.array(indices, pa.int32()), pa.array(commits.group, pa.string())
            ),
            "topic": encoded(commits.topic),
            "partition": commits.partition,
            "committed": commits.committed,
            "next_record": commits.next_record,
            "leader_epoch": commits.leader_epoch,
            "metadata": encoded(commits.metadata),
            "owner": encoded(commits.owner),
            "committed_at": commits.committed_at + [None] * (len(commits.committed) - len(commits.committed_at)),
        }
        self._keep(COMMITS, columns, commits.read_at or now)

    def keep_watermarks(self, marks: Watermarks, now: datetime) -> None:
        """Rows of ``watermarks``; ``now`` dates them where not one of them could be read."""
        self._watermarks_read_at = marks.read_at
        self._counts["partitions"] = marks.error.count(None)
        columns = {
            "topic": encoded(marks.topic),
            "topic_id": encoded(marks.topic_id),
            "partition": marks.partition,
            "log_start": marks.log_start,
            "high_watermark": marks.high_watermark,
            "last_stable": marks.last_stable,
            "leader": marks.leader,
            "replicas": marks.replicas,
            "isr": marks.isr,
            "error": encoded(marks.error),
        }
        self._keep(WATERMARKS, columns, marks.read_at or now)

    def keep_topics(self, rows: list[dict[str, Any]], at: datetime) -> None:
        """Rows of ``topics``, where there are any."""
        if rows:
            self._keep(TOPICS, {name: [row[name] for row in rows] for name in rows[0]}, at)

    def finish(self, started_at: datetime, finished_at: datetime, wall_seconds: float, cpu_seconds: float) -> None:
        """The ``samples`` row, after everything else."""
        self._tables[SAMPLES.name] = run_row(
            sample_id=self._sample_id,
            cluster=self._cluster.name,
            system=SYSTEM,
            started_at=started_at,
            finished_at=finished_at,
            interval_seconds=self._cluster.interval_seconds,
            wall_seconds=wall_seconds,
            cpu_seconds=cpu_seconds,
            errors=self.errors,
            commits_read_at=self._commits_read_at,
            watermarks_read_at=self._watermarks_read_at,
            offsets_retention_seconds=self.offsets_retention_seconds,
            **self._counts,
        )

    def _keep(self, table: Table, columns: Mapping[str, Any], at: datetime) -> None:
        if len(next(iter(columns.values()))):
            self._tables[table.name] = rows_of(
                table, columns, sample_id=self._sample_id, cluster=self._cluster.name, at=at
            )
