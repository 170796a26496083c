"""A topic as described: its partitions as columns."""

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lagwise.tables.raw import WATERMARKS
from lagwise_collectors.kafka.requests.commit_columns import NONE

#: Arrow's type of a list of node ids.
NODES: pa.DataType = WATERMARKS.arrow.field("replicas").type


def _no_numbers() -> NDArray[np.int32]:
    return np.empty(0, np.int32)


@dataclass(frozen=True, slots=True, eq=False)
class KafkaTopic:
    """One topic as described; with an ``error`` only the name is known."""

    name: str
    #: As Kafka's own tools print it; None: not known.
    topic_id: str | None = None
    #: Numbers of the partitions, ascending. The columns below are in the same order.
    partition: NDArray[np.int32] = field(default_factory=_no_numbers)
    #: Node ids of the leaders; NONE: a partition has none.
    leader: NDArray[np.int32] = field(default_factory=_no_numbers)
    #: Node ids of all replicas.
    replicas: pa.ListArray = field(default_factory=lambda: pa.nulls(0, NODES))
    #: Node ids of the in-sync replicas.
    isr: pa.ListArray = field(default_factory=lambda: pa.nulls(0, NODES))
    error: str | None = None

    @property
    def partitions(self) -> int:
        """How many partitions it has."""
        return len(self.partition)

    @property
    def replication_factor(self) -> int:
        """Of the partition with the most replicas."""
        return int(np.diff(self.replicas.offsets.to_numpy()).max(initial=0))

    @property
    def leaders(self) -> set[int]:
        """Node ids of brokers that lead a partition."""
        return set(np.unique(self.leader[self.leader > NONE]).tolist())
