"""The fluid what-if: its limits in closed form, what must hold of every scenario, and that bad input is refused."""

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lagwise.domain.simulation.fair_share import NodeKind, fair_level, reader_level
from lagwise.domain.simulation.fluid import SimulatedOutcome, simulate
from lagwise.domain.simulation.readers import deal, epochs
from lagwise.domain.simulation.scenario import Interruption, Scenario, Traffic
from lagwise.domain.sizing.formulas import busiest_share
from lagwise.domain.sizing.node_throughput import node_throughput
from lagwise.domain.sizing.ranges import OutOfRange
from lagwise.domain.sizing.triple_search import capacity_per_second
from lagwise.domain.sizing.workload import Concurrency, Ordering, Workload

POOL = Concurrency.POOL
HOUR = 3_600.0
#: A node with 40 threads does 2,465/s; a pool without order shares all of it.
ONE_NODE = Scenario(
    traffic=Traffic.constant(1_000.0, 2 * HOUR),
    t1_seconds=0.012,
    t2_seconds=0.003,
    cores=8,
    nodes=1,
    threads_per_node=40,
    partitions=12,
    concurrency=POOL,
)
CAPACITY = node_throughput(8, 40, 0.012, 0.003).rate_per_second
OUTAGE = Interruption(at_seconds=600.0, seconds=300.0)

reproducible = settings(max_examples=100, deadline=None)


def evenly_spaced(rates_per_second: Sequence[float], step_seconds: float) -> Traffic:
    """One rate after the other, each for ``step_seconds``: a day's minutes, say."""
    steps = tuple((i * step_seconds, rate) for i, rate in enumerate(rates_per_second))
    return Traffic(steps, len(steps) * step_seconds or step_seconds)


# --- fluid limits ----------------------------------------------------------------------------------------------------


def test_below_capacity_nothing_is_left_unread() -> None:
    outcome = simulate(ONE_NODE, 60.0)
    assert {moment.lag for moment in outcome.moments} == {0.0}
    assert (outcome.peak_lag, outcome.peak_lag_seconds, outcome.drain_seconds) == (0.0, 0.0, 0.0)
    assert outcome.handled == pytest.approx(7_200_000.0) == outcome.arrived


def test_a_backlog_at_the_start_is_gone_after_lag_over_spare_capacity() -> None:
    outcome = simulate(replace(ONE_NODE, lag=1e6), 60.0)
    assert outcome.peak_lag == 1e6
    assert outcome.drain_seconds == pytest.approx(1e6 / (CAPACITY - 1_000), rel=1e-9)
    # What was there at the start is the oldest until it is read; from then on those that came meanwhile are.
    assert outcome.peak_lag_seconds == pytest.approx(1e6 / CAPACITY, abs=60.0)
    assert outcome.lag_left == 0.0


@pytest.mark.parametrize("concurrency", list(Concurrency))
@pytest.mark.parametrize("nodes", [1, 3])
def test_an_outage_of_all(concurrency: Concurrency, nodes: int) -> None:
    """Rate r, d seconds: r·d unread, the oldest d seconds old, gone r·d / (capacity − r) later."""
    scenario = replace(ONE_NODE, concurrency=concurrency, nodes=nodes, partitions=120, interruption=OUTAGE)
    capacity = nodes * CAPACITY
    outcome = simulate(scenario, 60.0)
    assert outcome.peak_lag == pytest.approx(1_000 * 300, rel=1e-12)
    assert outcome.peak_lag_at_seconds == 900.0
    assert outcome.peak_lag_seconds == pytest.approx(300.0, rel=1e-12)
    assert outcome.drain_seconds == pytest.approx(300_000 / (capacity - 1_000), rel=1e-9)


@pytest.mark.parametrize(("outage_seconds", "catch_up_seconds"), [(0.0, 1_800.0), (600.0, 3_600.0)])
def test_the_demand_that_sizing_asks_for_catches_up_in_time(outage_seconds: float, catch_up_seconds: float) -> None:
    """At the peak that just fits sizing's demand a restart, or the outage, is caught up with in the time allowed."""
    workload = Workload(
        t1_seconds=0.012,
        t2_seconds=0.003,
        cores=8,
        peak_rate_per_second=1.0,
        partitions=12,
        outage_seconds=outage_seconds,
        outage_catch_up_seconds=3_600.0,
    )
    peak = CAPACITY / workload.demand_rate_per_second
    away = Interruption(at_seconds=600.0, seconds=outage_seconds or workload.restart_seconds)
    outcome = simulate(replace(ONE_NODE, traffic=Traffic.constant(peak, 2 * HOUR), interruption=away), 60.0)
    assert outcome.drain_seconds == pytest.approx(catch_up_seconds, rel=1e-9)


