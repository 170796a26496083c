"""Minutes of a stretch of time from arrays: what :mod:`lagwise_spark.transforms.buckets` defines, for throughput.

Runs in Python beside Spark's executors, over Arrow batches. The module is sent there by value, so it imports nothing
but numpy, pyarrow and the standard library. Offsets and times (microseconds since the epoch) are whole numbers, with
:data:`NULL` for null; names are numbers from the moment they arrive, so that nothing is sorted or compared by name.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Array = np.ndarray[Any, np.dtype[Any]]
Rows = Mapping[str, Array]

NULL = np.iinfo(np.int64).min
#: How many samples are worked on at a time once they are in order: it bounds the memory for what lies between.
ROWS_AT_A_TIME = 100_000

#: What commits and watermarks are read for; the rows of both come in one stream.
OF_COMMITS = ("sample_id", "sampled_at", "group", "topic", "partition", "committed", "next_record")
OF_ENDS = ("sample_id", "sampled_at", "topic", "partition", "topic_id", "log_start", "high_watermark", "last_stable")

_NAMES = ("sample_id", "group", "topic", "topic_id")
_MINUTE = 60_000_000
#: Later than every time.
_NEVER = np.iinfo(np.int64).max
_TIMESTAMP = pa.timestamp("us", tz="UTC")


@dataclass(frozen=True)
class Span:
    """The minutes that are wanted: those that begin in [start, until), microseconds since the epoch. Samples before
    them only serve for comparison."""

    start: int
    until: int
    gap_seconds: float


def commit_minutes(batches: Iterable[pa.RecordBatch], span: Span) -> Iterator[pa.RecordBatch]:
    """Rows of `minutes`, without the cluster, from commits and all watermarks that belong to them, in any order. Rows
    of watermarks are those without a group."""
    names = _Names()
    commits, ends = [], []
    for batch in batches:
        rows = _numbered(batch, names)
        is_commit = rows["group"] >= 0
        commits.append(_where(rows, is_commit & (rows["committed"] != NULL), OF_COMMITS))
        ends.append(_where(rows, ~is_commit & _is_readable(rows), OF_ENDS))
    if not commits:
        return
    every, logs = _gathered(commits), _Logs(_gathered(ends))
    if len(logs.keys) == 0:
        return
    # Before anything else is made of them: what lies between then exists for a part of the samples only.
    pair = every["group"].astype(np.int64) * len(logs.keys) + logs.numbers(every)
    order = np.lexsort((every["sampled_at"], pair))
    for start, end in _chunks(pair[order]):
        known = _with_lag(_taken(every, order[start:end]), logs)
        if len(known["at"]):
            yield _minutes_of_pairs(known, names, span)


def watermark_minutes(batches: Iterable[pa.RecordBatch], span: Span) -> Iterator[pa.RecordBatch]:
    """Rows of `watermark_minutes`, without the cluster, from watermarks in any order."""
    names = _Names()
    ends = []
    for batch in batches:
        rows = _numbered(batch, names)
        ends.append(_where(rows, _is_readable(rows), OF_ENDS))
    if not ends:
        return
    all_ends = _gathered(ends)
    order = np.lexsort((all_ends["sampled_at"], _log(all_ends)))
    for start, end in _chunks(_log(all_ends)[order]):
        yield _minutes_of_logs(_taken(all_ends, order[start:end]), names, span)


class _Names:
    """Numbers in the place of names, by column, in the order of their first appearance; null is -1."""

    def __init__(self) -> None:
        self._numbers: dict[str, dict[str, int]] = {name: {} for name in _NAMES}

    def numbers(self, column: str, values: pa.Array) -> Array:
        known = self._numbers[column]
        encoded = values.dictionary_encode()
        found = [known.setdefault(name, len(known)) for name in encoded.dictionary.to_pylist()]
        indices = pc.fill_null(encoded.indices, len(found)).to_numpy(zero_copy_only=False)
        return np.asarray(np.array([*found, -1], np.int32)[indices])

    def named(self, column: str, numbers: Array) -> pa.Array:
        """The names of these numbers."""
        known = pa.array([*self._numbers[column], None], pa.string())
        return known.take(pa.array(np.where(numbers < 0, len(known) - 1, numbers)))


def _numbered(batch: pa.RecordBatch, names: _Names) -> Rows:
    """A batch as arrays of whole numbers."""
    rows = {}
    for name, values in zip(batch.schema.names, batch.columns, strict=True):
        if name in _NAMES:
            rows[name] = names.numbers(name, values)
        else:
            rows[name] = pc.fill_null(values.cast(pa.int64()), NULL).to_numpy(zero_copy_only=False)
    return rows


def _is_readable(ends: Rows) -> Array:
    return np.asarray((ends["high_watermark"] != NULL) & (ends["log_start"] != NULL))


class _Logs:
    """Readable watermarks, to be found by sample and topic-partition."""

    def __init__(self, ends: Rows) -> None:
        self.ends = ends
        self.keys, numbers = np.unique(_log(ends), return_inverse=True)
        # A table instead of a search: the row of a sample's watermarks of a topic-partition, -1 where there are none.
        self._rows = np.full((1 + int(ends["sample_id"].max(initial=-1)), len(self.keys)), -1, np.int32)
        self._rows[ends["sample_id"], numbers] = np.arange(len(numbers), dtype=np.int32)

    def numbers(self, commits: Rows) -> Array:
        """The place among ``keys`` of each commit's topic-partition; some place where it is not among them."""
        return np.minimum(np.searchsorted(self.keys, _log(commits)), len(self.keys) - 1)

    def rows(self, commits: Rows) -> Array:
        """The row of the watermarks that were read with each commit, -1 where there are none."""
        numbers, samples = self.numbers(commits), commits["sample_id"]
        is_there = (self.keys[numbers] == _log(commits)) & (samples < len(self._rows))
        return np.where(is_there, self._rows[np.minimum(samples, len(self._rows) - 1), numbers], -1)


