"""When unread records will be deleted. Each row says why its answer is right."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import count
from math import inf
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lagwise.domain.verdicts.buckets import MINUTE
from lagwise.domain.verdicts.columns import NULL, Array, Ranges
from lagwise.domain.verdicts.evidence import is_deleted_by_request
from lagwise.domain.verdicts.logs import Jumps, Logs, SeenLogs
from lagwise.domain.verdicts.loss import seconds_to_deletion
from lagwise.domain.verdicts.retention import (
    limits_of,
    longest_kept_seconds,
    seconds_to_log_start,
    seconds_to_truncation,
)
from tests.domain.observed import HOUR as START
from tests.domain.watched_logs import Point, logs
from tests.traces.judged import plain


def floats(values: Sequence[float | None]) -> Array:
    return np.array(values, np.float64)


def wholes(values: Sequence[int | None]) -> Array:
    return np.array([NULL if value is None else value for value in values], np.int64)


def by_name(table: Sequence[tuple[Any, ...]], found: list[Any]) -> dict[Any, Any]:
    """What was found of each row of a table."""
    return dict(zip([row[:2] for row in table], found, strict=True))


def expected(table: Sequence[tuple[Any, ...]]) -> dict[Any, Any]:
    return {row[:2]: row[-1] for row in table}


def deletions(age: Sequence[float], kept: Array, growth: Sequence[float]) -> list[float | None]:
    """Of readers whose records get older at these rates."""
    produced, no = np.full(len(age), 10.0), np.zeros(len(age), bool)
    rows = {
        "age": floats(age),
        "consumed": produced * (1 - floats(growth)),
        "produced": produced,
        "steady_produce_rate_per_second": np.full(len(age), np.nan),
        "grows": ~no,
        **dict.fromkeys(("near_edge", "standing", "behind"), no),
    }
    return plain(seconds_to_deletion(rows, kept, np.full(len(age), np.nan)))


# age of the oldest unread record, retention, growth of the age → seconds to its deletion
DELETIONS = (
    (1, "a group that reads nothing: a second per second", 120.0, 600.0, 1.0, 480.0),
    (2, "one that reads three of four records gets 0.25 s older per second", 120.0, 600.0, 0.25, 1920.0),
    (3, "one that keeps its distance loses nothing", 120.0, 600.0, 0.0, None),
    (4, "one that catches up loses nothing", 120.0, 600.0, -0.5, None),
    (5, "kept forever", 1e9, None, 1.0, None),
    (6, "exactly as old as is kept: at any moment", 600.0, 600.0, 0.0, 0.0),
    (7, "older than is kept (its segment is not closed yet): at any moment", 700.0, 600.0, 0.0, 0.0),
    (8, "a retention of 0 keeps nothing", 0.0, 0.0, 0.0, 0.0),
)


def test_deletion() -> None:
    age, kept, growth = zip(*(row[2:5] for row in DELETIONS), strict=True)
    assert by_name(DELETIONS, deletions(age, floats(kept), growth)) == expected(DELETIONS)


HOUR, WEEK = 3600.0, 7 * 86_400.0
# age of the oldest unread record, retention, segment.ms, growth of the age → seconds until it is gone at the latest
LAST_DELETIONS = (
    (1, "kept for an hour, in a segment of a week at most", 600.0, HOUR, WEEK, 1.0, WEEK + HOUR + 300 - 600),
    (2, "segments of a minute: a minute and the broker's check later", 600.0, HOUR, 60.0, 1.0, HOUR + 60 + 300 - 600),
    (3, "past the retention, in a segment that takes records yet", HOUR + 60, HOUR, WEEK, 1.0, WEEK + 300 - 60),
    (4, "reads half of what is written: twice as long", 600.0, HOUR, 60.0, 0.5, 2 * (HOUR + 60 + 300 - 600)),
    (5, "keeps its distance: never", HOUR + 60, HOUR, WEEK, 0.0, None),
    (6, "older than any segment gets: it is going now", WEEK + HOUR + 400, HOUR, WEEK, 1.0, 0.0),
    (7, "kept forever", 1e9, None, WEEK, 1.0, None),
    (8, "nobody knows how long a segment takes records", 600.0, HOUR, None, 1.0, None),
)


def test_last_deletion() -> None:
    age, kept, segment, growth = zip(*(row[2:6] for row in LAST_DELETIONS), strict=True)
    kept_at_most = longest_kept_seconds({"retention_seconds": floats(kept), "segment_seconds": floats(segment)})
    assert by_name(LAST_DELETIONS, deletions(age, kept_at_most, growth)) == expected(LAST_DELETIONS)


# log start and high watermark at the ends of buckets → by how much it jumps, where the log ended before it last did
HISTORIES = (
    (1, "never seen", [], None),
    (2, "seen once: no jump", [(0, 500)], None),
    (3, "stands still, however much is written", [(0, 500), (0, 900)], None),
    (4, "one, after the sample at 900", [(0, 500), (0, 900), (300, 950), (300, 1050)], (300, 900)),
    (5, "of three that in the middle", [(0, 500), (300, 900), (700, 1300), (900, 1500)], (300, 1300)),
    (6, "of two the smaller one, which comes sooner", [(0, 500), (300, 900), (1000, 1300)], (300, 900)),
    (
        7,
        "a million deleted by hand, between jumps of 300",
        [(0, 1), (300, 2), (1_000_300, 3), (1_000_600, 4)],
        (300, 3),
    ),
    (8, "in any order", [(300, 1050), (0, 900), (300, 950), (0, 500)], (300, 900)),
)


def test_jumps() -> None:
    numbers = np.arange(len(HISTORIES))
    ends = [(number, minute, *end) for number, row in enumerate(HISTORIES) for minute, end in enumerate(row[2])]
    log, minute, log_start, high = np.array(ends).T
    rows = {"log": log, "minute": minute * MINUTE + START}
    for which in ("first", "last"):
        rows |= {f"{which}_at": rows["minute"], f"{which}_high_watermark": high, f"{which}_log_start": log_start}
    none = Ranges(numbers, numbers)
    its = Ranges(np.searchsorted(log, numbers), np.searchsorted(log, numbers, "right"))
    as_of = np.full(len(numbers), START + 10 * MINUTE)
    seen = SeenLogs(Logs({}, rows, {}), as_of, none, its, np.full(len(numbers), NULL), np.zeros(len(numbers), bool))
    found = seen.jumps(np.ones(len(numbers), bool))
    pairs = zip(plain(found.records), plain(found.high_watermark), strict=True)
    assert by_name(HISTORIES, [None if one[0] is None else one for one in pairs]) == expected(HISTORIES)


# records between log start and group, records a jump, written since the last one, written and read per second → seconds
TRUNCATIONS = (
    (1, "the next jump takes it: of 300 to be written 100 are", 200, 300, 100, 10.0, 0.0, 20.0),
    (2, "a smooth rate would say 20 s, when the log start stands still", 200, 300, 0, 10.0, 0.0, 30.0),
    (3, "one that ends just before the oldest unread record takes nothing", 300, 300, 0, 10.0, 0.0, 60.0),
    (4, "nothing is ahead of it: the next jump", 0, 300, 100, 10.0, 0.0, 20.0),
    (5, "losing already: the next jump", -50, 300, 100, 10.0, 0.0, 20.0),
    (6, "it moves on meanwhile: one jump later", 200, 300, 0, 10.0, 5.0, 60.0),
    (7, "as fast as it is written", 200, 300, 0, 10.0, 10.0, None),
    (8, "faster", 200, 300, 0, 10.0, 30.0, None),
    (9, "nothing is written, so nothing is deleted", 200, 300, 0, 0.0, 0.0, None),
    (10, "overdue, and as large as what was written: at any moment", 400, 300, 500, 10.0, 0.0, 0.0),
    (11, "overdue, and still not as far as the group", 600, 300, 500, 10.0, 0.0, 50.0),
)


def truncations(margin: Any, records: Any, since: Any, written: Any, read: Any) -> list[float | None]:
    jumps = Jumps(np.array(records), np.full(len(records), 5000))
    found = seconds_to_truncation(np.array(margin), jumps, 5000 + np.array(since), np.array(written), np.array(read))
    return plain(found)


def test_truncation() -> None:
    found = truncations(*zip(*(row[2:7] for row in TRUNCATIONS), strict=True))
    assert by_name(TRUNCATIONS, found) == expected(TRUNCATIONS)


@given(
    margin=st.integers(0, 20_000),
    records=st.integers(500, 20_000),
    done=st.integers(0, 99),
    written=st.integers(1, 1000),
    kept=st.integers(0, 90),
)
def test_truncation_is_what_happens(margin: int, records: int, done: int, written: int, kept: int) -> None:
    """Jump by jump: each comes when a segment's worth of records was written since the one before."""
    since, read = records * done // 100, Fraction(written * kept, 100)
    moments = (Fraction(jump * records - since, written) for jump in count(1))
    lost_at = next(at for jump, at in enumerate(moments, 1) if jump * records > margin + read * at)
    found = truncations([margin], [records], [since], [float(written)], [float(read)])
    assert found == pytest.approx([float(lost_at)])


