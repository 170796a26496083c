"""Commits on each group-partition: the latest, how often, and from there the cadence columns of ``raw/commits``."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from lagwise.tables.raw import COMMITS
from lagwise_collectors.sample_diff.commit_changes import KEYS

#: A smoothed pause follows the last one by this power of two.
_SMOOTHING = 3
#: Name of the table on the pipe. It is not in the lake.
CADENCE_TABLE = "cadence"
_COLUMNS = ("committed_at", "commits_since")
#: The latest time that all readers of timestamps understand: the end of the year 9999.
_LAST_MS = 253_402_300_799_999


@dataclass(slots=True, eq=False)
class CommitHistory:
    """One group's commits on one partition."""

    group: str
    topic: str
    partition: int
    offset: int
    #: Time of the last commit, ms since 1970.
    at_ms: int
    #: The usual time between two commits, smoothed; 0 is unknown.
    pause_ms: int = 0
    #: Commits since the last sample.
    commits: int = 0

    def committed(self, offset: int, at_ms: int) -> None:
        """Record a commit. The pause between commits is smoothed exponentially and begins as the first one seen."""
        pause = at_ms - self.at_ms
        if pause > 0:
            self.pause_ms = self.pause_ms + ((pause - self.pause_ms) >> _SMOOTHING) if self.pause_ms else pause
        self.offset = offset
        self.at_ms = at_ms


def cadence_rows(pairs: Sequence[CommitHistory], *, counted: bool) -> pa.Table:
    """A row per group-partition, times in µs; ``counted``: commits have been counted since the sample before."""
    times = pa.array([min(max(pair.at_ms, 0), _LAST_MS) for pair in pairs], pa.int64())
    return pa.table(
        {
            "group": pa.array([pair.group for pair in pairs], pa.string()).dictionary_encode(),
            "topic": pa.array([pair.topic for pair in pairs], pa.string()).dictionary_encode(),
            "partition": pa.array([pair.partition for pair in pairs], pa.int32()),
            "committed_at": pc.multiply(times, 1000),
            "commits_since": pa.array([pair.commits if counted else None for pair in pairs], pa.int32()),
        }
    )


class CommitCadence:
    """Fills the columns ``committed_at`` and ``commits_since`` of sample after sample.

    The group-partitions of a cluster hardly change from one sample to the next, so the row of each is remembered.
    """

    def __init__(self) -> None:
        self._at: dict[tuple[str, str, int], int] = {}
        self._keys: pa.Table | None = None
        self._rows: dict[tuple[str, str, int], int] = {}
        self._times: list[int | None] = []

    def fill(self, commits: pa.Table, committed: pa.Table | None, *, all_commits: bool) -> pa.Table:
        """The rows of ``raw/commits`` with the columns filled: ``committed`` is what came from the tail.

        ``all_commits``: it has every group-partition. None: the tail is off or behind.
        """
        if committed is None:
            return commits
        if all_commits:
            self._at, self._keys = {}, None
        keys = commits.select(KEYS)
        if self._keys is None or not keys.equals(self._keys):
            columns = [keys[name].to_pylist() for name in KEYS]
            self._rows = {key: row for row, key in enumerate(zip(*columns, strict=True))}
            self._times = [self._at.get(key) for key in self._rows]
            self._keys = keys
        # A group-partition that is missing among all of them is unknown.
        since: list[int | None] = [None if all_commits else 0] * commits.num_rows
        *names, times, counts = (committed[name].to_pylist() for name in (*KEYS, *_COLUMNS))
        for key, at, count in zip(zip(*names, strict=True), times, counts, strict=True):
            self._at[key] = at
            row = self._rows.get(key)
            if row is not None:
                self._times[row] = at
                since[row] = count
        known = pc.and_(commits["committed"].is_valid(), pa.chunked_array([pa.array(self._times).is_valid()]))
        for name, values in (("committed_at", self._times), ("commits_since", since)):
            field = COMMITS.arrow.field(name)
            column = pa.array(values, pa.int64()).cast(field.type)
            row = commits.schema.get_field_index(name)
            # A value that is there already is the time of an external offset.
            commits = commits.set_column(row, field, pc.if_else(known, column, commits[name].cast(field.type)))
        return commits
