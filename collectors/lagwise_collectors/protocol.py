"""What a source of consumer progress is: one small protocol, whatever system stands behind it.

A source is asked for a :class:`Snapshot`, again and again. A snapshot holds rows of the raw tables, column by column:
nothing is interpreted here, and nothing is lost in between. Sources do not write, schedule or compare; the sink, the
scheduler and the differences do that for all of them alike.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from lagwise.tables.raw import ERRORS, SAMPLES
from lagwise.tables.schema import Table

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
