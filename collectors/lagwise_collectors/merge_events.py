"""Exact events beside the differences of samples: each thing that happened is told once, by whoever saw it best."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from lagwise.domain.vocabulary import Engine, EventKind
from lagwise.tables.raw import COMMITS, EVENTS, GROUPS, WATERMARKS
from lagwise_collectors.offsets_topic.commit_history import CADENCE, Cadence
from lagwise_collectors.protocol import ErrorTally, EventSourceState, Snapshot
from lagwise_collectors.sample_diff.compare_samples import PreviousSample
from lagwise_collectors.sample_diff.events import MOST_EVENTS, Event

#: What ``__consumer_offsets`` tells. Changes of state stay with the samples: they are what a sample saw.
_TOLD = (EventKind.REBALANCE, EventKind.COMMIT_REWOUND, EventKind.OFFSETS_GONE, EventKind.GROUP_GONE)
#: Types of groups whose records are not read, or that have none there. (Flink's commits are there.)
_NOT_TOLD_OF = frozenset({"share", "streams", Engine.SPARK, Engine.SQL, Engine.FILES})


class Tail(Protocol):
    """Where exact events come from."""

    def take(self, topics: Mapping[str, str]) -> tuple[Snapshot | None, EventSourceState, ErrorTally]:
        """What happened since the last time, how the tail stands, what went wrong; ``topics`` are names by id."""
        ...

    def keep(self) -> None:
        """What was taken last is in safe hands."""
        ...

    def abandon(self) -> None:
        """End for good, from another thread."""
        ...

    def close(self) -> None:
        """Let go of everything."""
        ...


class EventMerge:
    """One cluster's tail, round after round.

    While it is live, the differences leave out what it tells. While it is not, they tell it, and what it tells later
    of that time is left out. Around such a change of hands, one thing may be told twice: samples and records do not
    have the same clock.
    """

    def __init__(self, tail: Tail) -> None:
        self._tail = tail
        self._cadence = Cadence()
        self._taken: Snapshot | None = None
        self._named: Mapping[str, str] = {}
        self._standing = EventSourceState()
        self._others: frozenset[str] = frozenset()
        self._last_at: datetime | None = None
        #: The time of which the differences told: (from, to].
        self._told: tuple[datetime, datetime] | None = None
        self.errors = ErrorTally()
        self.cpu_seconds = 0.0

    def take(self, snapshot: Snapshot, *, compared: bool) -> None:
        """Ask the tail, after the sample. ``compared``: the sample can be read, and there was one before it."""
        names = _names(snapshot)
        new = {topic_id: name for topic_id, name in names.items() if topic_id not in self._named}
        self._taken, self._standing, self.errors = self._tail.take(new)
        self._named = names if self._taken is not None else {}
        self.cpu_seconds = 0.0 if self._taken is None else self._taken.header["cpu_seconds"]
        types = {row["group"]: row["type"] for row in snapshot.rows(GROUPS).select(["group", "type"]).to_pylist()}
        others = {name for name, kind in types.items() if kind in _NOT_TOLD_OF}
        self._others = frozenset(others | (self._others - types.keys()))  # one that is gone was what it was
        at = snapshot.header["finished_at"]
        if not self._tells and compared and self._last_at is not None:
            self._told = (self._told[0] if self._told else self._last_at, at)
        self._last_at = at

    def told_elsewhere(self, event: Event) -> bool:
        """Whether the tail tells this difference of two samples."""
        return self._tells and event.kind in _TOLD and event.group not in self._others

    @property
    def _tells(self) -> bool:
        """Whether the tail tells of the whole time since the sample before."""
        return self._standing.live and not self._standing.fresh

    def complete(self, snapshot: Snapshot, known: PreviousSample) -> Snapshot:
        """The snapshot with the tail's events and commit times. ``known`` is what the samples have shown so far."""
        if self._taken is None:
            return snapshot
        committed = self._taken.tables[CADENCE] if self._standing.live else None
        commits = self._cadence.fill(snapshot.rows(COMMITS), committed, whole=self._standing.whole)
        if commits.num_rows:
            snapshot = snapshot.with_rows(COMMITS, commits)
        events = self._not_told(self._taken.rows(EVENTS), known)
        if self._tells:
            self._told = None
        if events.num_rows == 0:
            return snapshot
        before = snapshot.rows(EVENTS)
        room = MOST_EVENTS - before.num_rows
        if events.num_rows > room:
            self.errors.note("events_dropped", "too many things happened at once to tell each", events.num_rows - room)
            events = events.slice(0, max(0, room))
        together = events if before.num_rows == 0 else pa.concat_tables([_plain(before), _plain(events)])
        return snapshot.with_rows(EVENTS, together)

    def keep(self) -> None:
        """What was taken last is in safe hands."""
        if self._taken is not None:
            self._tail.keep()

    def close(self) -> None:
        """End the tail."""
        self._tail.close()

    def _not_told(self, events: pa.Table, known: PreviousSample) -> pa.Table:
        """Events that the differences have not told or explained."""
        if events.num_rows == 0:
            return events
        gone = pa.array([name for name, view in known.topics.items() if view.gone], pa.string())
        lost = pc.equal(pc.cast(events["kind"], pa.string()), EventKind.OFFSETS_GONE.value)
        wanted = pc.invert(pc.and_(lost, pc.is_in(pc.cast(events["topic"], pa.string()), gone)))
        if self._told is not None:
            since, until = (pa.scalar(at, events["at"].type) for at in self._told)
            inside = pc.and_(pc.greater(events["at"], since), pc.less_equal(events["at"], until))
            wanted = pc.and_(wanted, pc.invert(inside))
        return events.filter(wanted)


def _names(snapshot: Snapshot) -> dict[str, str]:
    """The sample's topics by id."""
    marks = snapshot.rows(WATERMARKS)
    if marks.num_rows == 0:
        return {}
    plain = pa.table({name: pc.cast(marks[name], pa.string()) for name in ("topic_id", "topic")})
    rows = plain.group_by(["topic_id", "topic"]).aggregate([]).to_pylist()
    return {row["topic_id"]: row["topic"] for row in rows if row["topic_id"] is not None}


def _plain(events: pa.Table) -> pa.Table:
    """Without dictionaries, which differ from table to table."""
    fields: Mapping[str, Any] = {field.name: field.type for field in EVENTS.arrow}
    return pa.table({name: pc.cast(events[name], fields[name]) for name in events.column_names})
