"""What was read of a Kafka cluster, as rows of a sample."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lagwise.domain.vocabulary import RECORDED
from lagwise.tables.raw import COMMITS, GROUPS, MEMBERS, WATERMARKS
from lagwise.tables.schema import TIMESTAMP
from lagwise.tables.service_times import JOBS
from lagwise_collectors.external_offsets.sources import ExternalOffsets
from lagwise_collectors.kafka.requests.commit_columns import NONE, CommitColumns
from lagwise_collectors.kafka.requests.group_members import KafkaGroup
from lagwise_collectors.kafka.requests.watermark_columns import WatermarkColumns
from lagwise_collectors.sample_builder import SampleBuilder, columns_of


def add_groups(sample: SampleBuilder, groups: Sequence[KafkaGroup], at: datetime) -> None:
    """Rows of ``groups`` and ``members``. Called after the commits were read, which may add an error to a group."""
    columns = columns_of(
        groups,
        "state",
        "type",
        "assignor",
        "coordinator",
        "error",
        "source",
        "checkpointed_at",
        "checkpoint_interval_seconds",
    ) | {
        "group": [g.name for g in groups],
        "member_count": [None if g.state in (None, RECORDED) else len(g.members) for g in groups],
    }
    sample.add(GROUPS, columns, at)
    members = [member for group in groups for member in group.members]
    columns = columns_of(members, "member_id", "client_id", "host", "static_instance_id") | {
        "group": [group.name for group in groups for _ in group.members],
        "assignment": [[{"topic": t, "partitions": p} for t, p in sorted(m.assignment.items())] for m in members],
        "assigned_partitions": [sum(map(len, m.assignment.values())) for m in members],
    }
    sample.add(MEMBERS, columns, at)


def add_jobs(sample: SampleBuilder, external: ExternalOffsets, at: datetime) -> None:
    """Rows of ``jobs``: Flink jobs that run."""
    running = [group for group in external.groups if group.job is not None]
    jobs = [group.job for group in running if group.job is not None]
    columns = columns_of(
        jobs,
        "checkpoint_duration_seconds",
        "checkpoints_completed",
        "checkpoints_failed",
        "slots_total",
        "slots_free",
    ) | {
        "group": [group.name for group in running],
        "source": [group.source for group in running],
        "job_id": [job.id for job in jobs],
        "job": [job.name for job in jobs],
        "vertices": [[asdict(vertex) for vertex in job.vertices] for job in jobs],
    }
    sample.add(JOBS, columns, at)


def add_commits(sample: SampleBuilder, commits: CommitColumns, now: datetime) -> None:
    """Rows of ``commits``; ``now`` dates them where no group could be read."""
    sample.facts["commits_read_at"] = commits.read_at
    rows = len(commits)
    columns = {
        "group": _named(*commits.numbered_groups()),
        "topic": _named(*commits.numbered_topics()),
        "partition": pa.array(commits.numbers("partition", np.int32)),
        "committed": _unless_none(commits.numbers("committed", np.int64)),
        "next_record": pa.nulls(rows, pa.int64()) if commits.next_record is None else _unless_none(commits.next_record),
        "leader_epoch": _unless_none(commits.numbers("leader_epoch", np.int32)),
    }
    for name, kind in (("metadata", pa.string()), ("owner", pa.string()), ("committed_at", TIMESTAMP)):
        values = commits.values(name)
        column = pa.nulls(rows, kind) if values is None else pa.array(values, kind)
        columns[name] = column.dictionary_encode() if kind == pa.string() else column
    sample.add(COMMITS, columns, commits.read_at or now)


def _named(numbers: NDArray[np.int32], names: Sequence[str]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(numbers), pa.array(names, pa.string()))


def _unless_none(numbers: NDArray[Any]) -> pa.Array:
    return pa.array(numbers, mask=numbers <= NONE)


def add_watermarks(sample: SampleBuilder, marks: WatermarkColumns, now: datetime) -> None:
    """Rows of ``watermarks``; ``now`` dates them where not one of them could be read."""
    sample.facts["watermarks_read_at"] = marks.read_at
    has_no_id = np.array([topic_id is None for topic_id in marks.topic_ids], bool)[marks.of_topic]
    columns = {
        "topic": _named(marks.of_topic.astype(np.int32), marks.topics),
        "topic_id": pa.DictionaryArray.from_arrays(
            pa.array(marks.of_topic.astype(np.int32), mask=has_no_id),
            pa.array([topic_id or "" for topic_id in marks.topic_ids], pa.string()),
        ),
        "partition": pa.array(marks.partition),
        "log_start": _unless_none(marks.log_start),
        "high_watermark": _unless_none(marks.high_watermark),
        "last_stable": _unless_none(marks.last_stable),
        "leader": _unless_none(marks.leader),
        "replicas": marks.replicas,
        "isr": marks.isr,
        "error": marks.error,
    }
    sample.add(WATERMARKS, columns, marks.read_at or now)
