"""Rows of commits and watermarks from what one broker returned."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from lagwise_collectors.protocol import ErrorTally
from lagwise_collectors.rocketmq.broker_reader import BrokerView
from lagwise_collectors.rocketmq.group_view import RocketmqGroup
from lagwise_collectors.rocketmq.partition_numbers import QUEUES, label_of, partition_of
from lagwise_collectors.rocketmq.remoting.errors import MalformedResponse
from lagwise_collectors.rocketmq.remoting.requests import Queue, QueueRange
from lagwise_collectors.rocketmq.retry_topics import RETRY, topics_read

Columns = dict[str, list[Any]]
_ENDS = ("log_start", "high_watermark", "newest_record_at")


@dataclass(slots=True)
class BrokerRows:
    """Columns of ``raw/commits`` and ``raw/watermarks``, by name, that are about one broker's queues."""

    commits: Columns = field(
        default_factory=lambda: {name: [] for name in ("group", "topic", "partition", "committed", "owner")}
    )
    watermarks: Columns = field(
        default_factory=lambda: {name: [] for name in ("topic", "partition", "label", *_ENDS, "error")}
    )

    def unread(self, kind: str) -> "BrokerRows":
        """The same queues while the broker cannot be read: committed offsets as they were read last, ends unknown."""
        count = len(self.watermarks["topic"])
        unknown: Columns = {name: [None] * count for name in _ENDS}
        return BrokerRows(self.commits, {**self.watermarks, **unknown, "error": [kind] * count})


def rows_of_broker(
    view: BrokerView, number: int, groups: Sequence[RocketmqGroup], wanted: Collection[str], errors: ErrorTally
) -> BrokerRows:
    """The rows of a broker that could be read; ``wanted`` are the topics whose ends were asked for."""
    rows = BrokerRows()
    for group in groups:
        if group.name in view.groups or group.name in view.offsets:
            _commits(rows, view, number, group, errors)
    for topic in sorted(set(wanted) & view.topics.keys()):
        _watermarks(rows, view, number, topic, errors)
    return rows


def _commits(rows: BrokerRows, view: BrokerView, number: int, group: RocketmqGroup, errors: ErrorTally) -> None:
    broker = view.broker.name
    owners = group.owners_on(broker)
    progress = group.progress
    committed_on = view.offsets.get(group.name, {})
    for topic in sorted(topics_read(group, view)):
        count = min(view.topics[topic].queues, QUEUES)
        if progress is not None:
            committed = [progress.get(Queue(topic, broker, queue)) for queue in range(count)]
        else:
            try:
                committed = _offsets(committed_on.get(topic, {}), count)
            except MalformedResponse as trouble:
                errors.note(trouble.kind, f"committed offsets of group {group.name} on topic {topic}: {trouble}")
                committed = [None] * count
            if topic.startswith(RETRY):
                if not group.topics and not committed_on and _is_empty(view.ranges.get(topic, {})):
                    continue  # of a group that has never read anything
                # Without a committed offset, members start a retry topic at its first message: all of it is unread.
                committed = [offset or 0 for offset in committed]
        owned = owners.get(topic, {})
        rows.commits["group"] += [group.name] * count
        rows.commits["topic"] += [topic] * count
        rows.commits["partition"] += _partitions(number, count)
        rows.commits["committed"] += committed
        rows.commits["owner"] += map(owned.get, range(count)) if owned else [None] * count


def _offsets(found: Mapping[str, Any], count: int) -> list[int | None]:
    """Committed offsets by queue. A missing or negative one was never committed."""
    offsets = list(map(found.get, _names(count)))
    if not all(offset is None or (type(offset) is int and offset < 2**63) for offset in offsets):
        raise MalformedResponse("an offset is not a number")
    return [None if offset is None or offset < 0 else offset for offset in offsets]


def _is_empty(ranges: Mapping[int, QueueRange]) -> bool:
    return all(found.start >= found.end for found in ranges.values())


def _watermarks(rows: BrokerRows, view: BrokerView, number: int, topic: str, errors: ErrorTally) -> None:
    count = view.topics[topic].queues
    if count > QUEUES:
        errors.note("too_many_queues", f"topic {topic} on {view.broker.name}: queues from {QUEUES} on are left out")
        count = QUEUES
    trouble, ranges = view.topic_troubles.get(topic), view.ranges.get(topic, {})
    if trouble is not None:
        errors.note(trouble.kind, str(trouble))
    columns = rows.watermarks
    columns["topic"] += [topic] * count
    columns["partition"] += _partitions(number, count)
    for queue in range(count):
        found = ranges.get(queue)
        kind = trouble.kind if trouble else "unknown_queue" if found is None else None
        columns["label"].append(label_of(view.broker.name, queue))
        # A queue that was cleaned up to its end reports a start beyond it.
        columns["log_start"].append(None if found is None else min(found.start, found.end))
        columns["high_watermark"].append(None if found is None else found.end)
        columns["newest_record_at"].append(None if found is None else found.newest_at)
        columns["error"].append(kind)
        if kind == "unknown_queue":
            errors.note(kind, f"{topic} {label_of(view.broker.name, queue)}: the broker did not report it")


@lru_cache(maxsize=256)
def _names(count: int) -> tuple[str, ...]:
    return tuple(map(str, range(count)))


def _partitions(number: int, count: int) -> range:
    return range(partition_of(number, 0), partition_of(number, count))
