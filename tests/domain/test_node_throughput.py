"""The machine-repairman model against textbooks, three other ways to compute it, and a machine that was measured."""

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lagwise.domain.sizing.node_throughput import node_throughput
from lagwise.domain.sizing.ranges import OutOfRange

reproducible = settings(max_examples=200)

cores = st.one_of(st.integers(1, 64), st.floats(0.1, 64.0))
times = st.floats(1e-6, 10.0)


# --- what others printed ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("repairmen", "productivity_percent", "repairs_per_hour"),
    [(1, 45.44, 4.9980), (2, 80.15, 8.8161), (3, 88.79, 9.7670), (4, 90.45, 9.9500)],
)
def test_taha_machine_shop(repairmen: int, productivity_percent: float, repairs_per_hour: float) -> None:
    """H. Taha, Operations Research, the Toolco example: 22 machines run 2 h on average, a repair takes 12 min."""
    shop = node_throughput(repairmen, 22, t1_seconds=2.0, t2_seconds=0.2)
    running = shop.rate_per_second * 2.0
    assert running / 22 * 100 == pytest.approx(productivity_percent, abs=0.006)
    assert shop.rate_per_second == pytest.approx(repairs_per_hour, abs=1.5e-4)


def test_winston_patrol_cars() -> None:
    """W. Winston, Operations Research: 5 patrol cars need repair every 30 days, 2 repairers take 3 days each."""
    garage = node_throughput(2, 5, t1_seconds=30.0, t2_seconds=3.0)
    assert 5 - garage.rate_per_second * 30.0 == pytest.approx(0.465, abs=5e-4)  # cars out of order
    assert garage.threads / garage.rate_per_second - 30.0 == pytest.approx(3.08, abs=0.01)  # days out of order
    assert 1 - garage.core_utilisation == pytest.approx(0.774, abs=1e-3)  # share of time a repairer is idle


def test_anderson_six_machines() -> None:
    """Anderson, Sweeney, Williams, Management Science, the Kolkmeyer example: 6 machines, λ 0.05, μ 0.50 an hour."""
    plant = node_throughput(1, 6, t1_seconds=20.0, t2_seconds=2.0)
    assert 1 - plant.core_utilisation == pytest.approx(0.4845, abs=5e-5)
    assert plant.threads_waiting_for_core == pytest.approx(0.3297, abs=1e-4)
    assert plant.core_wait_seconds == pytest.approx(1.279, abs=1e-3)
    assert plant.threads / plant.rate_per_second - 20.0 == pytest.approx(3.279, abs=1e-3)


@pytest.mark.parametrize(
    ("lines", "erlangs", "blocking"),
    [(1, 1.0, 0.5), (2, 1.0, 0.2), (5, 3.0, 0.1101), (10, 5.0, 0.0184), (20, 12.0, 0.0098), (100, 84.06, 0.0100)],
)
def test_one_core_is_idle_as_often_as_erlangs_loss_formula_blocks(lines: int, erlangs: float, blocking: float) -> None:
    """For one core the share of idle time is Erlang's B(N, T1/T2), whose tables are published."""
    one_core = node_throughput(1, lines, t1_seconds=erlangs, t2_seconds=1.0)
    assert 1 - one_core.core_utilisation == pytest.approx(blocking, abs=6e-5)


# --- what was measured -----------------------------------------------------------------------------------------------

#: Two cores, T1 = 16.3 ms (sleep), T2 = 4.5 ms (hashing): threads, messages/s measured, messages/s the model gave.
MEASURED = [(1, 48, 48), (4, 186, 189), (8, 328, 345), (10, 377, 395), (15, 426, 441), (20, 435, 444)]


@pytest.mark.parametrize(("threads", "measured", "predicted"), MEASURED)
def test_measured_node(threads: int, measured: float, predicted: float) -> None:
    """Within 6 % of the measurement, above it because a real machine also does other things."""
    rate = node_throughput(2, threads, 0.0163, 0.0045).rate_per_second
    assert round(rate) == predicted
    assert 0.99 <= rate / measured <= 1.06


def test_measured_node_the_straight_lines_are_further_off() -> None:
    near_the_knee = [(n, rate) for n, rate, _ in MEASURED if n in (8, 10)]
    for threads, measured in near_the_knee:
        lines = min(threads / (0.0163 + 0.0045), 2 / 0.0045)
        assert lines / measured > 1.16


# --- other ways to compute it ----------------------------------------------------------------------------------------


def exact(cores: int, threads: int, t1: Fraction, t2: Fraction) -> tuple[Fraction, Fraction]:
    """Throughput and mean number waiting, by the balance equations in fractions."""
    weights = [Fraction(1)]
    for n in range(1, threads + 1):
        weights.append(weights[-1] * (threads - n + 1) / min(n, cores) * t2 / t1)
    total = sum(weights, Fraction())
    busy = sum((w * min(n, cores) for n, w in enumerate(weights)), Fraction()) / total
    waiting = sum((w * max(0, n - cores) for n, w in enumerate(weights)), Fraction()) / total
    return busy / t2, waiting


@reproducible
@given(st.integers(1, 8), st.integers(1, 40), st.integers(1, 1000), st.integers(1, 1000))
def test_equals_the_balance_equations_in_fractions(c: int, n: int, t1: int, t2: int) -> None:
    rate, waiting = exact(c, n, Fraction(t1), Fraction(t2))
    got = node_throughput(c, n, float(t1), float(t2))
    assert got.rate_per_second == pytest.approx(float(rate), rel=1e-12)
    assert got.threads_waiting_for_core == pytest.approx(float(waiting), rel=1e-9, abs=1e-12)


