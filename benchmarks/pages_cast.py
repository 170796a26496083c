"""Who is in the lake that the dashboard's pages are measured over: groups, topics, and who reads what."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.lake_columns import named
from lagwise.domain.vocabulary import Status

CLUSTER = "bench"
#: The group that has a whole day of minutes, and its topic.
GROUP, TOPIC = "group-0000", "topic-000"
#: The group whose topic has very many partitions.
WIDE_GROUP, WIDE_TOPIC = "group-wide", "topic-wide"
INTERVAL_SECONDS = 15.0
#: Of a hundred groups so many are in this status; the rest is ok.
_TROUBLED = (
    (Status.LOSING_DATA, 1),
    (Status.AT_RISK, 2),
    (Status.STOPPED, 3),
    (Status.STALLED, 4),
    (Status.FALLING_BEHIND, 6),
    (Status.LAGGING, 6),
    (Status.CATCHING_UP, 4),
    (Status.UNKNOWN, 4),
)


@dataclass(frozen=True, slots=True)
class Size:
    """``groups`` that read ``partitions`` each, of one of ``topics``, and one more that reads a topic of ``wide``
    partitions (0: there is none); how much of the past there is."""

    groups: int = 1000
    partitions: int = 100
    topics: int = 100
    minutes: int = 180
    hours: int = 7 * 24
    #: Of one group, and of the history of all.
    day_minutes: int = 24 * 60
    wide: int = 0

    @property
    def pairs(self) -> int:
        return self.groups * self.partitions + self.wide


SMALL = Size(groups=40, partitions=10, topics=4, minutes=30, hours=6, day_minutes=120, wide=300)


class Cast:
    """The groups and topics, and the group-partitions by topic and partition, the groups next to each other."""

    def __init__(self, size: Size) -> None:
        self.size = size
        index = np.arange(size.groups * size.partitions)
        wide = np.full(size.wide, size.groups)
        group = np.concatenate([index % size.groups, wide])
        partition = np.concatenate([index // size.groups, np.arange(size.wide)])
        topic = np.where(group < size.groups, group % size.topics, size.topics)
        order = np.lexsort((group, partition, topic))
        self.group, self.topic, self.partition = group[order], topic[order], partition[order].astype(np.int32)
        self.by_group = np.lexsort((self.partition, self.group))
        has_wide = size.wide > 0
        self.groups = pa.array([f"group-{g:04d}" for g in range(size.groups)] + [WIDE_GROUP] * has_wide)
        self.topics = pa.array([f"topic-{t:03d}" for t in range(size.topics)] + [WIDE_TOPIC] * has_wide)
        #: Of each partition of each topic: the number of its topic, and its own.
        self.log_topic = np.concatenate(
            [np.repeat(np.arange(size.topics), size.partitions), np.full(size.wide, size.topics)]
        )
        self.log_partition = np.concatenate([np.tile(np.arange(size.partitions), size.topics), np.arange(size.wide)])
        shares = [status for status, share in _TROUBLED for _ in range(share)]
        shares += [Status.OK] * (100 - len(shares))
        #: By the number of the group.
        self.status = [shares[(g * 37) % 100] for g in range(len(self.groups))]

    def partitions_of(self, group: int) -> int:
        """How many partitions a group reads."""
        return self.size.partitions if group < self.size.groups else self.size.wide

    def topic_of(self, group: int) -> str:
        """The topic that a group reads."""
        return f"topic-{group % self.size.topics:03d}" if group < self.size.groups else WIDE_TOPIC

    def names(self, which: Any = slice(None)) -> dict[str, Any]:
        """The columns that name some of the group-partitions."""
        group, topic, partition = self.group[which], self.topic[which], self.partition[which]
        return {
            "cluster": pa.array([CLUSTER]).take(pa.array(np.zeros(len(group), np.int32))),
            "group": named(group, self.groups),
            "topic": named(topic, self.topics),
            "partition": partition,
        }


def back(end: datetime, seconds: float, count: int) -> Iterator[datetime]:
    """``count`` moments at this distance up to ``end``, left out itself, on whole steps for buckets."""
    last = datetime.fromtimestamp(end.timestamp() // seconds * seconds, end.tzinfo)
    for number in range(count, 0, -1):
        yield last - timedelta(seconds=seconds * number)
