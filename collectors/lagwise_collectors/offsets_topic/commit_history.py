"""Commits on each group-partition: the latest, how often, and from there the cadence columns of ``raw/commits``."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lagwise.tables.raw import COMMITS
from lagwise_collectors.sample_diff.commit_rewinds import KEYS

#: A smoothed pause follows the last one by this power of two.
_SMOOTHING = 3
#: Name of the table on the pipe; it is none of the lake's.
CADENCE = "cadence"
_COLUMNS = ("committed_at", "commits_since")
#: What fits into a timestamp that others can read: the end of the year 9999.
_LAST_MS = 253_402_300_799_999


class CommitHistory:
    """One group's commits on one partition. ``commits`` counts since it was last asked for."""

    __slots__ = ("at_ms", "commits", "group", "offset", "partition", "pause_ms", "topic")

    def __init__(self, group: str, topic: str, partition: int, offset: int, at_ms: int, pause_ms: int = 0) -> None:
        self.group = group
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.at_ms = at_ms
        self.pause_ms = pause_ms
        self.commits = 0

    def committed(self, offset: int, at_ms: int) -> None:
        """Take in a commit. The pause between commits is smoothed exponentially; it begins as the first one seen."""
        pause = at_ms - self.at_ms
        if pause > 0:
            self.pause_ms = self.pause_ms + ((pause - self.pause_ms) >> _SMOOTHING) if self.pause_ms else pause
        self.offset = offset
        self.at_ms = at_ms


def cadence_of(pairs: Sequence[CommitHistory], *, counted: bool) -> pa.Table:
    """A row per pair, times in µs; ``counted``: their commits were counted from the sample before on."""
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


class Cadence:
    """Fills the columns ``committed_at`` and ``commits_since`` of sample after sample.

    The pairs of a cluster hardly change from one sample to the next, so the place of each is remembered.
    """

    def __init__(self) -> None:
        self._at: dict[tuple[str, str, int], int] = {}
        self._keys: pa.Table | None = None
        self._places: dict[tuple[str, str, int], int] = {}
        self._times: list[int | None] = []

    def fill(self, commits: pa.Table, committed: pa.Table | None, *, whole: bool) -> pa.Table:
        """The rows of ``raw/commits`` with the columns filled: ``committed`` is what came from the tail.

        ``whole``: it has every pair there is. None: the tail is off or behind, and nothing is known.
        """
        if committed is None:
            return commits
        if whole:
            self._at, self._keys = {}, None
        keys = commits.select(KEYS)
        if self._keys is None or not keys.equals(self._keys):
            columns = [keys[name].to_pylist() for name in KEYS]
            self._places = {key: place for place, key in enumerate(zip(*columns, strict=True))}
            self._times = [self._at.get(key) for key in self._places]
            self._keys = keys
        # Of pairs that are not among all there are, nothing is known.
        since: list[int | None] = [None if whole else 0] * commits.num_rows
        *names, times, counts = (committed[name].to_pylist() for name in (*KEYS, *_COLUMNS))
        for key, at, count in zip(zip(*names, strict=True), times, counts, strict=True):
            self._at[key] = at
            place = self._places.get(key)
            if place is not None:
                self._times[place] = at
                since[place] = count
        known = pc.and_(commits["committed"].is_valid(), pa.chunked_array([pa.array(self._times).is_valid()]))
        for name, values in (("committed_at", self._times), ("commits_since", since)):
            field = COMMITS.arrow.field(name)
            column = pa.array(values, pa.int64()).cast(field.type)
            place = commits.schema.get_field_index(name)
            # What is there already is the time of an offset that is kept elsewhere.
            commits = commits.set_column(place, field, pc.if_else(known, column, commits[name].cast(field.type)))
        return commits
