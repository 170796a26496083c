"""The committed offsets of a sample, in columns."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: In columns of numbers: there is none.
NONE = -1


@dataclass(slots=True)
class CommitBlock:
    """Rows of ``raw/commits`` about one group on one topic. A column that is None has no value in any row."""

    group: str
    topic: str
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
        return {block.topic for block in self.blocks}

    def add_group(
        self, group: str, owned: Mapping[str, Mapping[int, str]], committed: Iterable[CommitBlock]
    ) -> list[CommitBlock]:
        """Append what a group has committed, and what its members own without a commit; returns these blocks.

        ``owned`` is the member by topic and partition.
        """
        blocks = []
        have: dict[str, set[int]] = {}
        for block in committed:
            blocks.append(block)
            its_owners = owned.get(block.topic)
            if its_owners is not None:
                numbers = block.partition.tolist()
                block.owner = [its_owners.get(number) for number in numbers]
                have.setdefault(block.topic, set()).update(numbers)
        for topic, its_owners in sorted(owned.items()):
            missing = sorted(its_owners.keys() - have.get(topic, set()))
            if missing:
                blocks.append(without_offset(group, topic, missing, [its_owners[number] for number in missing]))
        self.blocks += blocks
        return blocks

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
        self.blocks += [without_offset(group, topic, sorted(those)) for (group, topic), those in hidden.items()]
        return {topic for _, topic in hidden}

    def rows_by_partition(self, groups: Collection[str]) -> dict[str, dict[tuple[str, int], tuple[CommitBlock, int]]]:
        """The block and the row in it of each topic and partition of these groups, by group."""
        found: dict[str, dict[tuple[str, int], tuple[CommitBlock, int]]] = {}
        for block in self.blocks:
            if block.group in groups:
                rows = found.setdefault(block.group, {})
                rows.update(
                    {(block.topic, number): (block, row) for row, number in enumerate(block.partition.tolist())}
                )
        return found

    def partitions_of(self, topics: Collection[str]) -> Iterator[tuple[str, list[int]]]:
        """The partitions of the rows on these topics; a topic comes once for each block."""
        return ((block.topic, block.partition.tolist()) for block in self.blocks if block.topic in topics)

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

    def repeated(self, of_blocks: Sequence[int]) -> NDArray[np.int32]:
        """A column of all rows from one number for each block."""
        return np.repeat(np.array(of_blocks, np.int32), [len(block) for block in self.blocks])

    def _partitions(self, topics: Collection[str]) -> dict[tuple[str, str], set[int]]:
        found: dict[tuple[str, str], set[int]] = {}
        for block in self.blocks:
            if block.topic in topics:
                found.setdefault((block.group, block.topic), set()).update(block.partition.tolist())
        return found


def without_offset(
    group: str, topic: str, partitions: Sequence[int], owner: list[str | None] | None = None
) -> CommitBlock:
    """Rows that have no offset."""
    nothing = np.full(len(partitions), NONE)
    return CommitBlock(
        group,
        topic,
        np.array(partitions, np.int32),
        committed=nothing.astype(np.int64),
        leader_epoch=nothing.astype(np.int32),
        owner=owner,
    )