def test_lag_seconds_is_the_age_of_the_oldest_unread_message() -> None:
    """At 1,000 / s and capacity c the oldest unread gets younger by c / 1,000 − 1 seconds a second."""
    outcome = simulate(replace(ONE_NODE, interruption=OUTAGE), 10.0)
    by_time = {moment.at_seconds: moment for moment in outcome.moments}
    assert by_time[600.0].lag_seconds == 0.0
    assert by_time[750.0].lag_seconds == pytest.approx(150.0)
    assert by_time[1_000.0].lag_seconds == pytest.approx(300.0 - 100.0 * (CAPACITY / 1_000 - 1))
    assert by_time[1_000.0].handled_per_second == pytest.approx(CAPACITY)
    assert by_time[1_000.0].worst_partition_lag == pytest.approx(by_time[1_000.0].lag / 12)


def test_lag_seconds_skips_a_time_in_which_nothing_came() -> None:
    """10/s for 10 s, a pause of 80 s, 10/s again; nobody reads until second 95, then one thread does 10/s."""
    traffic = Traffic(((0.0, 10.0), (10.0, 0.0), (90.0, 10.0)), 120.0)
    away = Interruption(at_seconds=0.0, seconds=95.0)
    scenario = Scenario(
        traffic=traffic, t1_seconds=0.1, t2_seconds=0.0, cores=1, nodes=1, threads_per_node=1, partitions=1,
        interruption=away,
    )  # fmt: skip
    ages = {moment.at_seconds: moment.lag_seconds for moment in simulate(scenario, 1.0).moments}
    assert ages[95.0] == pytest.approx(95.0)  # the first message is unread
    assert ages[104.0] == pytest.approx(104.0 - 9.0)
    assert ages[105.0] == pytest.approx(105.0 - 90.0)  # the 100 of the beginning are read: the next came at 90 s
    assert ages[120.0] == pytest.approx(15.0)


def test_more_than_the_capacity_never_drains() -> None:
    outcome = simulate(replace(ONE_NODE, traffic=Traffic.constant(3_000.0, HOUR)), 60.0)
    assert outcome.drain_seconds is None
    assert outcome.lag_left == outcome.peak_lag == pytest.approx((3_000 - CAPACITY) * HOUR, rel=1e-12)


def test_what_is_left_at_the_end_drains_at_the_last_rate() -> None:
    traffic = Traffic(((0.0, 3_000.0), (HOUR, 1_000.0)), HOUR + 1.0)
    outcome = simulate(replace(ONE_NODE, traffic=traffic), 60.0)
    assert outcome.lag_left > 0.0
    assert outcome.drain_seconds == pytest.approx((3_000 - CAPACITY) * HOUR / (CAPACITY - 1_000), rel=1e-9)


def test_an_interruption_after_the_end_of_the_traffic_still_counts_for_the_drain() -> None:
    traffic = Traffic.constant(1_000.0, 100.0)
    late = Interruption(at_seconds=50.0, seconds=200.0)
    outcome = simulate(replace(ONE_NODE, traffic=traffic, interruption=late), 10.0)
    assert outcome.lag_left == pytest.approx(50_000)
    # 50,000 at the end of the traffic, 200,000 when the nodes are back, then the spare capacity.
    assert outcome.drain_seconds == pytest.approx(150.0 + 200_000 / (CAPACITY - 1_000), rel=1e-9)


# --- part of the nodes ---------------------------------------------------------------------------------------------


def test_an_absent_nodes_partitions_wait_until_they_are_given_to_others() -> None:
    """A third of 1,000/s waits for 60 s; then two nodes read everything, with 2 · c − 1,000 to spare."""
    crash = replace(OUTAGE, nodes=1)
    outcome = simulate(replace(ONE_NODE, nodes=3, interruption=crash), 10.0)
    assert outcome.peak_lag == pytest.approx(20_000)
    assert outcome.peak_lag_at_seconds == 660.0
    # Four partitions wait. Dealt out again, two of them are on each of the two nodes, which also read their others.
    assert outcome.drain_seconds == pytest.approx(10_000 / (CAPACITY - 500), rel=1e-9)


