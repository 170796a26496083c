"""The formulas of sizing, each against numbers worked out by hand and against what must always hold."""

import math

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lagwise.domain.sizing.formulas import (
    busiest_share,
    catch_up_factor,
    demand_rate_per_second,
    knee_threads,
    node_ceiling_per_second,
    nodes_for_rate,
    required_rate_per_second,
    straight_line_rate_per_second,
    thread_rate_per_second,
    threads_for_share,
)
from lagwise.domain.sizing.node_throughput import node_throughput

reproducible = settings(max_examples=200)
times = st.floats(1e-5, 1.0)


def test_knee_by_hand() -> None:
    assert knee_threads(8, 0.012, 0.003) == pytest.approx(40.0)
    assert knee_threads(2, 0.016, 0.0045) == pytest.approx(9.1, abs=0.02)  # the measured node
    assert knee_threads(8, 0.0, 0.003) == 8.0  # pure computing: a thread per core
    assert knee_threads(8, 0.012, 0.0) == math.inf  # pure waiting: the cores never limit


def test_the_published_text_with_its_letters_swapped() -> None:
    """Some texts call the CPU time T1 and the I/O time T2, print C·(T1+T2)/T2, and go on with C + C·T2/T1.

    In their letters the second is right, C·(1 + wait/compute), and it is ours; the first divides by the waiting.
    """
    cores, computing, waiting = 8, 0.003, 0.012
    as_derived = cores + cores * waiting / computing
    as_printed = cores * (computing + waiting) / waiting
    assert knee_threads(cores, t1_seconds=waiting, t2_seconds=computing) == pytest.approx(as_derived) == 40.0
    assert as_printed == pytest.approx(10.0)
    # With the 10 threads of the printed form, the node would be left three quarters idle.
    assert node_throughput(cores, 10, waiting, computing).core_utilisation == pytest.approx(0.25, abs=0.01)


def test_rates_by_hand() -> None:
    assert thread_rate_per_second(0.012, 0.003) == pytest.approx(66.67, abs=0.01)
    assert node_ceiling_per_second(8, 0.003) == pytest.approx(2666.7, abs=0.1)
    assert node_ceiling_per_second(8, 0.0) == math.inf
    assert straight_line_rate_per_second(8, 10, 0.012, 0.003) == pytest.approx(666.7, abs=0.1)
    assert straight_line_rate_per_second(8, 100, 0.012, 0.003) == pytest.approx(2666.7, abs=0.1)
    assert straight_line_rate_per_second(8, 100, 0.012, 0.0) == pytest.approx(100 / 0.012)


@reproducible
@given(st.floats(0.25, 64), times, times)
def test_the_two_lines_cross_at_the_knee(cores: float, t1: float, t2: float) -> None:
    knee = knee_threads(cores, t1, t2)
    assert knee * thread_rate_per_second(t1, t2) == pytest.approx(node_ceiling_per_second(cores, t2))


@reproducible
@given(st.floats(0.25, 32), times, times, st.floats(0.05, 0.99))
def test_threads_for_share_are_the_fewest_and_never_below_that_share_of_the_knee(
    cores: float, t1: float, t2: float, share: float
) -> None:
    knee = knee_threads(cores, t1, t2)
    assume(knee < 4_000)
    threads = threads_for_share(cores, t1, t2, share)
    assert threads is not None
    goal = share * cores / t2
    assert node_throughput(cores, threads, t1, t2).rate_per_second >= goal * (1 - 1e-8)
    if threads > 1:
        assert node_throughput(cores, threads - 1, t1, t2).rate_per_second < goal
    assert threads >= share * knee - 1e-6
    # Where the knee itself does not reach the share, more threads than the knee are asked for.
    if node_throughput(cores, max(1, math.floor(knee)), t1, t2).rate_per_second < goal:
        assert threads > math.floor(knee)


def test_threads_for_share_of_the_measured_node() -> None:
    """The model reaches 95 % of the ceiling at 1.3 times the knee; the real node, 5 % slower, at 1.6 times."""
    threads = threads_for_share(2, 0.0163, 0.0045, 0.95)
    assert threads == 12
    assert threads / knee_threads(2, 0.0163, 0.0045) == pytest.approx(1.3, abs=0.01)


def test_threads_for_share_where_no_number_reaches_it() -> None:
    assert threads_for_share(8, 0.1, 0.0) is None  # no ceiling
    assert threads_for_share(8, 1.0, 0.0001) is None  # the knee lies at 80,008 threads
    assert threads_for_share(8, 0.012, 0.003, 0.95, max_threads=42) is None
    assert threads_for_share(8, 0.012, 0.003, 0.95, max_threads=43) == 43
    assert threads_for_share(8, 0.0, 0.003, 0.95) == 8


def test_demand_by_hand() -> None:
    """At 1,000/s a minute's restart leaves 60,000; they and 540,000 of lag, over 30 minutes, are 333/s on top."""
    demand = demand_rate_per_second(1_000, lag=540_000, catch_up_seconds=1_800, restart_seconds=60)
    assert demand == pytest.approx(1_000 + 60_000 / 1_800 + 540_000 / 1_800)
    assert required_rate_per_second(demand, 0.7) == pytest.approx(demand / 0.7)
    assert demand_rate_per_second(0, lag=0, catch_up_seconds=1_800, restart_seconds=60) == 0.0


