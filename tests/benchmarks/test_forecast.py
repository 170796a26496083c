"""The forecast keeps what the documents say of it, on a part of what the bench measures."""

import numpy as np
import pytest

from benchmarks.forecast import GOAL_COVERAGE, KINDS, line, made, outcome

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


def test_both_errors_are_in_units_of_the_weekly_change() -> None:
    """Of a series of pure noise the baseline's error is as large as the change from week to week."""
    flat = outcome(made("flat", 90, 0), 60, 30)
    assert flat.baseline_mase == pytest.approx(1.0, abs=0.1)
    assert flat.mase == pytest.approx(flat.error * flat.baseline_mase)
    assert "| 60 + 30 | " + f"{flat.mase:.2f} | {flat.baseline_mase:.2f} | " in line("flat", 60, 30, [flat])