def test_a_static_members_partitions_wait_for_it() -> None:
    soon_back = replace(OUTAGE, nodes=1, reassigned_after_seconds=None)
    assert simulate(replace(ONE_NODE, nodes=3, interruption=soon_back), 10.0).peak_lag == pytest.approx(100_000)


def test_a_rolling_deploy_takes_one_node_after_the_other() -> None:
    deploy = Interruption(at_seconds=600.0, seconds=30.0, rolling=True, reassigned_after_seconds=None)
    outcome = simulate(replace(ONE_NODE, nodes=3, interruption=deploy), 10.0)
    assert outcome.peak_lag_seconds == pytest.approx(30.0)
    # Each leaves a third of 30 s; what it left is read while the next is away.
    assert outcome.peak_lag == pytest.approx(10_000)
    at = {moment.at_seconds: moment.lag for moment in outcome.moments}
    assert at[690.0] == pytest.approx(10_000) and at[720.0] == 0.0
    leaving = replace(deploy, reassigned_after_seconds=0.0)
    assert simulate(replace(ONE_NODE, nodes=3, interruption=leaving), 10.0).peak_lag == 0.0


def test_who_is_away_when() -> None:
    crash = replace(OUTAGE, nodes=2)
    seen = [(e.start_seconds, e.nodes, tuple(e.away)) for e in epochs(replace(ONE_NODE, nodes=3, interruption=crash))]
    assert seen == [(0.0, 3, ()), (600.0, 3, (0, 1)), (660.0, 1, ()), (900.0, 3, ())]
    rolling = Interruption(at_seconds=0.0, seconds=10.0, rolling=True, reassigned_after_seconds=4.0)
    seen = [(e.start_seconds, e.nodes, tuple(e.away)) for e in epochs(replace(ONE_NODE, nodes=2, interruption=rolling))]
    assert seen == [(0.0, 2, (0,)), (4.0, 1, ()), (10.0, 2, (1,)), (14.0, 1, ()), (20.0, 2, ())]


# --- skew, order, partitions ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("concurrency", list(Concurrency))
@pytest.mark.parametrize("ordering", [None, Ordering.PARTITION, Ordering.GLOBAL])
@pytest.mark.parametrize("partitions", [1, 7, 48, 480])
@pytest.mark.parametrize("hottest", [None, 0.2])
def test_its_capacity_is_that_of_sizing(
    concurrency: Concurrency, ordering: Ordering | None, partitions: int, hottest: float | None
) -> None:
    """Just below sizing's capacity nothing stays behind. With even partitions just above it something does.

    Sizing takes every thread as busy, which is careful where the hottest partition's thread has idle neighbours.
    """
    hottest = None if partitions == 1 else hottest
    workload = Workload(
        t1_seconds=0.012, t2_seconds=0.003, cores=8, peak_rate_per_second=1.0, partitions=partitions,
        hottest_share=hottest, concurrency=concurrency, ordering=ordering,
    )  # fmt: skip
    capacity = capacity_per_second(workload, 3, 40)

    def behind(share: float) -> float:
        scenario = replace(
            ONE_NODE, traffic=Traffic.constant(share * capacity, HOUR), nodes=3, partitions=partitions,
            hottest_share=hottest, concurrency=concurrency, ordering=ordering,
        )  # fmt: skip
        return simulate(scenario, 600.0).lag_left

    assert behind(0.999) == 0.0
    every_thread_is_busy = ordering is Ordering.GLOBAL or (
        (hottest is None and partitions % 120 == 0) or (concurrency is POOL and ordering is None)
    )
    if every_thread_is_busy:
        assert behind(1.01) > 0.0


def test_partitions_are_dealt_as_sizing_takes_it() -> None:
    scenario = replace(ONE_NODE, concurrency=Concurrency.CONSUMER_PER_THREAD, nodes=3, partitions=200)
    for hottest in (None, 0.1):
        shares = replace(scenario, hottest_share=hottest).falling_shares
        assert math.fsum(shares) == pytest.approx(1.0)
        busiest = max(sum(shares[p] for p in reader.partitions) for reader in deal(scenario, 3))
        assert busiest == pytest.approx(busiest_share(200, 120, hottest or 1 / 200))


def test_the_hottest_partition_stays_behind_while_the_others_are_read() -> None:
    hot = replace(ONE_NODE, concurrency=Concurrency.CONSUMER_PER_THREAD, hottest_share=0.1, partitions=48)
    outcome = simulate(hot, 60.0)
    # 100/s on a thread that does 66.7/s at best: 33/s more every second, nothing elsewhere.
    assert outcome.drain_seconds is None
    last = outcome.moments[-1]
    assert last.lag == pytest.approx(last.worst_partition_lag)
    assert last.lag / 7_200 >= 100.0 - 1 / 0.015
    even = replace(hot, hottest_share=None)
    assert simulate(even, 60.0).peak_lag == 0.0


