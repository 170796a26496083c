"""From raw samples to the minutes that no later sample will change, and to the five minutes that these complete."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lagwise.domain.verdicts.buckets import FIVE_MINUTES as FIVE
from lagwise.domain.verdicts.buckets import MINUTE, merged, of_samples
from lagwise.domain.verdicts.columns import NULL, Array, Columns, start_of, taken
from lagwise.domain.verdicts.logs import Logs, log_buckets, logs_of_samples
from lagwise.domain.verdicts.samples import known_samples
from lagwise.tables.minutes import FIVE_MINUTES, MINUTES, WATERMARK_FIVE_MINUTES, WATERMARK_MINUTES
from lagwise.tables.raw import COMMITS, WATERMARKS
from lagwise_spark.tasks.arrow_columns import combined, places_in
from lagwise_spark.tasks.lake_files import KeyRange, LakeFiles
from lagwise_spark.tasks.range_rows import (
    LOG_COLUMNS,
    OF_LOG,
    OF_PAIR,
    Keys,
    RangeReader,
    bucket_rows,
    joined_logs,
    log_bucket_rows,
    logs_of,
)

#: What minutes are made of.
OF_COMMITS = (*OF_PAIR, "sample_id", "sampled_at", "committed", "next_record")
OF_WATERMARKS = (*OF_LOG, "sample_id", "sampled_at", "topic_id", "log_start", "high_watermark", "last_stable")


@dataclass(frozen=True)
class Span:
    """Minutes of a cluster that are made from raw samples, from ``start`` on (microseconds since the epoch). Those
    before ``until`` are finished. A pause between samples that is longer than the gap is no step."""

    cluster: str
    start: int
    until: int
    gap_seconds: float


@dataclass(frozen=True)
class Spans:
    """Spans as columns, by the number of their cluster."""

    start: Array
    until: Array
    gap_seconds: Array

    @classmethod
    def of(cls, spans: Sequence[Span]) -> "Spans":
        return cls(
            np.array([span.start for span in spans], np.int64),
            np.array([span.until for span in spans], np.int64),
            np.array([span.gap_seconds for span in spans], np.float64),
        )

    @property
    def completes_five(self) -> bool:
        """Whether any of the finished minutes is the last of five."""
        return bool((start_of(FIVE, self.until) > start_of(FIVE, self.start)).any())


@dataclass(frozen=True)
class Slice:
    """Minutes of one cluster that are made for their own sake.

    Attributes:
        span: all of whose minutes are wanted.
        files: those that hold the samples, and the minutes of the five in which the span begins.
        samples: of the span and of the gap before it, and the last one before that.
        within: the range, which holds one cluster only.
    """

    span: Span
    files: LakeFiles
    samples: frozenset[str]
    within: KeyRange


def written_minutes(wanted: Slice) -> Iterator[tuple[str, pa.Table]]:
    """Data files of the finished minutes of a slice, and of the five minutes that they complete: the rows that
    :meth:`LakeFiles.write` returns, with the name of their table."""
    for name, rows in made_minutes(wanted):
        if rows.num_rows:
            yield name, wanted.files.write(_TABLES[name], rows)


def made_minutes(wanted: Slice) -> Iterator[tuple[str, pa.Table]]:
    """The same as rows of their tables."""
    span = wanted.span
    reader = RangeReader(wanted.files, wanted.within, [span.cluster])
    commits, ends = (reader.read(table, names, wanted.samples) for table, names in _RAW)
    before = reader.buckets(MINUTES)
    log_rows = reader.rows(WATERMARK_MINUTES, (*OF_LOG, *LOG_COLUMNS))
    logs_before = reader.numbered(log_rows, WATERMARK_MINUTES, (*OF_LOG, *LOG_COLUMNS[:-1]))
    keys, spans = reader.keys(), Spans.of([span])

    def is_before(rows: Columns) -> Array:
        return (rows["minute"] >= start_of(FIVE, spans.start)) & (rows["minute"] < span.start)

    made = open_buckets(keys, commits, ends, spans)
    buckets = in_order([(before, is_before(before)), (made, None)])
    logs = joined_logs([logs_of([(logs_before, log_rows, is_before(logs_before))]), open_logs(keys, ends, spans)])
    yield from finished(keys, spans, buckets, logs)


_RAW = ((COMMITS, OF_COMMITS), (WATERMARKS, OF_WATERMARKS))
_TABLES = {table.name: table for table in (MINUTES, WATERMARK_MINUTES, FIVE_MINUTES, WATERMARK_FIVE_MINUTES)}


def in_order(parts: Sequence[tuple[Columns, Array | None]]) -> dict[str, Array]:
    """The buckets of several tables that a mask holds for (None: all), in order of pair and time."""

    def all_of(name: str) -> Array:
        return np.concatenate([rows[name] for rows, _ in parts])

    held = [np.ones(len(rows["pair"]), bool) if mask is None else mask for rows, mask in parts]
    row = np.flatnonzero(np.concatenate(held))
    pair, minute = all_of("pair")[row], all_of("minute")[row] // MINUTE
    if len(row):
        minute -= minute.min()
    order = row[np.argsort(pair * (1 + minute.max(initial=0)) + minute, kind="stable")]
    names = [name for name in parts[0][0] if name not in OF_PAIR and name != "log"]
    return {name: all_of(name)[order] for name in names}


def open_buckets(keys: Keys, commits: Columns, ends: Columns, spans: Spans) -> dict[str, Array]:
    """The minutes of group-partitions from the start of each span on."""
    order = np.lexsort((commits["sampled_at"], commits["pair"]))
    commits = taken(commits, order) | {"at": commits["sampled_at"][order]}
    sizes = (len(keys.names["sample_id"]), len(keys.logs["topic"]))
    end_of = places_in(
        combined([ends["sample_id"], ends["log"]], sizes), combined([commits["sample_id"], commits["log"]], sizes)
    )
    known = known_samples(commits, ends, end_of)
    minutes = merged(of_samples(known, spans.gap_seconds[keys.logs["cluster"][known["log"]]]), MINUTE)
    return taken(minutes, minutes["minute"] >= spans.start[keys.cluster_of(minutes["pair"])])


def open_logs(keys: Keys, ends: Columns, spans: Spans) -> Logs:
    """The history of topic-partitions from the start of each span on."""
    readable = taken(ends, (ends["high_watermark"] != NULL) & (ends["log_start"] != NULL))
    readable["at"] = readable["sampled_at"]
    logs = logs_of_samples(taken(readable, np.lexsort((readable["at"], readable["log"]))))
    start = spans.start[keys.logs["cluster"]]

    def opened(rows: Columns, at: str) -> dict[str, Array]:
        return taken(rows, rows[at] >= start[rows["log"]])

    return Logs(opened(logs.points, "at"), opened(logs.ends, "first_at"), opened(logs.resets, "at"))


def finished(keys: Keys, spans: Spans, buckets: Columns, logs: Logs) -> Iterator[tuple[str, pa.Table]]:
    """Rows of all tables of minutes and five minutes that are finished, with the name of each table. Buckets and logs
    reach back to the start of the five minutes in which each span begins, at least; in order of pair, or log, and
    time."""
    start, until = spans.start, spans.until
    yield MINUTES.name, _bucket_rows(keys, buckets, start, until, MINUTES.without_day)
    yield WATERMARK_MINUTES.name, _log_rows(keys, logs, start, until, MINUTE, WATERMARK_MINUTES.without_day)
    if spans.completes_five:
        start, until = start_of(FIVE, start), start_of(FIVE, until)
        fives = merged(taken(buckets, _is_within(keys, buckets, start, until)), FIVE)
        yield FIVE_MINUTES.name, _bucket_rows(keys, fives, start, until, FIVE_MINUTES.without_day)
        schema = WATERMARK_FIVE_MINUTES.without_day
        yield WATERMARK_FIVE_MINUTES.name, _log_rows(keys, logs, start, until, FIVE, schema)


def _is_within(keys: Keys, buckets: Columns, start: Array, until: Array) -> Array:
    cluster = keys.cluster_of(buckets["pair"])
    is_within: Array = (buckets["minute"] >= start[cluster]) & (buckets["minute"] < until[cluster])
    return is_within


def _bucket_rows(keys: Keys, buckets: Columns, start: Array, until: Array, schema: pa.Schema) -> pa.Table:
    rows = taken(buckets, _is_within(keys, buckets, start, until))
    return bucket_rows(rows, keys.of_pairs(rows["pair"]), schema)


def _log_rows(keys: Keys, logs: Logs, start: Array, until: Array, length: int, schema: pa.Schema) -> pa.Table:
    cluster = keys.logs["cluster"][logs.ends["log"]]
    is_within = (logs.ends["minute"] >= start[cluster]) & (logs.ends["minute"] < until[cluster])
    made = log_buckets(Logs(logs.points, taken(logs.ends, is_within), logs.resets), length)
    return log_bucket_rows(made.rows, made.points, logs.points, keys.of_logs(made.rows["log"]), schema)
