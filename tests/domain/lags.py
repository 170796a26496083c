"""Samples of lags, and the trends of them, for the tests of trends."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from lagwise.domain.verdicts.columns import Array
from lagwise.domain.verdicts.trend import slope_and_margin

Samples = Sequence[tuple[float, float]]

INTERVAL = 15.0


class Trend(NamedTuple):
    slope: float
    low: float
    high: float


def statistics_of(series: Sequence[Samples], steps: Sequence[Samples] | None = None) -> dict[str, Array]:
    """The statistics of some series of samples, each in one bucket, with its steps (by default between all of them)."""
    steps = [_steps(samples) for samples in series] if steps is None else steps

    def sums(of: Sequence[Samples], *powers: tuple[int, int]) -> list[Array]:
        columns = [np.array(its, np.float64).reshape(-1, 2).T for its in of]
        return [np.array([float((a**i * b**j).sum()) for a, b in columns]) for i, j in powers]

    of_samples = ("sum_t", "sum_tt", "sum_lag", "sum_lag_lag", "sum_t_lag")
    of_steps = ("sum_dt_dt", "sum_dt_dlag", "sum_dlag_dlag")
    return {
        "samples": np.array([len(samples) for samples in series]),
        "steps": np.array([len(its) for its in steps]),
        **dict(zip(of_samples, sums(series, (1, 0), (2, 0), (0, 1), (0, 2), (1, 1)), strict=True)),
        **dict(zip(of_steps, sums(steps, (2, 0), (1, 1), (0, 2)), strict=True)),
    }


def _steps(samples: Samples) -> list[tuple[float, float]]:
    return [(later - t, next_lag - lag) for (t, lag), (later, next_lag) in pairwise(samples)]


def trends(statistics: dict[str, Array]) -> list[Trend | None]:
    slope, margin = slope_and_margin(statistics)
    rows = np.stack([slope, slope - margin, slope + margin], axis=1).tolist()
    return [None if np.isnan(row[0]) else Trend(*row) for row in rows]


def trend(samples: Samples) -> Trend:
    (found,) = trends(statistics_of([samples]))
    assert found is not None
    return found


def line(samples: int, slope: float, start: float = 1000.0) -> list[tuple[float, float]]:
    """A lag that grows by ``slope`` records per second, sampled every 15 s."""
    return [(INTERVAL * n, start + slope * INTERVAL * n) for n in range(samples)]


def over(samples: Samples, noise: Callable[[int], float]) -> list[tuple[float, float]]:
    """The same with something added to each."""
    return [(t, lag + noise(n)) for n, (t, lag) in enumerate(samples)]


def is_significant(found: Trend | None) -> bool:
    return found is not None and (found.low > 0 or found.high < 0)