def test_given_shares_are_the_same_as_a_hottest_one() -> None:
    hot = replace(ONE_NODE, hottest_share=0.34, nodes=3, traffic=Traffic.constant(7_000.0, HOUR))
    given_ones = replace(hot, hottest_share=None, shares=(*([0.06] * 5), 0.34, *([0.06] * 6)))
    assert simulate(hot, 60.0).peak_lag == pytest.approx(simulate(given_ones, 60.0).peak_lag, rel=1e-9)


def test_equal_shares_without_anything_to_read() -> None:
    empty = replace(ONE_NODE, traffic=Traffic.constant(0.0, 10.0), shares=(0.5, 0.5, 0.0), partitions=3)
    outcome = simulate(replace(empty, interruption=replace(OUTAGE, at_seconds=1.0)), 1.0)
    assert (outcome.arrived, outcome.peak_lag, outcome.drain_seconds) == (0.0, 0.0, 0.0)


# --- sharing -------------------------------------------------------------------------------------------------------


def test_who_needs_less_gets_it_and_the_rest_share() -> None:
    assert fair_level([(1.0, 2), (5.0, 1), (math.inf, 2)], 11.0) == pytest.approx(3.0)
    assert fair_level([(1.0, 2), (2.0, 1)], 11.0) == math.inf


def test_a_busy_reader_is_faster_where_its_neighbours_are_not() -> None:
    node = NodeKind(2, 8, 0.0, 0.01)
    alone = reader_level(node, [(math.inf, 1), (0.0, 7)])
    with_others = reader_level(node, [(math.inf, 8)])
    assert alone == pytest.approx(100.0)
    assert with_others == pytest.approx(25.0)
    # More readers than threads: what four threads do, shared by sixteen.
    assert reader_level(NodeKind(2, 4, 0.0, 0.01), [(math.inf, 16)]) == pytest.approx(200 / 16)


# --- what must hold of all -----------------------------------------------------------------------------------------

rates = st.lists(st.floats(0.0, 5_000.0), min_size=1, max_size=8)


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    nodes = draw(st.integers(1, 4))
    partitions = draw(st.integers(1, 30))
    weights = draw(st.none() | st.lists(st.floats(0.01, 1.0), min_size=partitions, max_size=partitions))
    rolling = draw(st.booleans())
    stop = Interruption(
        at_seconds=draw(st.floats(0.0, 2_000.0)),
        seconds=draw(st.floats(0.0, 600.0)),
        rolling=rolling,
        nodes=None if rolling else draw(st.none() | st.integers(1, nodes)),
        reassigned_after_seconds=draw(st.none() | st.floats(0.0, 100.0)),
    )
    return Scenario(
        traffic=evenly_spaced(draw(rates), 300.0),
        t1_seconds=0.012,
        t2_seconds=draw(st.sampled_from([0.0, 0.003, 0.02])),
        cores=draw(st.sampled_from([0.5, 2.0, 8.0])),
        nodes=nodes,
        threads_per_node=draw(st.integers(1, 20)),
        partitions=partitions,
        shares=None if weights is None else tuple(w / sum(weights) for w in weights),
        lag=draw(st.sampled_from([0.0, 50_000.0])),
        concurrency=draw(st.sampled_from(Concurrency)),
        ordering=draw(st.none() | st.sampled_from(Ordering)),
        interruption=draw(st.none() | st.just(stop)),
    )


@reproducible
@given(scenarios())
def test_what_arrived_is_handled_or_unread(scenario: Scenario) -> None:
    """``handled`` is added up from the rates at which the readers read, ``lag_left`` is what each partition is left."""
    outcome = simulate(scenario, 100.0)
    assert outcome.arrived == pytest.approx(scenario.lag + sum(300.0 * rate for _, rate in scenario.traffic.steps))
    assert outcome.handled + outcome.lag_left == pytest.approx(outcome.arrived, abs=1e-3)
    assert 0.0 <= outcome.lag_left <= outcome.peak_lag * (1 + 1e-6) + 1e-6
    for moment in outcome.moments:
        arrived = scenario.lag + scenario.traffic.arrived_by(moment.at_seconds)
        assert 0.0 <= moment.worst_partition_lag <= moment.lag * (1 + 1e-9)
        assert moment.lag <= arrived * (1 + 1e-9)
        assert 0.0 <= moment.lag_seconds <= moment.at_seconds
        assert moment.lag <= outcome.peak_lag * (1 + 1e-6) + 1e-6


