"""What is unread and what is lost. Each row says why its numbers are right."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lagwise.domain.lag import lag, position, readable_end, records_lost

# committed, log start, high watermark, last stable offset → lag, lost
ROWS = (
    (1, "nothing unread", 100, 0, 100, None, 0, 0),
    (2, "forty unread", 60, 0, 100, None, 40, 0),
    (3, "an empty topic", 0, 0, 0, None, 0, 0),
    (4, "what was deleted is loss and not lag", 10, 70, 100, None, 30, 60),
    (5, "all of it was deleted", 10, 100, 100, None, 0, 90),
    (6, "the log start at the commit: nothing lost", 70, 70, 100, None, 30, 0),
    (7, "an open transaction hides 30 from readers of committed records", 60, 0, 100, 70, 10, 0),
    (8, "read up to the open transaction", 70, 0, 100, 70, 0, 0),
    (9, "it has read beyond the open transaction, so it reads uncommitted records", 71, 0, 100, 70, 29, 0),
    (10, "no open transaction: the last stable offset is the high watermark", 60, 0, 100, 100, 40, 0),
    (11, "last stable offset read before a truncation", 60, 0, 100, 120, 40, 0),
    (12, "everything before the open transaction was deleted", 10, 80, 100, 70, 0, 70),
    (13, "beyond 32 bits", 5_000_000_000, 0, 12_000_000_000, None, 7_000_000_000, 0),
)


@pytest.mark.parametrize(
    ("committed", "log_start", "high_watermark", "last_stable", "unread", "lost"),
    [row[2:] for row in ROWS],
    ids=[f"{row[0]:02d} {row[1]}" for row in ROWS],
)
def test_lag_and_loss(
    committed: int, log_start: int, high_watermark: int, last_stable: int | None, unread: int, lost: int
) -> None:
    assert lag(committed, log_start, readable_end(committed, high_watermark, last_stable)) == unread
    assert records_lost(committed, log_start) == lost


OFFSET = st.integers(0, 2**62)


@given(OFFSET, OFFSET, OFFSET, st.none() | OFFSET)
def test_never_negative_and_never_more_than_there_is(
    committed: int, log_start: int, high_watermark: int, last_stable: int | None
) -> None:
    end = readable_end(committed, high_watermark, last_stable)
    unread = lag(committed, log_start, end)
    assert end <= high_watermark
    assert 0 <= unread <= max(0, high_watermark - log_start)
    assert records_lost(committed, log_start) >= 0


@given(OFFSET, OFFSET, OFFSET)
def test_unread_and_lost_are_what_lies_between_commit_and_end(committed: int, log_start: int, end: int) -> None:
    if max(committed, log_start) <= end:
        assert lag(committed, log_start, end) + records_lost(committed, log_start) == end - committed
        assert position(committed, log_start) + lag(committed, log_start, end) == end
