"""The lake that the dashboard's pages are measured over, written in bulk: many groups, hours of minutes, days of hours.

What the pages do not read is left out. Minutes lie by topic and partition, the groups next to each other, and hours by
group, as the rounds write them: no reader is helped by an order that the product does not keep.
"""

from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
from deltalake import write_deltalake

from benchmarks.bulk import Bulk
from benchmarks.lake_columns import named, rows_of, same
from benchmarks.pages_cast import CLUSTER, GROUP, INTERVAL_SECONDS, Cast, Size, back
from lagwise.domain.vocabulary import Status
from lagwise.tables import ALL_TABLES
from lagwise.tables.analysis import GROUP_HISTORY, GROUP_STATUS, PARTITION_STATUS, STATUS_CHANGES
from lagwise.tables.capacity import CAPACITY
from lagwise.tables.membership import REBALANCE_STATS
from lagwise.tables.minutes import FIVE_MINUTES, HOURS, MINUTES, WATERMARK_FIVE_MINUTES, WATERMARK_MINUTES
from lagwise.tables.raw import EVENTS, GROUPS, MEMBERS, SAMPLES, TOPICS, WATERMARKS
from lagwise.tables.rounds import TICKS
from lagwise.tables.schema import TIMESTAMP, Table
from lagwise.tables.store import Lake

_RETENTION_MS = 24 * 3600 * 1000
#: Rows of a compacted file of small rows.
_HISTORY_ROWS = 1_000_000
#: Seconds until groups of these statuses lose records.
_LOSS = {Status.LOSING_DATA: 0.0, Status.AT_RISK: 5400.0, Status.STOPPED: 40_000.0}


