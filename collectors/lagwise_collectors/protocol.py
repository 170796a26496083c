"""What a source of consumer progress is: one small protocol for every system.

The collector asks a source for a :class:`Snapshot` once per interval. A snapshot holds uninterpreted rows of the raw
tables. Sources do not write, schedule or compare: ``lake_delivery``, ``sampling_schedule`` and ``sample_diff`` do that
for all of them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from lagwise.platform.error_codes import ErrorCode
from lagwise.platform.errors import ClusterError
from lagwise.tables.raw import ERRORS, GROUPS, SAMPLES
from lagwise.tables.schema import Table, no_rows

_MAX_EXAMPLE_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One sample of one cluster. Where nothing could be read, its ``samples`` row says why."""

    cluster: str
    sample_id: str
    #: Rows by name of the raw table. ``samples`` is always there and has one row: the run itself. Columns may be
    #: dictionary-encoded; the lake decodes them.
    tables: Mapping[str, pa.Table]

    def rows(self, table: Table) -> pa.Table:
        """The rows of one raw table; an empty table where the source has none."""
        rows = self.tables.get(table.name)
        return no_rows(table.arrow) if rows is None else rows

    @property
    def header(self) -> dict[str, Any]:
        """The ``samples`` row as a dictionary."""
        row: dict[str, Any] = self.tables[SAMPLES.name].to_pylist()[0]
        return row

    @property
    def errors(self) -> dict[str, int]:
        """How often each kind of error occurred in the run."""
        return {error["kind"]: error["count"] for error in self.header["errors"]}

    @property
    def unreadable_groups(self) -> set[str]:
        """Groups that could not be read."""
        rows = self.rows(GROUPS).select(["group", "error"]).to_pylist()
        return {row["group"] for row in rows if row["error"] is not None}

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


#: Kinds of trouble, of every system, that have an error code of their own.
_CODES = {
    "timeout": ErrorCode.CLUSTER_UNREACHABLE,
    "unreachable": ErrorCode.CLUSTER_UNREACHABLE,
    "host_not_found": ErrorCode.CLUSTER_UNREACHABLE,
    "no_broker": ErrorCode.CLUSTER_UNREACHABLE,
    "tls_failed": ErrorCode.CLUSTER_LOGIN_FAILED,
    "authentication_failed": ErrorCode.CLUSTER_LOGIN_FAILED,
    "not_authorized": ErrorCode.CLUSTER_RIGHT_MISSING,
    "cluster_not_authorized": ErrorCode.CLUSTER_RIGHT_MISSING,
    "group_not_authorized": ErrorCode.CLUSTER_RIGHT_MISSING,
    "topic_not_authorized": ErrorCode.CLUSTER_RIGHT_MISSING,
}


def code_of_kind(kind: str) -> ErrorCode:
    """The error code of a kind of trouble."""
    return _CODES.get(kind, ErrorCode.CLUSTER_UNREADABLE)


class Trouble(ClusterError):
    """What could not be read: ``kind`` is the short word of tables, logs and alerts, the message explains it."""

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(detail, code=code_of_kind(kind))
        self.kind = kind


class Source(Protocol):
    """One watched cluster: a Kafka cluster, a RocketMQ cluster, a Flink job manager, a folder of files, a database."""

    def collect(self) -> Snapshot:
        """Take one sample. Errors of the cluster do not raise: they are part of the snapshot (rows with an error)."""
        ...

    def check(self) -> "list[Check]":
        """Try each step that collecting needs: whether it works, and what to do where it does not."""
        ...

    def close(self) -> None:
        """Close connections and processes. May be called twice."""
        ...


@dataclass(frozen=True, slots=True)
class EventSourceState:
    """How far the follower of ``__consumer_offsets`` is."""

    #: It has read everything up to now, and reports events as they happen.
    is_caught_up: bool = False
    #: It has caught up for the first time: what happened before was read without reporting events.
    is_first_time: bool = False
    #: The commits that come along are those of all group-partitions, not only of those with a new commit.
    has_all_commits: bool = False
    #: Records left to read where it is behind (roughly: gaps count).
    records_left: int = 0


@dataclass(frozen=True, slots=True)
class Check:
    """One step of ``lagwise doctor`` on a cluster."""

    name: str
    ok: bool
    #: What the step found, or why it failed.
    detail: str
    #: What the account needs for the step, in the system's own words.
    privilege: str | None = None
    #: What to do where it failed.
    advice: str | None = None
    #: Without a step that is not required a feature is missing; monitoring works.
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
        self._example.setdefault(kind, example[:_MAX_EXAMPLE_CHARACTERS])

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
