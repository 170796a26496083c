"""Skips as the samples show them. A reader takes 250 of 600 records that are written from sample to sample, on each of
its partitions; each case says what happens then."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from lagwise_collectors.sample_diff.commit_changes import skip_events
from lagwise_collectors.sample_diff.offset_skips import OffsetSkip, ReaderPaces, update_paces

INTERVAL = 15.0
SLOW, WRITTEN = 250, 600
#: So many samples of a slow reader make ten minutes.
SAMPLES = 41


def at_sample(
    known: ReaderPaces | None,
    time: float,
    committed: Mapping[int, int | None],
    end: int,
    *,
    log_start: int = 0,
    left_out: Sequence[str] = (),
) -> tuple[ReaderPaces, list[OffsetSkip]]:
    """A sample of partitions of one topic, all of the same length, in the order of the commits."""
    commits = pa.table(
        {
            "group": ["live"] * len(committed),
            "topic": ["scores"] * len(committed),
            "partition": pa.array(list(committed), pa.int32()),
            "committed": pa.array(list(committed.values()), pa.int64()),
        }
    )
    watermarks = pa.table(
        {
            "topic": ["scores"] * 3,
            "partition": pa.array(range(3), pa.int32()),
            "log_start": [log_start] * 3,
            "high_watermark": [end] * 3,
            "last_stable": pa.nulls(3, pa.int64()),
        }
    )
    return update_paces(known, commits, watermarks, time, INTERVAL, left_out=left_out)


def slow_reader() -> ReaderPaces:
    known = None
    for n in range(SAMPLES):
        known, skips = at_sample(known, n * INTERVAL, {0: SLOW * n, 1: SLOW * n}, WRITTEN * n)
        assert skips == []
    assert known is not None
    return known


END = WRITTEN * SAMPLES
NOW = INTERVAL * SAMPLES
BEFORE = SLOW * (SAMPLES - 1)


def test_one_that_passes_its_backlog_at_once_has_skipped() -> None:
    _, skips = at_sample(slow_reader(), NOW, {0: BEFORE + SLOW, 1: END}, END)
    assert skips == [OffsetSkip(1, BEFORE, END)]


def test_partitions_that_come_and_go_do_not_hide_it() -> None:
    known, skips = at_sample(slow_reader(), NOW, {2: 5, 1: END}, END)
    assert skips == [OffsetSkip(1, BEFORE, END)]
    # The one that was away is not known any more when it comes back.
    assert at_sample(known, NOW + INTERVAL, {0: END, 1: END, 2: END}, END)[1] == []


def test_after_a_skip_it_is_as_slow_as_before() -> None:
    """A skip says nothing about how fast a reader is: the next one is reported too."""
    known, _ = at_sample(slow_reader(), NOW, {0: BEFORE, 1: END}, END)
    later = END + 20_000
    known, _ = at_sample(known, NOW + INTERVAL, {0: BEFORE, 1: END + 10}, later)
    assert at_sample(known, NOW + 2 * INTERVAL, {0: BEFORE, 1: later}, later)[1] == [OffsetSkip(1, END + 10, later)]


@pytest.mark.parametrize(
    ("why", "time", "log_start", "left_out"),
    [
        ("the log start passed it: what it leapt over was deleted", NOW, END - 400, ()),
        ("there is a gap in the samples, in which it may have read", NOW + 600.0, 0, ()),
        ("the collector's clock was put back", NOW - 600.0, 0, ()),
        ("offsets of this topic are not all records, or it is another one than before", NOW, 0, ("scores",)),
    ],
)
def test_no_skip_is_reported_where(why: str, time: float, log_start: int, left_out: tuple[str, ...]) -> None:
    _, skips = at_sample(slow_reader(), time, {0: BEFORE, 1: END}, END, log_start=log_start, left_out=left_out)
    assert skips == [], why


def test_one_that_hung_and_catches_up_in_a_burst_has_not_skipped() -> None:
    known = None
    for n in range(SAMPLES):
        known, _ = at_sample(known, n * INTERVAL, {0: 0}, WRITTEN * n)
    assert at_sample(known, NOW, {0: END}, END)[1] == []


def test_what_is_not_known_is_no_skip() -> None:
    known = slow_reader()
    known, skips = at_sample(known, NOW, {0: None, 1: BEFORE}, END)
    assert skips == []
    assert at_sample(known, NOW + INTERVAL, {0: END, 1: BEFORE}, END)[1] == []


@pytest.mark.parametrize("hangs_for", [0, 40])
def test_one_whose_records_are_deleted_and_that_goes_on_at_the_end_skips_what_is_kept(hangs_for: int) -> None:
    """Whether it was too slow, or hung until its records were deleted."""
    known = slow_reader()
    for n in range(SAMPLES, SAMPLES + hangs_for):
        known, _ = at_sample(known, n * INTERVAL, {0: BEFORE, 1: BEFORE}, WRITTEN * n)
    time, end = NOW + hangs_for * INTERVAL, END + hangs_for * WRITTEN
    log_start = BEFORE + 1_000
    known, skips = at_sample(known, time, {0: log_start, 1: end - 5}, end, log_start=log_start)
    assert skips == [OffsetSkip(1, log_start, end - 5, from_log_start=True)]
    assert at_sample(known, time + INTERVAL, {0: log_start, 1: end}, end, log_start=log_start)[1] == []


def test_events_mark_the_skips_that_begin_at_the_log_start() -> None:
    commits = pa.table({"group": ["live"] * 14, "topic": ["scores"] * 14, "partition": range(14)})
    skips = [OffsetSkip(0, 10, 900), *(OffsetSkip(row, 100, 900, from_log_start=True) for row in range(1, 3))]
    one, *others = skip_events(commits, skips, datetime(2026, 3, 5, tzinfo=UTC))
    assert (one.partition, one.before, one.after, one.cause) == (0, "10", "900", None)
    assert [(e.partition, e.before, e.cause) for e in others] == [(n, "100", "from the log start") for n in (1, 2)]
    many = [OffsetSkip(row, 100, 900, from_log_start=True) for row in range(12)]
    (together,) = skip_events(commits, many, datetime(2026, 3, 5, tzinfo=UTC))
    assert together.cause == "12 partitions, 9600 records in all, from the log start"