def _with_lag(commits: Rows, logs: _Logs) -> Rows:
    """Those samples whose lag is known, with all that is compared: the rules of :mod:`lagwise.domain.lag`."""
    found = logs.rows(commits)
    is_known = (found >= 0) & (commits["committed"] <= logs.ends["high_watermark"][found])
    commits, ends = _taken(commits, is_known), _taken(logs.ends, found[is_known])
    committed, high, last_stable = commits["committed"], ends["high_watermark"], ends["last_stable"]
    reads_from = np.maximum(committed, commits["next_record"])
    is_held_up = (last_stable != NULL) & (committed <= last_stable)
    end = np.where(is_held_up, np.minimum(last_stable, high), high)
    return {
        "group": commits["group"],
        "log": _log(commits),
        "at": commits["sampled_at"],
        "committed": committed,
        "high_watermark": high,
        "lag": np.maximum(end - np.maximum(reads_from, ends["log_start"]), 0),
        "log_start": ends["log_start"],
        "reads_from": reads_from,
        "topic_id": ends["topic_id"],
    }


def _minutes_of_pairs(rows: Rows, names: _Names, span: Span) -> pa.RecordBatch:
    """`minutes` of group-partitions, from their samples in order."""
    at, committed, lag = rows["at"], rows["committed"], rows["lag"]
    is_first = _is_first(rows["group"]) | _is_first(rows["log"])
    previous_lag, previous_committed = _before(lag), _before(committed)
    seconds = (at - _before(at)) / 1e6
    is_other_topic = _is_other_topic(rows["topic_id"], is_first)
    is_step = ~is_first & (seconds <= span.gap_seconds) & ~is_other_topic
    lost_at_least, lost_at_most = _lost_in_steps(rows["reads_from"], rows["log_start"], is_first | is_other_topic)
    minute = at - at % _MINUTE
    starts = np.flatnonzero(is_first | _is_first(minute))
    lasts = np.append(starts[1:], len(at)) - 1
    wanted = (minute[starts] >= span.start) & (minute[starts] < span.until)

    t, y = (at - minute) / 1e6, lag.astype(np.float64)
    dt = np.where(is_step, seconds, 0.0)
    dlag = np.where(is_step, lag - previous_lag, 0).astype(np.float64)
    moved = ~is_first & (committed != previous_committed)
    log_went_back = rows["high_watermark"] < _before(rows["high_watermark"])
    went_back = is_step & (committed < previous_committed) & ~log_went_back

    def total(values: Array) -> Array:
        return np.asarray(np.add.reduceat(values, starts)[wanted])

    def count(values: Array) -> pa.Array:
        return pa.array(total(values.astype(np.int32)), pa.int32())

    def most(mask: Array, values: Array) -> pa.Array:
        return _nullable(np.maximum.reduceat(np.where(mask, values, NULL), starts)[wanted])

    def total_of_some(values: Array) -> pa.Array:
        sums = total(np.maximum(values, 0))
        return pa.array(sums, mask=sums == 0)

    progress = np.where(moved | (lag == 0), at, _NEVER)
    first_progress = np.minimum.reduceat(progress, starts)[wanted]
    first_lost = np.minimum.reduceat(np.where(lost_at_least > 0, at, _NEVER), starts)[wanted]
    first, last = starts[wanted], lasts[wanted]
    log = rows["log"][first]
    return pa.RecordBatch.from_pydict(
        {
            "group": names.named("group", rows["group"][first]),
            "topic": names.named("topic", log >> 32),
            "partition": _partition(log),
            "minute": _times(minute[first]),
            "samples": pa.array((last - first + 1).astype(np.int32)),
            "first_at": _times(at[first]),
            "last_at": _times(at[last]),
            "first_committed": committed[first],
            "last_committed": committed[last],
            "last_lag": lag[last],
            "max_lag": np.maximum.reduceat(lag, starts)[wanted],
            "sum_t": total(t),
            "sum_tt": total(t * t),
            "sum_lag": total(y),
            "sum_lag_lag": total(y * y),
            "sum_t_lag": total(t * y),
            "steps": count(is_step),
            "sum_dt_dt": total(dt * dt),
            "sum_dt_dlag": total(dt * dlag),
            "sum_dlag_dlag": total(dlag * dlag),
            "moves": count(is_step & moved),
            "last_moved_at": most(moved, at).cast(_TIMESTAMP),
            "backlog_seconds": total(np.where(previous_lag > 0, dt, 0.0)),
            "last_drained_at": most(lag == 0, at).cast(_TIMESTAMP),
            "first_progress_at": pa.array(first_progress, mask=first_progress == _NEVER).cast(_TIMESTAMP),
            "rewound_from": most(went_back, previous_committed),
            "rewound_records": total_of_some(np.where(went_back, previous_committed - committed, 0)),
            "rewound_at": most(went_back, at).cast(_TIMESTAMP),
            "lost_at_least": total_of_some(lost_at_least),
            "lost_at_most": total_of_some(lost_at_most),
            "first_lost_at": pa.array(first_lost, mask=first_lost == _NEVER).cast(_TIMESTAMP),
            "last_lost_at": most(lost_at_least > 0, at).cast(_TIMESTAMP),
        }
    )


