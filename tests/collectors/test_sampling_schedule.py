"""The fixed rate, on a clock that the test moves."""

import pytest

from lagwise_collectors.sampling_schedule import FixedRate, rest_after_failures


def test_the_first_tick_is_at_once() -> None:
    assert FixedRate(15, start=1000.0).wait_seconds(1000.0) == 0


def test_ticks_do_not_drift_by_the_duration_of_the_work() -> None:
    rate, now, ticks = FixedRate(15, start=0.0), 0.0, []
    for work in (0.4, 3.0, 14.9, 0.1, 0.1):
        now += rate.wait_seconds(now)
        ticks.append(now)
        now += work
        assert rate.ran(now) == 0
    assert ticks == [0, 15, 30, 45, 60]


def test_work_that_takes_too_long_skips_ticks_and_keeps_the_beat() -> None:
    rate = FixedRate(15, start=0.0)
    assert rate.ran(47.0) == 3  # the ticks at 15, 30 and 45 passed
    assert rate.wait_seconds(47.0) == 13  # the next is at 60


def test_a_machine_that_slept_for_an_hour_runs_once_and_not_240_times() -> None:
    rate = FixedRate(15, start=0.0)
    rate.ran(1.0)
    woken = 3601.0
    assert rate.wait_seconds(woken) == 0
    rate.ran(woken + 1)
    assert rate.wait_seconds(woken + 1) == 13


def test_a_clock_that_went_back_neither_hurries_nor_counts() -> None:
    rate = FixedRate(15, start=100.0)
    assert rate.ran(90.0) == 0
    assert rate.wait_seconds(90.0) == 25


def test_a_rest_is_a_number_of_whole_intervals() -> None:
    rate = FixedRate(15, start=0.0)
    assert rate.ran(1.0, rest_seconds=60) == 0
    assert rate.wait_seconds(1.0) == 59
    assert rate.ran(61.0) == 0
    assert rate.wait_seconds(61.0) == 14


@pytest.mark.parametrize(
    ("failures", "interval", "rest", "why"),
    [
        (0, 15, 0, "all is well"),
        (1, 15, 0, "once is an accident: the next tick tries again"),
        (2, 15, 30, "doubling"),
        (3, 15, 60, "doubling"),
        (50, 15, 60, "never longer than a minute: a cluster that comes back is to be seen"),
        (9, 300, 300, "a cluster that is sampled more seldom than that is tried at every tick"),
        (2, 300, 300, "so at once, too"),
    ],
)
def test_rest_after_failures(failures: int, interval: float, rest: float, why: str) -> None:
    assert rest_after_failures(failures, interval) == rest, why
