"""The forecast keeps what the documents say of it, on a part of what the bench measures."""

import numpy as np
import pytest

from benchmarks.forecast import GOAL_COVERAGE, KINDS, made, outcome

SERIES = 6


@pytest.mark.parametrize(("history", "ahead"), [(60, 30), (180, 90)])
def test_it_beats_the_baseline_and_its_interval_holds_what_comes(history: int, ahead: int) -> None:
    outcomes = [outcome(made(kind, history + ahead, i), history, ahead, i) for kind in KINDS for i in range(SERIES)]
    low, high = GOAL_COVERAGE
    assert low <= np.mean([o.coverage for o in outcomes]) <= high
    assert np.mean([o.error for o in outcomes]) < 0.95
    assert np.mean([o.peak_inside for o in outcomes]) >= 0.8
    assert 0.8 <= np.median([o.peak for o in outcomes]) <= 1.25
    assert np.median([o.plain_peak for o in outcomes]) < 0.8, "why the peak's factor is measured on what was held out"
