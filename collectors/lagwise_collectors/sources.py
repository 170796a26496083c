"""Which source reads which cluster. A new system is added here and nowhere else."""

from lagwise.config import Cluster
from lagwise_collectors.protocol import Source


def source_of(cluster: Cluster) -> Source:
    """The source of a cluster, in this process. Raises nothing: trouble shows in its snapshots."""
    # Imported here, so that only the processes that read Kafka load librdkafka.
    from lagwise_collectors.kafka.source import KafkaSource

    return KafkaSource(cluster)


def system_of(cluster: Cluster) -> str:
    """The word in ``samples.system``."""
    del cluster  # every cluster of the settings is Kafka so far
    return "kafka"