def _lost_in_steps(reads_from: Array, log_start: Array, is_alone: Array) -> tuple[Array, Array]:
    """:func:`lagwise.domain.loss.records.lost_in_step`; where it ``is_alone`` a sample has none before it."""
    before, read_before = _before(log_start), _before(reads_from)
    was_missing = ~is_alone & (before > read_before)
    at_least = np.maximum(log_start - np.maximum(reads_from, np.where(was_missing, before, reads_from)), 0)
    at_most = np.maximum(at_least, log_start - np.maximum(before, read_before))
    return at_least, np.where(is_alone, at_least, at_most)


def _minutes_of_logs(rows: Rows, names: _Names, span: Span) -> pa.RecordBatch:
    """`watermark_minutes` of topic-partitions, from their readable watermarks in order. What a minute held before its
    last reset is another log, and left out."""
    is_first = _is_first(_log(rows))
    is_other_topic = _is_other_topic(rows["topic_id"], is_first)
    went_back = ~is_first & (_before(rows["high_watermark"]) > rows["high_watermark"])
    minute = rows["sampled_at"] - rows["sampled_at"] % _MINUTE
    is_wanted = (minute >= span.start) & (minute < span.until)
    rows = _taken(rows, is_wanted)
    minute, is_first, is_other_topic = minute[is_wanted], _is_first(_log(rows)), is_other_topic[is_wanted]
    is_reset = is_other_topic | went_back[is_wanted]
    at, high = rows["sampled_at"], rows["high_watermark"]
    starts = np.flatnonzero(is_first | _is_first(minute))
    lasts = np.append(starts[1:], len(at)) - 1 if len(starts) else starts

    def most(mask: Array) -> pa.Array:
        values = np.where(mask, at, NULL)
        return _nullable(np.maximum.reduceat(values, starts) if len(starts) else values).cast(_TIMESTAMP)

    # In order of time, the last reset of a minute is the row from which on it shows this log.
    index = np.arange(len(at))
    resets = np.maximum.accumulate(np.where(is_reset, index, -1))
    firsts = np.maximum(starts, resets[lasts])
    is_kept = index >= np.repeat(firsts, lasts - starts + 1)
    offsets = np.concatenate([[0], np.cumsum(lasts - firsts + 1)]).astype(np.int32)
    points = pa.StructArray.from_arrays([_times(at[is_kept]), pa.array(high[is_kept])], names=["at", "high_watermark"])
    return pa.RecordBatch.from_pydict(
        {
            "topic": names.named("topic", rows["topic"][starts]),
            "partition": _partition(rows["partition"][starts]),
            "minute": _times(minute[starts]),
            "topic_id": names.named("topic_id", rows["topic_id"][lasts]),
            "first_log_start": rows["log_start"][firsts],
            "last_log_start": rows["log_start"][lasts],
            "first_high_watermark": high[firsts],
            "last_high_watermark": high[lasts],
            "first_at": _times(at[firsts]),
            "last_at": _times(at[lasts]),
            "reset_at": most(is_reset),
            "recreated_at": most(is_other_topic),
            "points": pa.ListArray.from_arrays(pa.array(offsets), points),
        }
    )


