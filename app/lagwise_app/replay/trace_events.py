"""The rows of ``raw/events`` that a collector would have written while a trace happened.

The collectors' own comparison of successive samples makes them, so that a trace has the same events as a live cluster.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import pyarrow as pa

from lagwise.domain.vocabulary import EventKind
from lagwise.tables.raw import COMMITS, GROUPS, MEMBERS, SAMPLES, TOPICS, WATERMARKS
from lagwise.tables.schema import Table
from lagwise.traces.csv_files import Row
from lagwise.traces.trace import Trace, moment, sample_id
from lagwise_collectors.protocol import ErrorTally, Snapshot
from lagwise_collectors.sample_builder import samples_row
from lagwise_collectors.sample_diff.compare_samples import PreviousSample, compare_samples

#: The kinds of the events that verdicts go by.
OF_GROUPS = (EventKind.REBALANCE, EventKind.STATE_CHANGED, EventKind.GROUP_GONE)
_CLUSTER = "trace"
_TABLES = (WATERMARKS, COMMITS, GROUPS, MEMBERS, TOPICS)


def events_of(trace: Trace) -> list[Row]:
    """The events of a trace, in order of time."""
    samples = {table: _by_sample(table, trace.rows[table.name]) for table in _TABLES}
    previous, events = PreviousSample(), []
    for index, time_s in enumerate(trace.sample_times):
        name, at = sample_id(index), moment(time_s)
        tables = {table.name: rows[name] for table, rows in samples.items() if name in rows}
        tables[SAMPLES.name] = samples_row(
            sample_id=name,
            cluster=_CLUSTER,
            system="files",
            started_at=at,
            finished_at=at,
            interval_seconds=trace.sample_interval_s,
            wall_seconds=0.0,
            cpu_seconds=0.0,
            errors=ErrorTally(),
            commits_read_at=at,
            watermarks_read_at=at,
        )
        result = compare_samples(previous, Snapshot(_CLUSTER, name, tables))
        previous = result.latest
        events += result.rows.to_pylist()
    return events


def group_events_of(trace: Trace) -> list[Row]:
    """The events that verdicts go by, in order of time: what happened to groups. Told from the samples in which a group
    is not described as in the one before, and from those before and after them: the first sample of a rebalance leaves
    it to the next one to tell who joined. In between nothing can have happened."""
    described: list[list[object]] = [[] for _ in trace.sample_times]
    for table, columns in (("groups", ("group", "state", "type")), ("members", ("group", "member_id", "assignment"))):
        for row in trace.rows[table]:
            described[int(row["sample_id"])].append([row.get(column) for column in columns])
    numbers = range(1, len(described))
    changed = [i for i in numbers if described[i] != described[i - 1]]
    kept = sorted({0, *(n for i in changed for n in (i - 1, i, i + 1) if n < len(described))})
    renamed = {sample_id(old): sample_id(new) for new, old in enumerate(kept)}
    few: dict[str, list[Row]] = {table: [] for table in trace.rows} | {
        table: [
            {**row, "sample_id": renamed[row["sample_id"]]} for row in trace.rows[table] if row["sample_id"] in renamed
        ]
        for table in ("groups", "members")
    }
    events = events_of(replace(trace, sample_times=tuple(trace.sample_times[n] for n in kept), rows=few))
    return [event for event in events if event["kind"] in OF_GROUPS]


def _by_sample(table: Table, rows: Sequence[Row]) -> Mapping[str, pa.Table]:
    """The rows of a raw table, sample by sample."""
    ordered = sorted(rows, key=lambda row: row["sample_id"])
    whole = table.from_rows(row | {"cluster": _CLUSTER} for row in ordered)
    starts: dict[str, int] = {}
    for position, row in enumerate(ordered):
        starts.setdefault(row["sample_id"], position)
    bounds = [*starts.values(), len(ordered)]
    return {name: whole.slice(start, end - start) for name, (start, end) in zip(starts, pairwise(bounds), strict=True)}
