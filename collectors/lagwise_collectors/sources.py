"""Which source reads what of which cluster. A new system is added here and nowhere else."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from lagwise.config import Cluster
from lagwise_collectors.protocol import Source

if TYPE_CHECKING:
    from lagwise_collectors.offsets_topic.tail import OffsetsTail


@dataclass(frozen=True, slots=True)
class Order:
    """What a reader process is for: samples of the cluster, or its ``__consumer_offsets``. ``state`` is the file of its
    own in which it keeps what has to outlive it; samples can do without, if it is empty."""

    reads: Literal["cluster", "offsets_topic"]
    cluster: Cluster
    state: str = ""

    def as_json(self) -> dict[str, Any]:
        """As the first request to the process."""
        return {"reads": self.reads, "cluster": self.cluster.model_dump(mode="json"), "state": self.state}

    @classmethod
    def of_json(cls, data: Mapping[str, Any]) -> "Order":
        """What :meth:`as_json` made."""
        return cls(data["reads"], Cluster.model_validate(data["cluster"]), data["state"])


def reader_of(order: Order) -> "Source | OffsetsTail":
    """What carries out an order, in this process. Raises nothing: trouble shows in its snapshots."""
    # Imported here, so that only the processes that read Kafka load librdkafka.
    if order.reads == "offsets_topic":
        from lagwise_collectors.offsets_topic.tail import OffsetsTail

        return OffsetsTail(order.cluster, Path(order.state))
    from lagwise_collectors.kafka.source import KafkaSource

    return KafkaSource(order.cluster, state=Path(order.state) if order.state else None)


def system_of(cluster: Cluster) -> str:
    """The word in ``samples.system``."""
    del cluster  # every cluster of the settings is Kafka so far
    return "kafka"
