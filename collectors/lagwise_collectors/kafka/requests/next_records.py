"""Next records: whether there is a record between a committed offset and the end of its partition.

The offsets between a committed one and the end need not be records: every transaction ends in a marker that takes an
offset and is delivered to no consumer, aborted records are not delivered to readers of committed ones, and compaction
leaves gaps. No request shows that; a fetch does. So where a committed offset has stayed within a short distance of the
end from one sample to the next, the next record is fetched once, and its offset is remembered for as long as the commit
stays what it is. Only its offset is used.

Retention deletes markers like records, and then nothing can be fetched any more. What was found before is therefore
kept in a file, too. Where nothing was found in time, and the log is empty but for the one offset that a marker takes,
a deleted marker looks like a deleted record, and counts as a marker: Lagwise never invents a loss.
"""

import json
import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from lagwise.config import Cluster
from lagwise.platform.files import BestEffortFile
from lagwise.platform.log_events import LogEvent, event
from lagwise_collectors.kafka.requests.client import LibrdkafkaLog, unsubscribed_settings
from lagwise_collectors.kafka.requests.errors import KafkaTrouble, kind_of, trouble_of

_FORMAT = "lagwise-next-records-1"


class LogPosition(NamedTuple):
    """An offset of a topic-partition."""

    topic: str
    partition: int
    offset: int


class NextRecord(NamedTuple):
    """What comes at or after a position."""

    #: Of the next record or, where there is none, of the end.
    offset: int
    is_record: bool


