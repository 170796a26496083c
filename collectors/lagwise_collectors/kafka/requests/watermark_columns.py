"""Watermarks as columns: what both ways of reading them fill in."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lagwise_collectors.kafka.requests.commit_columns import NONE
from lagwise_collectors.kafka.requests.topic_columns import NODES, KafkaTopic
from lagwise_collectors.protocol import ErrorTally


@dataclass(slots=True)
class WatermarkColumns:
    """Columns of ``raw/watermarks``, by topic and partition, and when the last answer came."""

    topics: list[str]
    #: Kafka's ids of the topics; None: not known.
    topic_ids: list[str | None]
    #: The number of each row's topic among the topics.
    of_topic: NDArray[np.int64]
    partition: NDArray[np.int32]
    #: Offset of the oldest record that is kept; NONE: not read.
    log_start: NDArray[np.int64]
    #: Offset of the next record to be written; NONE: not read.
    high_watermark: NDArray[np.int64]
    #: End of the log for consumers with ``read_committed``: open transactions hold it back. NONE: not read.
    last_stable: NDArray[np.int64]
    #: Node id of the leader; NONE: there is none, or the topic could not be described.
    leader: NDArray[np.int32]
    #: Node ids of all replicas; null: the topic could not be described.
    replicas: pa.Array
    #: Node ids of the in-sync replicas; null: the topic could not be described.
    isr: pa.Array
    #: Kind of the error that made the offsets unreadable; None: no error.
    error: list[str | None]
    #: When the last answer came; None: none came.
    read_at: datetime | None = None

    def __len__(self) -> int:
        return len(self.partition)

    def named(self, row: int) -> str:
        """Topic and partition of a row, for messages."""
        return f"{self.topics[self.of_topic[row]]}[{self.partition[row]}]"

    def by_leader(self) -> dict[int, NDArray[np.int64]]:
        """The rows to ask each leader for."""
        return {int(node): (self.leader == node).nonzero()[0] for node in np.unique(self.leader[self.leader > NONE])}


def without_offsets(
    topics: Mapping[str, KafkaTopic], partitions_wanted: Mapping[str, Iterable[int]], errors: ErrorTally
) -> WatermarkColumns:
    """A row for every partition of the topics, of which no offset was read yet.

    A topic that could not be described has rows for the ``partitions_wanted`` of it, with the topic's error. A
    partition without a leader has that as its error.
    """
    names = sorted(topics)
    parts: list[KafkaTopic] = []
    for name in names:
        topic = topics[name]
        if topic.error is not None:
            numbers = np.array(sorted(partitions_wanted.get(name, ())), np.int32)
            nobody, nothing = np.full(len(numbers), NONE, np.int32), pa.nulls(len(numbers), NODES)
            topic = KafkaTopic(name, topic.topic_id, numbers, nobody, nothing, nothing, topic.error)
        parts.append(topic)
    counts = [topic.partitions for topic in parts]
    rows = sum(counts)
    marks = WatermarkColumns(
        topics=names,
        topic_ids=[topic.topic_id for topic in parts],
        of_topic=np.repeat(np.arange(len(names)), counts),
        partition=np.concatenate([np.empty(0, np.int32), *(topic.partition for topic in parts)]),
        log_start=np.full(rows, NONE, np.int64),
        high_watermark=np.full(rows, NONE, np.int64),
        last_stable=np.full(rows, NONE, np.int64),
        leader=np.concatenate([np.empty(0, np.int32), *(topic.leader for topic in parts)]),
        replicas=pa.concat_arrays([pa.nulls(0, NODES), *(topic.replicas for topic in parts)]),
        isr=pa.concat_arrays([pa.nulls(0, NODES), *(topic.isr for topic in parts)]),
        error=[topic.error for topic, count in zip(parts, counts, strict=True) for _ in range(count)],
    )
    for row in (marks.leader == NONE).nonzero()[0].tolist():
        if marks.error[row] is None:
            errors.note("leader_not_available", f"watermarks of {marks.named(row)}: it has no leader")
            marks.error[row] = "leader_not_available"
    return marks
