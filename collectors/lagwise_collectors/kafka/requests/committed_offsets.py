"""OffsetFetch through librdkafka: what every group has committed, where our own requests are of no use.

All requests are sent before the first answer is waited for. librdkafka looks up every partition of an answer in a list,
from its beginning, so that its cost grows with the square of a group's partitions (10,000 take 0.18 s of CPU, 500 take
0.001 s). Groups known to be big are therefore asked for in slices of the partitions they are known to have. From
time to time each of them is asked as a whole again, which finds new topics that a consumer outside the group protocol
has begun to commit.
"""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

import numpy as np
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

from lagwise_collectors.kafka.requests.client import KafkaClient
from lagwise_collectors.kafka.requests.commit_columns import NONE, CommitBlock, CommitColumns
from lagwise_collectors.kafka.requests.errors import KafkaTrouble, kind_of
from lagwise_collectors.kafka.requests.group_members import KafkaGroup, owners
from lagwise_collectors.protocol import ErrorTally

#: From this many partitions on a group is asked for in slices.
BIG_GROUP = 1_000
#: Partitions in a slice.
SLICE = 250
#: Every big group is asked as a whole once in this many samples.
WHOLE_EVERY = 40


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
        first = len(commits.blocks)
        commits.add_group(group.name, owners(group.members), _block(group.name, committed))
        self._remember(group.name, commits.blocks[first:], whole=whole)

    def _remember(self, name: str, blocks: Sequence[CommitBlock], *, whole: bool) -> None:
        count = sum(map(len, blocks))
        if count < BIG_GROUP:
            self._slices.pop(name, None)
            return
        known = self._slices.get(name)
        if not whole and known is not None and sum(map(len, known)) == count:
            return  # an answer to slices holds nothing that was not asked for: as many as asked are the same ones
        every = [
            TopicPartition(topic, number)
            for block in blocks
            for topic, numbers in block.partitions()
            for number in numbers
        ]
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


def _block(group: str, found: Sequence[TopicPartition]) -> CommitBlock:
    metadata = [tp.metadata or None for tp in found]
    topics = [(topic, len(list(those))) for topic, those in groupby(found, lambda tp: tp.topic)]
    return CommitBlock(
        group,
        topics=[topic for topic, _ in topics],
        rows=[count for _, count in topics],
        partition=np.array([tp.partition for tp in found], np.int32),
        committed=np.array([tp.offset for tp in found], np.int64),
        leader_epoch=np.array([NONE if tp.leader_epoch is None else tp.leader_epoch for tp in found], np.int32),
        metadata=metadata if any(metadata) else None,
    )
