"""The steps from the threads that run to those that are advised."""

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lagwise.domain.sizing.node_throughput import node_throughput
from lagwise.domain.sizing.ramp_plan import RampStep, ramp_plan
from lagwise.domain.sizing.ranges import OutOfRange


def plan(running: int, advised: int) -> tuple[RampStep, ...]:
    return ramp_plan(8, 0.012, 0.003, running_threads=running, advised_threads=advised)


def threads(steps: tuple[RampStep, ...]) -> list[int]:
    return [step.expected.threads for step in steps]


@pytest.mark.parametrize(
    ("running", "advised", "steps"),
    [
        (24, 40, [24, 28, 32, 36, 40]),
        (4, 40, [4, 8, 13, 22, 31, 40]),  # 4, then at most 8 before a quarter of the way, 13
        (1, 100, [1, 2, 4, 8, 16, 26, 51, 75, 100]),
        (40, 41, [40, 41]),
        (40, 40, [40]),
        (80, 40, [80, 70, 60, 50, 40]),
        (1, 2, [1, 2]),
    ],
)
def test_steps(running: int, advised: int, steps: list[int]) -> None:
    assert threads(plan(running, advised)) == steps


def test_each_step_says_what_the_model_expects_and_when_to_stop(golden_sentence: Callable[..., None]) -> None:
    first, second, *_, last = plan(24, 40)
    assert first.gain_per_second == first.least_gain_per_second == 0.0
    assert second.expected == node_throughput(8, 28, 0.012, 0.003)
    gain = second.expected.rate_per_second - first.expected.rate_per_second
    assert second.gain_per_second == pytest.approx(gain)
    assert second.least_gain_per_second == pytest.approx(gain / 2)
    assert second.most_t1_seconds == pytest.approx(0.0144)
    golden_sentence(first.stop, second.stop, *last.watch)


def test_the_way_down_stops_where_more_is_lost_than_expected() -> None:
    step = plan(60, 40)[1]
    assert step.gain_per_second < 0.0
    assert step.least_gain_per_second == pytest.approx(2 * step.gain_per_second)
    assert "the loss is more than" in step.stop


def test_where_nothing_more_is_expected_only_harm_stops() -> None:
    """Without waiting, 8 threads fill 8 cores: 16 do no more."""
    step = ramp_plan(8, 0.0, 0.003, running_threads=8, advised_threads=16)[-1]
    assert step.gain_per_second == 0.0
    assert step.stop == "Go back if errors rise."


@given(st.integers(1, 5_000), st.integers(1, 5_000))
def test_from_what_runs_to_what_is_advised_and_never_more_than_doubled(running: int, advised: int) -> None:
    steps = threads(ramp_plan(0.5, 1.0, 0.001, running_threads=running, advised_threads=advised))
    assert steps[0] == running and steps[-1] == advised
    up = advised > running
    assert all((after > before) == up and after != before for before, after in pairwise(steps))
    assert all(after <= 2 * before for before, after in pairwise(steps))
    assert len(steps) <= 5 + math.log2(max(1, advised / running))


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"running_threads": 0}, "running_threads"),
        ({"advised_threads": -1}, "advised_threads"),
        ({"cores": 0}, "cores"),
        ({"t1_seconds": math.nan}, "t1_seconds"),
        ({"t1_seconds": 0.0, "t2_seconds": 0.0}, "t2_seconds"),
    ],
)
def test_bad_input_is_refused(changed: dict[str, float], named: str) -> None:
    asked: dict[str, Any] = {
        "cores": 8,
        "t1_seconds": 0.012,
        "t2_seconds": 0.003,
        "running_threads": 4,
        "advised_threads": 40,
    }
    with pytest.raises(OutOfRange) as refused:
        ramp_plan(**(asked | changed))
    assert refused.value.argument == named
