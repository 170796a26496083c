"""Message by message against queueing theory, and the fluid what-if against message by message. All seeded."""

import math
import random
from dataclasses import replace
from statistics import fmean, stdev
from typing import Any

import pytest

from lagwise.domain.simulation.fluid import simulate
from lagwise.domain.simulation.scenario import Interruption, Scenario, Traffic
from lagwise.domain.sizing.node_throughput import node_throughput
from lagwise.domain.sizing.ranges import OutOfRange
from lagwise.domain.sizing.workload import Concurrency, Ordering
from tests.domain.message_simulation import SimulatedRun, Spread, simulate_messages

pytestmark = pytest.mark.thorough

POOL = Concurrency.POOL
#: Student's t, two-sided 99 %, 15 degrees of freedom (any table).
T_99_OF_16_RUNS = 2.947
RUNS = 16


def queue(cores: int, rate: float, t2_seconds: float, seconds: float) -> Scenario:
    """Without waiting and with as many threads as cores a node with a pool is the queue M/M/c."""
    return Scenario(
        traffic=Traffic.constant(rate, seconds), t1_seconds=0.0, t2_seconds=t2_seconds, cores=cores, nodes=1,
        threads_per_node=cores, partitions=1, concurrency=POOL,
    )  # fmt: skip


def mean_wait_of_mmc(cores: int, rate: float, t2_seconds: float) -> float:
    """Erlang's C over the spare capacity (Gross et al., "The M/M/c queue")."""
    load = rate * t2_seconds
    below = sum(load**k / math.factorial(k) for k in range(cores))
    all_busy = load**cores / math.factorial(cores) * cores / (cores - load)
    return all_busy / (below + all_busy) / (cores / t2_seconds - rate)


def mean_and_half_width(values: list[float]) -> tuple[float, float]:
    return fmean(values), T_99_OF_16_RUNS * stdev(values) / math.sqrt(len(values))


