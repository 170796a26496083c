"""Which source reads what of which cluster. A new system is added here and nowhere else."""

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
class ReaderOrder:
    """What a reader process is for: samples of the cluster, or its ``__consumer_offsets``. ``state`` is the file of its
    own in which it keeps what has to outlive it; samples can do without, if it is empty."""

    reads: Literal["cluster", "offsets_topic"]
    cluster: AnyCluster
    state: str = ""

    def as_json(self) -> dict[str, Any]:
        """As the first request to the process."""
        return {"reads": self.reads, "cluster": self.cluster.model_dump(mode="json"), "state": self.state}

    @classmethod
    def of_json(cls, data: Mapping[str, Any]) -> "ReaderOrder":
        """What :meth:`as_json` made."""
        return cls(data["reads"], _CLUSTER.validate_python(data["cluster"]), data["state"])


def reader_of(order: ReaderOrder) -> "Source | OffsetsTail":
    """What carries out an order, in this process. Raises nothing: trouble shows in its snapshots."""
    state = Path(order.state) if order.state else None
    if isinstance(order.cluster, RocketmqCluster):
        from lagwise_collectors.rocketmq.source import RocketmqSource

        return RocketmqSource(order.cluster, state=state)
    # Imported here, so that only the processes that read Kafka load librdkafka.
    if order.reads == "offsets_topic":
        from lagwise_collectors.offsets_topic.follow_topic import OffsetsTail

        return OffsetsTail(order.cluster, Path(order.state))
    from lagwise_collectors.kafka.source import KafkaSource

    return KafkaSource(order.cluster, state=state)
