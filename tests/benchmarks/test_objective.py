"""What sizing by the objective buys, as the documents say of it, on a part of what the bench measures."""

import numpy as np
import pytest

from benchmarks.forecast import KINDS, made
from benchmarks.objective import OBJECTIVES_SECONDS, SLACK, line, outcomes

pytestmark = pytest.mark.thorough

SERIES = 4


@pytest.fixture(scope="module")
def found() -> dict[float, list]:
    kinds = [kind for kind in KINDS if kind != "one burst"]
    by_series = [outcomes(made(kind, 90, seed), 60, 30, seed) for kind in kinds for seed in range(SERIES)]
    return dict(zip(OBJECTIVES_SECONDS, zip(*by_series, strict=True), strict=True))


@pytest.mark.parametrize(("objective", "of_the_peak"), [(300.0, 0.8), (1_800.0, 0.4)])
def test_it_buys_less_than_the_peak_and_keeps_the_objective(found: dict, objective: float, of_the_peak: float) -> None:
    its = found[objective]
    assert np.mean([o.by_objective * SLACK >= 1 for o in its]) >= 0.9
    assert np.median([o.by_objective / o.by_peak for o in its]) < of_the_peak
    assert np.median([o.by_objective for o in its]) >= 1.0


def test_objectives_that_are_not_kept_are_bounded_from_above(found: dict) -> None:
    assert all(1.0 - 1e-9 <= o.excess < 1.3 for its in found.values() for o in its)


def test_a_line_names_both(found: dict) -> None:
    its = found[300.0]
    cells = [cell.strip() for cell in line("some", 300.0, its).strip("|").split("|")]
    assert cells[:2] == ["some", "5 min"]
    assert cells[2].startswith(f"{np.median([o.by_objective for o in its]):.1f} (")
    assert cells[5].startswith(f"{np.median([o.by_peak for o in its]):.1f} (")
