"""Which class reads which cluster. A new system is added here and nowhere else."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import TypeAdapter

from lagwise.config import AnyCluster, RocketmqCluster
from lagwise_collectors.protocol import Source

if TYPE_CHECKING:
    from lagwise_collectors.offsets_topic.follow_topic import OffsetsTail


_CLUSTER: TypeAdapter[AnyCluster] = TypeAdapter(AnyCluster)


@dataclass(frozen=True, slots=True)
class ReaderTask:
    """What a reader process reads: samples of a cluster, or its ``__consumer_offsets``."""

    reads: Literal["cluster", "offsets_topic"]
    cluster: AnyCluster
    #: The file in which the reader keeps what must survive its process. Samples can do without: then it is empty.
    state: str = ""

    def as_json(self) -> dict[str, Any]:
        """The first line sent to the process."""
        return {"reads": self.reads, "cluster": self.cluster.model_dump(mode="json"), "state": self.state}

    @classmethod
    def of_json(cls, data: Mapping[str, Any]) -> "ReaderTask":
        """What :meth:`as_json` made."""
        return cls(data["reads"], _CLUSTER.validate_python(data["cluster"]), data["state"])


def reader_of_task(task: ReaderTask) -> "Source | OffsetsTail":
    """The reader for a task, in this process. Raises nothing: errors are in its snapshots."""
    state = Path(task.state) if task.state else None
    if isinstance(task.cluster, RocketmqCluster):
        from lagwise_collectors.rocketmq.source import RocketmqSource

        return RocketmqSource(task.cluster, state=state)
    # Imported here, so that only the processes that read Kafka load librdkafka.
    if task.reads == "offsets_topic":
        from lagwise_collectors.offsets_topic.follow_topic import OffsetsTail

        return OffsetsTail(task.cluster, Path(task.state))
    from lagwise_collectors.kafka.source import KafkaSource

    return KafkaSource(task.cluster, state=state)
