"""The committed offsets of a sample, in columns."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: In columns of numbers: there is none.
NONE = -1


@dataclass(slots=True)
class CommitBlock:
    """Rows of ``raw/commits`` about one group, its topics one after the other. A column that is None has no value in
    any row."""

    group: str
    topics: list[str]
    #: How many rows each of the topics has.
    rows: list[int]
    partition: NDArray[np.int32]
    #: Committed offset (of the next record to read); NONE: never committed, gone, or not readable.
    committed: NDArray[np.int64]
    #: Leader epoch of the commit; NONE: unknown.
    leader_epoch: NDArray[np.int32]
    #: Free text that the consumer committed with the offset; None where there is none.
    metadata: list[str | None] | None = None
    #: Id of the member that the partition is assigned to; None where no member has it.
    owner: list[str | None] | None = None
    #: When an external offset was written; None: it was committed to Kafka.
    committed_at: list[datetime | None] | None = None

    def __len__(self) -> int:
        return len(self.partition)

    def partitions(self) -> Iterator[tuple[str, list[int]]]:
        """Topics with their partitions, in the order of the rows."""
        numbers = self.partition.tolist()
        start = 0
        for topic, count in zip(self.topics, self.rows, strict=True):
            yield topic, numbers[start : start + count]
            start += count


@dataclass(slots=True)
class CommitColumns:
    """Rows of ``raw/commits``, the groups one after the other, and when the last answer came."""

    blocks: list[CommitBlock] = field(default_factory=list)
    #: Offset of the next record at or after the committed one; NONE: not looked up. Of all rows, filled last.
    next_record: NDArray[np.int64] | None = None
    #: When the last answer came; None where none did.
    read_at: datetime | None = None

    def __len__(self) -> int:
        return sum(map(len, self.blocks))

    def topics(self) -> set[str]:
        """The topics of the rows."""
        return {topic for block in self.blocks for topic, count in zip(block.topics, block.rows, strict=True) if count}

    def add_group(self, group: str, owned: Mapping[str, Mapping[int, str]], committed: CommitBlock) -> None:
        """Append what a group has committed, and what its members own without a commit.

        ``owned`` is the member by topic and partition.
        """
        self.blocks.append(committed)
        if not owned:
            return
        owner: list[str | None] = []
        have: dict[str, set[int]] = {}
        for topic, numbers in committed.partitions():
            its_owners = owned.get(topic, {})
            owner += [its_owners.get(number) for number in numbers]
            have.setdefault(topic, set()).update(numbers)
        committed.owner = owner
        missing = {topic: sorted(owned[topic].keys() - have.get(topic, set())) for topic in sorted(owned)}
        if any(missing.values()):
            block = without_offset(group, missing)
            block.owner = [owned[topic][number] for topic, numbers in missing.items() for number in numbers]
            self.blocks.append(block)

    def keep_hidden(self, before: "CommitColumns", topics: Collection[str], groups: Collection[str]) -> set[str]:
        """Append what ``before`` has on these topics and this has not, without an offset; return the topics of that.

        Kafka leaves topics that the account may not describe out of the answer about a whole group, as if nothing were
        committed on them. Without these rows the commits would look as if they had expired; with them, and the error in
        the topic's watermarks, they are unreadable. Groups that are gone are left out.
        """
        if not topics:
            return set()
        present = before._partitions(topics)
        for key, numbers in self._partitions(topics).items():
            present.get(key, set()).difference_update(numbers)
        hidden = {key: numbers for key, numbers in present.items() if numbers and key[0] in groups}
        self.blocks += [without_offset(group, {topic: sorted(those)}) for (group, topic), those in hidden.items()]
        return {topic for _, topic in hidden}

    def rows_by_partition(self, groups: Collection[str]) -> dict[str, dict[tuple[str, int], tuple[CommitBlock, int]]]:
        """The block and the row in it of each topic and partition of these groups, by group."""
        found: dict[str, dict[tuple[str, int], tuple[CommitBlock, int]]] = {}
        for block in self.blocks:
            if block.group in groups:
                rows = found.setdefault(block.group, {})
                pairs = [(topic, number) for topic, numbers in block.partitions() for number in numbers]
                rows.update({pair: (block, row) for row, pair in enumerate(pairs)})
        return found

    def partitions_of(self, topics: Collection[str]) -> Iterator[tuple[str, list[int]]]:
        """The partitions of the rows on these topics; a topic comes once for each group."""
        return (found for block in self.blocks for found in block.partitions() if found[0] in topics)

    def numbers(self, name: str, dtype: Any) -> NDArray[Any]:
        """A column of numbers, of all rows."""
        return np.concatenate([np.empty(0, dtype), *(getattr(block, name) for block in self.blocks)], dtype=dtype)

    def values(self, name: str) -> list[Any] | None:
        """A column of values, of all rows; None: there is none in any row."""
        columns = [getattr(block, name) for block in self.blocks]
        if all(column is None for column in columns):
            return None
        values: list[Any] = []
        for block, column in zip(self.blocks, columns, strict=True):
            values += [None] * len(block) if column is None else column
        return values

    def numbered_groups(self) -> tuple[NDArray[np.int32], list[str]]:
        """A number for the group of each row, and the groups."""
        return _numbered([block.group for block in self.blocks], [len(block) for block in self.blocks])

    def numbered_topics(self) -> tuple[NDArray[np.int32], list[str]]:
        """A number for the topic of each row, and the topics."""
        topics = [topic for block in self.blocks for topic in block.topics]
        return _numbered(topics, [count for block in self.blocks for count in block.rows])

    def _partitions(self, topics: Collection[str]) -> dict[tuple[str, str], set[int]]:
        found: dict[tuple[str, str], set[int]] = {}
        for block in self.blocks:
            for topic, numbers in block.partitions():
                if topic in topics:
                    found.setdefault((block.group, topic), set()).update(numbers)
        return found


def without_offset(group: str, partitions: Mapping[str, Sequence[int]]) -> CommitBlock:
    """Rows that have no offset, by topic."""
    numbers = [number for some in partitions.values() for number in some]
    return CommitBlock(
        group,
        topics=list(partitions),
        rows=[len(some) for some in partitions.values()],
        partition=np.array(numbers, np.int32),
        committed=np.full(len(numbers), NONE, np.int64),
        leader_epoch=np.full(len(numbers), NONE, np.int32),
    )


def _numbered(names: Sequence[str], rows: Sequence[int]) -> tuple[NDArray[np.int32], list[str]]:
    numbers: dict[str, int] = {}
    of_names = np.array([numbers.setdefault(name, len(numbers)) for name in names], np.int32)
    return np.repeat(of_names, rows), list(numbers)
