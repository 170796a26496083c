"""Events of committed offsets that went back, or are gone, as the records of ``__consumer_offsets`` show them."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from lagwise.domain.vocabulary import EventKind, EventSource
from lagwise_collectors.offsets_topic.rebalance_events import moment
from lagwise_collectors.sample_diff.events import Event

#: Up to this many partitions of a group and topic in one request get an event each; more become one event.
_ONE_BY_ONE = 10


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
