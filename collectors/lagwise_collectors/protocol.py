"""What a source of consumer progress is: one small protocol, whatever system stands behind it.

A source is asked for a :class:`Snapshot`, again and again. A snapshot holds rows of the raw tables, column by column:
nothing is interpreted here, and nothing is lost in between. Sources do not write, schedule or compare; the sink, the
scheduler and the differences do that for all of them alike.
"""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

import pyarrow as pa

from lagwise.tables.raw import ERRORS, SAMPLES
from lagwise.tables.schema import TIMESTAMP, Table

_LONGEST_EXAMPLE = 300


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What one collection run saw.

    ``tables`` has the rows by name of the raw table. ``samples`` is always among them and holds exactly one row: the
    run itself. A run in which nothing could be read is a snapshot too, whose ``samples`` row says why. Columns may be
    dictionary-encoded; the lake decodes them.
    """

    cluster: str
    sample_id: str
    tables: Mapping[str, pa.Table]

    def rows(self, table: Table) -> pa.Table:
        """The rows of one raw table; none where the source has nothing of the kind."""
        found = self.tables.get(table.name)
        return table.arrow.empty_table() if found is None else found

    @property
    def header(self) -> dict[str, Any]:
        """The ``samples`` row as a dictionary."""
        row: dict[str, Any] = self.tables[SAMPLES.name].to_pylist()[0]
        return row

    @property
    def errors(self) -> dict[str, int]:
        """How often each kind of error occurred in the run."""
        return {error["kind"]: error["count"] for error in self.header["errors"]}

    def with_rows(self, table: Table, rows: pa.Table) -> "Snapshot":
        """A copy in which one table has these rows."""
        return Snapshot(self.cluster, self.sample_id, {**self.tables, table.name: rows})

    def with_errors(self, errors: "ErrorTally") -> "Snapshot":
        """A copy whose ``samples`` row counts these errors besides its own."""
        if not errors:
            return self
        run = self.tables[SAMPLES.name]
        merged = ErrorTally.of(self.header["errors"])
        merged.add(errors)
        column = run.schema.get_field_index("errors")
        changed = run.set_column(column, SAMPLES.arrow.field("errors"), merged.as_array())
        return self.with_rows(SAMPLES, changed)


class Source(Protocol):
    """One watched cluster: a Kafka cluster, a RocketMQ cluster, a Flink job manager, a folder of files, a database."""

    def collect(self) -> Snapshot:
        """Read once, now. Trouble on the other side is no exception but part of the snapshot (rows with an error)."""
        ...

    def check(self) -> "list[Check]":
        """Try everything that collecting needs, and say for each step whether it works and what to do if not."""
        ...

    def close(self) -> None:
        """Let go of connections and processes. May be called twice."""
        ...


@dataclass(frozen=True, slots=True)
class EventSourceState:
    """How a source of exact events stands. ``live``: it has seen everything up to now, and tells what happens.

    ``fresh``: it is so for the first time, and took in silence what happened until a moment ago. ``whole``: the commits
    that come along are those of all pairs, and not only of those committed on since the last time. ``left`` is how many
    records there are left to read, where it is behind.
    """

    live: bool = False
    fresh: bool = False
    whole: bool = False
    left: int = 0


@dataclass(frozen=True, slots=True)
class Check:
    """One step of ``lagwise doctor`` on a cluster.

    ``privilege`` is what the account needs for the step, in the system's own words; ``advice`` says what to do where
    it failed. A step that is not ``required`` costs a feature and not the monitoring when it fails.
    """

    name: str
    ok: bool
    detail: str
    privilege: str | None = None
    advice: str | None = None
    required: bool = True


@dataclass(slots=True)
class ErrorTally:
    """Errors of one run, counted by kind, with the first example of each."""

    _count: dict[str, int] = field(default_factory=dict)
    _example: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: Iterable[Mapping[str, Any]]) -> "ErrorTally":
        """From the ``errors`` column of a ``samples`` row."""
        tally = cls()
        for row in rows:
            tally.note(row["kind"], row["example"], row["count"])
        return tally

    def note(self, kind: str, example: str, count: int = 1) -> None:
        """Count an error (or ``count`` of its kind)."""
        self._count[kind] = self._count.get(kind, 0) + count
        self._example.setdefault(kind, example[:_LONGEST_EXAMPLE])

    def add(self, other: "ErrorTally") -> None:
        """Count what another tally counted."""
        for kind, count in other._count.items():
            self.note(kind, other._example[kind], count)

    def __bool__(self) -> bool:
        return bool(self._count)

    @property
    def counts(self) -> dict[str, int]:
        """Errors by kind, the commonest first."""
        return dict(sorted(self._count.items(), key=lambda item: (-item[1], item[0])))

    def example(self, kind: str) -> str:
        """The first error of a kind, in words."""
        return self._example[kind]

    def as_rows(self) -> list[dict[str, Any]]:
        """The value of the ``errors`` column of ``samples``."""
        return [{"kind": k, "count": n, "example": self._example[k]} for k, n in self.counts.items()]

    def as_array(self) -> pa.Array:
        """The same as an Arrow array of one element."""
        return pa.array([self.as_rows()], ERRORS)


def rows_of(
    table: Table, columns: Mapping[str, pa.Array | Sequence[Any]], *, sample_id: str, cluster: str, at: datetime
) -> pa.Table:
    """Rows of a raw table from its columns.

    ``sample_id``, ``cluster`` and the table's clock are the same in every row and cost next to nothing; columns that
    are not given are null. Raises ValueError for a column that the table does not have.
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


def run_row(
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
    """The one row of ``samples`` that ends a snapshot; ``facts`` are its other columns, counts being 0 by default.

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
    return rows_of(SAMPLES, one_each, sample_id=sample_id, cluster=cluster, at=started_at)


def new_sample_id(started_at: datetime) -> str:
    """Sorts by time; the random end tells samples apart that begin in the same microsecond."""
    return f"{started_at:%Y%m%dT%H%M%S%f}-{secrets.token_hex(3)}"


def encoded(values: Sequence[str | None]) -> pa.Array:
    """A dictionary-encoded column of text with few different values."""
    return pa.array(values, pa.string()).dictionary_encode()


def _constant(value: str, count: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int8()), count), pa.array([value], pa.string()))
