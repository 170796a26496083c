"""When unread records will be deleted. Each row says why its answer is right."""

from fractions import Fraction
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lagwise.domain.log_history import earlier_log_start, is_deleted_by_request
from lagwise.domain.loss.retention import (
    jumps_of,
    log_start_rate,
    longest_kept_seconds,
    seconds_to_deletion,
    seconds_to_log_start,
    seconds_to_truncation,
    soonest,
)
from lagwise.domain.time_lag import WatermarkPoint, log_of

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


@pytest.mark.parametrize(
    ("age", "retention", "growth", "seconds"), [r[2:] for r in DELETIONS], ids=[f"{r[0]} {r[1]}" for r in DELETIONS]
)
def test_deletion(age: float, retention: float | None, growth: float, seconds: float | None) -> None:
    assert seconds_to_deletion(age, retention, growth) == seconds


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


@pytest.mark.parametrize(
    ("age", "retention", "segment", "growth", "seconds"),
    [r[2:] for r in LAST_DELETIONS],
    ids=[f"{r[0]} {r[1]}" for r in LAST_DELETIONS],
)
def test_last_deletion(
    age: float, retention: float | None, segment: float | None, growth: float, seconds: float | None
) -> None:
    assert seconds_to_deletion(age, longest_kept_seconds(retention, segment), growth) == seconds


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


@pytest.mark.parametrize(("ends", "jumps"), [r[2:] for r in HISTORIES], ids=[f"{r[0]} {r[1]}" for r in HISTORIES])
def test_jumps(ends: list[tuple[int, int]], jumps: tuple[int, int] | None) -> None:
    assert jumps_of(ends) == jumps


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


@pytest.mark.parametrize(
    ("margin", "records", "since", "written", "read", "seconds"),
    [r[2:] for r in TRUNCATIONS],
    ids=[f"{r[0]} {r[1]}" for r in TRUNCATIONS],
)
def test_truncation(margin: int, records: int, since: int, written: float, read: float, seconds: float | None) -> None:
    rates = {"produce_rate_per_second": written, "consume_rate_per_second": read}
    assert seconds_to_truncation(margin, records, since, **rates) == seconds


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
    rates = {"produce_rate_per_second": float(written), "consume_rate_per_second": float(read)}
    assert seconds_to_truncation(margin, records, since, **rates) == pytest.approx(float(lost_at))


def test_soonest_leaves_out_what_never_comes() -> None:
    assert soonest(None, 5.0, 3.0) == 3.0
    assert soonest(0.0, 5.0) == 0.0
    assert soonest(None, None) is None
    assert soonest() is None


# measured rate, records in the log, log start, retention → records per second
RATES = (
    (1, "as measured", 20.0, 600, 5, 100.0, 20.0),
    (2, "what the log holds was written within its retention", None, 600, 5, 100.0, 6.0),
    (3, "nothing was deleted yet", None, 600, 0, 100.0, None),
    (4, "no limit of time", None, 600, 5, None, None),
    (5, "a limit that keeps nothing", None, 600, 5, 0.0, None),
)


@pytest.mark.parametrize(
    ("measured", "records", "start", "retention", "rate"), [r[2:] for r in RATES], ids=[f"{r[0]} {r[1]}" for r in RATES]
)
def test_rate_of_the_log_start(
    measured: float | None, records: int, start: int, retention: float | None, rate: float | None
) -> None:
    assert log_start_rate(measured, records, start, retention) == rate


# records between log start and group, rate of the log start and of the group → seconds
APPROACHES = (
    (1, "the group stands", 600, 20.0, 0.0, 30.0),
    (2, "the group moves on at half the rate", 600, 20.0, 10.0, 60.0),
    (3, "as fast as the log start: never", 600, 20.0, 20.0, None),
    (4, "nobody knows how fast it comes", 600, None, 0.0, None),
    (5, "overtaken already", -5, 20.0, 0.0, 0.0),
)


@pytest.mark.parametrize(
    ("margin", "rate", "read", "seconds"), [r[2:] for r in APPROACHES], ids=[f"{r[0]} {r[1]}" for r in APPROACHES]
)
def test_approach_of_the_log_start(margin: int, rate: float | None, read: float, seconds: float | None) -> None:
    assert seconds_to_log_start(margin, rate, read) == seconds


class TestWhoDeleted:
    """A log of ten records a second whose first 3,000 are gone: the newest of them is 300 s old after 600 s."""

    LOG = log_of([WatermarkPoint(15.0 * n, 150 * n, 3000 if n == 40 else 0) for n in range(41)])

    @pytest.mark.parametrize(
        ("why", "topic", "by_request"),
        [
            ("nothing is deleted for its age or size", {"retention_ms": -1, "retention_bytes": -1}, True),
            ("no size is known where none is set", {"retention_ms": -1}, True),
            ("it would be kept for a week", {"retention_ms": 604_800_000}, True),
            ("just about half as old as is kept", {"retention_ms": 601_000}, True),
            ("more than half as old: the limit goes by times that clients set", {"retention_ms": 599_000}, False),
            ("older than is kept", {"retention_ms": 60_000}, False),
            ("how large it is nobody knows", {"retention_ms": -1, "retention_bytes": 1_000_000}, False),
            ("what is kept is not known", {"retention_ms": None, "retention_bytes": None}, False),
            ("the topic is not known", None, False),
        ],
    )
    def test_it_was_a_client(self, why: str, topic: dict[str, int | None] | None, by_request: bool) -> None:
        row = None if topic is None else {"cleanup_policy": "delete", **topic}
        assert is_deleted_by_request(row, self.LOG, 600.0) is by_request, why

    def test_what_is_older_than_the_history_is_unknown(self) -> None:
        points = [p._replace(high_watermark=p.high_watermark + 5000) for p in self.LOG.points]
        week = {"cleanup_policy": "delete", "retention_ms": 604_800_000}
        assert not is_deleted_by_request(week, log_of(points), 600.0)

    def test_where_the_log_began_a_minute_before(self) -> None:
        assert earlier_log_start(self.LOG, 600.0) == 0
        assert earlier_log_start(self.LOG, 660.0) == 3000
        assert earlier_log_start(log_of(self.LOG.points[40:]), 600.0) is None
