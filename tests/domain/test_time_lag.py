"""How old the oldest unread record is. Each row says why its answer is right."""

from bisect import bisect_right
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lagwise.domain.verdicts.columns import NULL, Array, Ranges
from lagwise.domain.verdicts.logs import SeenLogs
from tests.domain.observed import HOUR, times
from tests.domain.watched_logs import Point, logs
from tests.traces.judged import plain


class Age(NamedTuple):
    """Age of a record in seconds; with ``is_lower_bound`` it was written before the history begins."""

    seconds: float | None
    is_lower_bound: bool


def ages(seen: SeenLogs, positions: Array) -> list[Age]:
    seconds, is_bound = seen.age_of(positions, seen.place_of(positions))
    return [Age(*one) for one in zip(plain(seconds), is_bound.tolist(), strict=True)]


def points(*pairs: tuple[float, int]) -> list[Point]:
    return [Point(at, high) for at, high in pairs]


BUSY = points((0, 100), (15, 250), (30, 400), (45, 550))
#: One record between 0 and 15 s, then nothing for an hour, then one more.
IDLE = points((0, 7), (15, 8), (1800, 8), (3600, 8), (3615, 9))

# history, position, now → age
AGES = (
    (1, "nothing is unread", BUSY, 550, 50.0, Age(0.0, False)),
    (2, "the position lies beyond the last sample: nothing seen is unread", BUSY, 600, 50.0, Age(0.0, False)),
    (3, "halfway between two samples, so written halfway between them", BUSY, 325, 50.0, Age(27.5, False)),
    (4, "the first record after a sample was written right after it", BUSY, 250, 50.0, Age(35.0, False)),
    (5, "the last record before a sample, right before it", BUSY, 549, 50.0, Age(5.1, False)),
    (6, "the first sample ends exactly there", BUSY, 100, 50.0, Age(50.0, False)),
    (7, "written before the first sample: at least as old as that", BUSY, 99, 50.0, Age(50.0, True)),
    (8, "from the beginning of the topic: at least, not 9.5 years (lag-exporter#496)", BUSY, 0, 50.0, Age(50.0, True)),
    (
        9,
        "an idle topic: the record of an hour ago is an hour old, not infinitely (lag-exporter#37, #111)",
        IDLE,
        7,
        3600.0,
        Age(3600.0, False),
    ),
    (10, "an idle topic: the newest record came in the last interval", IDLE, 8, 3620.0, Age(20.0, False)),
    (
        11,
        "an idle topic, all read: no age, whatever the clock says (lag-exporter#32)",
        IDLE[:4],
        8,
        9999.0,
        Age(0.0, False),
    ),
    (12, "one sample is enough for a bound", points((0, 10)), 3, 20.0, Age(20.0, True)),
    (13, "a clock that went back makes no negative age (lag-exporter#138)", BUSY, 99, -5.0, Age(0.0, True)),
)


def test_age() -> None:
    seen = replace(logs([row[2] for row in AGES], [9999.0] * len(AGES)), as_of=times([row[4] for row in AGES]))
    found = ages(seen, np.array([row[3] for row in AGES]))
    rounded = [one._replace(seconds=one.seconds and round(one.seconds, 6)) for one in found]
    assert dict(zip([row[:2] for row in AGES], rounded, strict=True)) == {row[:2]: row[5] for row in AGES}


def test_without_history_there_is_no_age() -> None:
    assert ages(logs([[]], [10.0]), np.array([5])) == [Age(None, False)]


def log_of(history: list[Point]) -> tuple[list[Point], float | None]:
    """The points that are of the log as it is now, and when its topic was last re-created."""
    seen = logs([history], [9999.0])
    (start,), (stop,) = seen.points.start, seen.points.stop
    (recreated_at,) = seen.recreated_at
    return history[start:stop], None if recreated_at == NULL else (recreated_at - HOUR) / 1e6


class TestLog:
    def test_a_log_that_only_grows_is_one_log(self) -> None:
        assert log_of(BUSY) == (BUSY, None)

    def test_a_log_that_went_back_was_truncated_and_begins_there(self) -> None:
        history = points((0, 100), (15, 200), (30, 150), (45, 160))
        assert log_of(history) == (history[2:], None)

    def test_the_last_of_several_truncations_counts(self) -> None:
        history = points((0, 100), (15, 50), (30, 60), (45, 55))
        assert log_of(history) == (history[3:], None)

    @pytest.mark.parametrize("high", [3, 100, 5000], ids=["smaller offsets", "the same offsets", "larger offsets"])
    def test_another_id_is_another_log(self, high: int) -> None:
        history = [Point(0, 100, 0, "a"), Point(15, 100, 0, "a"), Point(30, high, 0, "b")]
        assert log_of(history) == (history[2:], 30)

    def test_an_id_that_is_unknown_for_a_while_proves_nothing(self) -> None:
        history = [Point(0, 1, 0, "a"), Point(15, 2), Point(30, 3, 0, "a")]
        assert log_of(history) == (history, None)

    def test_another_id_after_a_while_of_not_knowing_is_another_log(self) -> None:
        history = [Point(0, 1, 0, "a"), Point(15, 2), Point(30, 3, 0, "b")]
        assert log_of(history) == (history[2:], 30)

    def test_a_truncation_after_a_recreation_leaves_the_recreation_known(self) -> None:
        history = [Point(0, 9, 0, "a"), Point(15, 8, 0, "b"), Point(30, 7, 0, "b")]
        assert log_of(history) == (history[2:], 15)


