"""What a system itself calls its partitions. Kafka calls them as we do; RocketMQ calls them queues of brokers."""

from collections.abc import Iterable, Mapping
from datetime import datetime

from lagwise.links.first_commands import rocketmq_named
from lagwise_dashboard import context, escaping
from lagwise_dashboard.cache import ask
from lagwise_dashboard.queries import group as queries

#: Names by topic and partition.
Names = Mapping[tuple[str, int], str]


def of(cluster: str, topics: Iterable[str], as_of: datetime) -> Names:
    """The names of partitions of these topics; none of a cluster whose partitions are numbers, for which nothing is
    read."""
    if rocketmq_named(cluster, context.config().clusters) is None:
        return {}
    return ask(queries.labels, cluster, tuple(sorted(set(topics))), as_of)


def place(topic: str, partition: int, names: Names) -> str:
    """A partition in a sentence, as Markdown: ``orders-3``, or ``orders broker-a q3``."""
    name = names.get((topic, partition))
    return f"{escaping.markdown(topic)}-{partition}" if name is None else escaping.markdown(f"{topic} {name}")
