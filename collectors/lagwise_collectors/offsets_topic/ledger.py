"""The state of all groups as the records tell it, and what happened since it was last asked for.

Pure: records in, events out. What belongs to one group lies in one partition of ``__consumer_offsets``, so the outcome
does not depend on how the partitions' records interleave, nor on how they are cut into batches.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from lagwise.domain.vocabulary import EventKind, EventSource
from lagwise_collectors.offsets_topic.commit_history import CommitHistory
from lagwise_collectors.offsets_topic.commit_rewinds import Moved, commit_events
from lagwise_collectors.offsets_topic.rebalance_events import TrackedRebalance, moment, rebalance_event
from lagwise_collectors.offsets_topic.records import CommitKey, UnknownVersionError, commit_of, full_commit_of, key_of
from lagwise_collectors.offsets_topic.tracked_groups import TOGETHER_MS, Ended, TrackedGroup, TrackedGroups
from lagwise_collectors.offsets_topic.wire_types import GarbageError
from lagwise_collectors.protocol import ErrorTally
from lagwise_collectors.sample_diff.events import Event

EXPIRED, DELETED = "expired", "deleted"
#: What happened is asked for every few seconds; if it is not, it must not take all memory.
_MOST_HELD = 200_000
_DROPPED = ("events_dropped", "too many things happened at once to tell each")


class Record(Protocol):
    """A record as confluent_kafka has it."""

    def key(self) -> Any: ...  # bytes or None; not every version of the library says so
    def value(self) -> Any: ...
    def partition(self) -> Any: ...  # int
    def offset(self) -> Any: ...
    def timestamp(self) -> tuple[int, int]: ...


@dataclass(frozen=True, slots=True)
class Taken:
    """What happened since the last time: events in order of time, pairs that were committed on, and errors."""

    events: list[Event]
    committed: list[CommitHistory]
    errors: ErrorTally


class Ledger:
    """Everything the records have told. ``positions`` is the next offset to read of each partition.

    Of partitions in ``priming`` records are taken in without a word. ``retention_ms`` is the broker's
    ``offsets.retention.minutes``, where known.
    """

    def __init__(self, selects: Callable[[str], bool]) -> None:
        self.positions: dict[int, int] = {}
        self.priming: set[int] = set()
        self.pairs: dict[bytes, CommitHistory] = {}
        self.groups = TrackedGroups()
        self.retention_ms: int | None = None
        self._selects = selects
        self._ignored: set[bytes] = set()
        self._rebalances: list[TrackedRebalance] = []
        self._moved: list[Moved] = []
        self._touched: list[CommitHistory] = []
        self._errors = ErrorTally()

    def feed(self, records: Iterable[Record]) -> None:
        """Take in records, in the order of their offsets in each partition. What cannot be read is counted."""
        pairs, positions, ignored = self.pairs, self.positions, self._ignored
        priming = self.priming
        for record in records:
            positions[record.partition()] = record.offset() + 1
            key = record.key()
            try:
                pair = pairs.get(key)
                if pair is None:
                    if key not in ignored:
                        self._unusual(record, key)
                    continue
                value = record.value()
                if value is None:
                    self._forget(pair, key, record)
                    continue
                offset, at_ms = commit_of(value)
            except GarbageError as error:
                self._errors.note("offsets_topic_garbage", f"{_where(record)}: {error}")
                continue
            except UnknownVersionError as error:
                self._errors.note("offsets_topic_unknown_version", f"{_where(record)}: {error}")
                continue
            if record.partition() not in priming:
                if offset < pair.offset:
                    self._move(Moved(pair.group, pair.topic, pair.partition, at_ms, pair.offset, offset))
                if not pair.commits:
                    self._touched.append(pair)
                pair.commits += 1
            pair.committed(offset, at_ms)

    def primed(self, partition: int) -> None:
        """Everything that was there at the start has been read: from now on things happen."""
        self.priming.discard(partition)
        self.groups.settle(partition)

    def take(self) -> Taken:
        """What happened since the last time this was asked. To be asked when no batch is half read."""
        events = [rebalance_event(happened, self.groups.topics) for happened in self._rebalances]
        events += commit_events(m for m in self._moved if m.after is not None or not self._explained(m))
        events += [self._gone(name, ended) for name, all_of in self.groups.ended.items() for ended in all_of]
        touched = [pair for pair in self._touched if pair.commits]
        taken = Taken(sorted(events, key=lambda event: event.at), touched, self._errors)
        self._rebalances, self._moved, self._touched = [], [], []
        self._errors = ErrorTally()
        self.groups.ended.clear()
        return taken

    def _unusual(self, record: Record, key: bytes | None) -> None:
        """Everything but another commit on a known pair."""
        if key is None:
            raise GarbageError("no key")
        about = key_of(key)
        if about is None or not self._selects(about.group):
            self._ignored.add(key)
        elif isinstance(about, CommitKey):
            value = record.value()
            if value is not None:  # else the tombstone of what was never seen
                self._first_commit(about, key, value, quiet=record.partition() in self.priming)
        else:
            partition = record.partition()
            quiet = partition in self.priming
            at_ms = max(0, record.timestamp()[1])
            for happened in self.groups.take_in(about, record.value(), at_ms, partition=partition, quiet=quiet):
                if len(self._rebalances) < _MOST_HELD:
                    self._rebalances.append(happened)
                else:
                    self._errors.note(*_DROPPED)

    def _first_commit(self, about: CommitKey, key: bytes, value: bytes, *, quiet: bool) -> None:
        commit = full_commit_of(value)
        if commit.topic_id is not None:
            self.groups.topics[commit.topic_id] = about.topic
        pair = CommitHistory(about.group, about.topic, about.partition, commit.offset, commit.at_ms)
        self.add(key, pair)
        if not quiet:
            pair.commits = 1
            self._touched.append(pair)

    def add(self, key: bytes, pair: CommitHistory) -> None:
        """A pair that was not known."""
        self.pairs[key] = pair
        self.groups.of(pair.group).pairs[pair.topic, pair.partition] = pair

    def _forget(self, pair: CommitHistory, key: bytes, record: Record) -> None:
        """The tombstone of a pair's commits."""
        del self.pairs[key]
        pair.commits = 0
        group = self.groups.by_name[pair.group]
        group.pairs.pop((pair.topic, pair.partition), None)
        at_ms = max(0, record.timestamp()[1])
        if record.partition() not in self.priming:
            why = self._why(pair, group, at_ms)
            self._move(Moved(pair.group, pair.topic, pair.partition, at_ms, pair.offset, None, why))
        if not group.pairs and group.classic is None and group.consumer is None:
            del self.groups.by_name[pair.group]
            if record.partition() not in self.priming and pair.group not in self.groups.ended:
                self.groups.end(pair.group, group, at_ms)

    def _move(self, moved: Moved) -> None:
        if len(self._moved) < _MOST_HELD:
            self._moved.append(moved)
        else:
            self._errors.note(*_DROPPED)

    def _why(self, pair: CommitHistory, group: TrackedGroup, at_ms: int) -> str | None:
        """Offsets expire when the retention is over and no member subscribes to the topic; else they were deleted."""
        if self.retention_ms is None:
            return None
        if at_ms - pair.at_ms < self.retention_ms:
            return DELETED
        return DELETED if any(pair.topic in member.topics for member in group.members.values()) else EXPIRED

    def _explained(self, moved: Moved) -> bool:
        """Offsets that are gone because their whole group is."""
        return any(
            abs(ended.at_ms - moved.at_ms) <= TOGETHER_MS or not ended.group.pairs
            for ended in self.groups.ended.get(moved.group, ())
        )

    def _gone(self, name: str, ended: Ended) -> Event:
        causes = {m.why for m in self._moved if m.group == name and m.after is None and m.why is not None}
        return Event(
            EventKind.GROUP_GONE,
            moment(ended.at_ms),
            name,
            before=ended.state,
            cause=" and ".join(sorted(causes)) or None,
            source=EventSource.OFFSETS_TOPIC,
        )


def _where(record: Record) -> str:
    return f"partition {record.partition()}, offset {record.offset()}"
