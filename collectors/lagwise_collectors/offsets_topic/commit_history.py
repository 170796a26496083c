"""What is known of the commits on group-partitions, and what happened to them: went back, or are gone."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from lagwise.domain.vocabulary import EventKind, EventSource
from lagwise_collectors.offsets_topic.rebalance_events import moment
from lagwise_collectors.sample_diff.events import Event

#: Up to this many partitions of a group and topic in one request are told one by one; more become one event.
_ONE_BY_ONE = 10
#: A smoothed pause follows the last one by this power of two.
_SMOOTHING = 3


class CommitHistory:
    """One group's commits on one partition. ``commits`` counts since it was last asked for."""

    __slots__ = ("at_ms", "commits", "group", "offset", "partition", "pause_ms", "topic")

    def __init__(self, group: str, topic: str, partition: int, offset: int, at_ms: int, pause_ms: int = 0) -> None:
        self.group = group
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.at_ms = at_ms
        self.pause_ms = pause_ms
        self.commits = 0

    def committed(self, offset: int, at_ms: int) -> None:
        """Take in a commit. The pause between commits is smoothed exponentially; it begins as the first one seen."""
        pause = at_ms - self.at_ms
        if pause > 0:
            self.pause_ms = self.pause_ms + ((pause - self.pause_ms) >> _SMOOTHING) if self.pause_ms else pause
        self.offset = offset
        self.at_ms = at_ms


class Moved(NamedTuple):
    """A committed offset that went back (``after``), or is gone (None; ``why`` in a word, where known)."""

    group: str
    topic: str
    partition: int
    at_ms: int
    before: int
    after: int | None = None
    why: str | None = None


def commit_events(moved: Iterable[Moved]) -> Iterator[Event]:
    """Events of rewinds and losses: those of one group, topic and moment together, where they are many."""
    order = attrgetter("at_ms", "group", "topic", "partition")
    for _, same in groupby(sorted(moved, key=order), key=attrgetter("at_ms", "group", "topic")):
        together = list(same)
        yield from _told(EventKind.COMMIT_REWOUND, [m for m in together if m.after is not None])
        yield from _told(EventKind.OFFSETS_GONE, [m for m in together if m.after is None])


def _told(kind: EventKind, moved: list[Moved]) -> Iterator[Event]:
    if len(moved) <= _ONE_BY_ONE:
        for m in moved:
            after = None if m.after is None else str(m.after)
            yield Event(
                kind,
                moment(m.at_ms),
                m.group,
                m.topic,
                m.partition,
                before=str(m.before),
                after=after,
                cause=m.why,
                source=EventSource.OFFSETS_TOPIC,
            )
        return
    cause = f"{len(moved)} partitions"
    if kind is EventKind.COMMIT_REWOUND:
        cause += f", {sum(m.before - (m.after or 0) for m in moved)} records in all"
    why = sorted({m.why for m in moved if m.why is not None})
    cause += f", {' and '.join(why)}" if why else ""
    first = moved[0]
    yield Event(kind, moment(first.at_ms), first.group, first.topic, cause=cause, source=EventSource.OFFSETS_TOPIC)
