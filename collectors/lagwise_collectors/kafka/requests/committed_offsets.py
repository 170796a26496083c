"""OffsetFetch: what every group has committed.

All requests are sent before the first answer is waited for. librdkafka looks up every partition of an answer in a list,
from its beginning, so that its cost grows with the square of a group's partitions (10,000 take 0.18 s of CPU, 500 take
0.001 s). Groups known to be big are therefore asked for in slices of the partitions they are known to have. From
time to time each of them is asked as a whole again, which finds new topics that a consumer outside the group protocol
has begun to commit.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

from lagwise_collectors.kafka.requests.client import KafkaClient
from lagwise_collectors.kafka.requests.errors import KafkaTrouble, kind_of
from lagwise_collectors.kafka.requests.group_members import KafkaGroup, owners
from lagwise_collectors.protocol import ErrorTally

#: From this many partitions on a group is asked for in slices.
BIG_GROUP = 1_000
#: Partitions in a slice.
SLICE = 250
#: Every big group is asked as a whole once in this many samples.
WHOLE_EVERY = 40


@dataclass(slots=True)
class CommitColumns:
    """Columns of ``raw/commits``, the groups one after the other, and when the last answer came."""

    #: One name for several rows, unlike the other columns.
    group: list[str] = field(default_factory=list)
    #: How many rows each name in ``group`` stands for.
    rows: list[int] = field(default_factory=list)
    topic: list[str] = field(default_factory=list)
    partition: list[int] = field(default_factory=list)
    #: Committed offset (of the next record to read); None: never committed, gone, or not readable.
    committed: list[int | None] = field(default_factory=list)
    #: Offset of the next record at or after the committed one; None: not looked up. This column is filled last, when
    #: the ends are known, and is shorter than the others until then.
    next_record: list[int | None] = field(default_factory=list)
    #: Leader epoch of the commit; None: unknown.
    leader_epoch: list[int | None] = field(default_factory=list)
    #: Free text that the consumer committed with the offset; None where there is none.
    metadata: list[str | None] = field(default_factory=list)
    #: Id of the member that the partition is assigned to; None where no member has it.
    owner: list[str | None] = field(default_factory=list)
    #: When an external offset was written; None: it was committed to Kafka. May be shorter than the others.
    committed_at: list[datetime | None] = field(default_factory=list)
    #: When the last answer came; None where none did.
    read_at: datetime | None = None

    def add_without_offset(self, pairs: Sequence[tuple[str, int, str | None]]) -> None:
        """Append the columns of rows that have no offset, from topic, partition and owner."""
        nothing = [None] * len(pairs)
        self.topic += [topic for topic, _, _ in pairs]
        self.partition += [partition for _, partition, _ in pairs]
        self.owner += [owner for _, _, owner in pairs]
        self.committed += nothing
        self.leader_epoch += nothing
        self.metadata += nothing

    def keep_hidden(self, before: "CommitColumns", topics: Collection[str], groups: Collection[str]) -> set[str]:
        """Append what ``before`` has on these topics and this has not, without an offset; return the topics of that.

        Kafka leaves topics that the account may not describe out of the answer about a whole group, as if nothing were
        committed on them. Without these rows the commits would look as if they had expired; with them, and the error in
        the topic's watermarks, they are unreadable. Groups that are gone are left out.
        """
        if not topics:
            return set()
        present = set(self._pairs(topics))
        hidden: dict[str, list[tuple[str, int, str | None]]] = {}
        for group, topic, partition in before._pairs(topics):
            if group in groups and (group, topic, partition) not in present:
                hidden.setdefault(group, []).append((topic, partition, None))
        for group, those in hidden.items():
            self.add_without_offset(those)
            self.group.append(group)
            self.rows.append(len(those))
        return {topic for those in hidden.values() for topic, _, _ in those}

    def rows_by_partition(self, groups: Collection[str]) -> dict[str, dict[tuple[str, int], int]]:
        """The row of each topic and partition of these groups, by group."""
        found: dict[str, dict[tuple[str, int], int]] = {}
        for group, rows in self._rows_by_group():
            if group in groups:
                found.setdefault(group, {}).update({(self.topic[row], self.partition[row]): row for row in rows})
        return found

    def _pairs(self, topics: Collection[str]) -> Iterator[tuple[str, str, int]]:
        """Group, topic and partition of the rows on these topics."""
        for group, rows in self._rows_by_group():
            for row in rows:
                if self.topic[row] in topics:
                    yield group, self.topic[row], self.partition[row]

    def _rows_by_group(self) -> Iterator[tuple[str, range]]:
        start = 0
        for group, count in zip(self.group, self.rows, strict=True):
            yield group, range(start, start + count)
            start += count


class CommitReader:
    """Reads the commits of all groups, and remembers between samples which groups are big."""

    def __init__(self, client: KafkaClient, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._client = client
        self._clock = clock
        self._slices: dict[str, list[list[TopicPartition]]] = {}
        self._samples = 0
        self._answered_at: datetime | None = None

    def read(self, groups: Sequence[KafkaGroup], errors: ErrorTally) -> CommitColumns:
        """Commits of the groups that could be described. A group that cannot be read gets an ``error``."""
        self._answered_at = None
        readable = [group for group in groups if group.error is None]
        whole_groups = self._due_as_whole()
        asked = []
        for group in readable:
            slices = None if group.name in whole_groups else self._slices.get(group.name)
            asked.append((group, slices, self._ask(group, slices)))
        commits = CommitColumns()
        for group, slices, futures in asked:
            try:
                answers = [self._client.wait(future)[0] for future in futures]
            except KafkaTrouble as trouble:
                if trouble.kind != "group_gone":
                    group.error = trouble.kind
                    errors.note(trouble.kind, f"committed offsets of group {group.name}: {trouble}")
                continue
            found = [tp for answer in answers for tp in answer.topic_partitions]
            self._keep(group, found, commits, errors, whole=slices is None)
        self._forget_groups_but(group.name for group in groups)
        commits.read_at = self._answered_at
        return commits

    def _ask(self, group: KafkaGroup, slices: list[list[TopicPartition]] | None) -> list[Future[Any]]:
        parts: Iterable[list[TopicPartition] | None] = slices or [None]
        if slices:
            known = {(tp.topic, tp.partition) for part in slices for tp in part} if group.members else set()
            new = [
                TopicPartition(topic, partition)
                for topic, partitions in owners(group.members).items()
                for partition in partitions
                if (topic, partition) not in known
            ]
            parts = [*slices, new] if new else slices
        futures = []
        for part in parts:
            request = [ConsumerGroupTopicPartitions(group.name, part)]
            future = self._client.request("list_consumer_group_offsets", request)
            future.add_done_callback(self._answered)
            futures.append(future)
        return futures

    def _answered(self, future: "Future[Any]") -> None:
        # In librdkafka's thread, at the moment of the answer: one slow coordinator must not date all commits.
        if future.exception() is None:
            self._answered_at = self._clock()

    def _keep(
        self, group: KafkaGroup, found: list[TopicPartition], commits: CommitColumns, errors: ErrorTally, *, whole: bool
    ) -> None:
        """Append the group's rows: what is committed, and what is owned without a commit."""
        # Only a partition that was asked for by name can have an error of its own, and it is always that its topic may
        # not be described (the others would need requests that we do not make). `keep_hidden` gives it its row.
        for tp in found:
            if tp.error is not None:
                kind = kind_of(tp.error)
                errors.note(kind, f"committed offset of group {group.name} on {tp.topic}[{tp.partition}]: {kind}")
        committed = [tp for tp in found if tp.offset >= 0 and tp.error is None]
        owned = owners(group.members)
        no_owners: Mapping[int, str] = {}
        commits.topic += (topics := [tp.topic for tp in committed])
        commits.partition += (partitions := [tp.partition for tp in committed])
        commits.committed += [tp.offset for tp in committed]
        commits.leader_epoch += [tp.leader_epoch for tp in committed]
        commits.metadata += [tp.metadata or None for tp in committed]
        if owned:
            commits.owner += [owned.get(t, no_owners).get(p) for t, p in zip(topics, partitions, strict=True)]
        else:
            commits.owner += [None] * len(committed)
        missing = owned_without_commit(owned, topics, partitions)
        commits.add_without_offset(missing)
        commits.group.append(group.name)
        commits.rows.append(len(committed) + len(missing))
        self._remember(group.name, topics, partitions, missing, whole=whole)

    def _remember(
        self,
        name: str,
        topics: list[str],
        partitions: list[int],
        missing: list[tuple[str, int, str]],
        *,
        whole: bool,
    ) -> None:
        count = len(topics) + len(missing)
        if count < BIG_GROUP:
            self._slices.pop(name, None)
            return
        known = self._slices.get(name)
        if not whole and known is not None and sum(map(len, known)) == count:
            return  # an answer to slices holds nothing that was not asked for: as many as asked are the same ones
        pairs = [*zip(topics, partitions, strict=True), *((topic, partition) for topic, partition, _ in missing)]
        every = [TopicPartition(topic, partition) for topic, partition in pairs]
        self._slices[name] = [every[i : i + SLICE] for i in range(0, len(every), SLICE)]

    def _due_as_whole(self) -> set[str]:
        """Big groups that are asked as a whole in this sample: each of them once in a round, evenly spread over it."""
        names = sorted(self._slices)
        step = self._samples % WHOLE_EVERY
        self._samples += 1
        return {name for i, name in enumerate(names) if i * WHOLE_EVERY // len(names) == step}

    def _forget_groups_but(self, names: Iterable[str]) -> None:
        present = set(names)
        for name in [name for name in self._slices if name not in present]:
            del self._slices[name]


def owned_without_commit(
    owned: Mapping[str, Mapping[int, str]], topics: list[str], partitions: list[int]
) -> list[tuple[str, int, str]]:
    """Topic, partition and owner of what is owned and not among these partitions of these topics."""
    if not owned:
        return []
    have = set(zip(topics, partitions, strict=True))
    return [
        (topic, partition, member)
        for topic, by_partition in sorted(owned.items())
        for partition, member in sorted(by_partition.items())
        if (topic, partition) not in have
    ]
