"""Merges external offsets with those committed to Kafka: one row per group, one per group-partition."""

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace

from lagwise_collectors.external_offsets.model import ExternalGroup, ExternalOffset, OffsetSourceTrouble
from lagwise_collectors.external_offsets.sources import ExternalOffsets
from lagwise_collectors.kafka.requests.commit_columns import NONE, CommitBlock, CommitColumns, without_offset
from lagwise_collectors.kafka.requests.group_members import KafkaGroup, KafkaMember
from lagwise_collectors.protocol import ErrorTally

#: Blocks and rows in them by topic and partition.
_Rows = Mapping[tuple[str, int], tuple[CommitBlock, int]]


def merge_with_kafka(
    external: ExternalOffsets,
    groups: list[KafkaGroup],
    commits: CommitColumns,
    names: "TopicNames",
    errors: ErrorTally,
) -> None:
    """Add external groups and their offsets to those of Kafka, in place.

    A group that Kafka knows, too, keeps its members where it has any. Otherwise its state and type are those of its job
    or source. Where both have an offset, the external one counts. Flink commits the same offsets to Kafka, so of those
    the higher one is the newer.
    """
    if not external.groups:
        return
    rows = commits.rows_by_partition({group.name for group in external.groups})
    known = {group.name: group for group in groups}
    for found in external.groups:
        its_rows = rows.get(found.name, {})
        if found.follows_kafka and found.error is None:
            try:
                names.restore(found, {topic for topic, _ in its_rows})
            except OffsetSourceTrouble as trouble:
                errors.note(trouble.kind, f"offsets from {found.source}: {trouble}")
                found.error, found.offsets, found.job = trouble.kind, [], None
        group = known.get(found.name)
        if group is None:
            if found.follows_kafka and found.error is None and not found.offsets:
                continue  # an ended job without offsets: Flink keeps it for a while
            group = KafkaGroup(found.name)
            groups.append(group)
        if not group.members:
            _describe(group, found, is_in_kafka=found.name in known)
        if found.error is None:
            _add(found, commits, its_rows)
    if external.read_at is not None:
        commits.read_at = max(commits.read_at or external.read_at, external.read_at)


def _describe(group: KafkaGroup, found: ExternalGroup, *, is_in_kafka: bool) -> None:
    group.source, group.type = found.source, found.type
    if found.error is not None:
        group.state = None
        # What a Flink job has committed can be read from Kafka. Only its state and its name are unknown.
        if not (found.follows_kafka and is_in_kafka):
            group.error = found.error
        return
    group.state, group.error = found.state, None
    group.checkpointed_at = found.checkpointed_at
    group.checkpoint_interval_seconds = found.checkpoint_interval_seconds
    if found.job is not None:
        owned: dict[str, list[int]] = {}
        for offset in sorted(found.offsets, key=lambda one: (one.topic, one.partition)):
            owned.setdefault(offset.topic, []).append(offset.partition)
        group.members = [KafkaMember(found.job.id, found.job.name, None, None, owned)]


def _add(found: ExternalGroup, commits: CommitColumns, rows: _Rows) -> None:
    owner = found.job.id if found.job is not None else None
    new: list[ExternalOffset] = []
    for offset in found.offsets:
        place = rows.get((offset.topic, offset.partition))
        if place is None:
            new.append(offset)
            continue
        block, row = place
        if owner is not None:
            block.owner = block.owner or [None] * len(block)
            block.owner[row] = block.owner[row] or owner
        before = int(block.committed[row])
        is_older = found.follows_kafka and before != NONE and before >= (offset.committed or 0)
        if offset.committed is not None and not is_older:
            block.committed[row], block.leader_epoch[row] = offset.committed, NONE
            block.committed_at = block.committed_at or [None] * len(block)
            block.committed_at[row] = offset.updated_at
            if block.metadata is not None:
                block.metadata[row] = None
    if new:
        new.sort(key=lambda offset: offset.topic)
        partitions: dict[str, list[int]] = {}
        for offset in new:
            partitions.setdefault(offset.topic, []).append(offset.partition)
        block = without_offset(found.name, partitions)
        block.committed[:] = [NONE if offset.committed is None else offset.committed for offset in new]
        block.committed_at = [offset.updated_at if offset.committed is not None else None for offset in new]
        block.owner = None if owner is None else [owner] * len(new)
        commits.blocks.append(block)


#: The names of all topics are listed at most this often, even while some are unknown.
LIST_EVERY_SECONDS = 60.0


class TopicNames:
    """The cluster's topics by their spelling in Flink's metrics, where each dot is an underscore. For one thread."""

    def __init__(self, names: Callable[[], Iterable[str]], monotonic: Callable[[], float] = time.monotonic) -> None:
        self._names = names
        self._monotonic = monotonic
        self._listed_at: float | None = None
        self._by_spelling: dict[str, list[str]] = {}

    def restore(self, group: ExternalGroup, committed: Collection[str]) -> None:
        """Give the group's topics their real names. ``committed`` are the topics that it has committed to: they resolve
        names that are spelled alike. Raises OffsetSourceTrouble where nothing does, and what listing the names
        raises."""
        spelled = {offset.topic for offset in group.offsets if "_" in offset.topic}
        if not spelled:
            return
        names = {one: self._name(one, committed) for one in spelled}
        group.offsets = [replace(offset, topic=names.get(offset.topic, offset.topic)) for offset in group.offsets]

    def _name(self, spelled: str, committed: Collection[str]) -> str:
        own = [name for name in committed if _spelled(name) == spelled]
        if len(own) == 1:
            return own[0]
        alike = self._alike(spelled)
        if len(alike) > 1:
            raise OffsetSourceTrouble("malformed", f"Flink spells {len(alike)} topics alike: {', '.join(alike[:3])}")
        return alike[0] if alike else spelled

    def _alike(self, spelled: str) -> list[str]:
        now = self._monotonic()
        is_due = self._listed_at is None or now - self._listed_at >= LIST_EVERY_SECONDS
        if spelled not in self._by_spelling and is_due:
            self._listed_at = now
            self._by_spelling = {}
            for name in sorted(self._names()):
                self._by_spelling.setdefault(_spelled(name), []).append(name)
        return self._by_spelling.get(spelled, [])


def _spelled(name: str) -> str:
    return name.replace(".", "_")
