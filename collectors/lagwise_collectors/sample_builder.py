"""Builds the rows of one sample, for every system alike: each source fills in columns by name.

Sample id, cluster and time are the same in every row of a table. They are added here, and so are nulls for the columns
that a system does not have. Counts in the ``samples`` row are taken from the rows themselves.
"""

import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any, NamedTuple

import pyarrow as pa

from lagwise.config import AnyCluster
from lagwise.domain.vocabulary import TopicRole
from lagwise.tables.raw import COMMITS, GROUPS, MEMBERS, SAMPLES, WATERMARKS
from lagwise.tables.schema import TIMESTAMP, Table
from lagwise_collectors.protocol import ErrorTally, Snapshot

#: Text columns with few different values: they are dictionary-encoded, which costs next to nothing on the way to the
#: lake. The lake decodes them.
_ENCODED: Mapping[str, frozenset[str]] = {
    GROUPS.name: frozenset({"state", "type", "assignor", "error", "source"}),
    MEMBERS.name: frozenset({"group", "host"}),
    COMMITS.name: frozenset({"group", "topic", "metadata", "owner"}),
    WATERMARKS.name: frozenset({"topic", "topic_id", "error"}),
}


class SampleBuilder:
    """One sample while it is being taken. It starts when it is made, and ends with :meth:`finish`.

    ``errors`` are those of the whole sample. ``facts`` are columns of the ``samples`` row that only the source knows.
    """

    def __init__(
        self,
        cluster: AnyCluster,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        cpu_clock: Callable[[], float] = time.process_time,
    ) -> None:
        self._cluster = cluster
        self._cpu_clock = cpu_clock
        self._clock = clock
        self._started_at = clock()
        self._started = time.perf_counter(), cpu_clock()
        self._sample_id = new_sample_id(self._started_at)
        self._tables: dict[str, pa.Table] = {}
        self.errors = ErrorTally()
        self.facts: dict[str, Any] = {}

    def add(self, table: Table, columns: Mapping[str, pa.Array | Sequence[Any]], at: datetime) -> None:
        """The rows of a table, by column; ``at`` dates them. A table without rows is left out of the sample."""
        if len(next(iter(columns.values()))) == 0:
            return
        encoded = {
            name: pa.array(columns[name], pa.string()).dictionary_encode()
            for name in _ENCODED.get(table.name, frozenset()) & columns.keys()
            if not isinstance(columns[name], pa.Array)
        }
        self._tables[table.name] = rows_from_columns(
            table, {**columns, **encoded}, sample_id=self._sample_id, cluster=self._cluster.name, at=at
        )

    def add_rows(self, table: Table, rows: Sequence[Mapping[str, Any]], at: datetime) -> None:
        """The rows of a small table, row by row, all with the same columns."""
        if rows:
            self.add(table, {name: [row[name] for row in rows] for name in rows[0]}, at)

    def finish(self, *, cpu_seconds: float | None = None) -> Snapshot:
        """The snapshot. ``cpu_seconds`` is what it took, where that is not what the CPU clock says."""
        wall, cpu = self._started
        row = samples_row(
            sample_id=self._sample_id,
            cluster=self._cluster.name,
            system=self._cluster.system,
            started_at=self._started_at,
            finished_at=self._clock(),
            interval_seconds=self._cluster.interval_seconds,
            wall_seconds=time.perf_counter() - wall,
            cpu_seconds=self._cpu_clock() - cpu if cpu_seconds is None else cpu_seconds,
            errors=self.errors,
            groups=self._count(GROUPS, "error", nulls=True),
            group_partitions=self._count(COMMITS, "committed", nulls=False),
            partitions=self._count(WATERMARKS, "error", nulls=True),
            **self.facts,
        )
        return Snapshot(self._cluster.name, self._sample_id, {**self._tables, SAMPLES.name: row})

    def _count(self, table: Table, column: str, *, nulls: bool) -> int:
        """How many rows have a null, or a value, in a column."""
        rows = self._tables.get(table.name)
        if rows is None:
            return 0
        null_count: int = rows[column].null_count
        return null_count if nulls else rows.num_rows - null_count


class SideTopicName(NamedTuple):
    """A retry or dead-letter topic."""

    main_topic: str
    role: TopicRole


