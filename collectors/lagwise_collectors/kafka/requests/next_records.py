"""Whether there is a record where a group stands still close to the end.

The offsets between a committed one and the end need not be records: every transaction ends in a marker that takes an
offset and is delivered to nobody, aborted records are delivered to no reader of committed ones, and compaction leaves
gaps. No request tells that; a fetch does. So where a pair has stood still within a short distance of the end from one
sample to the next, the next record is fetched once, and its offset is remembered for as long as the commit stays what
it is. Nothing but its offset is looked at.

Retention deletes markers like records, and then nothing can be fetched any more. What was found before is therefore
kept in a file too. Where nothing was found in time, and the log is empty but for the one offset that a marker takes,
nobody can tell a deleted marker from a deleted record, and it is taken for a marker: a loss must never be invented.
"""

import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from lagwise.config import Cluster
from lagwise.platform.files import KeptFile
from lagwise_collectors.kafka.requests.client import LibrarySayings, librdkafka_settings
from lagwise_collectors.kafka.requests.errors import KafkaTrouble, kind_of, trouble_of

_FORMAT = "lagwise-next-records-1"


class LogPosition(NamedTuple):
    """An offset of a topic-partition."""

    topic: str
    partition: int
    offset: int


class Next(NamedTuple):
    """What comes at or after a place: a record at this offset, or, where there is none, the end."""

    offset: int
    is_record: bool


