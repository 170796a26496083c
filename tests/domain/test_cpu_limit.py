"""A CPU limit of a fraction of a core, against a simulation of what the system does with one."""

from random import Random

import pytest

from lagwise.domain.sizing.node_throughput import LIMIT_PERIOD_SECONDS, node_throughput

#: A node has more cores than the limit: several threads can use up the quota at the same time.
CORES = 4


def simulated(limit: float, threads: int, t1: float, t2: float, *, messages: int = 6_000, seed: int = 1) -> float:
    """Messages per second of threads that wait and compute for exponential times, and that all stand still from when
    the quota of a period is used up until the next one begins."""
    chance = Random(seed)

    def drawn(mean: float) -> float:
        return chance.expovariate(1 / mean)

    left = [drawn(t1) * chance.random() for _ in range(threads)]
    computes = [False] * threads
    now, done, quota, next_period = 0.0, 0, limit * LIMIT_PERIOD_SECONDS, LIMIT_PERIOD_SECONDS
    while done < messages:
        if now >= next_period - 1e-12:
            quota, next_period = limit * LIMIT_PERIOD_SECONDS, next_period + LIMIT_PERIOD_SECONDS
        running = sum(computes)
        speed = min(1.0, CORES / running) if running and quota > 1e-12 else 0.0
        step = next_period - now
        for its, at_work in zip(left, computes, strict=True):
            if not at_work:
                step = min(step, its)
            elif speed:
                step = min(step, its / speed)
        if speed:
            step = min(step, quota / (speed * running))
        step = max(step, 1e-9)
        now += step
        for number, at_work in enumerate(computes):
            left[number] -= step * speed if at_work else step
            if left[number] <= 1e-9 and (speed or not at_work):
                done += at_work
                computes[number] = not at_work
                left[number] = drawn(t1 if at_work else t2)
        quota -= step * speed * running
    return done / now


@pytest.mark.parametrize("limit", [0.25, 0.5, 1.5])
@pytest.mark.parametrize("t2", [0.001, 0.01, 0.05, 0.2])
@pytest.mark.parametrize("ratio", [1, 4])
@pytest.mark.parametrize("of_knee", [0.5, 1.0, 1.5])
def test_within_a_tenth_of_what_a_limit_does(limit: float, t2: float, ratio: int, of_knee: float) -> None:
    threads = max(1, round(of_knee * limit * (1 + ratio)))
    real = simulated(limit, threads, ratio * t2, t2, messages=2_000)
    assert node_throughput(limit, threads, ratio * t2, t2).rate_per_second == pytest.approx(real, rel=0.11)


def test_a_thread_that_uses_less_than_its_limit_is_not_slowed() -> None:
    alone = node_throughput(0.5, 1, 0.004, 0.001).rate_per_second
    assert alone == pytest.approx(200.0, rel=0.01)
    assert alone == pytest.approx(simulated(0.5, 1, 0.004, 0.001), rel=0.02)


def test_messages_of_many_periods_see_a_slower_core() -> None:
    assert node_throughput(0.5, 1, 10.0, 10.0).rate_per_second == pytest.approx(1 / 30.0, rel=0.01)


@pytest.mark.parametrize("limit", [0.25, 0.5, 1.5, 3.7])
def test_many_threads_use_all_of_the_limit(limit: float) -> None:
    assert node_throughput(limit, 400, 0.04, 0.01).rate_per_second == pytest.approx(limit / 0.01, rel=1e-6)


def test_a_little_more_than_whole_cores_is_a_little_more() -> None:
    """Whole numbers are cores; with a limit just above, a third thread may run beside two."""
    less, two, more = (node_throughput(cores, 8, 0.04, 0.01).rate_per_second for cores in (2 - 1e-9, 2.0, 2 + 1e-9))
    assert less == pytest.approx(two, rel=0.02)
    assert two <= more <= 1.08 * two
