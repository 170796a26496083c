"""Samples of the made-up cluster, as a collector would have taken them once a minute: rows of the raw tables."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from lagwise.domain.capacity.service_times import PREFIX
from lagwise.domain.vocabulary import GroupState
from lagwise.tables.raw import ASSIGNMENT, COMMITS, GROUPS, MEMBERS, SAMPLES, TOPICS, WATERMARKS
from lagwise.tables.schema import TIMESTAMP, Table
from lagwise_collectors.protocol import Snapshot
from lagwise_collectors.sample_builder import rows_from_columns
from lagwise_sandbox.made_up.groups import CLUSTER_NAME, MadeUpGroup, ProbedWork
from lagwise_sandbox.made_up.groups import GROUPS as MADE_UP_GROUPS
from lagwise_sandbox.made_up.offsets import (
    MINUTES_OF_DAY,
    MINUTES_OF_WEEK,
    PAST_MINUTES,
    Array,
    Offsets,
    offsets_of,
    partitions_of_members,
)

#: The tables that samples consist of, in the order in which they are written: the last one makes them count.
TABLES = (TOPICS, GROUPS, MEMBERS, COMMITS, WATERMARKS, SAMPLES)
INTERVAL_SECONDS = 60.0
#: The probe of a group was introduced so long before the end of the past.
PROBED_MINUTES = 6 * 60
#: Topics keep records for a week, and so does the broker the commits of a group without members.
_KEPT_SECONDS = 60 * MINUTES_OF_WEEK
#: A sample reads the commits first. How long after its start it has read them, and the watermarks, and ends.
_COMMITS_AFTER, _WATERMARKS_AFTER = timedelta(milliseconds=20), timedelta(milliseconds=40)
#: How far the means of a minute differ from the group's, and what a process computes beside its handlers.
_MEANS_DIFFER, _CPU_BESIDE = 0.02, 1.1


@dataclass(frozen=True, slots=True)
class _Pair:
    """A partition with the group that reads it, its number within all of the cluster's."""

    group: int
    partition: int
    member: int