@dataclass(slots=True)
class DueTopicRows:
    """Which rows of ``raw/topics`` are due: those that differ from the last one written, and each once on every UTC
    day, so that no retention of the table can remove the only row about a topic.

    ``is_same`` compares the last row written with the one of now.
    """

    is_same: Callable[[Mapping[str, Any], Mapping[str, Any]], bool] = lambda before, now: before == now
    _written: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    _written_on: date | None = None

    def due(
        self, rows: Iterable[Mapping[str, Any]], sides: Mapping[str, SideTopicName], at: datetime
    ) -> list[Mapping[str, Any]]:
        """The rows to write now; ``sides`` are those topics that belong to another one."""
        if self._written_on != at.date():
            self._written.clear()
            self._written_on = at.date()
        due: list[Mapping[str, Any]] = []
        for row in rows:
            topic, side = row["topic"], sides.get(row["topic"])
            now = {
                **row,
                "role": None if side is None else str(side.role),
                "main_topic": None if side is None else side.main_topic,
            }
            before = self._written.get(topic)
            if before is None or not self.is_same(before, now):
                due.append(now)
                self._written[topic] = now
        return due

    def forget_all_but(self, topics: Mapping[str, Any]) -> None:
        """Forget the topics that are not among these."""
        for name in self._written.keys() - topics.keys():
            del self._written[name]


def rows_from_columns(
    table: Table, columns: Mapping[str, pa.Array | Sequence[Any]], *, sample_id: str, cluster: str, at: datetime
) -> pa.Table:
    """Rows of a raw table from its columns, which may be lists or Arrow arrays.

    ``sample_id``, ``cluster`` and the table's clock (``at``, unless given) are the same in every row and cost next to
    nothing; columns that are not given are null. Raises ValueError for a column that the table does not have.
    """
    fields = {f.name: f for f in table.without_day}
    unknown = set(columns) - set(fields)
    if unknown:
        raise ValueError(f"the table {table.name} has no column {sorted(unknown)[0]}")
    count = len(next(iter(columns.values())))
    made: dict[str, pa.Array] = {"cluster": _constant(cluster, count)}
    if "sample_id" in fields:
        made["sample_id"] = _constant(sample_id, count)
    if table.clock is not None and table.clock not in columns:
        made[table.clock] = pa.repeat(pa.scalar(at, TIMESTAMP), count)
    for name, values in columns.items():
        made[name] = values if isinstance(values, pa.Array) else pa.array(values, fields[name].type)
    arrays = [made[name] if name in made else pa.nulls(count, f.type) for name, f in fields.items()]
    return pa.table(arrays, names=list(fields))


def columns_of(records: Sequence[object], *names: str) -> dict[str, list[Any]]:
    """A column for each of these attributes of the records."""
    return {name: [getattr(record, name) for record in records] for name in names}


def samples_row(
    *,
    sample_id: str,
    cluster: str,
    system: str,
    started_at: datetime,
    finished_at: datetime,
    interval_seconds: float,
    wall_seconds: float,
    cpu_seconds: float,
    errors: ErrorTally,
    **facts: Any,
) -> pa.Table:
    """The one row of ``samples``; ``facts`` are its other columns, counts being 0 by default.

    ``written_at`` is a placeholder: the sink sets it when it writes.
    """
    columns: dict[str, Any] = {
        "system": system,
        # A clock that was set back during the run must not make it end before it began.
        "finished_at": max(started_at, finished_at),
        "written_at": max(started_at, finished_at),
        "interval_seconds": interval_seconds,
        "groups": 0,
        "group_partitions": 0,
        "partitions": 0,
        "wall_seconds": wall_seconds,
        "cpu_seconds": cpu_seconds,
        "errors": errors.as_rows(),
        **facts,
    }
    one_each = {name: [value] for name, value in columns.items()}
    return rows_from_columns(SAMPLES, one_each, sample_id=sample_id, cluster=cluster, at=started_at)


def new_sample_id(started_at: datetime) -> str:
    """Sorts by time; the random end distinguishes samples that begin in the same microsecond."""
    return f"{started_at:%Y%m%dT%H%M%S%f}-{secrets.token_hex(3)}"


def _constant(value: str, count: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int8()), count), pa.array([value], pa.string()))
