"""The state of all groups by the records read so far, and the changes since the last call of ``take``.

Pure: records in, events out. All records of one group are in one partition of ``__consumer_offsets``, so the result
depends neither on how the records of partitions interleave, nor on how they are batched.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol

from lagwise.domain.vocabulary import EventKind, EventSource
from lagwise_collectors.offsets_topic.commit_history import CommitHistory
from lagwise_collectors.offsets_topic.rebalance_events import TrackedRebalance, moment, rebalance_event
from lagwise_collectors.offsets_topic.records import CommitKey, UnknownVersionError, commit_of, full_commit_of, key_of
from lagwise_collectors.offsets_topic.tracked_groups import TOGETHER_MS, EndedGroup, TrackedGroup, TrackedGroups
from lagwise_collectors.offsets_topic.wire_types import MalformedRecordError
from lagwise_collectors.protocol import ErrorTally
from lagwise_collectors.sample_diff.commit_changes import CommitChange, change_events
from lagwise_collectors.sample_diff.events import DROPPED, Event

EXPIRED, DELETED = "expired", "deleted"
_TOGETHER = timedelta(milliseconds=TOGETHER_MS)
#: Changes are taken every few seconds. Those that are not taken must not fill the memory.
_MAX_HELD = 200_000


class OffsetsRecord(Protocol):
    """A record as confluent_kafka has it."""

    def key(self) -> Any: ...  # bytes or None; not every version of the library says so
    def value(self) -> Any: ...
    def partition(self) -> Any: ...  # int
    def offset(self) -> Any: ...
    def timestamp(self) -> tuple[int, int]: ...


@dataclass(frozen=True, slots=True)
class LedgerChanges:
    """What changed since the last call."""

    #: In order of time.
    events: list[Event]
    #: Group-partitions with a new commit.
    committed: list[CommitHistory]
    errors: ErrorTally


class Ledger:
    """All groups and commits, by the records read so far. ``selects`` says whether a group is watched."""

    def __init__(self, selects: Callable[[str], bool]) -> None:
        #: The next offset to read of each partition.
        self.positions: dict[int, int] = {}
        #: Partitions whose history is still being read: their records report no events.
        self.priming: set[int] = set()
        #: Commits on group-partitions, by the key of their records.
        self.pairs: dict[bytes, CommitHistory] = {}
        self.groups = TrackedGroups()
        #: The broker's ``offsets.retention.minutes``, where known.
        self.retention_ms: int | None = None
        self._selects = selects
        self._ignored: set[bytes] = set()
        self._rebalances: list[TrackedRebalance] = []
        self._commit_changes: list[CommitChange] = []
        self._committed: list[CommitHistory] = []
        self._errors = ErrorTally()

    def feed(self, records: Iterable[OffsetsRecord]) -> None:
        """Process records, in the order of their offsets in each partition. Records that cannot be read are counted."""
        pairs, positions, ignored = self.pairs, self.positions, self._ignored
        priming = self.priming
        for record in records:
            positions[record.partition()] = record.offset() + 1
            key = record.key()
            try:
                pair = pairs.get(key)
                if pair is None:
                    if key not in ignored:
                        self._feed_other(record, key)
                    continue
                value = record.value()
                if value is None:
                    self._feed_tombstone(pair, key, record)
                    continue
                offset, at_ms = commit_of(value)
            except MalformedRecordError as error:
                self._errors.note("offsets_topic_garbage", f"{_where(record)}: {error}")
                continue
            except UnknownVersionError as error:
                self._errors.note("offsets_topic_unknown_version", f"{_where(record)}: {error}")
                continue
            if record.partition() not in priming:
                if offset < pair.offset:
                    self._add_change(EventKind.COMMIT_REWOUND, pair, at_ms, offset)
                if not pair.commits:
                    self._committed.append(pair)
                pair.commits += 1
            pair.committed(offset, at_ms)

    def primed(self, partition: int) -> None:
        """The history of a partition has been read: from now on its records report events."""
        self.priming.discard(partition)
        self.groups.settle(partition)

    def take(self) -> LedgerChanges:
        """The changes since the last call. Not to be called while a batch is being fed."""
        events = [rebalance_event(rebalance, self.groups.topics) for rebalance in self._rebalances]
        changes = (m for m in self._commit_changes if m.after is not None or not self._is_explained(m))
        events += change_events(changes, EventSource.OFFSETS_TOPIC)
        events += [self._gone(name, ended) for name, all_of in self.groups.ended.items() for ended in all_of]
        committed = [pair for pair in self._committed if pair.commits]
        taken = LedgerChanges(sorted(events, key=lambda event: event.at), committed, self._errors)
        self._rebalances, self._commit_changes, self._committed = [], [], []
        self._errors = ErrorTally()
        self.groups.ended.clear()
        return taken

    def _feed_other(self, record: OffsetsRecord, key: bytes | None) -> None:
        """Process everything but another commit on a known group-partition."""
        if key is None:
            raise MalformedRecordError("no key")
        parsed_key = key_of(key)
        if parsed_key is None or not self._selects(parsed_key.group):
            self._ignored.add(key)
        elif isinstance(parsed_key, CommitKey):
            value = record.value()
            if value is not None:  # otherwise the tombstone of commits that were never read
                self._first_commit(parsed_key, key, value, quiet=record.partition() in self.priming)
        else:
            partition = record.partition()
            quiet = partition in self.priming
            at_ms = max(0, record.timestamp()[1])
            for rebalance in self.groups.feed(parsed_key, record.value(), at_ms, partition=partition, quiet=quiet):
                if len(self._rebalances) < _MAX_HELD:
                    self._rebalances.append(rebalance)
                else:
                    self._errors.note(*DROPPED)

    def _first_commit(self, parsed_key: CommitKey, key: bytes, value: bytes, *, quiet: bool) -> None:
        commit = full_commit_of(value)
        if commit.topic_id is not None:
            self.groups.topics[commit.topic_id] = parsed_key.topic
        pair = CommitHistory(parsed_key.group, parsed_key.topic, parsed_key.partition, commit.offset, commit.at_ms)
        self.add(key, pair)
        if not quiet:
            pair.commits = 1
            self._committed.append(pair)

    def add(self, key: bytes, pair: CommitHistory) -> None:
        """Add a new group-partition."""
        self.pairs[key] = pair
        self.groups.of(pair.group).pairs[pair.topic, pair.partition] = pair

    def _feed_tombstone(self, pair: CommitHistory, key: bytes, record: OffsetsRecord) -> None:
        """Process the tombstone of a group-partition's commits."""
        del self.pairs[key]
        pair.commits = 0
        group = self.groups.by_name[pair.group]
        group.pairs.pop((pair.topic, pair.partition), None)
        at_ms = max(0, record.timestamp()[1])
        if record.partition() not in self.priming:
            cause = self._cause(pair, group, at_ms)
            self._add_change(EventKind.OFFSETS_GONE, pair, at_ms, None, cause)
        if not group.pairs and group.classic is None and group.consumer is None:
            del self.groups.by_name[pair.group]
            if record.partition() not in self.priming and pair.group not in self.groups.ended:
                self.groups.end(pair.group, group, at_ms)

    def _add_change(
        self, kind: EventKind, pair: CommitHistory, at_ms: int, after: int | None, cause: str | None = None
    ) -> None:
        if len(self._commit_changes) < _MAX_HELD:
            change = CommitChange(
                kind=kind,
                at=moment(at_ms),
                group=pair.group,
                topic=pair.topic,
                partition=pair.partition,
                before=pair.offset,
                after=after,
                cause=cause,
            )
            self._commit_changes.append(change)
        else:
            self._errors.note(*DROPPED)

    def _cause(self, pair: CommitHistory, group: TrackedGroup, at_ms: int) -> str | None:
        """Offsets expire after the retention where no member subscribes to the topic; otherwise they were deleted."""
        if self.retention_ms is None:
            return None
        if at_ms - pair.at_ms < self.retention_ms:
            return DELETED
        return DELETED if any(pair.topic in member.topics for member in group.members.values()) else EXPIRED

    def _is_explained(self, change: CommitChange) -> bool:
        """Whether offsets are gone because their whole group is."""
        return any(
            abs(moment(ended.at_ms) - change.at) <= _TOGETHER or not ended.group.pairs
            for ended in self.groups.ended.get(change.group, ())
        )

    def _gone(self, name: str, ended: EndedGroup) -> Event:
        causes = {m.cause for m in self._commit_changes if m.group == name and m.after is None and m.cause is not None}
        return Event(
            EventKind.GROUP_GONE,
            moment(ended.at_ms),
            name,
            before=ended.state,
            cause=" and ".join(sorted(causes)) or None,
            source=EventSource.OFFSETS_TOPIC,
        )


def _where(record: OffsetsRecord) -> str:
    return f"partition {record.partition()}, offset {record.offset()}"
