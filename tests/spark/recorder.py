"""Writes samples into a lake as a collector would, from a few offsets."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from lagwise.tables.raw import COMMITS, GROUPS, MEMBERS, SAMPLES, TOPICS, WATERMARKS
from lagwise.tables.schema import Table
from lagwise.tables.store import Lake

Pair = tuple[str, str, int]


class Recorder:
    """One cluster, sampled every 15 s from ``start`` on. Each sample is written at once, as a collector does; one that
    ``gathers`` keeps them until :meth:`write`, which takes a fraction of the time."""

    interval_seconds = 15.0

    def __init__(self, lake: Lake, start: datetime, cluster: str = "test", *, gathers: bool = False) -> None:
        self.lake, self.start, self.cluster, self.count = lake, start, cluster, 0
        self._gathers = gathers
        self._gathered: dict[str, tuple[Table, list[pa.Table]]] = {}
        self._withheld: list[dict[str, Any]] = []
        self._written_at = start

    @property
    def elapsed(self) -> int:
        """Seconds from the start to the next sample."""
        return int(self.count * self.interval_seconds)

    def sample(
        self,
        ends: Mapping[str, Mapping[int, int]],
        commits: Mapping[Pair, tuple[int | None, str | None]],
        *,
        log_start: int | Mapping[str, int] = 0,
        retention_bytes: Mapping[str, int] | None = None,
        topic_ids: Mapping[str, str] | None = None,
        withheld: bool = False,
        torn: bool = False,
    ) -> None:
        """Append one sample: high watermarks by topic and partition, (committed, owner) by group-partition. The log
        start is that of all topics or by topic (0 of others); ``retention_bytes`` is by topic, from the first sample.

        A ``withheld`` sample's last row is kept back, as a spooled one's; a ``torn`` one never gets its last row.
        """
        at = self.start + timedelta(seconds=self.elapsed)
        ids = topic_ids or {}
        if self.count == 0:
            kept = {"retention_ms": 604_800_000, "cleanup_policy": "delete"}
            sizes = retention_bytes or {}
            self._append(TOPICS, at, [kept | {"topic": t, "retention_bytes": sizes.get(t)} for t in ends])
        self._append(
            WATERMARKS,
            at,
            [
                {
                    "topic": t,
                    "partition": p,
                    "topic_id": ids.get(t, t),
                    "log_start": log_start if isinstance(log_start, int) else log_start.get(t, 0),
                    "high_watermark": end,
                    "leader": 1,
                }
                for t, partitions in ends.items()
                for p, end in partitions.items()
            ],
        )
        self._append(
            COMMITS,
            at,
            [
                {"group": g, "topic": t, "partition": p, "committed": committed, "owner": owner}
                for (g, t, p), (committed, owner) in commits.items()
            ],
        )
        owned: dict[str, dict[str, dict[str, list[int]]]] = {}
        for (g, t, p), (_, owner) in commits.items():
            members = owned.setdefault(g, {})
            if owner is not None:
                members.setdefault(owner, {}).setdefault(t, []).append(p)
        self._append(
            GROUPS,
            at,
            [
                {"group": g, "state": "Stable" if m else "Empty", "type": "classic", "member_count": len(m)}
                for g, m in owned.items()
            ],
        )
        self._append(
            MEMBERS,
            at,
            [
                {
                    "group": g,
                    "member_id": member,
                    "client_id": f"client of {member}",
                    "host": "10.0.0.1",
                    "assignment": [{"topic": t, "partitions": ps} for t, ps in topics.items()],
                    "assigned_partitions": sum(map(len, topics.values())),
                }
                for g, members in owned.items()
                for member, topics in members.items()
            ],
        )
        row = {
            "system": "kafka",
            "started_at": at,
            "commits_read_at": at,
            "watermarks_read_at": at,
            "finished_at": at,
            "interval_seconds": self.interval_seconds,
            "groups": len(owned),
            "group_partitions": len(commits),
            "partitions": sum(map(len, ends.values())),
            "wall_seconds": 0.1,
            "cpu_seconds": 0.1,
            "errors": [],
        }
        if withheld:
            self._withheld.append(row | {"sample_id": self._sample_id})
        elif not torn:
            self._finish(row | {"sample_id": self._sample_id, "written_at": at})
        self.count += 1
        if not self._gathers:
            self.write()

    def deliver_withheld(self) -> None:
        """Append what was kept back, now."""
        now = self.start + timedelta(seconds=self.elapsed)
        for row in self._withheld:
            self._finish(row | {"written_at": now})
        self._withheld.clear()
        self.write()

    def write(self) -> None:
        """Append what was gathered."""
        for table, rows in self._gathered.values():
            self.lake.append(table, pa.concat_tables(rows))
        self._gathered.clear()

    @property
    def _sample_id(self) -> str:
        return f"{self.count:08d}"

    def _finish(self, row: dict[str, Any]) -> None:
        self._keep(SAMPLES, SAMPLES.from_rows([{"cluster": self.cluster} | row]))

    def _append(self, table: Table, at: datetime, rows: list[dict[str, Any]]) -> None:
        common = {"sample_id": self._sample_id, "cluster": self.cluster, "sampled_at": at}
        self._keep(table, table.from_rows([common | row for row in rows]))

    def _keep(self, table: Table, rows: pa.Table) -> None:
        self._gathered.setdefault(table.name, (table, []))[1].append(rows)
