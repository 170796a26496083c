"""A lake as weeks of the product would have left it, written in bulk: what is kept of how far back, by the defaults.

Minutes are made here from the same offsets as the samples, by their definition; old days lie in compacted files, the
newest quarter of an hour in one file a minute, as between two runs of the maintenance.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.bulk import Bulk
from benchmarks.lake_columns import named, rows_of, same
from benchmarks.synthetic_lake import Offsets, Shape, group_names, topic_names, write_samples, write_topics
from lagwise.config import RetentionSettings
from lagwise.domain.verdicts.samples import gap_seconds
from lagwise.tables.analysis import GROUP_HISTORY, STATUS_CHANGES
from lagwise.tables.minutes import (
    FIVE_MINUTES,
    HOURS,
    MINUTES,
    WATERMARK_FIVE_MINUTES,
    WATERMARK_MINUTES,
    WATERMARK_POINT,
)
from lagwise.tables.raw import EVENTS
from lagwise.tables.rounds import TICKS
from lagwise.tables.schema import TIMESTAMP, Table
from lagwise.tables.store import Lake

#: Rows of a compacted file: about the 100 MB that compaction aims at.
ROWS_PER_FILE = 2_500_000
#: So much of the newest is not compacted yet.
LOOSE = timedelta(minutes=15)
#: Events and changes of status an hour, of a cluster that is not at peace.
PER_HOUR = 200


class History:
    """Writes the past of one cluster, from ``start`` to its last sample, at which the next round begins."""

    def __init__(self, lake: Lake, shape: Shape, start: datetime, samples: int, interval: float) -> None:
        self._bulk, self._lake, self._shape = Bulk(lake), lake, shape
        self._start, self._samples, self._interval = start, samples, interval
        self._offsets = Offsets(shape, interval)
        self._topics, self._groups = topic_names(shape), group_names(shape)

    @property
    def end(self) -> datetime:
        """The start of the last sample's minute: all before it has been made into minutes."""
        last = self._start + timedelta(seconds=(self._samples - 1) * self._interval)
        return last.replace(second=0, microsecond=0)

    def write(self, retention: RetentionSettings) -> None:
        """Write every table, as far back as it is kept."""
        today = self.end.replace(hour=0, minute=0)
        raw = max(self._start, today - timedelta(days=retention.raw_days))
        minutes = max(self._start, today - timedelta(days=retention.minute_stats_days))
        write_topics(self._bulk, self._shape, self._start)
        self._raw(raw)
        pairs, ends = self._minutes_of_pairs, self._minutes_of_ends
        for table, length, made in (
            (MINUTES, 60, pairs),
            (FIVE_MINUTES, 300, pairs),
            (HOURS, 3600, pairs),
            (WATERMARK_MINUTES, 60, ends),
            (WATERMARK_FIVE_MINUTES, 300, ends),
        ):
            self._buckets(table, minutes, timedelta(seconds=length), made)
        self._few_rows()
        self._bulk.commit()

    def _raw(self, first: datetime) -> None:
        number = int((first - self._start).total_seconds() / self._interval)
        loose = self._samples - int(LOOSE.total_seconds() / self._interval)
        sink = _Compacting(self._bulk)
        write_samples(sink, self._shape, self._start, loose - number, self._interval, first=number)
        sink.flush()
        write_samples(self._bulk, self._shape, self._start, self._samples - loose, self._interval, first=loose)

    def _buckets(
        self, table: Table, first: datetime, length: timedelta, made: Callable[[datetime, timedelta], dict[str, Any]]
    ) -> None:
        sink = _Compacting(self._bulk)
        at = first
        until = self.end - (self.end - datetime.min.replace(tzinfo=UTC)) % length
        while at < until:
            columns = made(at, length)
            rows = rows_of(table, len(columns["partition"]), columns)
            (sink if at < until - LOOSE else self._bulk).append(table, rows)
            at += length
            if at >= until - LOOSE:
                sink.flush()
        sink.flush()

    def _numbers(self, at: datetime, length: timedelta) -> list[int]:
        first = round((at - self._start).total_seconds() / self._interval)
        return list(range(first, first + round(length.total_seconds() / self._interval)))

    def _time(self, sample: int) -> datetime:
        return self._start + timedelta(seconds=sample * self._interval)

    def _minutes_of_pairs(self, at: datetime, length: timedelta) -> dict[str, Any]:
        shape, rows = self._shape, self._shape.pairs
        numbers = self._numbers(at, length)
        has_before = numbers[0] > 0
        every = [numbers[0] - 1, *numbers] if has_before else numbers
        committed = np.stack([self._offsets.committed(n) for n in every])
        lag = np.stack([self._offsets.ends(n)[shape.row_index] for n in every]) - committed
        t = np.array([(self._time(n) - at).total_seconds() for n in numbers])[:, None]
        inside = slice(1, None) if has_before else slice(None)
        y, its = lag[inside].astype(float), committed[inside]
        steps, moved = np.diff(lag, axis=0).astype(float), np.diff(committed, axis=0) != 0
        dt = self._interval
        assert dt <= gap_seconds(dt)
        times = pa.array([self._time(n) for n in every], TIMESTAMP)
        return self._of_pairs() | {
            "minute": same(at, rows),
            "samples": np.full(rows, len(numbers), np.int32),
            "first_at": same(self._time(numbers[0]), rows),
            "last_at": same(self._time(numbers[-1]), rows),
            "first_committed": its[0],
            "last_committed": its[-1],
            "last_lag": lag[-1],
            "max_lag": lag[inside].max(axis=0),
            "sum_t": np.full(rows, t.sum()),
            "sum_tt": np.full(rows, (t * t).sum()),
            "sum_lag": y.sum(axis=0),
            "sum_lag_lag": (y * y).sum(axis=0),
            "sum_t_lag": (t * y).sum(axis=0),
            "steps": np.full(rows, len(steps), np.int32),
            "sum_dt_dt": np.full(rows, dt * dt * len(steps)),
            "sum_dt_dlag": dt * steps.sum(axis=0),
            "sum_dlag_dlag": (steps * steps).sum(axis=0),
            "moves": moved.sum(axis=0).astype(np.int32),
            "long_pauses": np.zeros(rows, np.int32),
            "last_moved_at": _latest(moved, times[1:]),
            "backlog_seconds": dt * (lag[:-1] > 0).sum(axis=0),
            "last_drained_at": _latest(lag[inside] == 0, times[len(every) - len(numbers) :]),
            "first_progress_at": _earliest(moved | (lag[1:] == 0), times[1:]),
        }

    def _minutes_of_ends(self, at: datetime, length: timedelta) -> dict[str, Any]:
        shape, rows = self._shape, self._shape.partitions
        numbers = self._numbers(at, length)
        high = np.stack([self._offsets.ends(n) for n in numbers])
        points = pa.StructArray.from_arrays(
            [
                pa.array([self._time(n) for n in numbers] * rows, TIMESTAMP),
                pa.array(high.T.reshape(-1)),
            ],
            fields=list(WATERMARK_POINT.value_type),
        )
        starts = pa.array(np.arange(rows + 1, dtype=np.int32) * len(numbers))
        return {
            "cluster": pa.array(["bench"] * rows),
            "topic": named(shape.topic_index, self._topics),
            "partition": shape.partition_index,
            "minute": same(at, rows),
            "topic_id": named(shape.topic_index, self._topics),
            "first_log_start": np.zeros(rows, np.int64),
            "last_log_start": np.zeros(rows, np.int64),
            "first_high_watermark": high[0],
            "last_high_watermark": high[-1],
            "first_at": same(self._time(numbers[0]), rows),
            "last_at": same(self._time(numbers[-1]), rows),
            "points": pa.ListArray.from_arrays(starts, points, type=WATERMARK_POINT),
        }

    def _of_pairs(self) -> dict[str, Any]:
        shape = self._shape
        return {
            "cluster": pa.array(["bench"] * shape.pairs),
            "group": named(shape.group_index, self._groups),
            "topic": named(shape.topic_index[shape.row_index], self._topics),
            "partition": shape.partition_index[shape.row_index],
        }

    def _few_rows(self) -> None:
        """A round each sample, a row per group each round, and what happened meanwhile: from the beginning on."""
        groups = self._groups.to_pylist()
        for hour in _hours(self._start, self.end):
            rounds = [at for at in _every(hour, self._interval, 3600.0) if self._start <= at < self.end]
            events = [hour + timedelta(seconds=3600 / PER_HOUR * i) for i in range(PER_HOUR)]
            events = [at for at in events if self._start <= at < self.end]
            self._append(TICKS, [self._tick(at) for at in rounds])
            self._append(
                GROUP_HISTORY,
                [
                    {"cluster": "bench", "group": g, "as_of": at, "status": "ok", "lag": 1}
                    for at in rounds
                    for g in groups
                ],
            )
            changed = [{"cluster": "bench", "group": groups[i % len(groups)], "at": at} for i, at in enumerate(events)]
            self._append(STATUS_CHANGES, [row | {"before": "ok", "after": "lagging"} for row in changed])
            kinds = ("rebalance", "state_changed")
            self._append(EVENTS, [r | {"kind": kinds[i % 2], "after": "Stable"} for i, r in enumerate(changed)])

    def _tick(self, at: datetime) -> dict[str, Any]:
        minute = at.replace(second=0, microsecond=0)
        # The last one says that all minutes before the last sample's own are finished. An hour less is whole than could
        # be: the first round makes that one, and the day's row.
        hours_until = minute.replace(minute=0) - timedelta(hours=2)
        progress = {
            "cluster": "bench",
            "read_until": at,
            "finished_until": minute,
            "hours_until": hours_until,
            "observed_until": hours_until,
        }
        return {
            "started_at": at,
            "finished_at": at,
            "wall_seconds": 1.0,
            "samples": 1,
            "group_partitions": self._shape.pairs,
            "progress": [progress],
        }

    def _append(self, table: Table, rows: list[dict[str, Any]]) -> None:
        if rows:
            self._bulk.append(table, table.from_rows(rows))