@reproducible
@given(st.integers(1, 500), times, times)
def test_equals_mean_value_analysis_for_one_core(n: int, t1: float, t2: float) -> None:
    """Reiser and Lavenberg's recursion, which never looks at a state's probability."""
    queue = rate = 0.0
    for threads in range(1, n + 1):
        response = t2 * (1 + queue)
        rate = threads / (t1 + response)
        queue = rate * response
    assert node_throughput(1, n, t1, t2).rate_per_second == pytest.approx(rate, rel=1e-9)


@pytest.mark.parametrize("c", [1, 2, 48, 999, 4_096])
@pytest.mark.parametrize("ratio", [1e-9, 1e-3, 0.01, 1.0, 1e3, 1e9])
def test_ten_thousand_threads_equal_a_computation_in_logarithms(c: int, ratio: float) -> None:
    n_max = 10_000
    logs = []
    for n in range(n_max + 1):
        beyond = max(0, n - c)
        served = math.lgamma(min(n, c) + 1) + beyond * math.log(c)
        logs.append(math.lgamma(n_max + 1) - math.lgamma(n_max - n + 1) - served + n * math.log(ratio))
    top = max(logs)
    weights = [math.exp(value - top) for value in logs]
    busy = math.fsum(w * min(n, c) for n, w in enumerate(weights)) / math.fsum(weights)
    t1 = 1.0 / math.sqrt(ratio)  # both times within their range
    assert node_throughput(c, n_max, t1, t1 * ratio).rate_per_second == pytest.approx(busy / (t1 * ratio), rel=1e-7)


# --- what must always hold -------------------------------------------------------------------------------------------


@reproducible
@given(cores, st.integers(1, 2000), times, times)
def test_never_above_the_straight_lines_and_more_threads_never_do_less(c: float, n: int, t1: float, t2: float) -> None:
    now = node_throughput(c, n, t1, t2)
    more = node_throughput(c, n + 1, t1, t2)
    slack = 1 + 1e-9
    assert now.rate_per_second <= min(n / (t1 + t2), c / t2) * slack
    assert now.rate_per_second <= more.rate_per_second * slack
    # One thread among more of them never does more.
    assert more.thread_rate_per_second <= now.thread_rate_per_second * slack


@reproducible
@given(cores, st.integers(1, 2000), times, times)
def test_books_balance(c: float, n: int, t1: float, t2: float) -> None:
    """Every thread waits outside, waits for a core, or runs; and Little's law holds for each part."""
    node = node_throughput(c, n, t1, t2)
    outside, running = node.rate_per_second * t1, node.rate_per_second * t2
    assert outside + running + node.threads_waiting_for_core == pytest.approx(n, rel=1e-9)
    assert node.core_utilisation == pytest.approx(running / c, rel=1e-9)
    assert 0 <= node.core_utilisation <= 1
    assert node.threads / node.rate_per_second == pytest.approx(t1 + node.core_wait_seconds + t2, rel=1e-9)


@reproducible
@given(st.integers(1, 200), st.integers(0, 50), times, times)
def test_with_a_core_for_each_thread_none_waits(n: int, more: int, t1: float, t2: float) -> None:
    node = node_throughput(n + more, n, t1, t2)
    assert node.rate_per_second == pytest.approx(n / (t1 + t2), rel=1e-9)
    assert node.threads_waiting_for_core == pytest.approx(0.0, abs=1e-9)


@reproducible
@given(st.integers(1, 64), times, times)
def test_with_very_many_threads_every_core_is_busy(c: int, t1: float, t2: float) -> None:
    threads = min(100_000, math.ceil(4 * c * (t1 + t2) / t2) + 1_000)
    if threads < 2 * c * (t1 + t2) / t2:
        return  # so much waiting that even the most threads that are modelled do not fill the cores
    assert node_throughput(c, threads, t1, t2).rate_per_second == pytest.approx(c / t2, rel=1e-3)


def test_nothing_but_waiting_has_no_ceiling_and_nothing_but_computing_no_slope() -> None:
    waiting = node_throughput(4, 1_000, t1_seconds=0.01, t2_seconds=0.0)
    assert waiting.rate_per_second == pytest.approx(100_000.0)
    assert waiting.core_utilisation == 0.0
    computing = node_throughput(4, 10, t1_seconds=0.0, t2_seconds=0.01)
    assert computing.rate_per_second == pytest.approx(400.0)
    assert computing.threads_waiting_for_core == 6.0


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((0, 1, 1.0, 1.0), "cores"),
        ((math.nan, 1, 1.0, 1.0), "cores"),
        ((True, 1, 1.0, 1.0), "cores"),
        ((1e9, 1, 1.0, 1.0), "cores"),
        ((1, 0, 1.0, 1.0), "threads"),
        ((1, 1.5, 1.0, 1.0), "threads"),
        ((1, 10**9, 1.0, 1.0), "threads"),
        ((1, 1, -1.0, 1.0), "t1_seconds"),
        ((1, 1, math.inf, 1.0), "t1_seconds"),
        ((1, 1, 1e6, 1.0), "t1_seconds"),
        ((1, 1, 1.0, math.nan), "t2_seconds"),
        ((1, 1, 1.0, 1e-12), "t2_seconds"),
        ((1, 1, 0.0, 0.0), "t2_seconds"),
        ((1, 1, "1", 1.0), "t1_seconds"),
    ],
)
def test_bad_input_is_named_with_its_range(arguments: tuple[float, int, float, float], named: str) -> None:
    with pytest.raises(ValueError, match=f"^{named} must be .*not ") as caught:
        node_throughput(*arguments)
    assert isinstance(caught.value, OutOfRange)
    assert caught.value.argument == named
