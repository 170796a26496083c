"""A made-up cluster as a source: what a collector costs besides reading brokers."""

from datetime import UTC, datetime

import numpy as np
import pyarrow as pa

from benchmarks.lake_columns import named
from benchmarks.synthetic_lake import Offsets, Shape, group_names, topic_names
from lagwise.config import AnyCluster
from lagwise.tables.raw import COMMITS, GROUPS, TOPICS, WATERMARKS
from lagwise_collectors.protocol import Check, Snapshot
from lagwise_collectors.sample_builder import DueTopicRows, SampleBuilder


class MadeUpSource:
    """Samples of groups that commit all the time, as quickly as they can be made."""

    def __init__(self, cluster: AnyCluster, shape: Shape) -> None:
        self._cluster, self._shape = cluster, shape
        self._offsets, self._taken = Offsets(shape, cluster.interval_seconds), 0
        topics, self._groups = topic_names(shape), group_names(shape)
        self._topic, self._partition = named(shape.topic_index, topics).dictionary_encode(), shape.partition_index
        self._committed_topic = named(shape.topic_index[shape.row_index], topics).dictionary_encode()
        self._committed_group = named(shape.group_index, self._groups).dictionary_encode()
        self._due_topics = DueTopicRows()

    def collect(self) -> Snapshot:
        sample, shape = SampleBuilder(self._cluster), self._shape
        number, at = self._taken, datetime.now(UTC)
        self._taken += 1
        ends = pa.array(self._offsets.ends(number))
        sample.add(GROUPS, {
            "group": self._groups,
            "state": ["Stable"] * shape.groups,
            "type": ["classic"] * shape.groups,
            "member_count": np.ones(shape.groups, np.int32),
        }, at)  # fmt: skip
        sample.add(COMMITS, {
            "group": self._committed_group,
            "topic": self._committed_topic,
            "partition": pa.array(self._partition[shape.row_index]),
            "committed": pa.array(self._offsets.committed(number)),
        }, at)  # fmt: skip
        sample.add(WATERMARKS, {
            "topic": self._topic,
            "partition": pa.array(self._partition),
            "log_start": pa.array(np.zeros(shape.partitions, np.int64)),
            "high_watermark": ends,
            "last_stable": ends,
            "leader": pa.array(np.ones(shape.partitions, np.int32)),
        }, at)  # fmt: skip
        topics = [{"topic": name, "partitions": shape.partitions // shape.topics, "retention_ms": 604_800_000}
                  for name in topic_names(shape).to_pylist()]  # fmt: skip
        sample.add_rows(TOPICS, self._due_topics.due(topics, {}, at), at)
        sample.facts |= {"commits_read_at": at, "watermarks_read_at": at}
        return sample.finish()

    def check(self) -> list[Check]:
        return []

    def abandon(self) -> None:
        """A sample is over at once."""

    def close(self) -> None:
        """There is nothing to close."""
