"""The least capacity that keeps a lag objective: against brute force, the fluid simulation, and what bounds it."""

import math
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from lagwise.domain.simulation.fluid import simulate
from lagwise.domain.simulation.scenario import Scenario, Traffic
from lagwise.domain.sizing.objective import (
    KEPT_OBJECTIVES_SECONDS,
    ObjectiveRate,
    least_capacities,
    least_capacity,
    rate_for,
)
from lagwise.domain.sizing.ranges import OutOfRange

START = datetime(2026, 11, 20, 0, 0, tzinfo=UTC)
OBJECTIVES = (0.0, 45.0, 300.0, 1_800.0)


def made(seed: int, minutes: int = 120) -> np.ndarray:
    """Noise, bursts, quiet times, and some minutes that are not known."""
    noise = np.random.default_rng(seed)
    rates = noise.gamma(2.0, 50.0, minutes) * np.where(noise.random(minutes) < 0.1, 8.0, 1.0)
    rates[noise.random(minutes) < 0.1] = 0.0
    if seed % 2:
        rates[noise.random(minutes) < 0.1] = np.nan
    return rates


def by_brute_force(rates: np.ndarray, objective_seconds: float) -> float:
    """The steepest of all stretches."""
    records = rates[np.isfinite(rates)] * 60.0
    return max(
        float(records[i : j + 1].sum()) / (60.0 * (j - i + 1) + objective_seconds)
        for i in range(len(records))
        for j in range(i, len(records))
    )


#: The simulation tells the age at moments so far apart, and it grows by a second in a second at most.
STEP_SECONDS = 2.0


def oldest_seconds(rates: np.ndarray, capacity: float) -> float:
    """How old the oldest unread record gets, by the simulation, with one reader that does so much."""
    minutes = [*rates[np.isfinite(rates)], *[0.0] * 60]  # the last record, too, is waited for
    traffic = Traffic(tuple((60.0 * i, float(rate)) for i, rate in enumerate(minutes)), 60.0 * len(minutes))
    scenario = Scenario(
        traffic=traffic, t1_seconds=1.0 / capacity, t2_seconds=0.0, cores=1.0, nodes=1, threads_per_node=1,
        partitions=1,
    )  # fmt: skip
    return simulate(scenario, STEP_SECONDS).peak_lag_seconds


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("seed", range(8))
def test_it_is_the_steepest_of_all_stretches(seed: int, objective: float) -> None:
    rates = made(seed)
    found = least_capacity(rates, objective)
    assert found.rate_per_second == pytest.approx(by_brute_force(rates, objective), rel=1e-9)
    known = rates[found.first : found.last + 1]
    known = known[np.isfinite(known)]
    assert known.sum() * 60 / (60 * len(known) + objective) == pytest.approx(found.rate_per_second, rel=1e-9)


@pytest.mark.parametrize("objective", OBJECTIVES[1:])
@pytest.mark.parametrize("seed", range(8))
def test_the_simulation_keeps_the_objective_with_it_and_not_with_less(seed: int, objective: float) -> None:
    rates = made(seed)
    least = least_capacity(rates, objective).rate_per_second
    assert objective - STEP_SECONDS <= oldest_seconds(rates, least) <= objective * (1 + 1e-9)
    assert oldest_seconds(rates, 0.9 * least) > objective


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_a_partition_needs_its_share_of_it(share: float) -> None:
    rates = made(3)
    whole, part = (least_capacity(r, 300.0).rate_per_second for r in (rates, share * rates))
    assert part == pytest.approx(share * whole)


def test_without_patience_it_is_the_highest_minute_and_with_much_it_is_the_mean() -> None:
    rates = made(2, 2_000)
    assert least_capacity(rates, 0.0).rate_per_second == pytest.approx(rates.max())
    whole = least_capacity(np.full(2_000, 7.0), 86_400.0)
    assert whole.rate_per_second == pytest.approx(7.0 * 2_000 / (2_000 + 1_440))
    assert (whole.first, whole.last) == (0, 1_999)


def test_a_burst_of_a_minute_may_wait_for_the_objective() -> None:
    rates = np.full(1_440, 10.0)
    rates[700] = 1_000.0
    found = least_capacity(rates, 300.0)
    assert found.rate_per_second == pytest.approx(1_000 * 60 / 360)
    assert (found.first, found.last) == (700, 700)


def test_what_is_not_known_neither_adds_records_nor_time_to_read_them() -> None:
    rates = np.array([100.0, np.nan, np.nan, 100.0])
    assert least_capacity(rates, 60.0) == (pytest.approx(200 * 60 / 180), 0, 3)
    with pytest.raises(ValueError, match="no minute is known"):
        least_capacity(np.full(5, np.nan), 60.0)
    with pytest.raises(OutOfRange, match="objective_seconds"):
        least_capacity(rates, -1.0)


def test_nothing_arrived() -> None:
    assert least_capacity(np.zeros(100), 300.0).rate_per_second == 0.0
    kept = curve(np.zeros(100))
    at = rate_for(kept, 400.0)
    assert at is not None
    assert at.rate_per_second == 0.0


def curve(rates: np.ndarray) -> list[ObjectiveRate]:
    stretches = least_capacities(rates)
    return [
        ObjectiveRate(
            objective,
            s.rate_per_second,
            2.0 * s.rate_per_second,
            START + timedelta(minutes=s.first),
            START + timedelta(minutes=s.last + 1),
        )
        for objective, s in zip(KEPT_OBJECTIVES_SECONDS, stretches, strict=True)
    ]


@pytest.mark.parametrize("seed", range(6))
def test_several_at_once_are_what_each_is_alone(seed: int) -> None:
    rates = made(seed, 3_000)
    found = least_capacities(rates)
    for objective, stretch in zip(KEPT_OBJECTIVES_SECONDS, found, strict=True):
        assert stretch.rate_per_second == pytest.approx(least_capacity(rates, objective).rate_per_second, rel=1e-9)
    needed = [stretch.rate_per_second for stretch in found]
    assert needed == sorted(needed, reverse=True)


@pytest.mark.parametrize("seed", range(6))
def test_between_the_kept_objectives_it_is_never_too_little_and_hardly_too_much(seed: int) -> None:
    rates = made(seed, 3_000)
    kept = curve(rates)
    for objective in np.geomspace(1.0, 86_400.0, 60):
        exact = least_capacity(rates, float(objective)).rate_per_second
        at = rate_for(kept, float(objective))
        assert at is not None
        assert exact * (1 - 1e-9) <= at.rate_per_second <= 1.1 * exact
        assert at.high_per_second == pytest.approx(2.0 * at.rate_per_second)
    for objective in KEPT_OBJECTIVES_SECONDS:
        at = rate_for(kept, objective)
        assert at is not None
        assert at in kept
    beyond = rate_for(kept, 10 * 86_400.0)
    assert beyond is not None
    assert math.isclose(beyond.rate_per_second, kept[-1].rate_per_second)
    assert rate_for([], 300.0) is None


def test_the_stretch_is_named() -> None:
    at = datetime(2026, 11, 20, 18, 2, tzinfo=UTC)
    assert ObjectiveRate(300.0, 1.0, 1.0, at, at + timedelta(minutes=38)).stretch == (
        "the busiest 38 minutes from 2026-11-20 18:02 UTC"
    )
    assert ObjectiveRate(0.0, 1.0, 1.0, at, at + timedelta(minutes=1)).stretch == (
        "the busiest minute from 2026-11-20 18:02 UTC"
    )
