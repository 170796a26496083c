"""Events as plain records, and as rows of ``raw/events``."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import datetime

import pyarrow as pa

from lagwise.domain.vocabulary import EventKind, EventSource
from lagwise.tables.raw import EVENTS
from lagwise.tables.schema import no_rows
from lagwise_collectors.protocol import ErrorTally
from lagwise_collectors.sample_builder import columns_of, rows_from_columns

#: Events written of one sample: a restart of a whole cluster must not flood the lake.
MAX_EVENTS = 2_000
#: Kind and detail of the error that counts the rest.
DROPPED = ("events_dropped", "too many events at once to write each of them")
#: Names in one list of members; the rest is counted.
_MOST_NAMES = 50


@dataclass(frozen=True, slots=True)
class Event:
    """A row of ``raw/events``; every field is a column, whose meaning is declared in :mod:`lagwise.tables.raw`."""

    kind: EventKind
    at: datetime
    group: str | None = None
    topic: str | None = None
    partition: int | None = None
    before: str | None = None
    after: str | None = None
    generation: int | None = None
    source: EventSource = EventSource.SAMPLES
    cause: str | None = None
    joined: Sequence[str] | None = None
    left: Sequence[str] | None = None
    failed: Sequence[str] | None = None
    members: int | None = None
    partitions_moved: int | None = None
    #: Partitions by topic.
    moved: Sequence[tuple[str, Sequence[int]]] | None = None
    duration_seconds: float | None = None
    silent_seconds: float | None = None
    uncommitted_seconds: float | None = None
    session_timeout_seconds: float | None = None
    poll_interval_seconds: float | None = None


_NAME_LISTS = ("joined", "left", "failed")


def bounded(events: list[Event], errors: ErrorTally) -> list[Event]:
    """The events to write of one sample, the first ones; the rest is counted as an error."""
    if len(events) > MAX_EVENTS:
        errors.note(*DROPPED, len(events) - MAX_EVENTS)
    return events[:MAX_EVENTS]


def as_rows(events: Iterable[Event], cluster: str) -> pa.Table:
    """The events as rows of ``raw/events``."""
    events = list(events)
    if not events:
        return no_rows(EVENTS.without_day)
    columns = columns_of(events, *(field.name for field in fields(Event)))
    columns |= {name: [_shortened(names) for names in columns[name]] for name in _NAME_LISTS}
    columns["moved"] = [
        None if moved is None else [{"topic": topic, "partitions": partitions} for topic, partitions in moved]
        for moved in columns["moved"]
    ]
    return rows_from_columns(EVENTS, columns, sample_id="", cluster=cluster, at=events[0].at)


def _shortened(names: Sequence[str] | None) -> list[str] | None:
    if names is None or len(names) <= _MOST_NAMES:
        return None if names is None else list(names)
    return [*names[:_MOST_NAMES], f"… and {len(names) - _MOST_NAMES} more"]
