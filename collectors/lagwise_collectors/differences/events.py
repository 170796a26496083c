"""One thing that happened, as a plain record, and many of them as rows of ``raw/events``."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

from lagwise.domain.vocabulary import EventKind, EventSource
from lagwise.tables.raw import EVENTS
from lagwise_collectors.protocol import rows_of

#: Names in one list of members; the rest is counted.
_MOST_NAMES = 50


@dataclass(frozen=True, slots=True)
class Event:
    """A row of ``raw/events``; the columns mean what they mean there."""

    kind: EventKind
    at: datetime
    group: str | None = None
    topic: str | None = None
    partition: int | None = None
    before: str | None = None
    after: str | None = None
    cause: str | None = None
    joined: Sequence[str] | None = None
    left: Sequence[str] | None = None
    members: int | None = None
    partitions_moved: int | None = None
    duration_seconds: float | None = None


def as_rows(events: Iterable[Event], cluster: str) -> pa.Table:
    """The events as rows of ``raw/events``."""
    events = list(events)
    if not events:
        return EVENTS.arrow.remove(EVENTS.arrow.get_field_index("day")).empty_table()
    columns = {
        "at": [e.at for e in events],
        "kind": [e.kind.value for e in events],
        "source": [EventSource.SAMPLES.value] * len(events),
        "joined": [_bounded(e.joined) for e in events],
        "left": [_bounded(e.left) for e in events],
        **{
            name: [getattr(e, name) for e in events]
            for name in ("group", "topic", "partition", "before", "after", "cause", "members", "partitions_moved")
        },
        "duration_seconds": [e.duration_seconds for e in events],
    }
    return rows_of(EVENTS, columns, sample_id="", cluster=cluster, at=events[0].at)


def _bounded(names: Sequence[str] | None) -> list[str] | None:
    if names is None or len(names) <= _MOST_NAMES:
        return None if names is None else list(names)
    return [*names[:_MOST_NAMES], f"… and {len(names) - _MOST_NAMES} more"]