class NextRecordCache:
    """The file of one cluster. For one thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = KeptFile(path, log, "after a restart, next records are looked up anew as far as they still exist")
        self._kept: Mapping[LogPosition, Next] = {}

    def load(self) -> dict[LogPosition, Next]:
        """What the file holds; nothing where there is none that can be used."""
        try:
            data = json.loads(self._path.read_bytes())
            if data["format"] != _FORMAT:
                raise ValueError(f"its format is {data['format']}")
            found = {LogPosition(*place): Next(offset, is_record) for *place, offset, is_record in data["places"]}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, KeyError, TypeError) as error:
            log.warning("%s cannot be used, so next records are looked up anew: %s", self._path, error)
            return {}
        self._kept = found
        return dict(found)

    def keep(self, known: Mapping[LogPosition, Next]) -> None:
        """Replace the file where it says something else. Trouble costs nothing but the file."""
        if known == self._kept:
            return
        places = [[*place, *found] for place, found in known.items()]
        if self._file.write(json.dumps({"format": _FORMAT, "places": places}).encode()):
            self._kept = dict(known)


log = logging.getLogger("lagwise.collectors.kafka")

#: Farther from the end than this, markers are no matter.
NEAR = 1_000
#: So many partitions are looked at in one sample, and for so long; the rest waits for the next.
MOST_LOOK_UPS = 50
PATIENCE_SECONDS = 1.0
_POLL_SECONDS = 0.05


class NextRecords:
    """Remembers from sample to sample which commits stand still, and what comes next there. For one thread.

    ``fetch`` tells what comes next at each of some places, each of another partition; places of which it was not told
    in time may be missing. ``kept`` is the file that outlives this object.
    """

    def __init__(
        self, fetch: Callable[[Sequence[LogPosition]], Mapping[LogPosition, Next]], kept: NextRecordCache | None = None
    ) -> None:
        self._fetch = fetch
        self._kept = kept
        self._known: dict[LogPosition, Next] = {} if kept is None else kept.load()
        self._ends: dict[LogPosition, int] = {}

    def after(
        self, commits: Sequence[LogPosition | None], ends: Mapping[tuple[str, int], tuple[int, int]]
    ) -> list[int | None]:
        """The offset of the next record (or the end) after each commit, None where it was not looked up.

        ``ends`` are the log start and the readable end of each partition.
        """
        known: dict[LogPosition, Next] = {}
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
                known[commit] = Next(end, is_record=False)
            if 0 < end - max(commit.offset, start, found.offset if found else 0) <= NEAR:
                near[commit] = end
        still = [commit for commit, end in near.items() if self._ends.get(commit) == end]
        known |= self._look_up(still, known, ends)
        self._known, self._ends = known, near
        if self._kept is not None:
            self._kept.keep(known)
        return [known[commit].offset if commit is not None and commit in known else None for commit in commits]

    def _look_up(
        self,
        commits: Sequence[LogPosition],
        known: Mapping[LogPosition, Next],
        ends: Mapping[tuple[str, int], tuple[int, int]],
    ) -> dict[LogPosition, Next]:
        asked: dict[tuple[str, int], tuple[LogPosition, LogPosition]] = {}
        for commit in commits:
            start, _ = ends[commit[:2]]
            begin = max(commit.offset, start, known[commit].offset if commit in known else 0)
            if len(asked) < MOST_LOOK_UPS:
                asked.setdefault(commit[:2], (commit, commit._replace(offset=begin)))
        if not asked:
            return {}
        told = self._fetch([place for _, place in asked.values()])
        return {commit: told[place] for commit, place in asked.values() if place in told}


class Fetcher:
    """Fetches next records, of committed transactions only, as a consumer outside of any group that commits nothing.

    A topic that may not be read is not asked for again.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._consumer: Consumer | None = None
        self._forbidden: set[str] = set()

    def __call__(self, places: Sequence[LogPosition]) -> dict[LogPosition, Next]:
        """What comes next at these places, as far as it can be told within a second."""
        allowed = {place[:2]: place for place in places if place.topic not in self._forbidden}
        if not allowed:
            return {}
        try:
            return self._fetch(allowed)
        except KafkaException as error:
            log.warning("%s: next records cannot be looked up: %s", self._cluster.name, trouble_of(error).kind)
            self.close()
            return {}

    def close(self) -> None:
        """Let go of the connection."""
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            consumer.close()

    def _fetch(self, places: Mapping[tuple[str, int], LogPosition]) -> dict[LogPosition, Next]:
        consumer = self._consumer = self._consumer or _consumer(self._cluster)
        consumer.assign([TopicPartition(*place) for place in places.values()])
        found: dict[LogPosition, Next] = {}
        failed: set[tuple[str, int]] = set()
        deadline = time.monotonic() + PATIENCE_SECONDS
        try:
            while len(found) + len(failed) < len(places) and time.monotonic() < deadline:
                message: Any = consumer.poll(_POLL_SECONDS)
                place = None if message is None else places.get((message.topic(), message.partition()))
                if place is None or place in found:
                    continue
                error = message.error()
                if error is None or error.code() == KafkaError._PARTITION_EOF:
                    found[place] = Next(message.offset(), is_record=error is None)
                else:
                    failed.add(place[:2])
                    self._note(place.topic, error)
        finally:
            consumer.unassign()
        return found

    def _note(self, topic: str, error: KafkaError) -> None:
        if kind_of(error) == "topic_not_authorized" and topic not in self._forbidden:
            self._forbidden.add(topic)
            log.info(
                "%s: the account may not read %s, so commit markers of transactions on it count as lag; granting it "
                "Read, or setting skip_control_records to false, ends this",
                self._cluster.name,
                topic,
            )


def _consumer(cluster: Cluster) -> Consumer:
    settings, _ = librdkafka_settings(cluster)
    quiet: dict[str, Any] = {"logger": LibrarySayings(lambda text: text).logger}
    return Consumer(
        {
            **settings,
            "group.id": "lagwise",  # librdkafka wants one; nothing is ever subscribed or committed under it
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "error",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,
            "fetch.min.bytes": 1,
            "fetch.message.max.bytes": 65_536,
            "queued.max.messages.kbytes": 4_096,
        },
        **quiet,
    )


def fetcher_of(cluster: Cluster) -> Fetcher | None:
    """The fetcher of a cluster whose settings allow it."""
    return Fetcher(cluster) if cluster.skip_control_records else None


def try_one(cluster: Cluster, place: LogPosition) -> str:
    """Look a single place up, for ``lagwise doctor``: in words what was found. Raises KafkaTrouble."""
    fetcher = Fetcher(cluster)
    try:
        found = fetcher([place])
    finally:
        fetcher.close()
    if place in found:
        return f"records of {place.topic} can be fetched"
    if place.topic in fetcher._forbidden:
        raise KafkaTrouble("topic_not_authorized", f"the account may not read {place.topic}")
    raise KafkaTrouble("timeout", f"no record of {place.topic} came within {PATIENCE_SECONDS:g} s")
