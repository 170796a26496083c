"""Detects committed offsets that skipped unread records, by the rules of :mod:`lagwise.domain.loss.skips`.

Made for 100,000 group-partitions of which few leap: arrays in the order of the sample's commits carry their state from
sample to sample. All numbers are floats. An unknown one is NaN, so that no comparison with it is true.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lagwise.domain.loss import skips as rules
from lagwise.domain.loss.skips import Leap, SkippingReader, is_reset_to_end, is_skip
from lagwise.domain.verdicts.samples import gap_seconds

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, slots=True)
class ReaderPaces:
    """Every group-partition at a sample: its offsets, and the pace at which it was seen to read."""

    #: When the commits were read, seconds since 1970.
    at: float
    #: Group, topic and partition, joined to one text.
    names: pa.Array
    committed: Array
    log_start: Array
    #: The end that the group reads up to: the last stable offset or the high watermark.
    end: Array
    #: Records between the committed offset and the end.
    unread: Array
    #: The highest consume rate seen between two samples, records per second.
    fastest_per_second: Array
    #: How long the group was seen to read while it had unread records.
    behind_seconds: Array


@dataclass(frozen=True, slots=True)
class OffsetSkip:
    """A group-partition that skipped the records between two offsets."""

    #: Its row among the sample's commits.
    row: int
    before: int
    after: int
    #: Its next record had been deleted; ``before`` is the log start of now.
    from_log_start: bool = False


def update_paces(
    before: ReaderPaces | None,
    commits: pa.Table,
    watermarks: pa.Table,
    at: float,
    interval_seconds: float,
    *,
    left_out: Collection[str],
) -> tuple[ReaderPaces, list[OffsetSkip]]:
    """The paces at this sample, and the group-partitions that skipped records since the one before.

    ``at`` is the time of the sample, seconds since 1970. Topics that are ``left_out`` may have gaps or were re-created:
    they have no skips.
    """
    now = _readers(commits, watermarks, at, left_out)
    if before is None:
        return now, []
    seconds = at - before.at
    before = _aligned(before, now.names)
    fastest, behind = before.fastest_per_second, before.behind_seconds
    if not 0 < seconds <= gap_seconds(interval_seconds):
        return replace(now, fastest_per_second=fastest, behind_seconds=behind), []
    records, written = now.committed - before.committed, now.end - before.end
    is_forward = (records > 0) & (written >= 0)
    # Records below the log start were deleted, which is a loss. Records from there on may have been skipped.
    is_step = is_forward & (now.log_start <= before.committed)
    might = is_step & (records > rules.RECORDS_OF_A_POLL) & (before.behind_seconds >= rules.SEEN_BEHIND_SECONDS)
    rows = [
        row
        for row in np.flatnonzero(might).tolist()
        if is_skip(*_reader_and_leap(before, now, row, seconds, before.committed[row]))
    ]
    is_step[rows] = False
    was_deleted = is_forward & (now.log_start > before.committed)
    might = was_deleted & (now.committed - now.log_start > rules.RECORDS_OF_A_POLL)
    resets = [
        row
        for row in np.flatnonzero(might).tolist()
        if is_reset_to_end(*_reader_and_leap(before, now, row, seconds, now.log_start[row]))
    ]
    fastest = np.where(is_step, np.maximum(fastest, records / seconds), fastest)
    behind = behind + np.where(is_step & (now.unread >= records), seconds, 0.0)
    skips = [OffsetSkip(row, int(before.committed[row]), int(now.committed[row])) for row in rows]
    skips += [OffsetSkip(row, int(now.log_start[row]), int(now.committed[row]), from_log_start=True) for row in resets]
    return replace(now, fastest_per_second=fastest, behind_seconds=behind), skips


def _reader_and_leap(
    before: ReaderPaces, now: ReaderPaces, row: int, seconds: float, start: float
) -> tuple[SkippingReader, Leap]:
    """A group-partition's pace until the sample before, and its leap from the offset ``start`` since then."""
    leap = Leap(
        records=now.committed[row] - start,
        seconds=seconds,
        unread_before=before.unread[row],
        unread_after=now.unread[row],
        written=now.end[row] - before.end[row],
    )
    return SkippingReader(before.fastest_per_second[row], before.behind_seconds[row]), leap


def _readers(commits: pa.Table, watermarks: pa.Table, at: float, left_out: Collection[str]) -> ReaderPaces:
    """Every group-partition at a sample, its pace unknown."""
    ends = pc.index_in(_names(commits, "topic", "partition"), _names(watermarks, "topic", "partition"))
    committed = _numbers(commits["committed"])
    if left_out:
        is_left_out = pc.is_in(pc.cast(commits["topic"], pa.string()), pa.array(sorted(left_out), pa.string()))
        committed = np.where(is_left_out.to_numpy(zero_copy_only=False), np.nan, committed)
    start, high, stable = (
        _numbers(pc.take(watermarks[name], ends)) for name in ("log_start", "high_watermark", "last_stable")
    )
    end = np.where(committed <= stable, np.minimum(stable, high), high)
    return ReaderPaces(
        at=at,
        names=_names(commits, "group", "topic", "partition"),
        committed=np.where(committed <= high, committed, np.nan),
        log_start=start,
        end=end,
        unread=np.maximum(end - np.maximum(committed, start), 0),
        fastest_per_second=np.zeros(len(committed)),
        behind_seconds=np.zeros(len(committed)),
    )


def _aligned(readers: ReaderPaces, names: pa.Array) -> ReaderPaces:
    """The same paces in the order of other names; new names are unknown."""
    if readers.names.equals(names):
        return readers
    positions = _numbers(pc.index_in(names, readers.names))
    is_known = ~np.isnan(positions)
    rows = np.where(is_known, positions, 0).astype(np.int64)

    def reordered(values: Array, otherwise: float = np.nan) -> Array:
        return np.where(is_known, values[rows], otherwise) if len(values) else np.full(len(rows), otherwise)

    return replace(
        readers,
        names=names,
        committed=reordered(readers.committed),
        log_start=reordered(readers.log_start),
        end=reordered(readers.end),
        unread=reordered(readers.unread),
        fastest_per_second=reordered(readers.fastest_per_second, 0.0),
        behind_seconds=reordered(readers.behind_seconds, 0.0),
    )


def _names(rows: pa.Table, *columns: str) -> pa.Array:
    """One name a row, of several columns."""
    parts = [pc.cast(rows[column], pa.string()) for column in columns]
    joined = pc.binary_join_element_wise(*parts, "\0")
    return joined.combine_chunks() if isinstance(joined, pa.ChunkedArray) else joined


def _numbers(values: Any) -> Array:
    return np.asarray(pc.cast(values, pa.float64(), safe=False).to_numpy(zero_copy_only=False), np.float64)
