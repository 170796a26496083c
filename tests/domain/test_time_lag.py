"""How old the oldest unread record is. Each row says why its answer is right."""

from bisect import bisect_right

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lagwise.domain.time_lag import (
    Age,
    Log,
    WatermarkPoint,
    age_of,
    ends_of,
    log_of,
    log_start_rate_of,
    produce_rate_of,
)


def points(*pairs: tuple[float, int]) -> list[WatermarkPoint]:
    return [WatermarkPoint(at, high) for at, high in pairs]


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


@pytest.mark.parametrize(
    ("history", "position", "now", "age"), [row[2:] for row in AGES], ids=[f"{row[0]:02d} {row[1]}" for row in AGES]
)
def test_age(history: list[WatermarkPoint], position: int, now: float, age: Age) -> None:
    found = age_of(position, Log(history), now)
    assert found is not None
    assert found.seconds == pytest.approx(age.seconds)
    assert found.is_lower_bound is age.is_lower_bound


def test_without_history_there_is_no_age() -> None:
    assert age_of(5, Log([]), 10.0) is None


class TestLog:
    def test_a_log_that_only_grows_is_one_log(self) -> None:
        assert log_of(BUSY) == Log(BUSY)

    def test_a_log_that_went_back_was_truncated_and_begins_there(self) -> None:
        history = points((0, 100), (15, 200), (30, 150), (45, 160))
        assert log_of(history) == Log(history[2:])

    def test_the_last_of_several_truncations_counts(self) -> None:
        history = points((0, 100), (15, 50), (30, 60), (45, 55))
        assert log_of(history) == Log(history[3:])

    @pytest.mark.parametrize("high", [3, 100, 5000], ids=["smaller offsets", "the same offsets", "larger offsets"])
    def test_another_id_is_another_log(self, high: int) -> None:
        history = [WatermarkPoint(0, 100, 0, "a"), WatermarkPoint(15, 100, 0, "a"), WatermarkPoint(30, high, 0, "b")]
        assert log_of(history) == Log(history[2:], recreated_at=30)

    def test_an_id_that_is_unknown_for_a_while_proves_nothing(self) -> None:
        history = [WatermarkPoint(0, 1, 0, "a"), WatermarkPoint(15, 2), WatermarkPoint(30, 3, 0, "a")]
        assert log_of(history) == Log(history)

    def test_another_id_after_a_while_of_not_knowing_is_another_log(self) -> None:
        history = [WatermarkPoint(0, 1, 0, "a"), WatermarkPoint(15, 2), WatermarkPoint(30, 3, 0, "b")]
        assert log_of(history) == Log(history[2:], recreated_at=30)

    def test_a_truncation_after_a_recreation_leaves_the_recreation_known(self) -> None:
        history = [WatermarkPoint(0, 9, 0, "a"), WatermarkPoint(15, 8, 0, "b"), WatermarkPoint(30, 7, 0, "b")]
        assert log_of(history) == Log(history[2:], recreated_at=15)


class TestProduceRate:
    def test_growth_over_the_window(self) -> None:
        log = log_of([WatermarkPoint(60.0 * m, 100 * m, 10 * m) for m in range(11)])
        assert produce_rate_of(log, 600.0, 300.0) == 100 / 60

    def test_one_sample_has_no_rate(self) -> None:
        assert produce_rate_of(Log(points((0, 10))), 0.0, 300.0) is None

    def test_a_window_without_samples_has_no_rate(self) -> None:
        assert produce_rate_of(Log(BUSY), 4000.0, 300.0) is None

    def test_the_log_before_a_recreation_does_not_count(self) -> None:
        old = [WatermarkPoint(15.0 * n, 1_000_000 + n, 0, "a") for n in range(4)]
        new = [WatermarkPoint(60.0 + 15.0 * n, 30 * n, 0, "b") for n in range(4)]
        assert produce_rate_of(log_of(old + new), 105.0, 300.0) == 2.0


def test_ends_are_those_of_minutes_and_longer_ago_of_five() -> None:
    log = Log([WatermarkPoint(20.0 * n, 100 + n, n) for n in range(91)])
    ends = ends_of(log, 1800.0)
    assert ends[:4] == [(0, 100), (14, 114), (15, 115), (29, 129)]
    assert ends[-4:] == [(87, 187), (89, 189), (90, 190), (90, 190)]
    assert len(ends) == 2 * (3 + 15 + 1)


def test_the_log_before_a_recreation_has_no_ends() -> None:
    log = log_of([WatermarkPoint(0.0, 500, 400, "a"), WatermarkPoint(15.0, 20, 0, "b")])
    assert ends_of(log, 15.0) == [(0, 20), (0, 20)]


def moving(*moves_at: float) -> Log:
    """An hour of a log whose start moves on by 120 records at these times."""
    return Log([WatermarkPoint(60.0 * n, 9000, 120 * sum(at <= 60.0 * n for at in moves_at)) for n in range(60)])


class TestLogStartRate:
    def test_of_one_that_keeps_moving(self) -> None:
        assert log_start_rate_of(moving(*(240.0 * n for n in range(1, 15))), 3540.0) == 14 * 120 / 3540

    def test_one_jump_or_two_predict_nothing(self) -> None:
        assert log_start_rate_of(moving(3500.0), 3540.0) is None
        assert log_start_rate_of(moving(100.0, 3500.0), 3540.0) is None

    def test_three_do_where_each_part_of_the_hour_has_one(self) -> None:
        assert log_start_rate_of(moving(100.0, 3000.0, 3500.0), 3540.0) == 360 / 3540

    def test_one_that_has_stopped_has_none(self) -> None:
        assert log_start_rate_of(moving(100.0, 200.0, 2800.0), 3540.0) is None

    def test_without_samples_of_the_last_minutes_nothing_is_known(self) -> None:
        assert log_start_rate_of(moving(100.0, 3000.0, 3500.0), 4000.0) is None


STEPS = st.lists(st.tuples(st.integers(1, 120), st.integers(0, 500)), min_size=1, max_size=40)


@given(STEPS, st.data())
def test_right_to_within_a_sampling_interval(steps: list[tuple[int, int]], data: st.DataObject) -> None:
    """Whatever the topic's rate: the record was written between two samples, and so is the moment that is told."""
    at, high = 0, 50
    history = [WatermarkPoint(0, 50)]
    for seconds, records in steps:
        at, high = at + seconds, high + records
        history.append(WatermarkPoint(at, high))
    position = data.draw(st.integers(0, high))
    age = age_of(position, Log(history), at)
    assert age is not None
    if position == high:
        assert age == Age(0.0, False)
    elif position < 50:
        assert age == Age(at, True)
    else:
        after = bisect_right([p.high_watermark for p in history], position)
        assert not age.is_lower_bound
        assert history[after - 1].at - 1e-9 <= at - age.seconds <= history[after].at + 1e-9


@given(STEPS)
def test_older_records_are_older(steps: list[tuple[int, int]]) -> None:
    at, high = 0, 50
    history = [WatermarkPoint(0, 50)]
    for seconds, records in steps:
        at, high = at + seconds, high + records
        history.append(WatermarkPoint(at, high))
    ages = [age.seconds for position in range(40, high + 1, 7) if (age := age_of(position, Log(history), at))]
    assert ages == sorted(ages, reverse=True)
