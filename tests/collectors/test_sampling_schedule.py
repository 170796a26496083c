"""The fixed rate, on a clock that the test moves, and how the clusters of a collector share the interval."""

from itertools import pairwise

import pytest

from lagwise_collectors.sampling_schedule import FixedRate, phase_of, rest_after_failures, schedule_of

#: Some time since 1970.
WALL = 1_795_823_221.75


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


def ticks_of(rate: FixedRate, now: float, count: int) -> list[float]:
    """The times of the next ticks, if samples take no time."""
    found = []
    for _ in range(count):
        now += rate.wait_seconds(now)
        found.append(now)
        assert rate.ran(now) == 0
    return found


class TestManyClusters:
    def test_the_phase_follows_from_the_name_alone(self) -> None:
        assert round(phase_of("orders-eu"), 6) == 0.958293  # written down: another version must keep it

    def test_the_starts_of_fifty_clusters_are_spread_over_the_interval(self) -> None:
        phases = sorted(phase_of(f"cluster-{number:02}") for number in range(50))
        gaps = [after - before for before, after in pairwise([*phases, phases[0] + 1])]
        assert max(gaps) < 0.15
        busiest = max(sum((other - phase) % 1 < 0.1 for other in phases) for phase in phases)
        assert busiest <= 13  # in a tenth of the interval, where all fifty were before

    @pytest.mark.parametrize("clusters", [1, 50])
    def test_a_restart_keeps_the_ticks(self, clusters: int) -> None:
        before = schedule_of("shop", 15, clusters=clusters, now=100.0, wall_seconds=WALL)
        # Another machine, on which the clock that never goes back counts from elsewhere, 1,000 s later.
        after = schedule_of("shop", 15, clusters=clusters, now=7.0, wall_seconds=WALL + 1000)
        ticks = [tick - 100 for tick in ticks_of(before, 100, 90)[1:]]
        restarted = [tick - 7 + 1000 for tick in ticks_of(after, 7, 5)[1:]]
        assert all(min(abs(tick - other) for other in ticks) < 1e-6 for tick in restarted)
        assert (ticks[0] + WALL) / 15 % 1 == pytest.approx(phase_of("shop"))

    @pytest.mark.parametrize("late", [0.1, 3.0, 7.4, 7.6, 12.0, 14.9])
    def test_the_first_sample_of_a_lone_cluster_is_at_once_and_the_second_is_no_half_interval_off(
        self, late: float
    ) -> None:
        first, second, third = ticks_of(schedule_of("shop", 15, clusters=1, now=100, wall_seconds=WALL + late), 100, 3)
        assert first == 100
        assert 7.5 <= second - first <= 22.5
        assert third - second == pytest.approx(15)

    def test_the_first_samples_of_many_clusters_are_spread_too(self) -> None:
        names = [f"cluster-{number:02}" for number in range(50)]
        firsts = [schedule_of(n, 15, clusters=50, now=0, wall_seconds=WALL).wait_seconds(0) for n in names]
        assert max(firsts) < 0.25 * 50
        assert sum(first < 2.5 for first in firsts) <= 15

    def test_a_slow_first_sample_is_not_said_to_have_taken_longer_than_the_interval(self) -> None:
        for late in range(15):
            rate = schedule_of("shop", 15, clusters=1, now=0, wall_seconds=WALL + late)
            assert rate.ran(14.0) == 0
            assert 0 < rate.wait_seconds(14.0) <= 15


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
