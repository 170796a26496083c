"""What is a skip and what is not: each row says why. The reader was seen behind for ten minutes at 25 records a second
at most; at the sample before, 13,500 records were unread, and 15 s later 600 more had been written."""

from dataclasses import replace

import pytest

from lagwise.domain.skips import Leap, Reader, is_skip

SLOW = Reader(fastest_per_second=25.0, behind_seconds=600.0)
TO_THE_END = Leap(records=14_100, seconds=15.0, unread_before=13_500, unread_after=0, written=600)


@pytest.mark.parametrize(
    ("why", "reader", "leap", "skips"),
    [
        ("it was slow for minutes, and stands at the end all at once", SLOW, TO_THE_END, True),
        ("since then a few came", SLOW, replace(TO_THE_END, records=13_700, unread_after=400), True),
        ("it always kept pace: nobody knows how fast it can be", Reader(25.0, 0.0), TO_THE_END, False),
        ("it was behind for a moment only", Reader(25.0, 120.0), TO_THE_END, False),
        ("it was as fast once before", Reader(800.0, 600.0), TO_THE_END, False),
        ("what it waited for recovered, and it is nine times as fast", Reader(105.0, 600.0), TO_THE_END, False),
        ("it leaves a backlog: it reads", SLOW, replace(TO_THE_END, records=9_000, unread_after=5_100), False),
        (
            "there was little to skip: what it passed was written just now",
            SLOW,
            replace(TO_THE_END, written=14_000, unread_before=100),
            False,
        ),
        ("one poll may take them", Reader(0.1, 600.0), Leap(480, 15.0, 470, 0, 10), False),
        ("samples are rare: it may have read for long", SLOW, replace(TO_THE_END, seconds=60.0), False),
        ("samples are frequent, and commits come in lumps", SLOW, Leap(1_200, 1.0, 1_200, 0, 40), False),
    ],
)
def test_skips(why: str, reader: Reader, leap: Leap, skips: bool) -> None:
    assert is_skip(reader, leap) is skips, why
