"""Merges events of ``__consumer_offsets`` with those from comparing samples: the better source writes each event."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from lagwise.domain.vocabulary import Engine, EventKind
from lagwise.tables.raw import COMMITS, EVENTS, GROUPS, WATERMARKS
from lagwise_collectors.offsets_topic.commit_history import CADENCE_TABLE, CommitCadence
from lagwise_collectors.protocol import ErrorTally, EventSourceState, Snapshot
from lagwise_collectors.sample_diff.compare_samples import PreviousSample
from lagwise_collectors.sample_diff.events import DROPPED, MAX_EVENTS, Event

#: Kinds of events that ``__consumer_offsets`` shows exactly. Changes of a group's state come from samples only.
_EXACT_KINDS = (EventKind.REBALANCE, EventKind.COMMIT_REWOUND, EventKind.OFFSETS_GONE, EventKind.GROUP_GONE)
#: Types of groups whose records are not read, or that have none there. (Flink's commits are there.)
_TYPES_WITHOUT_RECORDS = frozenset({"share", "streams", Engine.SPARK, Engine.SQL, Engine.FILES})


class EventTail(Protocol):
    """A source of exact events."""

    def take(self, topics: Mapping[str, str]) -> tuple[Snapshot | None, EventSourceState, ErrorTally]:
        """Events since the last call, how far the tail is, and errors; ``topics`` are names by id."""
        ...

    def acknowledge(self) -> None:
        """Everything taken so far is stored: it need not be delivered again after a restart."""
        ...

    def close(self) -> None:
        """Close connections and processes."""
        ...


class EventMerge:
    """Merges one cluster's tail into its samples, round after round.

    While the tail has caught up, the comparison of samples leaves out the kinds of events that the tail reports. While
    it has not, the comparison reports them, and the tail's later events of that time are left out. At such a change one
    event may be written twice, because samples and records do not have the same clock.
    """

    def __init__(self, tail: EventTail) -> None:
        self._tail = tail
        self._cadence = CommitCadence()
        self._taken: Snapshot | None = None
        #: Names by topic id that the tail has already received.
        self._sent_names: Mapping[str, str] = {}
        self._state = EventSourceState()
        #: Groups of which the tail reads no records.
        self._without_records: frozenset[str] = frozenset()
        self._last_at: datetime | None = None
        #: The time (from, to] whose events came from comparing samples.
        self._compared_time: tuple[datetime, datetime] | None = None
        self.errors = ErrorTally()
        self.cpu_seconds = 0.0

    def take(self, snapshot: Snapshot, *, compared: bool) -> None:
        """Ask the tail, after the sample. ``compared``: the sample can be read, and there was one before it."""
        names = _names(snapshot)
        new = {topic_id: name for topic_id, name in names.items() if topic_id not in self._sent_names}
        self._taken, self._state, self.errors = self._tail.take(new)
        self._sent_names = names if self._taken is not None else {}
        self.cpu_seconds = 0.0 if self._taken is None else self._taken.header["cpu_seconds"]
        types = {row["group"]: row["type"] for row in snapshot.rows(GROUPS).select(["group", "type"]).to_pylist()}
        without_records = {name for name, kind in types.items() if kind in _TYPES_WITHOUT_RECORDS}
        # A group that is gone keeps its last type.
        self._without_records = frozenset(without_records | (self._without_records - types.keys()))
        at = snapshot.header["finished_at"]
        if not self._covers_interval and compared and self._last_at is not None:
            self._compared_time = (self._compared_time[0] if self._compared_time else self._last_at, at)
        self._last_at = at

    def reports(self, event: Event) -> bool:
        """Whether the tail itself reports this difference of two samples."""
        return self._covers_interval and event.kind in _EXACT_KINDS and event.group not in self._without_records

    @property
    def _covers_interval(self) -> bool:
        """Whether the tail reports events of the whole time since the previous sample."""
        return self._state.is_caught_up and not self._state.is_first_time

    def complete(self, snapshot: Snapshot, previous: PreviousSample) -> Snapshot:
        """The snapshot with the tail's events and commit times. ``previous`` is what the samples have shown so far."""
        if self._taken is None:
            return snapshot
        committed = self._taken.tables[CADENCE_TABLE] if self._state.is_caught_up else None
        commits = self._cadence.fill(snapshot.rows(COMMITS), committed, all_commits=self._state.has_all_commits)
        if commits.num_rows:
            snapshot = snapshot.with_rows(COMMITS, commits)
        events = self._unreported(self._taken.rows(EVENTS), previous)
        if self._covers_interval:
            self._compared_time = None
        if events.num_rows == 0:
            return snapshot
        before = snapshot.rows(EVENTS)
        room = MAX_EVENTS - before.num_rows
        if events.num_rows > room:
            self.errors.note(*DROPPED, events.num_rows - room)
            events = events.slice(0, max(0, room))
        together = events if before.num_rows == 0 else pa.concat_tables([_plain(before), _plain(events)])
        return snapshot.with_rows(EVENTS, together)

    def acknowledge(self) -> None:
        """The last sample is stored, with the events that came along."""
        if self._taken is not None:
            self._tail.acknowledge()

    def close(self) -> None:
        """End the tail."""
        self._tail.close()

    def _unreported(self, events: pa.Table, previous: PreviousSample) -> pa.Table:
        """The tail's events that the comparison of samples has neither reported nor explained."""
        if events.num_rows == 0:
            return events
        gone = pa.array([name for name, view in previous.topics.items() if view.gone], pa.string())
        lost = pc.equal(pc.cast(events["kind"], pa.string()), EventKind.OFFSETS_GONE.value)
        wanted = pc.invert(pc.and_(lost, pc.is_in(pc.cast(events["topic"], pa.string()), gone)))
        if self._compared_time is not None:
            since, until = (pa.scalar(at, events["at"].type) for at in self._compared_time)
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
    """Decoded columns: dictionaries differ from table to table."""
    fields: Mapping[str, Any] = {field.name: field.type for field in EVENTS.arrow}
    return pa.table({name: pc.cast(events[name], fields[name]) for name in events.column_names})
