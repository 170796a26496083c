"""The forecast keeps what the documents say of it, on a part of what the bench measures."""

import numpy as np
import pytest

from benchmarks.forecast import GOAL_COVERAGE, KINDS, OfSeries, line, made, made_outcomes, outcome, peaks_of

SERIES = 6


@pytest.mark.parametrize(("history", "ahead"), [(60, 30), (180, 90)])
def test_it_beats_what_it_is_compared_with_and_its_intervals_hold_what_comes(history: int, ahead: int) -> None:
    found = [series for kind in KINDS for series in made_outcomes(kind, history, ahead, range(SERIES))]
    low, high = GOAL_COVERAGE
    assert low <= np.mean([series.mean("coverage") for series in found]) <= high
    assert np.mean([series.ratio("mase", "naive_mase") for series in found]) < 0.85
    assert np.mean([series.ratio("mase", "elected_mase") for series in found]) < 0.97
    assert np.mean([series.ratio("maxima_error", "same_weekdays_error") for series in found]) < 1
    assert np.mean([series.ratio("maxima_error", "elected_maxima_error") for series in found]) < 0.85
    assert np.mean([series.mean("peak_inside") for series in found]) >= 0.85
    assert 0.8 <= np.median([series.mean("peak") for series in found]) <= 1.25


def test_errors_are_in_units_of_the_weekly_change() -> None:
    """Of a series of pure noise the baseline's error is as large as the change from week to week."""
    rates = made("flat", 90, 0)
    flat = outcome(rates, peaks_of(rates, 0), 60 * 24, 30)
    assert flat is not None
    assert flat.naive_mase == pytest.approx(1.0, abs=0.1)
    ratio = flat.mase / flat.naive_mase
    assert f"| flat | {flat.mase:.2f} | {ratio:.3f} | 1 of 1 | " in line("flat", [OfSeries("flat", [flat])])
