"""The bench of what-if: its stream has the scene's shares, and its comparison can fail."""

from collections import Counter
from dataclasses import replace
from itertools import islice

import pytest

from benchmarks.what_if.compare import compare
from benchmarks.what_if.scene import SAMPLE_SECONDS, SCENES, Scene, Seen, turns
from lagwise.domain.simulation.fluid import simulate

IN_HAND = 7


def simulated(scene: Scene, *, times: float = 1.0, late_seconds: float = 0.0) -> list[Seen]:
    """What would be seen if the simulator were right, or off by a factor, or late; and some are always in hand."""
    moments = simulate(scene.scenario, SAMPLE_SECONDS).moments
    return [Seen(m.at_seconds + late_seconds, round(times * m.lag) + IN_HAND, times * m.lag_seconds) for m in moments]


@pytest.mark.parametrize("name", SCENES)
def test_what_is_as_said_holds(name: str) -> None:
    found = compare(SCENES[name], simulated(SCENES[name]))
    assert found.holds
    assert found.peak_lag.error == pytest.approx(0.0, abs=0.01)
    assert found.curve_error < 0.01


@pytest.mark.parametrize("name", SCENES)
def test_a_peak_that_is_otherwise_does_not_hold(name: str) -> None:
    assert not compare(SCENES[name], simulated(SCENES[name], times=1.2)).holds
    assert not compare(SCENES[name], simulated(SCENES[name], times=0.8)).holds


def test_a_backlog_that_is_never_read_does_not_hold() -> None:
    scene = SCENES["pause"]
    stuck = [replace(s, lag=1200) if s.at_seconds > 25 else s for s in simulated(scene)]
    assert not compare(scene, stuck).holds


def test_partitions_get_their_shares() -> None:
    counts = Counter(islice(turns((0.4, 0.3, 0.2, 0.1)), 1000))
    assert [counts[p] for p in range(4)] == pytest.approx([400, 300, 200, 100], abs=1)