def _log(rows: Rows) -> Array:
    """A number for the topic-partition of each row: the topic's and, in the lower 32 bits, the partition's."""
    return np.asarray((rows["topic"].astype(np.int64) << 32) | rows["partition"])


def _partition(numbers: Array) -> pa.Array:
    return pa.array((numbers & 0xFFFFFFFF).astype(np.int32))


def _is_first(values: Array) -> Array:
    """Whether each differs from the one before it, as the first does."""
    first = np.ones(len(values), bool)
    np.not_equal(values[1:], values[:-1], out=first[1:])
    return first


def _before(values: Array) -> Array:
    """Of each the one before it; of the first it says nothing."""
    return np.concatenate([values[:1], values[:-1]])


def _is_other_topic(topic_id: Array, is_first: Array) -> Array:
    """Whether each row's topic id differs from the last one known of the same series. Unknown is -1."""
    # The row of the last known id up to each row, or of the series' beginning where none is known yet.
    index = np.arange(len(topic_id))
    last_known = np.maximum.accumulate(np.where((topic_id >= 0) | is_first, index, 0))
    earlier = _before(topic_id[last_known])
    return np.asarray(~is_first & (topic_id >= 0) & (earlier >= 0) & (earlier != topic_id))


def _chunks(ordered: Array) -> Iterator[tuple[int, int]]:
    """Bounds of parts of about the same size, such that equal values are never apart."""
    start = 0
    while start < len(ordered):
        last = min(start + ROWS_AT_A_TIME, len(ordered)) - 1
        end = int(np.searchsorted(ordered, ordered[last], side="right"))
        yield start, end
        start = end


def _gathered(parts: list[dict[str, Array]]) -> Rows:
    """The rows of all parts together. The parts are emptied: they would take the memory twice."""
    return {name: np.concatenate([part.pop(name) for part in parts]) for name in list(parts[0])}


def _where(rows: Rows, mask: Array, wanted: Iterable[str]) -> dict[str, Array]:
    is_all = bool(mask.all())
    return {name: rows[name] if is_all else rows[name][mask] for name in wanted}


def _taken(rows: Rows, chosen: Array) -> Rows:
    return {name: values[chosen] for name, values in rows.items()}


def _nullable(values: Array) -> pa.Array:
    return pa.array(values, mask=values == NULL)


def _times(values: Array) -> pa.Array:
    return pa.array(values).cast(_TIMESTAMP)