@pytest.mark.parametrize(("cores", "rate"), [(1, 60.0), (2, 160.0), (8, 700.0)])
def test_mean_wait_of_mmc(cores: int, rate: float) -> None:
    """Sixteen runs of 5,000 messages, the first fifth of each left out; the formula is within the 99 % interval."""
    waits = []
    for seed in range(RUNS):
        run = simulate_messages(queue(cores, rate, 0.01, 5_000 / rate), 1_000.0, seed=seed)
        waits.append(fmean(run.waits_seconds[len(run.waits_seconds) // 5 :]))
    mean, half = mean_and_half_width(waits)
    assert abs(mean - mean_wait_of_mmc(cores, rate, 0.01)) <= half
    # An interval as wide as the thing itself would prove nothing.
    assert half < 0.35 * mean


def test_mean_wait_of_mdc() -> None:
    """One core, constant times: half the wait of exponential ones (Pollaczek and Khinchine)."""
    waits = []
    for seed in range(RUNS):
        run = simulate_messages(queue(1, 60.0, 0.01, 80.0), 1_000.0, seed=seed, computing=Spread.CONSTANT)
        waits.append(run.mean_wait_seconds)
    mean, half = mean_and_half_width(waits)
    assert abs(mean - mean_wait_of_mmc(1, 60.0, 0.01) / 2) <= half < 0.2 * mean


@pytest.mark.parametrize("threads", [1, 8, 10, 20])
@pytest.mark.parametrize("waiting", [Spread.EXPONENTIAL, Spread.CONSTANT, Spread.HEAVY])
def test_throughput_of_the_machine_repairman(threads: int, waiting: Spread) -> None:
    """Two cores, T1 16.3 ms, T2 4.5 ms (the node of docs/sizing.md), always something to read.

    T1 may vary in any way, only its mean counts.
    """
    traffic = Traffic.constant(0.0, 30.0)
    scenario = replace(
        queue(2, 1.0, 0.0045, 1.0), traffic=traffic, t1_seconds=0.0163, threads_per_node=threads, lag=30_000
    )
    run = simulate_messages(scenario, 30.0, seed=threads, waiting=waiting)
    expected = node_throughput(2, threads, 0.0163, 0.0045).rate_per_second
    # Some 1,500 to 13,000 messages; heavy-tailed waiting makes the mean of so many uncertain by a few per cent.
    tolerance = {Spread.HEAVY: 0.10}.get(waiting, 0.03) if threads == 1 else 0.03
    assert run.handled / 30.0 == pytest.approx(expected, rel=tolerance)


#: Two nodes do 1,040/s together, and 400/s arrive: each partition gets 1,500 messages in half a minute.
USUAL = Scenario(
    traffic=Traffic.constant(400.0, 120.0),
    t1_seconds=0.006,
    t2_seconds=0.0015,
    cores=2,
    nodes=2,
    threads_per_node=4,
    partitions=8,
    interruption=Interruption(at_seconds=20.0, seconds=30.0),
)


@pytest.mark.parametrize("concurrency", list(Concurrency))
@pytest.mark.parametrize("ordering", [None, Ordering.PARTITION])
@pytest.mark.parametrize(
    ("hottest", "away"),
    [
        (None, Interruption(at_seconds=20.0, seconds=30.0)),
        (0.2, Interruption(at_seconds=20.0, seconds=30.0)),
        (None, Interruption(at_seconds=20.0, seconds=40.0, nodes=1, reassigned_after_seconds=30.0)),
        (None, Interruption(at_seconds=20.0, seconds=20.0, rolling=True, reassigned_after_seconds=None)),
    ],
    ids=["all", "all, with a hot partition", "one, then taken over", "rolling"],
)
def test_the_fluid_model_agrees_with_single_messages(
    concurrency: Concurrency, ordering: Ordering | None, hottest: float | None, away: Interruption
) -> None:
    """Lag is within four standard deviations at any time, which is 5 to 9 % of the peak; the oldest within 10 %.

    Both what comes and what is handled meanwhile vary as a Poisson count does. The oldest is the worst of eight
    partitions, and chance gives some partition 4 % more than its share.
    """
    scenario = replace(USUAL, concurrency=concurrency, ordering=ordering, hottest_share=hottest, interruption=away)
    fluid = simulate(scenario, 5.0)
    run = simulate_messages(scenario, 5.0, seed=1)
    assert [seen.at_seconds for seen in run.seen] == [moment.at_seconds for moment in fluid.moments]
    assert fluid.peak_lag > 3_999
    chance = 4 * math.sqrt(2 * fluid.peak_lag)
    for seen, moment in zip(run.seen, fluid.moments, strict=True):
        assert seen.lag == pytest.approx(moment.lag, abs=chance), seen.at_seconds
        assert seen.lag_seconds == pytest.approx(moment.lag_seconds, abs=0.10 * fluid.peak_lag_seconds), seen


def test_what_arrived_is_handled_or_unread() -> None:
    scenario = replace(USUAL, lag=1_000, traffic=Traffic(((0.0, 200.0), (100.0, 1_900.0), (120.0, 0.0)), 130.0))
    run = simulate_messages(scenario, 20.0, seed=3)
    assert run.arrived == run.handled + run.lag_left == run.handled + run.seen[-1].lag
    assert run.arrived == pytest.approx(1_000 + 20_000 + 38_000, rel=0.02)
    assert run.handled > 10_000 and run.lag_left > 0
    in_hand = scenario.nodes * scenario.threads_per_node
    assert run.handled <= len(run.waits_seconds) <= run.handled + in_hand
    assert all(wait >= 0.0 for wait in run.waits_seconds)


def test_the_same_seed_is_the_same_run() -> None:
    short = replace(USUAL, traffic=Traffic.constant(200.0, 20.0))

    def run(seed: int) -> SimulatedRun:
        return simulate_messages(short, 5.0, seed=seed, waiting=Spread.HEAVY)

    assert run(7) == run(7) != run(8)


def test_a_partitions_order_takes_one_thread() -> None:
    """One partition, 7.5 ms a message: 133/s with its order, whatever the threads; without it all four work."""
    traffic = Traffic.constant(0.0, 30.0)
    one = replace(USUAL, traffic=traffic, lag=60_000, partitions=1, concurrency=POOL, interruption=None, nodes=1)
    ordered = simulate_messages(replace(one, ordering=Ordering.PARTITION), 60.0, seed=2).handled / 30.0
    assert ordered == pytest.approx(1 / 0.0075, rel=0.05)
    free = simulate_messages(one, 60.0, seed=2).handled / 30.0
    assert free == pytest.approx(node_throughput(2, 4, 0.006, 0.0015).rate_per_second, rel=0.05)


@pytest.mark.parametrize("spread", list(Spread))
def test_the_mean_of_a_spread_is_the_mean(spread: Spread) -> None:
    draw = spread.sampler(0.25, random.Random(5))
    assert fmean(draw() for _ in range(40_000)) == pytest.approx(0.25, rel=0.03)
    assert Spread.HEAVY.sampler(0.0, random.Random(5))() == 0.0


@pytest.mark.parametrize(
    ("changed", "asked", "named"),
    [
        ({"cores": 1.5}, {}, "cores"),
        ({"traffic": Traffic.constant(1e9, 3_600.0)}, {}, "messages"),
        ({"lag": 1e9}, {}, "messages"),
        ({}, {"seed": -1}, "seed"),
        ({}, {"step_seconds": 0.0}, "step_seconds"),
        ({}, {"step_seconds": math.nan}, "step_seconds"),
    ],
)
def test_what_cannot_be_simulated_is_refused(changed: dict[str, Any], asked: dict[str, Any], named: str) -> None:
    with pytest.raises(OutOfRange) as refused:
        simulate_messages(replace(USUAL, **changed), **({"step_seconds": 10.0, "seed": 1} | asked))
    assert refused.value.argument == named
