"""How fresh samples and analysis were at each moment of the past, from what they wrote about themselves."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from lagwise.domain.cluster_findings import ClusterFinding, cluster_findings
from lagwise.tables.raw import READ_SOMETHING, SAMPLES
from lagwise.tables.rounds import TICKS
from lagwise.tables.store import Lake
from lagwise_alerts.evaluate.observation import CollectionRow

#: How far before the first moment samples are read. Older ones are as stale as none.
LOOKBACK = timedelta(days=2)
_BATCH_ROWS = 1_000

_SAMPLES = f"""
select cluster, finished_at, written_at, interval_seconds, {READ_SOMETHING} as useful,
    system, errors, brokers, replicas, offsets_topic_replicas, offsets_retention_seconds
from samples where finished_at >= ? and finished_at < ? order by finished_at
"""  # noqa: S608 (a condition of our own)
_TICKS = """
select finished_at, p.cluster as cluster, p.read_until as read_until
from (select finished_at, unnest(progress) as p from ticks where finished_at >= ? and finished_at < ?)
order by finished_at
"""


@dataclass(slots=True)
class _Cluster:
    newest_at: datetime | None = None
    interval_seconds: float = 0.0
    errors: int = 0
    findings: Sequence[ClusterFinding] | None = None
    judged_until: datetime | None = None
    #: When samples that the analysis has not read were written, and finished.
    unread: deque[tuple[datetime, datetime]] = field(default_factory=deque)

    def row(self, name: str) -> CollectionRow:
        return CollectionRow(
            cluster=name,
            newest_at=self.newest_at,
            interval_seconds=self.interval_seconds,
            errors=(f"errors ({self.errors}×)",) if self.errors else (),
            judged_until=self.judged_until,
            unread_since=self.unread[0][0] if self.unread else None,
            findings=self.findings,
        )


class PastHealth:
    """The freshness of the past, moment by moment in order of time. Raises LakeError where it cannot be read."""

    def __init__(self, lake: Lake, since: datetime, until: datetime) -> None:
        start = since - LOOKBACK
        samples = lake.query(_SAMPLES, [start, until], over=[SAMPLES], since=start)
        ticks = lake.query(_TICKS, [start, until], over=[TICKS], since=start)
        self._samples = _Walk(samples)
        self._ticks = _Walk(ticks)
        self._clusters: dict[str, _Cluster] = {}
        #: When the first sample was finished; None where there is none.
        self.begins_at: datetime | None = samples["finished_at"][0].as_py() if samples.num_rows else None

    def at(self, now: datetime) -> dict[str, CollectionRow]:
        """The collections at a moment, which must not lie before the one asked for last."""
        for sample in self._samples.up_to(now):
            cluster = self._clusters.setdefault(sample["cluster"], _Cluster())
            finished_at = sample["finished_at"]
            cluster.newest_at = finished_at if sample["useful"] else cluster.newest_at
            cluster.interval_seconds = sample["interval_seconds"]
            cluster.errors = len(sample["errors"] or ())
            cluster.findings = cluster_findings(sample) if sample["useful"] else cluster.findings
            cluster.unread.append((sample["written_at"], finished_at))
        for tick in self._ticks.up_to(now):
            found = self._clusters.get(tick["cluster"])
            while found and tick["read_until"] and found.unread and found.unread[0][0] <= tick["read_until"]:
                found.judged_until = found.unread.popleft()[1]
        return {name: cluster.row(name) for name, cluster in self._clusters.items()}


class _Walk:
    """Rows in order of ``finished_at``, handed out once their time has come."""

    def __init__(self, rows: pa.Table) -> None:
        # Batch by batch: days of many clusters are millions of values, which are small only as Arrow.
        self._rows = (row for batch in rows.to_batches(max_chunksize=_BATCH_ROWS) for row in batch.to_pylist())
        self._next = next(self._rows, None)

    def up_to(self, now: datetime) -> Iterator[dict[str, Any]]:
        while self._next is not None and self._next["finished_at"] <= now:
            yield self._next
            self._next = next(self._rows, None)