class NextRecordCache:
    """The file of one cluster. For one thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = BestEffortFile(
            path, log, "after a restart, next records are looked up again where they still exist"
        )
        self._saved: Mapping[LogPosition, NextRecord] = {}

    def load(self) -> dict[LogPosition, NextRecord]:
        """The contents of the file; empty where it is missing or unusable."""
        try:
            data = json.loads(self._path.read_bytes())
            if data["format"] != _FORMAT:
                raise ValueError(f"its format is {data['format']}")
            records = {
                LogPosition(*position): NextRecord(offset, is_record) for *position, offset, is_record in data["places"]
            }
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, KeyError, TypeError) as error:
            log.warning(
                "%s cannot be used, so next records are looked up again: %s",
                self._path,
                error,
                extra=event(LogEvent.STATE_UNREADABLE),
            )
            return {}
        self._saved = records
        return dict(records)

    def save(self, known: Mapping[LogPosition, NextRecord]) -> None:
        """Replace the file where its contents differ. A failure costs only the file."""
        if known == self._saved:
            return
        positions = [[*position, *found] for position, found in known.items()]
        if self._file.write(json.dumps({"format": _FORMAT, "places": positions}).encode()):
            self._saved = dict(known)


log = logging.getLogger("lagwise.collectors.kafka")

#: Farther from the end than this, commit markers do not matter.
NEAR = 1_000
#: At most this many partitions are looked up in one sample, within this time; the rest follow in the next one.
MAX_LOOK_UPS = 50
PATIENCE_SECONDS = 1.0
_POLL_SECONDS = 0.05


class RecordFetcher(Protocol):
    """Fetches next records."""

    def __call__(self, positions: Sequence[LogPosition]) -> Mapping[LogPosition, NextRecord]:
        """What comes next at each of these positions, each of another partition; those that were not fetched in time
        may be missing."""
        ...

    def close(self) -> None:
        """Close connections and processes. May be called twice."""
        ...


class NextRecords:
    """Keeps from sample to sample which commits do not move, and what comes next there. For one thread.

    ``fetch`` is called as a :class:`RecordFetcher` is. ``cache`` is the file that survives this process.
    """

    def __init__(
        self,
        fetch: Callable[[Sequence[LogPosition]], Mapping[LogPosition, NextRecord]],
        cache: NextRecordCache | None = None,
    ) -> None:
        self._fetch = fetch
        self._cache = cache
        self._known: dict[LogPosition, NextRecord] = {} if cache is None else cache.load()
        self._ends: dict[LogPosition, int] = {}

    @property
    def known(self) -> Collection[LogPosition]:
        """Positions after which the next record is known."""
        return self._known.keys()

    def after(
        self, commits: Sequence[LogPosition | None], ends: Mapping[tuple[str, int], tuple[int, int]]
    ) -> list[int | None]:
        """The offset of the next record (or the end) after each commit, None where it was not looked up.

        ``ends`` are the log start and the readable end of each partition.
        """
        known: dict[LogPosition, NextRecord] = {}
        near: dict[LogPosition, int] = {}
        for commit in commits:
            if commit is None:
                continue
            found = self._known.get(commit)
            if found is not None:
                known[commit] = found
            if (its_ends := ends.get(commit[:2])) is None or (found is not None and found.is_record):
                continue
            start, end = its_ends
            if found is None and start == end == commit.offset + 1:
                known[commit] = NextRecord(end, is_record=False)
            if 0 < end - max(commit.offset, start, found.offset if found else 0) <= NEAR:
                near[commit] = end
        still = [commit for commit, end in near.items() if self._ends.get(commit) == end]
        known |= self._look_up(still, known, ends)
        self._known, self._ends = known, near
        if self._cache is not None:
            self._cache.save(known)
        return [known[commit].offset if commit is not None and commit in known else None for commit in commits]

    def _look_up(
        self,
        commits: Sequence[LogPosition],
        known: Mapping[LogPosition, NextRecord],
        ends: Mapping[tuple[str, int], tuple[int, int]],
    ) -> dict[LogPosition, NextRecord]:
        asked: dict[tuple[str, int], tuple[LogPosition, LogPosition]] = {}
        for commit in commits:
            start, _ = ends[commit[:2]]
            begin = max(commit.offset, start, known[commit].offset if commit in known else 0)
            if len(asked) < MAX_LOOK_UPS:
                asked.setdefault(commit[:2], (commit, commit._replace(offset=begin)))
        if not asked:
            return {}
        fetched = self._fetch([position for _, position in asked.values()])
        return {commit: fetched[position] for commit, position in asked.values() if position in fetched}


class NextRecordFetcher:
    """Fetches next records of committed transactions, as a consumer without a group that commits nothing.

    A topic that the account may not read is not tried again.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._consumer: Consumer | None = None
        self._forbidden: set[str] = set()

    def __call__(self, positions: Sequence[LogPosition]) -> dict[LogPosition, NextRecord]:
        """What comes next at these positions, as far as it arrives within a second."""
        allowed = {position[:2]: position for position in positions if position.topic not in self._forbidden}
        if not allowed:
            return {}
        try:
            return self._fetch(allowed)
        except KafkaException as error:
            log.warning(
                "%s: next records cannot be looked up: %s",
                self._cluster.name,
                trouble_of(error).kind,
                extra=event(LogEvent.NEXT_RECORDS_FAILED, cluster=self._cluster.name),
            )
            self.close()
            return {}

    def fetched(self, positions: Sequence[Sequence[Any]]) -> list[list[Any]]:
        """The same for another process, in values that JSON has: positions with what comes next."""
        found = self([LogPosition(*position) for position in positions])
        return [[*position, *record] for position, record in found.items()]

    def close(self) -> None:
        """Close the connection."""
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            consumer.close()

    def _fetch(self, positions: Mapping[tuple[str, int], LogPosition]) -> dict[LogPosition, NextRecord]:
        consumer = self._consumer = self._consumer or _consumer(self._cluster)
        consumer.assign([TopicPartition(*position) for position in positions.values()])
        found: dict[LogPosition, NextRecord] = {}
        failed: set[tuple[str, int]] = set()
        deadline = time.monotonic() + PATIENCE_SECONDS
        try:
            while len(found) + len(failed) < len(positions) and time.monotonic() < deadline:
                message: Any = consumer.poll(_POLL_SECONDS)
                position = None if message is None else positions.get((message.topic(), message.partition()))
                if position is None or position in found:
                    continue
                error = message.error()
                if error is None or error.code() == KafkaError._PARTITION_EOF:
                    found[position] = NextRecord(message.offset(), is_record=error is None)
                else:
                    failed.add(position[:2])
                    self._note(position.topic, error)
        finally:
            consumer.unassign()
        return found

    def _note(self, topic: str, error: KafkaError) -> None:
        if kind_of(error) == "topic_not_authorized" and topic not in self._forbidden:
            self._forbidden.add(topic)
            log.info(
                "%s: the account may not read %s, so commit markers of transactions on it count as lag. Grant it "
                "Read, or set skip_control_records to false",
                self._cluster.name,
                topic,
                extra=event(LogEvent.RIGHT_MISSING, cluster=self._cluster.name),
            )


def _consumer(cluster: Cluster) -> Consumer:
    quiet: dict[str, Any] = {"logger": LibrdkafkaLog(lambda text: text).logger}
    return Consumer(
        {
            **unsubscribed_settings(cluster),
            "fetch.wait.max.ms": 10,
            "fetch.min.bytes": 1,
            "fetch.message.max.bytes": 65_536,
            "queued.max.messages.kbytes": 4_096,
        },
        **quiet,
    )


def try_fetching(cluster: Cluster, position: LogPosition) -> str:
    """Look up a single position, for ``lagwise doctor``. Raises KafkaTrouble."""
    with closing(NextRecordFetcher(cluster)) as fetcher:
        found = fetcher([position])
    if position in found:
        return f"records of {position.topic} can be fetched"
    if position.topic in fetcher._forbidden:
        raise KafkaTrouble("topic_not_authorized", f"the account may not read {position.topic}")
    raise KafkaTrouble("timeout", f"no record of {position.topic} came within {PATIENCE_SECONDS:g} s")
