"""Appends samples of several clusters to the lake: one commit a table, each sample exactly once.

The tables are appended one after the other, ``samples`` last: its row says that the sample is complete. Every commit
carries, as Delta transactions of one writer a cluster, the numbers of the samples whose rows it adds. A sample that was
interrupted, or whose commit succeeded without an answer, is therefore completed and not repeated.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

from lagwise.operational.lease import Lease
from lagwise.tables.raw import COMMITS, EVENTS, GROUPS, MEMBERS, SAMPLES, TOPICS, WATERMARKS
from lagwise.tables.schema import Table
from lagwise.tables.service_times import JOBS, SERVICE_TIMES
from lagwise.tables.store import Lake
from lagwise_collectors.protocol import Snapshot

ORDER: tuple[Table, ...] = (TOPICS, GROUPS, MEMBERS, COMMITS, WATERMARKS, EVENTS, SERVICE_TIMES, JOBS, SAMPLES)
#: The key of an event, which has no sample id.
_EVENT_KEY = ["cluster", "at", "kind", "group", "topic", "partition"]


@dataclass(frozen=True, slots=True)
class DueSample:
    """A sample that is to be appended."""

    snapshot: Snapshot
    #: Part of it, or all, may be in the lake already, and so may later samples of its cluster.
    maybe_written: bool = False
    #: The lease under which it is written; None where no other process writes samples of its cluster.
    lease: Lease | None = None

    @property
    def number(self) -> int:
        """Its number in the transactions of its cluster: its start in microseconds since 1970."""
        started_at: datetime = self.snapshot.header["started_at"]
        return int(started_at.timestamp()) * 1_000_000 + started_at.microsecond


def append_samples(lake: Lake, samples: Sequence[DueSample], now: datetime) -> None:
    """Append samples, one of each cluster at most; ``now`` is when they are written.

    Raises LakeError, and ArrowException where rows of a sample do not fit the tables. Each may then be there in part.
    """
    for table in ORDER:
        rows, transactions = [], {}
        for sample in samples:
            its_rows = sample.snapshot.rows(table)
            if its_rows.num_rows == 0 or (sample.maybe_written and _is_in_lake(lake, table, sample, its_rows)):
                continue
            cluster = sample.snapshot.cluster
            transactions[writer_of(cluster)] = sample.number
            if table is SAMPLES:
                its_rows = _with_written_at(its_rows, now)
                if sample.lease is not None and sample.lease.holds() and sample.lease.hold_id is not None:
                    transactions[lease_mark_of(cluster)] = sample.lease.hold_id
            # Dictionaries differ from sample to sample.
            rows.append(its_rows.select(table.without_day.names).cast(table.without_day))
        if rows:
            lake.append(table, pa.concat_tables(rows), transactions=transactions)


def writer_of(cluster: str) -> str:
    """The name of the Delta transactions that number a cluster's samples."""
    return f"lagwise-collector-{cluster}"


def lease_scope_of(cluster: str) -> str:
    """The name of the lease of a cluster's collection."""
    return f"collector {cluster}"


def lease_mark_of(cluster: str) -> str:
    """The name of the Delta transaction, in the table of samples, that holds the lease of its last writer."""
    return f"lagwise-collector-{cluster}-hold"


def _is_in_lake(lake: Lake, table: Table, sample: DueSample, rows: pa.Table) -> bool:
    """Whether these rows are in the lake: by the number of the last transaction. Where another process has written
    later samples since, by a query."""
    last = lake.last_transaction(table, writer_of(sample.snapshot.cluster))
    if last is None or last <= sample.number:
        return last == sample.number
    names = ["sample_id"] if "sample_id" in rows.column_names else _EVENT_KEY
    first = rows.slice(0, 1)
    is_same = " and ".join(f'"{name}" is not distinct from ${name}' for name in names)
    sql = f"select 1 from {table.name} where {is_same} limit 1"  # noqa: S608 (own names)
    values = {name: first[name].to_pylist()[0] for name in names}
    since = first[str(table.clock)].to_pylist()[0]
    matches: int = lake.query(sql, values, over=[table], since=since).num_rows
    return matches > 0


def _with_written_at(run: pa.Table, now: datetime) -> pa.Table:
    column = SAMPLES.arrow.field("written_at")
    position = run.schema.get_field_index(column.name)
    return run.set_column(position, column, pa.array([now], column.type))