@reproducible
@given(st.floats(0, 1e6), st.floats(0, 1e9), st.floats(60, 86_400), st.floats(0, 3_600))
def test_the_demand_really_works_the_backlog_off_in_time(
    peak: float, lag: float, catch_up: float, restart: float
) -> None:
    demand = demand_rate_per_second(peak, lag=lag, catch_up_seconds=catch_up, restart_seconds=restart)
    backlog = lag + peak * restart
    assert (demand - peak) * catch_up == pytest.approx(backlog, rel=1e-6, abs=1e-3)


def test_the_harder_of_a_restart_and_an_outage_counts() -> None:
    """A minute over 30 minutes is 1/30 on top; an hour over 4 hours is 1/4, and both are caught up with by that."""
    demand = demand_rate_per_second(
        1_000, lag=0, catch_up_seconds=1_800, restart_seconds=60, outage_seconds=3_600, outage_catch_up_seconds=14_400
    )
    assert demand == pytest.approx(1_250)
    short_one = demand_rate_per_second(1_000, lag=0, catch_up_seconds=1_800, restart_seconds=60, outage_seconds=60)
    assert short_one == demand_rate_per_second(1_000, lag=0, catch_up_seconds=1_800, restart_seconds=60)


@pytest.mark.parametrize(
    ("rate", "node", "nodes"),
    [(0.0, 100.0, 1), (1.0, 100.0, 1), (100.0, 100.0, 1), (100.1, 100.0, 2), (0.3, 0.1, 3), (1_000.0, 100.0, 10)],
)
def test_nodes_for_rate_rounds_up_but_not_over_a_rounding_error(rate: float, node: float, nodes: int) -> None:
    assert nodes_for_rate(rate, node) == nodes


@pytest.mark.parametrize(
    ("partitions", "readers", "hottest", "share"),
    [
        (1, 1, 1.0, 1.0),
        (48, 48, 1 / 48, 1 / 48),  # one each
        (48, 47, 1 / 48, 2 / 48),  # one reader has two
        (48, 24, 1 / 48, 2 / 48),
        (48, 500, 1 / 48, 1 / 48),  # the rest have none
        (48, 1, 1 / 48, 1.0),
        (11, 11, 0.5, 0.5),  # the hottest alone
        (11, 6, 0.5, 0.55),  # the hottest, and one of the ten that share the other half
        (11, 1, 0.5, 1.0),
    ],
)
def test_busiest_share_by_hand(partitions: int, readers: int, hottest: float, share: float) -> None:
    assert busiest_share(partitions, readers, hottest) == pytest.approx(share)


@reproducible
@given(st.integers(1, 500), st.integers(1, 600), st.floats(0, 1))
def test_busiest_share_is_at_least_even_at_least_the_hottest_and_falls_with_readers(
    partitions: int, readers: int, skew: float
) -> None:
    hottest = 1 / partitions + skew * (1 - 1 / partitions)
    share = busiest_share(partitions, readers, hottest)
    assert share >= max(hottest, 1 / min(readers, partitions)) - 1e-12
    assert share <= 1 + 1e-12
    assert busiest_share(partitions, readers + 1, hottest) <= share + 1e-12


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: knee_threads(0, 1, 1), "cores"),
        (lambda: thread_rate_per_second(0, 0), "t2_seconds"),
        (lambda: node_ceiling_per_second(8, math.nan), "t2_seconds"),
        (lambda: straight_line_rate_per_second(8, 0, 1, 1), "threads"),
        (lambda: threads_for_share(8, 1, 1, 1.0), "share"),
        (lambda: threads_for_share(8, 1, 1, 0.95, 0), "max_threads"),
        (lambda: demand_rate_per_second(-1, lag=0, catch_up_seconds=1, restart_seconds=0), "peak_rate_per_second"),
        (lambda: demand_rate_per_second(1, lag=math.inf, catch_up_seconds=1, restart_seconds=0), "lag"),
        (lambda: demand_rate_per_second(1, lag=0, catch_up_seconds=0, restart_seconds=0), "catch_up_seconds"),
        (lambda: demand_rate_per_second(1, lag=0, catch_up_seconds=1, restart_seconds=1e9), "restart_seconds"),
        (lambda: catch_up_factor(catch_up_seconds=1, restart_seconds=0, outage_seconds=-1), "outage_seconds"),
        (lambda: catch_up_factor(catch_up_seconds=1, restart_seconds=0, outage_seconds=math.nan), "outage_seconds"),
        (
            lambda: catch_up_factor(catch_up_seconds=1, restart_seconds=0, outage_catch_up_seconds=0),
            "outage_catch_up_seconds",
        ),
        (lambda: required_rate_per_second(1, 0), "target_utilisation"),
        (lambda: nodes_for_rate(1, 0), "node_rate_per_second"),
        (lambda: busiest_share(0, 1, 1), "partitions"),
        (lambda: busiest_share(1, 0, 1), "readers"),
    ],
)
def test_bad_input_is_named_with_its_range(call: "object", named: str) -> None:
    assert callable(call)
    with pytest.raises(ValueError, match=f"^{named} must be .*not "):
        call()