@reproducible
@given(scenarios())
def test_between_moments_lag_falls_by_no_more_than_the_nodes_can_do(scenario: Scenario) -> None:
    moments = simulate(scenario, 50.0).moments
    most = (
        scenario.nodes
        * node_throughput(
            scenario.cores, scenario.threads_per_node, scenario.t1_seconds, scenario.t2_seconds
        ).rate_per_second
    )
    for before, after in pairwise(moments):
        arrived = scenario.traffic.arrived_by(after.at_seconds) - scenario.traffic.arrived_by(before.at_seconds)
        handled = before.lag + arrived - after.lag
        assert handled + 1e-9 * before.lag >= -1e-6
        assert handled <= most * (after.at_seconds - before.at_seconds) * (1 + 1e-6) + 1e-6


@reproducible
@given(scenarios(), st.integers(1, 10))
def test_more_threads_of_a_pool_never_leave_more_lag(scenario: Scenario, more: int) -> None:
    pool = replace(scenario, concurrency=POOL, ordering=None)
    few = simulate(pool, 100.0)
    many = simulate(replace(pool, threads_per_node=pool.threads_per_node + more), 100.0)
    for fewer, with_more in zip(few.moments, many.moments, strict=True):
        assert with_more.lag <= fewer.lag * (1 + 1e-9) + 1e-6
        assert with_more.lag_seconds <= fewer.lag_seconds * (1 + 1e-6) + 1e-6


@reproducible
@given(scenarios(), st.sampled_from([0.001, 0.5, 60.0]))
def test_in_another_unit_of_time_it_is_the_same(scenario: Scenario, unit: float) -> None:
    """All times longer by a factor, all rates smaller: as many messages, and all times longer. Not so with a CPU limit,
    whose period stays the same."""
    scenario = replace(scenario, cores=max(1.0, scenario.cores))

    def slower(stop: Interruption | None) -> Interruption | None:
        if stop is None:
            return None
        after = stop.reassigned_after_seconds
        return replace(
            stop, at_seconds=stop.at_seconds * unit, seconds=stop.seconds * unit,
            reassigned_after_seconds=None if after is None else after * unit,
        )  # fmt: skip

    scaled = replace(
        scenario,
        traffic=evenly_spaced([rate / unit for _, rate in scenario.traffic.steps], 300.0 * unit),
        t1_seconds=scenario.t1_seconds * unit,
        t2_seconds=scenario.t2_seconds * unit,
        interruption=slower(scenario.interruption),
    )
    one, other = simulate(scenario, 100.0), simulate(scaled, 100.0 * unit)
    assert other.peak_lag == pytest.approx(one.peak_lag, rel=1e-6, abs=1e-3)
    assert [m.lag for m in other.moments] == pytest.approx([m.lag for m in one.moments], rel=1e-6, abs=1e-3)


@reproducible
@given(scenarios())
def test_the_step_changes_what_is_shown_not_what_happens(scenario: Scenario) -> None:
    fine, coarse = simulate(scenario, 7.0), simulate(scenario, 250.0)
    assert numbers(fine) == pytest.approx(numbers(coarse), rel=1e-6, abs=1e-3)


def numbers(outcome: SimulatedOutcome) -> list[float]:
    drain = math.inf if outcome.drain_seconds is None else outcome.drain_seconds
    return [outcome.peak_lag, outcome.lag_left, outcome.arrived, drain if outcome.peak_lag > 1.0 else 0.0]


@reproducible
@given(scenarios(), st.randoms(use_true_random=False))
def test_what_is_alike_and_counted_once_does_as_if_it_were_counted_one_by_one(
    scenario: Scenario, chance: random.Random
) -> None:
    """Shares that differ by a millionth make every partition, reader and node one of its own."""
    even = replace(scenario, shares=None)
    shares = [1.0 + 1e-6 * chance.random() for _ in range(even.partitions)]
    one_by_one = replace(even, shares=tuple(share / sum(shares) for share in shares))
    together, apart = simulate(even, 100.0), simulate(one_by_one, 100.0)
    assert apart.peak_lag == pytest.approx(together.peak_lag, rel=1e-3, abs=1.0)
    assert [m.lag for m in apart.moments] == pytest.approx([m.lag for m in together.moments], rel=1e-3, abs=30.0)