class MadeUpSamples:
    """The samples by number: the past has the first :data:`PAST_MINUTES`, the last of them taken at ``ends_at``."""

    def __init__(self, ends_at: datetime) -> None:
        self._first_at = ends_at - timedelta(seconds=INTERVAL_SECONDS * (PAST_MINUTES - 1))
        self._minutes = 0
        self._offsets: list[Offsets] = []
        self._pairs = [
            _Pair(number, int(partition), member)
            for number, group in enumerate(MADE_UP_GROUPS)
            for member, its in enumerate(partitions_of_members(group))
            for partition in its
        ]
        self._made: dict[str, Callable[[int, int], pa.Table]] = {
            TOPICS.name: self._topics,
            GROUPS.name: self._groups,
            MEMBERS.name: self._members,
            COMMITS.name: self._commits,
            WATERMARKS.name: self._watermarks,
            SAMPLES.name: self._samples,
        }

    def at(self, number: int) -> datetime:
        """When a sample begins."""
        return self._first_at + timedelta(seconds=INTERVAL_SECONDS * number)

    def changes(self) -> Iterator[int]:
        """The samples of the past by which a group was stopped or started since the one before."""
        self._know(PAST_MINUTES)
        is_running = np.array([offsets.is_running[:PAST_MINUTES] for offsets in self._offsets])
        yield from (int(number) + 1 for number in np.flatnonzero((np.diff(is_running, axis=1) != 0).any(axis=0)))

    def snapshots(self, first: int, until: int) -> Iterator[Snapshot]:
        """The samples from ``first`` to before ``until``."""
        rows = {table.name: self.rows(table, first, until) for table in TABLES}
        ends = {table.name: self._ends(table, rows[table.name], first, until) for table in TABLES}
        for place, number in enumerate(range(first, until)):
            its = {name: rows[name].slice(end[place], end[place + 1] - end[place]) for name, end in ends.items()}
            yield Snapshot(CLUSTER_NAME, self._id(number), its)

    def _ends(self, table: Table, rows: pa.Table, first: int, until: int) -> list[int]:
        """Where the rows of each sample begin, and where the last one's end; rows are in order of time."""
        at = rows[str(table.clock)].cast(pa.int64()).to_numpy()
        starts = self._times(np.arange(first, until + 1), timedelta(0)).cast(pa.int64()).to_numpy()
        return [int(place) for place in np.searchsorted(at, starts)]

    def rows(self, table: Table, first: int, until: int) -> pa.Table:
        """The rows of a raw table, of the samples from ``first`` to before ``until``."""
        self._know(until)
        return self._made[table.name](first, until)

    def _know(self, minutes: int) -> None:
        """Work out the offsets of so many minutes: a day more than that, so that it is done once a day."""
        if minutes > self._minutes:
            self._minutes = minutes + MINUTES_OF_DAY
            self._offsets = [offsets_of(group, self._minutes) for group in MADE_UP_GROUPS]

    def _id(self, number: int) -> str:
        return f"{self.at(number):%Y%m%dT%H%M%S%f}-made-up"

    def _rows(self, table: Table, numbers: Array, at: timedelta, columns: dict[str, Any]) -> pa.Table:
        """Rows of a table, each of the sample with this number."""
        first, last = (int(numbers.min()), int(numbers.max())) if len(numbers) else (0, -1)
        ids = pa.array([self._id(number) for number in range(first, last + 1)], pa.string())
        ids = ids.take(pa.array(numbers - first))
        clock = {} if table.clock is None else {table.clock: self._times(numbers, at)}
        return rows_from_columns(
            table, {"sample_id": ids, **clock, **columns}, sample_id="", cluster=CLUSTER_NAME, at=self._first_at
        )

    def _times(self, numbers: Array, after: timedelta) -> pa.Array:
        first = (self._first_at + after).timestamp()
        return pa.array(np.rint((first + INTERVAL_SECONDS * numbers) * 1e6).astype(np.int64)).cast(TIMESTAMP)

    def _commits(self, first: int, until: int) -> pa.Table:
        numbers, pair = _grid(first, until, len(self._pairs))
        is_owned = _by_sample([self._offsets[p.group].is_running[first:until] for p in self._pairs])
        owners = [_member_id(MADE_UP_GROUPS[p.group], p.member) for p in self._pairs]
        columns = {
            "group": pa.array([MADE_UP_GROUPS[p.group].group for p in self._pairs]).take(pa.array(pair)),
            "topic": self._topic_names().take(pa.array(pair)),
            "partition": pa.array(np.array([p.partition for p in self._pairs], np.int32)[pair]),
            "committed": pa.array(
                _by_sample([self._offsets[p.group].committed[p.partition, first:until] for p in self._pairs])
            ),
            "owner": pa.array(owners).take(pa.array(pair, mask=~is_owned)),
            "metadata": self._metadata(first, until),
        }
        return self._rows(COMMITS, numbers, _COMMITS_AFTER, columns)

    def _watermarks(self, first: int, until: int) -> pa.Table:
        numbers, pair = _grid(first, until, len(self._pairs))
        ends = [self._offsets[p.group].high_watermarks[p.partition] for p in self._pairs]
        high = _by_sample([end[first:until] for end in ends])
        kept = np.arange(first, until) - MINUTES_OF_WEEK
        low = _by_sample([np.where(kept < 0, 0, end[np.maximum(kept, 0)]) for end in ends])
        topics = self._topic_names().take(pa.array(pair))
        columns = {
            "topic": topics,
            "partition": pa.array(np.array([p.partition for p in self._pairs], np.int32)[pair]),
            "topic_id": topics,
            "log_start": pa.array(low),
            "high_watermark": pa.array(high),
            "last_stable": pa.array(high),
            "leader": pa.array(np.ones(len(pair), np.int32)),
        }
        return self._rows(WATERMARKS, numbers, _WATERMARKS_AFTER, columns)

    def _groups(self, first: int, until: int) -> pa.Table:
        numbers, group = _grid(first, until, len(MADE_UP_GROUPS))
        is_running = _by_sample([offsets.is_running[first:until] for offsets in self._offsets])
        states = pa.array([str(GroupState.EMPTY), str(GroupState.STABLE)])
        members = np.array([one.members for one in MADE_UP_GROUPS], np.int32)[group]
        columns = {
            "group": pa.array([one.group for one in MADE_UP_GROUPS]).take(pa.array(group)),
            "state": states.take(pa.array(is_running.astype(np.int8))),
            "type": pa.array(["classic"]).take(pa.array(np.zeros(len(group), np.int8))),
            "assignor": pa.array(["range"]).take(pa.array(np.zeros(len(group), np.int8))),
            "member_count": pa.array(np.where(is_running, members, 0)),
        }
        return self._rows(GROUPS, numbers, _COMMITS_AFTER, columns)

    def _members(self, first: int, until: int) -> pa.Table:
        members = [(number, member) for number, group in enumerate(MADE_UP_GROUPS) for member in range(group.members)]
        numbers, row = _grid(first, until, len(members))
        is_there = _by_sample([self._offsets[group].is_running[first:until] for group, _ in members])
        numbers, row = numbers[is_there], pa.array(row[is_there])
        its = [(MADE_UP_GROUPS[group], member) for group, member in members]
        owned = [[int(one) for one in partitions_of_members(group)[member]] for group, member in its]
        assignments = [
            [{"topic": group.topic, "partitions": partitions}]
            for (group, _), partitions in zip(its, owned, strict=True)
        ]
        columns = {
            "group": pa.array([group.group for group, _ in its]).take(row),
            "member_id": pa.array([_member_id(group, member) for group, member in its]).take(row),
            "client_id": pa.array([f"{group.group}-{member + 1}" for group, member in its]).take(row),
            "host": pa.array([f"{group.group}-{member + 1}.invalid" for group, member in its]).take(row),
            "assignment": pa.array(assignments, ASSIGNMENT).take(row),
            "assigned_partitions": pa.array([len(partitions) for partitions in owned], pa.int32()).take(row),
        }
        return self._rows(MEMBERS, numbers, _COMMITS_AFTER, columns)

    def _topics(self, first: int, until: int) -> pa.Table:
        """As collectors write them: at the start, and once on each day."""
        due = [n for n in range(first, until) if n == 0 or self.at(n).date() != self.at(n - 1).date()]
        numbers, group = np.repeat(due, len(MADE_UP_GROUPS)), np.tile(np.arange(len(MADE_UP_GROUPS)), len(due))
        columns: dict[str, Any] = {
            "topic": [MADE_UP_GROUPS[number].topic for number in group],
            "topic_id": [MADE_UP_GROUPS[number].topic for number in group],
            "partitions": [MADE_UP_GROUPS[number].partitions for number in group],
            "replication_factor": [3] * len(group),
            "retention_ms": [1000 * _KEPT_SECONDS] * len(group),
            "retention_bytes": [-1] * len(group),
            "cleanup_policy": ["delete"] * len(group),
        }
        return self._rows(TOPICS, numbers.astype(np.int64), _WATERMARKS_AFTER, columns)

    def _samples(self, first: int, until: int) -> pa.Table:
        numbers = np.arange(first, until)
        done = self._times(numbers, _WATERMARKS_AFTER)

        def all_of(value: Any, kind: pa.DataType) -> pa.Array:
            return pa.repeat(pa.scalar(value, kind), len(numbers))

        seconds = _WATERMARKS_AFTER.total_seconds()
        columns = {
            "system": all_of("kafka", pa.string()),
            "commits_read_at": self._times(numbers, _COMMITS_AFTER),
            "watermarks_read_at": done,
            "finished_at": done,
            # That of one that is delivered when it is taken is set when it is written.
            "written_at": done,
            "interval_seconds": all_of(INTERVAL_SECONDS, pa.float64()),
            "groups": all_of(len(MADE_UP_GROUPS), pa.int64()),
            "group_partitions": all_of(len(self._pairs), pa.int64()),
            "partitions": all_of(len(self._pairs), pa.int64()),
            "wall_seconds": all_of(seconds, pa.float64()),
            "cpu_seconds": all_of(seconds, pa.float64()),
            "offsets_retention_seconds": all_of(float(_KEPT_SECONDS), pa.float64()),
            "errors": all_of([], SAMPLES.arrow.field("errors").type),
        }
        return self._rows(SAMPLES, numbers, timedelta(0), columns)

    def _topic_names(self) -> pa.Array:
        return pa.array([MADE_UP_GROUPS[p.group].topic for p in self._pairs])

    def _metadata(self, first: int, until: int) -> pa.Array:
        """What consumers commit with their offsets: the texts of their probes."""
        count = until - first
        texts: list[str] = []
        index = np.full((len(self._pairs), count), -1, np.int64)
        begins = max(first, PAST_MINUTES - PROBED_MINUTES)
        for row, pair in enumerate(self._pairs):
            group, offsets = MADE_UP_GROUPS[pair.group], self._offsets[pair.group]
            if group.probed is None:
                continue
            if row and (self._pairs[row - 1].group, self._pairs[row - 1].member) == (pair.group, pair.member):
                index[row] = index[row - 1]  # a process commits one text with all of its partitions
                continue
            its = partitions_of_members(group)[pair.member]
            for number in range(begins, until):
                messages = int((offsets.committed[its, number] - offsets.committed[its, number - 1]).sum())
                if messages:
                    index[row, number - first] = len(texts)
                    texts.append(_probe_text(group.probed, messages, pair.member, number, self.at(number)))
        by_sample = index.T.ravel()
        return pa.array(texts, pa.string()).take(pa.array(by_sample, mask=by_sample < 0))


def _grid(first: int, until: int, rows: int) -> tuple[Array, Array]:
    """For each sample all of its rows: its number, and which row."""
    return np.repeat(np.arange(first, until), rows), np.tile(np.arange(rows), until - first)


def _by_sample(rows: Sequence[Array]) -> Array:
    """The values of each row by sample, in the order of :func:`_grid`."""
    return np.stack(rows, axis=1).ravel()


def _member_id(group: MadeUpGroup, member: int) -> str:
    return f"{group.group}-{member + 1}-made-up"


def _probe_text(work: ProbedWork, messages: int, member: int, number: int, at: datetime) -> str:
    """The text of a probe (docs/probe.md) about the minute before this sample."""
    t1, t2 = np.array([work.t1_seconds, work.t2_seconds]) * (
        1.0 + _MEANS_DIFFER * np.random.default_rng([member, number]).standard_normal(2)
    )
    return (
        f"{PREFIX}t1={t1:.6g} t2={t2:.6g} tq=0 n={messages} c={work.threads} s={INTERVAL_SECONDS:g} "
        f"at={int(at.astimezone(UTC).timestamp())} cores={work.cores:g} cpu={_CPU_BESIDE * t2:.6g}"
    )
