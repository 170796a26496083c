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


class CommitChange(NamedTuple):
    """A committed offset that went back, or is gone."""

    group: str
    topic: str
    partition: int
    at_ms: int
    before: int
    #: None: it is gone.
    after: int | None = None
    #: Why it is gone: expired or deleted; None where that is unknown.
    cause: str | None = None


def commit_events(changes: Iterable[CommitChange]) -> Iterator[Event]:
    """Events of rewinds and losses. Many of one group, topic and time become one event."""
    order = attrgetter("at_ms", "group", "topic", "partition")
    for _, same in groupby(sorted(changes, key=order), key=attrgetter("at_ms", "group", "topic")):
        together = list(same)
        yield from _events(EventKind.COMMIT_REWOUND, [m for m in together if m.after is not None])
        yield from _events(EventKind.OFFSETS_GONE, [m for m in together if m.after is None])


def _events(kind: EventKind, changes: list[CommitChange]) -> Iterator[Event]:
    if len(changes) <= _ONE_BY_ONE:
        for m in changes:
            after = None if m.after is None else str(m.after)
            yield Event(
                kind,
                moment(m.at_ms),
                m.group,
                m.topic,
                m.partition,
                before=str(m.before),
                after=after,
                cause=m.cause,
                source=EventSource.OFFSETS_TOPIC,
            )
        return
    cause = f"{len(changes)} partitions"
    if kind is EventKind.COMMIT_REWOUND:
        cause += f", {sum(m.before - (m.after or 0) for m in changes)} records in all"
    causes = sorted({m.cause for m in changes if m.cause is not None})
    cause += f", {' and '.join(causes)}" if causes else ""
    first = changes[0]
    yield Event(kind, moment(first.at_ms), first.group, first.topic, cause=cause, source=EventSource.OFFSETS_TOPIC)
