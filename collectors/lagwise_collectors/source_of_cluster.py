"""Which class reads which cluster. A new system is added here and nowhere else."""

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel

from lagwise.config import AnyCluster, RocketmqCluster
from lagwise_collectors.protocol import Source

if TYPE_CHECKING:
    from lagwise_collectors.kafka.requests.next_records import NextRecordFetcher
    from lagwise_collectors.offsets_topic.follow_topic import OffsetsTail


class ReaderTask(BaseModel, frozen=True):
    """What a reader process reads: samples of a cluster, its ``__consumer_offsets``, or single records of its topics.
    Sent as JSON."""

    reads: Literal["cluster", "offsets_topic", "next_records"]
    cluster: AnyCluster
    #: The file in which the reader keeps what must survive its process. Samples can do without.
    state: Path | None


def reader_of_task(task: ReaderTask) -> "Source | OffsetsTail | NextRecordFetcher":
    """The reader for a task, in this process. Raises nothing: errors are in its snapshots."""
    if isinstance(task.cluster, RocketmqCluster):
        from lagwise_collectors.rocketmq.source import RocketmqSource

        return RocketmqSource(task.cluster, state=task.state)
    # Imported here, so that only the processes that read Kafka load librdkafka.
    if task.reads == "offsets_topic":
        assert task.state is not None
        from lagwise_collectors.offsets_topic.follow_topic import OffsetsTail

        return OffsetsTail(task.cluster, task.state)
    if task.reads == "next_records":
        from lagwise_collectors.kafka.requests.next_records import NextRecordFetcher

        return NextRecordFetcher(task.cluster)
    from lagwise_collectors.kafka.source import KafkaSource

    return KafkaSource(task.cluster, state=task.state)