# measured rate, records in the log, log start, retention → records per second
RATES = (
    (1, "as measured", 20.0, 600, 5, 100.0, 20.0),
    (2, "what the log holds was written within its retention", None, 600, 5, 100.0, 6.0),
    (3, "nothing was deleted yet", None, 600, 0, 100.0, None),
    (4, "no limit of time", None, 600, 5, None, None),
    (5, "a limit that keeps nothing: all of it at once", None, 600, 5, 0.0, inf),
)


def approaches(
    margin: Sequence[int], measured: Sequence[float | None], read: Sequence[float], **log: Sequence[Any]
) -> list[float | None]:
    """Of logs that hold nothing that says how fast they are deleted, unless ``log`` says so."""
    nothing = [0] * len(margin)
    start = np.array(log.get("start", nothing))
    ends = {"log_start": start, "high_watermark": start + np.array(log.get("records", nothing))}
    limits = {"retention_seconds": floats(log.get("retention", [None] * len(margin)))}
    return plain(seconds_to_log_start(np.array(margin), limits, floats(measured), ends, floats(read)))


def test_rate_of_the_log_start() -> None:
    """It comes nearer by 6,000 records at this rate."""
    measured, records, start, retention, _ = zip(*(row[2:] for row in RATES), strict=True)
    ahead, standing = [6000] * len(RATES), [0.0] * len(RATES)
    found = approaches(ahead, measured, standing, records=records, start=start, retention=retention)
    assert by_name(
        RATES, [None if seconds is None else 6000 / seconds if seconds else inf for seconds in found]
    ) == expected(RATES)


