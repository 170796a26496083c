"""What was read of a Kafka cluster, as rows of a sample."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime

import pyarrow as pa

from lagwise.domain.vocabulary import RECORDED
from lagwise.tables.raw import COMMITS, GROUPS, MEMBERS, WATERMARKS
from lagwise.tables.service_times import JOBS
from lagwise_collectors.external_offsets.sources import ExternalOffsets
from lagwise_collectors.kafka.requests.committed_offsets import CommitColumns
from lagwise_collectors.kafka.requests.group_members import KafkaGroup
from lagwise_collectors.kafka.requests.watermarks import WatermarkColumns
from lagwise_collectors.sample_builder import SampleBuilder


def add_groups(sample: SampleBuilder, groups: Sequence[KafkaGroup], at: datetime) -> None:
    """Rows of ``groups`` and ``members``. Called after the commits were read, which may add an error to a group."""
    columns = {
        "group": [g.name for g in groups],
        "state": [g.state for g in groups],
        "type": [g.type for g in groups],
        "assignor": [g.assignor for g in groups],
        "coordinator": [g.coordinator for g in groups],
        "member_count": [None if g.state in (None, RECORDED) else len(g.members) for g in groups],
        "error": [g.error for g in groups],
        "source": [g.source for g in groups],
        "checkpointed_at": [g.checkpointed_at for g in groups],
        "checkpoint_interval_seconds": [g.checkpoint_interval_seconds for g in groups],
    }
    sample.add(GROUPS, columns, at)
    members = [(group.name, member) for group in groups for member in group.members]
    columns = {
        "group": [name for name, _ in members],
        "member_id": [m.member_id for _, m in members],
        "client_id": [m.client_id for _, m in members],
        "host": [m.host for _, m in members],
        "static_instance_id": [m.static_instance_id for _, m in members],
        "assignment": [[{"topic": t, "partitions": p} for t, p in sorted(m.assignment.items())] for _, m in members],
        "assigned_partitions": [sum(map(len, m.assignment.values())) for _, m in members],
    }
    sample.add(MEMBERS, columns, at)


def add_jobs(sample: SampleBuilder, external: ExternalOffsets, at: datetime) -> None:
    """Rows of ``jobs``: Flink jobs that run."""
    running = [(source, g.name, g.job) for source, g in external.groups if g.job is not None]
    columns = {
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
    sample.add(JOBS, columns, at)


def add_commits(sample: SampleBuilder, commits: CommitColumns, now: datetime) -> None:
    """Rows of ``commits``; ``now`` dates them where no group could be read."""
    sample.facts["commits_read_at"] = commits.read_at
    indices: list[int] = []
    for position, rows in enumerate(commits.rows):
        indices += [position] * rows
    columns = {
        "group": pa.DictionaryArray.from_arrays(pa.array(indices, pa.int32()), pa.array(commits.group, pa.string())),
        "topic": commits.topic,
        "partition": commits.partition,
        "committed": commits.committed,
        "next_record": commits.next_record,
        "leader_epoch": commits.leader_epoch,
        "metadata": commits.metadata,
        "owner": commits.owner,
        "committed_at": commits.committed_at + [None] * (len(commits.committed) - len(commits.committed_at)),
    }
    sample.add(COMMITS, columns, commits.read_at or now)


def add_watermarks(sample: SampleBuilder, watermarks: WatermarkColumns, now: datetime) -> None:
    """Rows of ``watermarks``; ``now`` dates them where not one of them could be read."""
    sample.facts["watermarks_read_at"] = watermarks.read_at
    columns = {
        "topic": watermarks.topic,
        "topic_id": watermarks.topic_id,
        "partition": watermarks.partition,
        "log_start": watermarks.log_start,
        "high_watermark": watermarks.high_watermark,
        "last_stable": watermarks.last_stable,
        "leader": watermarks.leader,
        "replicas": watermarks.replicas,
        "isr": watermarks.isr,
        "error": watermarks.error,
    }
    sample.add(WATERMARKS, columns, watermarks.read_at or now)