def test_a_day_by_minutes() -> None:
    day = evenly_spaced([20_000 * (1 + math.sin(math.tau * i / 1_440) / 2) for i in range(1_440)], 60.0)
    outcome = simulate(replace(ONE_NODE, traffic=day, nodes=13, partitions=480, interruption=OUTAGE), 10.0)
    assert len(outcome.moments) == 8_641
    assert outcome.moments[-1].at_seconds == 86_400.0
    assert outcome.arrived == pytest.approx(20_000 * 86_400, rel=1e-3)
    assert outcome.drain_seconds is not None


# --- bad input -----------------------------------------------------------------------------------------------------

NAN = math.nan


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"partitions": 0}, "partitions"),
        ({"partitions": -1}, "partitions"),
        ({"partitions": 10**9}, "partitions"),
        ({"nodes": 0}, "nodes"),
        ({"nodes": 1.5}, "nodes"),
        ({"threads_per_node": 0}, "threads_per_node"),
        ({"cores": 0}, "cores"),
        ({"cores": NAN}, "cores"),
        ({"t1_seconds": -1.0}, "t1_seconds"),
        ({"t1_seconds": 0.0, "t2_seconds": 0.0}, "t2_seconds"),
        ({"t2_seconds": math.inf}, "t2_seconds"),
        ({"t1_seconds": 1e9}, "t1_seconds"),
        ({"lag": -1.0}, "lag"),
        ({"lag": NAN}, "lag"),
        ({"hottest_share": 0.0}, "hottest_share"),
        ({"hottest_share": 1.01}, "hottest_share"),
        ({"shares": ()}, "shares"),
        ({"shares": (1.0,)}, "shares"),
        ({"shares": tuple([0.1] * 12)}, "shares"),
        ({"shares": (NAN, *([0.0] * 11))}, "shares"),
        ({"shares": tuple([1 / 12] * 12), "hottest_share": 0.5}, "shares"),
        ({"interruption": replace(OUTAGE, nodes=2)}, "nodes"),
    ],
)
def test_a_scenario_that_cannot_be_is_refused(changed: dict[str, Any], named: str) -> None:
    with pytest.raises(OutOfRange) as refused:
        replace(ONE_NODE, **changed)
    assert refused.value.argument == named


@pytest.mark.parametrize(
    ("steps", "seconds", "named"),
    [
        ((), 10.0, "steps"),
        (((1.0, 5.0),), 10.0, "steps"),
        (((0.0, 5.0), (0.0, 6.0)), 10.0, "steps"),
        (((0.0, 5.0), (-3.0, 6.0)), 10.0, "steps"),
        (((0.0, -5.0),), 10.0, "steps"),
        (((0.0, NAN),), 10.0, "steps"),
        (((NAN, 5.0),), 10.0, "steps"),
        (((0.0, 1e30),), 10.0, "steps"),
        (((0.0, 5.0), (10.0, 5.0)), 10.0, "seconds"),
        (((0.0, 5.0),), 0.0, "seconds"),
        (((0.0, 5.0),), NAN, "seconds"),
        (((0.0, 5.0),), 1e12, "seconds"),
    ],
)
def test_traffic_that_cannot_be_is_refused(steps: tuple[tuple[float, float], ...], seconds: float, named: str) -> None:
    with pytest.raises(OutOfRange) as refused:
        Traffic(steps, seconds)
    assert refused.value.argument == named


@pytest.mark.parametrize("step", [0.0, NAN, -1.0])
def test_moments_need_a_step(step: float) -> None:
    with pytest.raises(OutOfRange, match="step_seconds"):
        simulate(ONE_NODE, step)


def test_an_empty_curve_is_refused() -> None:
    with pytest.raises(OutOfRange, match="steps"):
        evenly_spaced([], 60.0)


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"at_seconds": -1.0}, "at_seconds"),
        ({"at_seconds": NAN}, "at_seconds"),
        ({"seconds": -1.0}, "seconds"),
        ({"seconds": math.inf}, "seconds"),
        ({"nodes": 0}, "nodes"),
        ({"nodes": 1, "rolling": True}, "nodes"),
        ({"reassigned_after_seconds": -1.0}, "reassigned_after_seconds"),
    ],
)
def test_an_interruption_that_cannot_be_is_refused(changed: dict[str, Any], named: str) -> None:
    with pytest.raises(OutOfRange) as refused:
        replace(OUTAGE, **changed)
    assert refused.value.argument == named