class _Compacting:
    """Gathers the rows of many appends into files of the size, and of one day each, that compaction leaves."""

    def __init__(self, bulk: Bulk) -> None:
        self._bulk = bulk
        self._held: dict[str, tuple[Table, list[pa.Table]]] = {}

    def append(self, table: Table, rows: pa.Table) -> None:
        """Keep the rows until there are enough of them for a file."""
        held = self._held.setdefault(table.name, (table, []))[1]
        if held and _day(held[0], table) != _day(rows, table):
            self._write(table)
            held = self._held.setdefault(table.name, (table, []))[1]
        held.append(rows)
        if sum(part.num_rows for part in held) >= ROWS_PER_FILE:
            self._write(table)

    def flush(self) -> None:
        """Write what is held."""
        for table, _ in list(self._held.values()):
            self._write(table)

    def _write(self, table: Table) -> None:
        _, held = self._held.pop(table.name)
        self._bulk.append(table, pa.concat_tables(held))


def _day(rows: pa.Table, table: Table) -> str:
    return str(rows[str(table.clock)][0].as_py().astimezone(UTC).date())


def _latest(holds: np.ndarray, times: pa.Array) -> pa.Array:
    """Per column the time of the last row in which it holds; null where there is none."""
    last = len(holds) - 1 - holds[::-1].argmax(axis=0)
    return times.take(pa.array(last, mask=~holds.any(axis=0)))


def _earliest(holds: np.ndarray, times: pa.Array) -> pa.Array:
    """Per column the time of the first row in which it holds; null where there is none."""
    return times.take(pa.array(holds.argmax(axis=0), mask=~holds.any(axis=0)))


def _hours(start: datetime, end: datetime) -> Iterator[datetime]:
    at = start.replace(minute=0, second=0, microsecond=0)
    while at < end:
        yield at
        at += timedelta(hours=1)


def _every(start: datetime, interval: float, seconds: float) -> Iterator[datetime]:
    for number in range(round(seconds / interval)):
        yield start + timedelta(seconds=number * interval)
