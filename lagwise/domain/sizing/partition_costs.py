"""What more partitions cost the brokers and those who read and write the topic, in words.

A new partition has one segment, and per replica a segment is an open file and two memory maps, of its offset and its
time index (Kafka's documentation, "OS", on ``vm.max_map_count``). Measured on Kafka 4.3: 10,000 partitions of one
segment hold 10,200 files open.
"""

from lagwise.domain.humanise import plural
from lagwise.domain.sizing.ranges import check_count

_MAPS_OF_A_SEGMENT = 2


def say_partition_costs(before: int, after: int) -> str:
    """The consequences of raising a topic from ``before`` partitions to more, in two or three sentences."""
    check_count("before", before, 1, 10_000_000)
    check_count("after", after, before + 1, 10_000_000)
    more = after - before
    return (
        f"It costs: for each replica at least {plural(more, 'open file')} and {_MAPS_OF_A_SEGMENT * more:,} memory "
        f"maps more on the brokers, {plural(more, 'partition')} more to replicate and to elect leaders for when a "
        "broker fails, and more to hand over in every rebalance. Keys move to other partitions, so a key's order "
        "breaks unless all is read before the change. It cannot be undone."
    )
