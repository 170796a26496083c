"""Detects topics that were deleted, re-created, given more partitions, or configured differently."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lagwise.domain.vocabulary import ROCKETMQ, EventKind
from lagwise_collectors.sample_diff.events import Event

#: The error of watermarks whose topic does not exist (any more).
UNKNOWN_TOPIC = "unknown_topic"

SETTINGS = ("retention_ms", "retention_bytes", "segment_ms", "segment_bytes", "cleanup_policy", "min_isr")
#: In RocketMQ retention depends on brokers and their disks, and is no setting of a topic.
ROCKETMQ_SETTINGS = ("cleanup_policy",)


@dataclass(frozen=True, slots=True)
class TopicView:
    """A topic as it was when it could last be read."""

    topic_id: str | None
    partitions: int
    #: It was deleted.
    gone: bool = False


@dataclass(frozen=True, slots=True)
class TopicChanges:
    """The result of comparing topics."""

    views: dict[str, TopicView]
    events: list[Event]
    #: Topics whose offsets cannot be compared with those of the previous sample: deleted, re-created or not readable.
    unusable: set[str]


def topic_events(previous: Mapping[str, TopicView], watermarks: pa.Table, at: datetime) -> TopicChanges:
    """Compare topics with the ``raw/watermarks`` rows of a sample.

    A topic without rows is no longer watched, which is no event. A topic that was deleted has rows with the error
    ``unknown_topic`` in one sample.
    """
    views, events = dict(previous), []
    unusable = {name for name, view in previous.items() if view.gone}
    for row in _by_topic(watermarks):
        name, before = row["topic"], previous.get(row["topic"])
        if row["topic_id"] is None and row["error"] is not None:
            unusable.add(name)
            if row["error"] == UNKNOWN_TOPIC and before is not None and not before.gone:
                events.append(Event(EventKind.TOPIC_GONE, at, topic=name, before=before.topic_id))
                views[name] = replace(before, gone=True)
            continue
        now = views[name] = TopicView(row["topic_id"], row["last_partition"] + 1)
        if before is None:
            continue
        if before.topic_id and now.topic_id and before.topic_id != now.topic_id:
            unusable.add(name)
            events.append(Event(EventKind.TOPIC_RECREATED, at, topic=name, before=before.topic_id, after=now.topic_id))
        elif now.partitions > before.partitions:
            events.append(
                Event(
                    EventKind.PARTITIONS_ADDED,
                    at,
                    topic=name,
                    before=str(before.partitions),
                    after=str(now.partitions),
                )
            )
    return TopicChanges(views, events, unusable)


def setting_events(
    previous: Mapping[str, Mapping[str, Any]], topics: pa.Table, system: str
) -> tuple[dict[str, Mapping[str, Any]], list[Event]]:
    """Compare settings with the ``raw/topics`` rows of a sample. What could not be read is no change."""
    settings, events = dict(previous), []
    names = ROCKETMQ_SETTINGS if system == ROCKETMQ else SETTINGS
    for row in topics.to_pylist():
        name, now = row["topic"], {key: row[key] for key in names if row[key] is not None}
        before = previous.get(name, {})
        changed = [key for key in now if key in before and now[key] != before[key]]
        if changed:
            events.append(
                Event(
                    EventKind.CONFIG_CHANGED,
                    row["sampled_at"],
                    topic=name,
                    before=" ".join(f"{key}={before[key]}" for key in changed),
                    after=" ".join(f"{key}={now[key]}" for key in changed),
                )
            )
        settings[name] = {**before, **now}
    return settings, events


def _by_topic(watermarks: pa.Table) -> list[dict[str, Any]]:
    """Per topic its id, its last partition, and an error if there is one."""
    if watermarks.num_rows == 0:
        return []
    columns = {name: pc.cast(watermarks[name], pa.string()) for name in ("topic", "topic_id", "error")}
    by_topic = pa.table({**columns, "partition": watermarks["partition"]}).group_by("topic", use_threads=False)
    highest = by_topic.aggregate([("topic_id", "max"), ("partition", "max"), ("error", "max")])
    rows: list[dict[str, Any]] = highest.rename_columns(["topic", "topic_id", "last_partition", "error"]).to_pylist()
    return rows