# records between log start and group, rate of the log start and of the group → seconds
APPROACHES = (
    (1, "the group stands", 600, 20.0, 0.0, 30.0),
    (2, "the group moves on at half the rate", 600, 20.0, 10.0, 60.0),
    (3, "as fast as the log start: never", 600, 20.0, 20.0, None),
    (4, "nobody knows how fast it comes", 600, None, 0.0, None),
    (5, "overtaken already", -5, 20.0, 0.0, 0.0),
)


def test_approach_of_the_log_start() -> None:
    assert by_name(APPROACHES, approaches(*zip(*(row[2:5] for row in APPROACHES), strict=True))) == expected(APPROACHES)


class TestWhoDeleted:
    """A log of ten records a second whose first 3,000 are gone: the newest of them is 300 s old after 600 s."""

    LOG = tuple(Point(15.0 * n, 150 * n, 3000 if n == 40 else 0) for n in range(41))
    #: Why, retention.ms, retention.bytes → whether it was a client.
    LIMITS = (
        ("nothing is deleted for its age or size", -1, -1, True),
        ("no size is known where none is set", -1, None, True),
        ("it would be kept for a week", 604_800_000, None, True),
        ("just about half as old as is kept", 601_000, None, True),
        ("more than half as old: the limit goes by times that clients set", 599_000, None, False),
        ("older than is kept", 60_000, None, False),
        ("how large it is nobody knows", -1, 1_000_000, False),
        ("what is kept is not known, or the topic is not", None, None, False),
    )

    def by_request(self, points: Sequence[Point], *limits: tuple[int | None, int | None]) -> list[bool]:
        by_time, by_size = zip(*limits, strict=True)
        yes = np.ones(len(limits), bool)
        topics = {"retention_ms": wholes(by_time), "retention_bytes": wholes(by_size), "deletes": yes, "compacts": ~yes}
        seen = logs([points] * len(limits), [600.0] * len(limits))
        return is_deleted_by_request(seen, limits_of(topics | {"segment_ms": wholes([None] * len(limits))})).tolist()

    def test_it_was_a_client(self) -> None:
        found = self.by_request(self.LOG, *(row[1:3] for row in self.LIMITS))
        assert by_name([(row[0], None) for row in self.LIMITS], found) == {(r[0], None): r[3] for r in self.LIMITS}

    def test_what_is_older_than_the_history_is_unknown(self) -> None:
        points = [p._replace(high_watermark=p.high_watermark + 5000) for p in self.LOG]
        assert self.by_request(points, (604_800_000, None)) == [False]

    def test_where_the_log_began_a_minute_before(self) -> None:
        seen = logs([self.LOG, self.LOG, self.LOG[40:]], [600.0, 660.0, 600.0])
        assert plain(seen.earlier_log_start()) == [0, 3000, None]
