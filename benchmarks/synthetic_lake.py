"""A lake as a collector would have left it: many groups, an hour of samples, every kind of trouble among them."""

from datetime import datetime, timedelta
from typing import Protocol

import numpy as np
import pyarrow as pa

from benchmarks.lake_columns import named, rows_of
from lagwise.tables import ALL_TABLES
from lagwise.tables.raw import ASSIGNMENT, COMMITS, GROUPS, MEMBERS, SAMPLES, TOPICS, WATERMARKS
from lagwise.tables.schema import Table
from lagwise.tables.store import Lake


class Sink(Protocol):
    """Where samples go: a lake, as a collector writes it, or :class:`benchmarks.bulk.Bulk` for a long history."""

    def append(self, table: Table, rows: pa.Table) -> None:
        """Append the rows to the table."""


class Shape:
    """How large the cluster is: ``wide`` groups read every partition, ``narrow`` ones five each."""

    def __init__(self, partitions: int, wide: int, narrow: int, topics: int = 10) -> None:
        self.partitions, self.wide, self.narrow, self.topics = partitions, wide, narrow, topics
        per_topic = partitions // topics
        self.topic_index = np.repeat(np.arange(topics), per_topic)
        self.partition_index = np.tile(np.arange(per_topic, dtype=np.int32), topics)
        groups, rows = [], []
        for g in range(wide):
            groups.append(np.full(partitions, g))
            rows.append(np.arange(partitions))
        for g in range(narrow):
            groups.append(np.full(5, wide + g))
            rows.append((np.arange(5) + 5 * g) % partitions)
        self.group_index = np.concatenate(groups)
        self.row_index = np.concatenate(rows)

    @property
    def pairs(self) -> int:
        return len(self.row_index)

    @property
    def groups(self) -> int:
        return self.wide + self.narrow


class Offsets:
    """What the offsets of a cluster are at each sample.

    A tenth of the pairs falls behind, a tenth has stood still from the start, the rest keeps pace with some noise.
    """

    def __init__(self, shape: Shape, interval: float) -> None:
        random = np.random.default_rng(7)
        self._rows, self._interval = shape.row_index, interval
        self._rate = random.integers(1, 200, shape.partitions)
        self._offset = random.integers(0, 1_000_000, shape.partitions)
        self._kind = random.random(shape.pairs)

    def ends(self, sample: int) -> np.ndarray:
        """High watermarks, one per partition."""
        return self._offset + (self._rate * (sample * self._interval)).astype(np.int64)

    def committed(self, sample: int) -> np.ndarray:
        """Committed offsets, one per pair."""
        first, rows = self._offset[self._rows], self._rows
        noise = np.random.default_rng(sample).integers(0, 50, len(rows))
        committed = np.maximum(first, self.ends(sample)[rows] - noise)
        slow = first + (self._rate[rows] * (sample * self._interval) * 0.8).astype(np.int64)
        committed = np.where(self._kind < 0.1, slow, committed)
        return np.where((self._kind >= 0.1) & (self._kind < 0.2), first, committed)


def write_samples(lake: Sink, shape: Shape, start: datetime, samples: int, interval: float, first: int = 0) -> datetime:
    """Append samples ``first`` to ``first + samples`` and return the time of the last."""
    offsets = Offsets(shape, interval)
    topics, groups = topic_names(shape), group_names(shape)
    at = start
    for sample in range(first, first + samples):
        at = start + timedelta(seconds=sample * interval)
        high, committed = offsets.ends(sample), offsets.committed(sample)
        _append(lake, WATERMARKS, at, sample, {
            "topic": named(shape.topic_index, topics),
            "partition": pa.array(shape.partition_index),
            "topic_id": named(shape.topic_index, topics),
            "log_start": pa.array(np.zeros(shape.partitions, dtype=np.int64)),
            "high_watermark": pa.array(high),
            "last_stable": pa.array(high),
            "leader": pa.array(np.ones(shape.partitions, dtype=np.int32)),
        })  # fmt: skip
        _append(lake, COMMITS, at, sample, {
            "group": named(shape.group_index, groups),
            "topic": named(shape.topic_index[shape.row_index], topics),
            "partition": pa.array(shape.partition_index[shape.row_index]),
            "committed": pa.array(committed),
            "owner": named(shape.group_index, groups),
        })  # fmt: skip
        _append(lake, GROUPS, at, sample, {
            "group": groups,
            "state": pa.array(["Stable"] * shape.groups),
            "type": pa.array(["classic"] * shape.groups),
            "member_count": pa.array(np.ones(shape.groups, dtype=np.int32)),
        })  # fmt: skip
        _append(lake, MEMBERS, at, sample, {
            "group": groups,
            "member_id": groups,
            "client_id": groups,
            "host": pa.array(["127.0.0.1"] * shape.groups),
            "assignment": pa.array(
                [[{"topic": t.as_py(), "partitions": [0]} for t in topics]] * shape.groups, ASSIGNMENT
            ),
            "assigned_partitions": pa.array(np.ones(shape.groups, dtype=np.int32)),
        })  # fmt: skip
        lake.append(SAMPLES, SAMPLES.from_rows([{
            "sample_id": f"{sample:08d}", "cluster": "bench", "system": "kafka", "started_at": at,
            "commits_read_at": at, "watermarks_read_at": at, "finished_at": at, "written_at": at,
            "interval_seconds": interval, "groups": shape.groups, "group_partitions": shape.pairs,
            "partitions": shape.partitions, "wall_seconds": 1.0, "cpu_seconds": 1.0,
            "offsets_retention_seconds": 604800.0, "errors": [],
        }]))  # fmt: skip
    return at


def topic_names(shape: Shape) -> pa.Array:
    """The topics' names by their number."""
    return pa.array([f"topic-{t}" for t in range(shape.topics)])


def group_names(shape: Shape) -> pa.Array:
    """The groups' names by their number."""
    return pa.array([f"group-{g:04d}" for g in range(shape.groups)])


def write_topics(lake: Sink, shape: Shape, at: datetime) -> None:
    """Append the topics' configuration, a week of retention each."""
    names = topic_names(shape)
    _append(lake, TOPICS, at, 0, {
        "topic": names,
        "retention_ms": pa.array([604_800_000] * shape.topics),
        "retention_bytes": pa.array([-1] * shape.topics),
        "cleanup_policy": pa.array(["delete"] * shape.topics),
    })  # fmt: skip


def make_lake(uri: str) -> Lake:
    """An empty lake with every table."""
    lake = Lake(uri)
    lake.create(*ALL_TABLES)
    return lake


def _append(lake: Sink, table: Table, at: datetime, sample: int, columns: dict[str, pa.Array]) -> None:
    rows = len(next(iter(columns.values())))
    constants = {
        "sample_id": pa.array([f"{sample:08d}"] * rows),
        "cluster": pa.array(["bench"] * rows),
        "sampled_at": pa.array([at] * rows, pa.timestamp("us", tz="UTC")),
    }
    lake.append(table, rows_of(table, rows, constants | columns))