def produce_rate(history: list[Point], as_of: float) -> float | None:
    """Over the shortest window."""
    found: list[float | None] = plain(logs([history], [as_of]).produce_rates()[0])
    return found[0]


class TestProduceRate:
    def test_growth_over_the_window(self) -> None:
        assert produce_rate([Point(60.0 * m, 100 * m, 10 * m) for m in range(11)], 600.0) == 100 / 60

    def test_one_sample_has_no_rate(self) -> None:
        assert produce_rate(points((0, 10)), 0.0) is None

    def test_a_window_without_samples_has_no_rate(self) -> None:
        assert produce_rate(BUSY, 4000.0) is None

    def test_the_log_before_a_recreation_does_not_count(self) -> None:
        old = [Point(15.0 * n, 1_000_000 + n, 0, "a") for n in range(4)]
        new = [Point(60.0 + 15.0 * n, 30 * n, 0, "b") for n in range(4)]
        assert produce_rate(old + new, 105.0) == 2.0


def ends_of(history: list[Point], as_of: float) -> list[tuple[int, int]]:
    """Log start and high watermark at the first and at the last sample of each bucket."""
    seen = logs([history], [as_of])
    case, row = seen.ends.rows()
    levels, highs, _ = seen.bucket_ends(case, row)
    return sorted(zip(levels.tolist(), highs.tolist(), strict=True))


def test_ends_are_those_of_minutes_and_longer_ago_of_five() -> None:
    ends = ends_of([Point(20.0 * n, 100 + n, n) for n in range(91)], 1800.0)
    assert ends[:4] == [(0, 100), (14, 114), (15, 115), (29, 129)]
    assert ends[-4:] == [(87, 187), (89, 189), (90, 190), (90, 190)]
    assert len(ends) == 2 * (3 + 15 + 1)


def test_the_log_before_a_recreation_has_no_ends() -> None:
    assert ends_of([Point(0.0, 500, 400, "a"), Point(15.0, 20, 0, "b")], 15.0) == [(0, 20), (0, 20)]


def moving(*moves_at: float) -> list[Point]:
    """An hour of a log whose start moves on by 120 records at these times."""
    return [Point(60.0 * n, 9000, 120 * sum(at <= 60.0 * n for at in moves_at)) for n in range(60)]


def log_start_rate(history: list[Point], as_of: float) -> float | None:
    found: list[float | None] = plain(logs([history], [as_of]).log_start_rate())
    return found[0]


class TestLogStartRate:
    def test_of_one_that_keeps_moving(self) -> None:
        assert log_start_rate(moving(*(240.0 * n for n in range(1, 15))), 3540.0) == 14 * 120 / 3540

    def test_one_jump_or_two_predict_nothing(self) -> None:
        assert log_start_rate(moving(3500.0), 3540.0) is None
        assert log_start_rate(moving(100.0, 3500.0), 3540.0) is None

    def test_three_do_where_each_part_of_the_hour_has_one(self) -> None:
        assert log_start_rate(moving(100.0, 3000.0, 3500.0), 3540.0) == 360 / 3540

    def test_one_that_has_stopped_has_none(self) -> None:
        assert log_start_rate(moving(100.0, 200.0, 2800.0), 3540.0) is None

    def test_without_samples_of_the_last_minutes_nothing_is_known(self) -> None:
        assert log_start_rate(moving(100.0, 3000.0, 3500.0), 4000.0) is None


STEPS = st.lists(st.tuples(st.integers(1, 120), st.integers(0, 500)), min_size=1, max_size=40)


def history_of(steps: list[tuple[int, int]]) -> list[Point]:
    at, high = 0, 50
    history = [Point(0.0, 50)]
    for seconds, records in steps:
        at, high = at + seconds, high + records
        history.append(Point(float(at), high))
    return history


def ages_of_all(history: list[Point], positions: range) -> list[Age]:
    seen = logs([history], [history[-1].at])
    everywhere = np.zeros(len(positions), np.int64)
    seen = replace(
        seen,
        as_of=seen.as_of[everywhere],
        points=Ranges(seen.points.start[everywhere], seen.points.stop[everywhere]),
    )
    return ages(seen, np.array(positions))


@given(STEPS)
def test_right_to_within_a_sampling_interval(steps: list[tuple[int, int]]) -> None:
    """Whatever the topic's rate: a record was written between two samples, and so is the moment that is told."""
    history = history_of(steps)
    end, highs = history[-1], [p.high_watermark for p in history]
    positions = range(end.high_watermark + 1)
    for position, age in zip(positions, ages_of_all(history, positions), strict=True):
        assert age.seconds is not None
        if position == end.high_watermark:
            assert age == Age(0.0, False)
        elif position < 50:
            assert age == Age(end.at, True)
        else:
            after = bisect_right(highs, position)
            assert not age.is_lower_bound
            assert history[after - 1].at - 1e-9 <= end.at - age.seconds <= history[after].at + 1e-9


@given(STEPS)
def test_older_records_are_older(steps: list[tuple[int, int]]) -> None:
    history = history_of(steps)
    seconds = [age.seconds for age in ages_of_all(history, range(40, history[-1].high_watermark + 1))]
    assert seconds == sorted(seconds, reverse=True)