class PagesLake:
    """Writes the lake up to ``now``, and then one round after the other."""

    def __init__(self, lake: Lake, size: Size, now: datetime) -> None:
        self._lake, self._size = lake, size
        self._bulk = Bulk(lake)
        self._now = now.replace(microsecond=0)
        self._random = np.random.default_rng(6)
        self._cast = Cast(size)
        self._lag = self._random.integers(0, 5_000, size.pairs)

    def write(self) -> None:
        """Everything there is at the start."""
        self._lake.create(*ALL_TABLES)
        minute = self._now.replace(second=0)
        size = self._size
        steps = ((MINUTES, 60, size.minutes), (FIVE_MINUTES, 300, size.minutes // 5), (HOURS, 3600, size.hours))
        for table, seconds, count in steps:
            for at in back(minute, seconds, count):
                self._append(table, self._buckets(at, seconds, self._cast.by_group if table is HOURS else slice(None)))
        mine = np.flatnonzero(self._cast.group == 0)
        for table, seconds, count in ((MINUTES, 60, size.minutes), (FIVE_MINUTES, 300, size.minutes // 5)):
            earlier = list(back(minute, seconds, size.day_minutes * 60 // seconds))[: -count or None]
            for day in sorted({at.date() for at in earlier}):
                parts = [self._buckets(at, seconds, mine) for at in earlier if at.date() == day]
                self._append(table, pa.concat_tables(parts))
        for table, seconds in ((WATERMARK_MINUTES, 60), (WATERMARK_FIVE_MINUTES, 300)):
            for at in back(minute, seconds, size.minutes * 60 // seconds):
                self._append(table, self._logs(at, seconds))
        self._history()
        self._samples()
        self._append(TOPICS, self._topic_settings())
        self._shaken()
        self._bulk.commit()
        self.tick(self._now)

    def write_capacity(self) -> None:
        """A verdict on each group: a quarter is undecided, others are enough for ever, for some weeks, or too small."""
        rows: list[dict[str, Any]] = []
        for g, name in enumerate(self._cast.groups.to_pylist()):
            can_do, demand = 1_000.0, float(300 + 12 * (g % 90))
            verdict = (
                "undecided" if g % 4 == 3 else "short" if demand > can_do else "tight" if demand > 700 else "enough"
            )
            ends = self._now + timedelta(days=g % 90) if verdict == "tight" else None
            rows.append({
                "cluster": CLUSTER, "group": name, "topic": self._cast.topic_of(g), "as_of": self._now,
                "verdict": verdict, "sentence": "What it can do and what it must do, in a sentence.",
                "is_exceeded": verdict == "short", "enough_until": ends, "partitions": self._cast.partitions_of(g),
                "members": 4, "nodes": 4, "hottest_share": 0.02, "lag": 1000, "produce_rate_per_second": demand / 2,
                "peak_rate_per_second": demand, "forecast_peak_rate_per_second": 1.1 * demand, "size_by": "objective",
                "demand_per_second": demand, "forecast_demand_per_second": 1.1 * demand,
                "forecast_demand_high_per_second": 1.3 * demand, "objective_seconds": 300.0,
                "objective_rate_per_second": demand, "planned_objective_rate_per_second": 1.2 * demand,
                "member_rate_per_second": 250.0, "unit": "node", "capacity_source": "saturation",
                "capacity_low_per_second": None if verdict == "undecided" else can_do,
                "capacity_high_per_second": None if verdict == "undecided" else 1.1 * can_do,
                "t1_seconds": 0.02, "t2_seconds": 0.001, "cores": 2.0, "threads_per_node": 8,
                "max_threads_per_node": 1000, "concurrency": "pool", "advised_nodes": 5,
                "advised_threads_per_node": 12, "advised_partitions": self._cast.partitions_of(g), "binds": "cpu",
                "change": "One more node.", "advice": "What to do, in a sentence.", "confidence": "high", "inputs": [],
            })  # fmt: skip
        self._lake.append(CAPACITY, CAPACITY.from_rows(rows))

    def tick(self, at: datetime) -> None:
        """What a round of the analysis leaves: the present state, and the newest of the history."""
        for table, rows in ((GROUP_STATUS, self._group_status(at)), (PARTITION_STATUS, self._partition_status(at))):
            write_deltalake(self._lake.location(table), rows.cast(table.arrow), mode="overwrite")
        self._lake.append(GROUP_HISTORY, self._points([at]))
        self._lake.append(TICKS, TICKS.from_rows([_tick(at, self._size.pairs)]))
        self._lake.append(SAMPLES, SAMPLES.from_rows([self._sample(at)]))

    def _buckets(self, at: datetime, seconds: int, which: Any) -> pa.Table:
        rows = len(self._lag[which])
        lag = self._lag[which] + self._random.integers(0, 500, rows)
        samples = seconds // int(INTERVAL_SECONDS)
        moments = INTERVAL_SECONDS * np.arange(samples)
        return rows_of(MINUTES if seconds < 3600 else HOURS, rows, {
            **self._cast.names(which),
            "minute": same(at, rows),
            "samples": np.full(rows, samples, np.int32),
            "first_at": same(at, rows),
            "last_at": same(at + timedelta(seconds=seconds - INTERVAL_SECONDS), rows),
            "first_committed": lag * 7,
            "last_committed": lag * 7 + seconds,
            "last_lag": lag,
            "max_lag": lag + self._random.integers(0, 50, rows),
            "sum_t": np.full(rows, moments.sum()),
            "sum_tt": np.full(rows, (moments * moments).sum()),
            "sum_lag": lag * float(samples),
            "sum_lag_lag": lag.astype(float) ** 2 * samples,
            "sum_t_lag": lag * moments.sum(),
            "steps": np.full(rows, samples, np.int32),
            "sum_dt_dt": np.full(rows, INTERVAL_SECONDS**2 * samples),
            "sum_dt_dlag": self._random.normal(size=rows),
            "sum_dlag_dlag": self._random.random(rows) * 100,
            "moves": np.full(rows, samples, np.int32),
            "long_pauses": np.zeros(rows, np.int32),
            "backlog_seconds": np.full(rows, float(seconds)),
        })  # fmt: skip

    def _logs(self, at: datetime, seconds: int) -> pa.Table:
        cast = self._cast
        rows = len(cast.log_topic)
        end = (np.arange(rows) % 97 + 3) * int(at.timestamp() - 1.7e9)
        return rows_of(WATERMARK_MINUTES, rows, {
            "cluster": pa.array([CLUSTER] * rows),
            "topic": named(cast.log_topic, cast.topics),
            "partition": cast.log_partition.astype(np.int32),
            "minute": same(at, rows),
            "first_high_watermark": end,
            "last_high_watermark": end + (np.arange(rows) % 97 + 3) * (seconds - 15),
            "first_at": same(at, rows),
            "last_at": same(at + timedelta(seconds=seconds - INTERVAL_SECONDS), rows),
        })  # fmt: skip

    def _history(self) -> None:
        """A day of rounds; the newest quarter of an hour not compacted yet."""
        times = list(back(self._now, INTERVAL_SECONDS, self._size.day_minutes * 4))[:-1]
        loose, most = 60, max(1, _HISTORY_ROWS // self._size.groups)
        for day in sorted({at.date() for at in times}):
            of_day = [at for at in times if at.date() == day]
            compacted = of_day[:-loose] if day == times[-1].date() else of_day
            for first in range(0, len(compacted), most):
                self._append(GROUP_HISTORY, self._points(compacted[first : first + most]))
        for at in times[-loose:]:
            if at.date() == times[-1].date():
                self._append(GROUP_HISTORY, self._points([at]))
        for hour in back(self._now, 3600, max(1, self._size.day_minutes // 60)):
            self._append(TICKS, TICKS.from_rows([_tick(hour, self._size.pairs)]))
            names = self._cast.groups.to_pylist()
            changes = [
                {"cluster": CLUSTER, "group": names[i % len(names)], "at": hour, "before": "ok", "after": "lagging"}
                for i in range(200)
            ]
            self._append(STATUS_CHANGES, STATUS_CHANGES.from_rows(changes))

    def _points(self, times: list[datetime]) -> pa.Table:
        groups = len(self._cast.groups)
        rows = groups * len(times)
        each = np.tile(np.arange(groups), len(times))
        lag = self._random.integers(0, 100_000, rows)
        return rows_of(GROUP_HISTORY, rows, {
            "cluster": pa.array([CLUSTER]).take(pa.array(np.zeros(rows, np.int32))),
            "group": named(each, self._cast.groups),
            "as_of": pa.array(times, TIMESTAMP).take(pa.array(np.repeat(np.arange(len(times)), groups))),
            "status": pa.array([str(s) for s in self._cast.status]).take(pa.array(each)),
            "lag": lag,
            "lag_seconds": lag / 100.0,
            "lag_seconds_is_lower_bound": np.zeros(rows, bool),
            "produce_rate_per_second": self._random.random(rows) * 1000,
            "consume_rate_per_second": self._random.random(rows) * 1000,
        })  # fmt: skip

    def _samples(self) -> None:
        cast = self._cast
        names, ends = cast.groups.to_pylist(), len(cast.log_topic)
        for number, at in enumerate(back(self._now, INTERVAL_SECONDS, 40)):
            sample = {"sample_id": f"{number:08d}", "cluster": CLUSTER, "sampled_at": at}
            self._append(SAMPLES, SAMPLES.from_rows([self._sample(at)]))
            self._append(GROUPS, GROUPS.from_rows([
                {**sample, "group": g, "state": "Stable", "type": "classic", "assignor": "range", "member_count": 4}
                for g in names
            ]))  # fmt: skip
            self._append(MEMBERS, MEMBERS.from_rows([
                {**sample, "group": g, "member_id": f"{g}-{m}", "client_id": f"worker-{m}", "host": f"/10.0.0.{m}",
                 "assignment": [{"topic": cast.topic_of(i), "partitions": list(range(m, cast.partitions_of(i), 4))}],
                 "assigned_partitions": len(range(m, cast.partitions_of(i), 4))}
                for i, g in enumerate(names) for m in range(4)
            ]))  # fmt: skip
            high = (np.arange(ends) % 97 + 3) * int(at.timestamp() - 1.7e9)
            self._append(WATERMARKS, rows_of(WATERMARKS, ends, {
                "sample_id": pa.array([sample["sample_id"]] * ends),
                "cluster": pa.array([CLUSTER] * ends),
                "sampled_at": same(at, ends),
                "topic": named(cast.log_topic, cast.topics),
                "partition": cast.log_partition.astype(np.int32),
                "topic_id": named(cast.log_topic, cast.topics),
                "log_start": np.zeros(ends, np.int64),
                "high_watermark": high,
                "leader": (np.arange(ends) % 5).astype(np.int32),
                "replicas": pa.array([[1, 2, 3]] * ends, pa.list_(pa.int32())),
                "isr": pa.array([[1, 2, 3]] * ends, pa.list_(pa.int32())),
            }))  # fmt: skip

    def _sample(self, at: datetime) -> dict[str, Any]:
        size = self._size
        return {
            "sample_id": f"{at:%H%M%S}", "cluster": CLUSTER, "system": "kafka", "started_at": at, "finished_at": at,
            "written_at": at, "interval_seconds": INTERVAL_SECONDS, "groups": len(self._cast.groups),
            "group_partitions": size.pairs, "partitions": len(self._cast.log_topic), "wall_seconds": 0.6,
            "cpu_seconds": 0.5, "errors": [],
        }  # fmt: skip

    def _topic_settings(self) -> pa.Table:
        partitions = np.bincount(self._cast.log_topic).tolist()
        return TOPICS.from_rows([
            {"sample_id": "0", "cluster": CLUSTER, "sampled_at": self._now, "topic": t, "retention_bytes": -1,
             "partitions": partitions[number], "replication_factor": 3, "retention_ms": _RETENTION_MS,
             "cleanup_policy": "delete", "min_isr": 2}
            for number, t in enumerate(self._cast.topics.to_pylist())
        ])  # fmt: skip

    def _shaken(self) -> None:
        """Twenty rebalances of the one group, and an hour of statistics for every tenth."""
        hour = self._now.replace(minute=0, second=0)
        self._append(EVENTS, EVENTS.from_rows([
            {"cluster": CLUSTER, "at": at, "kind": "rebalance", "group": GROUP, "source": "samples", "joined": [],
             "left": ["worker-0 (/10.0.0.0)"], "partitions_moved": 25, "duration_seconds": 3.0}
            for at in back(self._now, 240, 20) if at.date() == self._now.date()
        ]))  # fmt: skip
        self._append(REBALANCE_STATS, REBALANCE_STATS.from_rows([
            {"cluster": CLUSTER, "group": g, "hour": hour, "rebalances": 3, "exact": False,
             "downtime_seconds_at_most": 9.0, "partitions_moved": 12, "joined": 1, "left": 1, "churning": [],
             "is_storm": i % 50 == 0, "cause": "failing_members", "sentence": "Members crashed.", "last_at": self._now,
             "events": 3}
            for i, g in enumerate(self._cast.groups.to_pylist()) if i % 10 == 0
        ]))  # fmt: skip

    def _group_status(self, at: datetime) -> pa.Table:
        rows = []
        for g, status in enumerate(self._cast.status):
            known, partitions = status is not Status.UNKNOWN, self._cast.partitions_of(g)
            rows.append({
                "cluster": CLUSTER, "group": self._cast.groups[g].as_py(), "as_of": at, "status": status,
                "reason": None if known else "no_commit", "since": at - timedelta(minutes=20 + g % 60),
                "sentence": f"{g} of {partitions} partitions: what happened to this group, in a sentence.",
                "state": "Stable", "type": "classic", "members": 4, "idle_members": 0,
                "topics": [self._cast.topic_of(g)], "partitions": partitions,
                "partitions_by_status": [{"status": status, "partitions": partitions}],
                "lag": int(self._random.integers(0, 100_000)) if known else None,
                "lag_seconds": float(self._random.random() * 900) if known else None,
                "lag_seconds_is_lower_bound": False, "produce_rate_per_second": 900.0, "consume_rate_per_second": 870.0,
                "seconds_to_loss": _LOSS.get(status), "loss_cause": "deletion" if status in _LOSS else None,
                "records_lost": 0, "worst_topic": self._cast.topic_of(g), "worst_partition": 0,
                "findings": [],
            })  # fmt: skip
        return GROUP_STATUS.from_rows(rows)

    def _partition_status(self, at: datetime) -> pa.Table:
        rows = self._size.pairs
        words = pa.array([str(s) for s in self._cast.status])
        loss = pa.array([_LOSS.get(s) for s in self._cast.status], pa.float64())
        deletion = pa.array(["deletion" if s in _LOSS else None for s in self._cast.status])
        group = pa.array(self._cast.group)
        member = pa.array(self._cast.partition % 4)
        status = words.take(group)
        return rows_of(PARTITION_STATUS, rows, {
            **self._cast.names(),
            "as_of": same(at, rows),
            "status": status,
            "since": same(at - timedelta(minutes=20), rows),
            "reasons": pa.ListArray.from_arrays(pa.array(np.arange(rows + 1, dtype=np.int32)), status),
            "log_start": np.zeros(rows, np.int64),
            "committed": self._lag * 7,
            "high_watermark": self._lag * 8,
            "lag": self._lag,
            "lag_seconds": self._lag / 10.0,
            "lag_seconds_is_lower_bound": np.zeros(rows, bool),
            "produce_rate_per_second": np.full(rows, 9.0),
            "consume_rate_per_second": np.full(rows, 8.7),
            "seconds_to_loss": loss.take(group),
            "loss_cause": deletion.take(group),
            "records_lost": np.zeros(rows, np.int64),
            "committed_since": same(at, rows),
            "owner": pa.array([f"{g}-{m}" for g, m in zip(self._cast.groups.take(group).to_pylist(),
                                                           member.to_pylist(), strict=True)]),
            "client_id": pa.array([f"worker-{m}" for m in range(4)]).take(member),
            "host": pa.array([f"/10.0.0.{m}" for m in range(4)]).take(member),
            "leader": self._cast.partition % 5,
            "samples": np.full(rows, 240, np.int32),
        })  # fmt: skip

    def _append(self, table: Table, rows: pa.Table) -> None:
        if rows.num_rows:
            self._bulk.append(table, rows)


def _tick(at: datetime, pairs: int) -> dict[str, Any]:
    return {
        "started_at": at - timedelta(seconds=4), "finished_at": at, "wall_seconds": 4.0, "samples": 1,
        "group_partitions": pairs, "progress": [],
    }  # fmt: skip
