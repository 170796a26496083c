"""What is a skip and what is not: each row says why. The reader was seen behind for ten minutes at 25 records a second
at most; at the sample before, 13,500 records were unread, and 15 s later 600 more had been written."""

from dataclasses import replace

import pytest

from lagwise.domain.loss.skips import Leap, SkippingReader, is_reset_to_end, is_skip

SLOW = SkippingReader(fastest_per_second=25.0, behind_seconds=600.0)
TO_THE_END = Leap(records=14_100, seconds=15.0, unread_before=13_500, unread_after=0, written=600)


@pytest.mark.parametrize(
    ("why", "reader", "leap", "skips"),
    [
        ("it was slow for minutes, and stands at the end all at once", SLOW, TO_THE_END, True),
        ("since then a few came", SLOW, replace(TO_THE_END, records=13_700, unread_after=400), True),
        ("it always kept pace: nobody knows how fast it can be", SkippingReader(25.0, 0.0), TO_THE_END, False),
        ("it was behind for a moment only", SkippingReader(25.0, 120.0), TO_THE_END, False),
        ("it was as fast once before", SkippingReader(800.0, 600.0), TO_THE_END, False),
        ("what it waited for recovered, and it is nine times as fast", SkippingReader(105.0, 600.0), TO_THE_END, False),
        ("it leaves a backlog: it reads", SLOW, replace(TO_THE_END, records=9_000, unread_after=5_100), False),
        (
            "there was little to skip: what it passed was written just now",
            SLOW,
            replace(TO_THE_END, written=14_000, unread_before=100),
            False,
        ),
        ("one poll may take them", SkippingReader(0.1, 600.0), Leap(480, 15.0, 470, 0, 10), False),
        ("samples are rare: it may have read for long", SLOW, replace(TO_THE_END, seconds=60.0), False),
        ("samples are frequent, and commits come in lumps", SLOW, Leap(1_200, 1.0, 1_200, 0, 40), False),
    ],
)
def test_skips(why: str, reader: SkippingReader, leap: Leap, skips: bool) -> None:
    assert is_skip(reader, leap) is skips, why


#: Its next record was deleted, and the log held 13,500 records more.
FROM_THE_LOG_START = Leap(records=14_000, seconds=15.0, unread_before=13_500, unread_after=50, written=600)


@pytest.mark.parametrize(
    ("why", "reader", "leap", "skips"),
    [
        ("it was slow", SLOW, FROM_THE_LOG_START, True),
        ("it hung, and was seen to read before that", SkippingReader(25.0, 0.0), FROM_THE_LOG_START, True),
        ("it was never seen to read: nobody knows how fast it is", SkippingReader(0.0, 0.0), FROM_THE_LOG_START, False),
        (
            "it goes on with the oldest there is",
            SLOW,
            replace(FROM_THE_LOG_START, records=300, unread_after=13_800),
            False,
        ),
        (
            "it reads fast, and leaves a backlog",
            SLOW,
            replace(FROM_THE_LOG_START, records=9_000, unread_after=5_100),
            False,
        ),
        ("it was as fast before: it may have read them", SkippingReader(200.0, 0.0), FROM_THE_LOG_START, False),
        ("one poll may take them", SkippingReader(0.1, 0.0), Leap(480, 15.0, 470, 0, 10), False),
    ],
)
def test_what_is_skipped_after_a_deletion(why: str, reader: SkippingReader, leap: Leap, skips: bool) -> None:
    assert is_reset_to_end(reader, leap) is skips, why
