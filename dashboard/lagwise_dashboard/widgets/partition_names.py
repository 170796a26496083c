"""What a system itself calls its partitions. Kafka calls them as we do; RocketMQ calls them queues of brokers."""

from collections.abc import Iterable, Mapping
from datetime import datetime

from lagwise.links.first_commands import rocketmq_named
from lagwise_dashboard import context, escaping
from lagwise_dashboard.cache import ask
from lagwise_dashboard.queries import topic as queries
from lagwise_dashboard.queries.base import Row

#: Names by topic and partition.
PartitionNames = Mapping[tuple[str, int], str]
QUEUE_HELP = "Broker and queue, as RocketMQ's own tools name them."
_MAX_RANGES = 12


def of(cluster: str, topics: Iterable[str], as_of: datetime) -> PartitionNames:
    """The names of partitions of these topics; none of a cluster whose partitions are numbers, for which nothing is
    read."""
    if rocketmq_named(cluster, context.config().clusters) is None:
        return {}
    return ask(queries.partition_labels, cluster, tuple(sorted(set(topics))), as_of)


def place(topic: str, partition: int, names: PartitionNames) -> str:
    """A partition in a sentence, as Markdown: ``orders-3``, or ``orders broker-a q3``."""
    name = names.get((topic, partition))
    return f"{escaping.markdown(topic)}-{partition}" if name is None else escaping.markdown(f"{topic} {name}")


def owned(row: Row) -> str:
    """``orders 0–3, 7; audit 1``: the partitions of each topic, neighbours joined."""
    return "; ".join(f"{a['topic']} {ranges(a['partitions'])}" for a in row["assignment"] or [] if a["partitions"])


def ranges(numbers: list[int]) -> str:
    """``0–3, 7``."""
    result: list[list[int]] = []
    for number in sorted(numbers):
        if result and number == result[-1][1] + 1:
            result[-1][1] = number
        else:
            result.append([number, number])
    shown = [str(a) if a == b else f"{a}–{b}" if b > a + 1 else f"{a}, {b}" for a, b in result[:_MAX_RANGES]]
    return ", ".join(shown) + (" …" if len(result) > _MAX_RANGES else "")
