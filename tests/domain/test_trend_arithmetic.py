"""The arithmetic of a trend from merged sums, against the book, sample by sample."""

import math
import statistics
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lagwise.domain.verdicts.buckets import STATISTICS, shifted
from lagwise.domain.verdicts.trend import MINIMUM_SAMPLES, T_99, TELLING_SAMPLES
from tests.domain.lags import INTERVAL, Samples, Trend, is_significant, line, over, statistics_of, trend, trends

reproducible = settings(max_examples=150)


class TestLine:
    @pytest.mark.parametrize("slope", [-7.25, -0.01, 0.0, 0.5, 12_000.0])
    @pytest.mark.parametrize("samples", [MINIMUM_SAMPLES, TELLING_SAMPLES, 240])
    def test_the_slope_of_an_exact_line_is_exact_and_beyond_doubt(self, slope: float, samples: int) -> None:
        found = trend(line(samples, slope))
        assert found.slope == pytest.approx(slope, rel=1e-9, abs=1e-9)
        # Rounding is the only doubt: a millionth of what the line rises by, or of a lag of 1,000.
        assert found.high - found.low <= 1e-6 * max(1.0, abs(slope))

    def test_a_level_lag_has_no_slope_and_no_doubt(self) -> None:
        assert trend(line(20, 0.0)) == Trend(0.0, 0.0, 0.0)

    def test_one_jump_is_not_certain_growth(self) -> None:
        """A burst that came at once, five minutes ago to now: the line through it rises, but its errors say why."""
        found = trend([(INTERVAL * n, 0.0 if n < 10 else 1000.0) for n in range(20)])
        assert found.slope > 0
        assert not is_significant(found)


# samples, steps between them → why there is no trend
NONE: tuple[tuple[int, str, Samples, int], ...] = (
    (1, "nothing was sampled", [], 0),
    (2, "one below the minimum, however exact the line", line(4, 3.0), 3),
    (3, "all of one moment: a line through them would stand upright", [(30.0, float(n)) for n in range(9)], 8),
    (4, "every sample stands alone behind a gap, so nothing says what the noise is", line(9, 3.0), 0),
)


def test_no_trend_is_none_and_not_a_slope_of_zero() -> None:
    found = trends(statistics_of([row[2] for row in NONE], [[(INTERVAL, 45.0)] * row[3] for row in NONE]))
    assert {row[:2]: one for row, one in zip(NONE, found, strict=True)} == {row[:2]: None for row in NONE}


def test_the_minimum_of_samples_and_one_step_are_enough() -> None:
    assert trends(statistics_of([line(MINIMUM_SAMPLES, 3.0)], [[(INTERVAL, 45.0)]])) != [None]


def by_the_book(samples: Samples) -> Trend:
    """The trend from the residuals themselves, which the merged sums never see."""
    n = len(samples)
    times, lags = [t for t, _ in samples], [lag for _, lag in samples]
    slope, intercept = statistics.linear_regression(times, lags)
    residuals = [lag - intercept - slope * t for t, lag in samples]
    squares = sum(r * r for r in residuals)
    successive = statistics.fmean((b - a) ** 2 for a, b in pairwise(residuals))
    # Errors that are independent differ from one to the next by twice their variance: d = 2(1 − ρ), and ρ ≥ −2/n.
    threshold = 2 * squares / n * (1 + 2 / n)
    assume(abs(successive - threshold) > 1e-6 * threshold)
    variance = squares / (n - 2) / sum((t - statistics.fmean(times)) ** 2 for t in times)
    if n < TELLING_SAMPLES or successive < threshold:
        steps = [(b[0] - a[0], b[1] - a[1]) for a, b in pairwise(samples)]
        drift = sum(dt * dlag for dt, dlag in steps) / sum(dt * dt for dt, _ in steps)
        step_variance = sum((dlag - drift * dt) ** 2 for dt, dlag in steps) / (len(steps) - 1)
        variance = max(variance, 6 / 5 / n * step_variance / statistics.fmean(dt * dt for dt, _ in steps))
    margin = T_99[min(n - 2, 31) - 1] * math.sqrt(variance)
    return Trend(slope, slope - margin, slope + margin)


def assert_same(found: Trend | None, expected: Trend) -> None:
    assert found is not None
    # Sums of squares leave fewer digits than the residuals themselves.
    tolerance = 1e-6 * (1.0 + expected.high - expected.low)
    for name in ("slope", "low", "high"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=1e-6, abs=tolerance)


GAPS_AND_LAGS = st.lists(st.tuples(st.integers(1, 60), st.integers(0, 100_000)), min_size=MINIMUM_SAMPLES, max_size=40)


def sampled(gaps_and_lags: list[tuple[int, int]]) -> list[tuple[float, float]]:
    at, samples = 0, []
    for gap, lag in gaps_and_lags:
        at += gap
        samples.append((float(at), float(lag)))
    return samples


@reproducible
@given(GAPS_AND_LAGS)
def test_the_sums_agree_with_the_residuals(gaps_and_lags: list[tuple[int, int]]) -> None:
    samples = sampled(gaps_and_lags)
    assert_same(trend(samples), by_the_book(samples))


@reproducible
@given(GAPS_AND_LAGS, st.sets(st.integers(1, 39), max_size=6), st.sampled_from([-3600.0, -60.0, 60.0, 3600.0]))
def test_neither_buckets_nor_the_origin_of_time_change_anything(
    gaps_and_lags: list[tuple[int, int]], cuts: set[int], origin: float
) -> None:
    """Each bucket counts from its own origin and holds the steps into its samples; a window is their sum."""
    samples = sampled(gaps_and_lags)
    bounds = [0, *sorted(cut for cut in cuts if cut < len(samples)), len(samples)]
    parts = list(pairwise(bounds))
    origins = [samples[start][0] for start, _ in parts]
    buckets = statistics_of(
        [[(t - own, lag) for t, lag in samples[start:end]] for own, (start, end) in zip(origins, parts, strict=True)],
        [
            [(now[0] - before[0], now[1] - before[1]) for before, now in pairwise(samples[max(0, start - 1) : end])]
            for start, end in parts
        ],
    )
    same_origin = shifted(buckets, np.array(origins) - origin)
    (found,) = trends({name: same_origin[name].sum(keepdims=True) for name in STATISTICS})
    assert_same(found, by_the_book(samples))


@reproducible
@given(GAPS_AND_LAGS, st.integers(-1000, 100_000), st.sampled_from([-3.0, -1.0, 0.5, 4.0]))
def test_a_level_adds_nothing_and_a_factor_scales_all(
    gaps_and_lags: list[tuple[int, int]], level: int, factor: float
) -> None:
    samples = sampled(gaps_and_lags)
    before = by_the_book(samples)
    low, high = sorted((factor * before.low, factor * before.high))
    assert_same(trend([(t, level + factor * lag) for t, lag in samples]), Trend(factor * before.slope, low, high))


@reproducible
@given(GAPS_AND_LAGS)
def test_the_slope_lies_in_the_middle_of_its_interval(gaps_and_lags: list[tuple[int, int]]) -> None:
    found = trend(sampled(gaps_and_lags))
    assert found.low <= found.slope <= found.high
    assert found.high - found.slope == pytest.approx(found.slope - found.low)


def test_with_few_samples_the_worse_noise_is_assumed() -> None:
    """Errors that alternate are plainly no random walk; with fewer than 15 of them that may be chance."""

    def width(samples: int) -> float:
        found = trend(over(line(samples, 0.0), lambda n: (-1.0) ** n))
        return found.high - found.low

    steps_of_two_per_interval = 2 / INTERVAL
    as_random_walk = 2 * 3.055 * math.sqrt(6 / 5 / 14) * steps_of_two_per_interval
    assert width(14) == pytest.approx(as_random_walk, rel=0.05)
    assert width(15) < width(14) / 4


def test_what_happened_behind_gaps_counts_although_no_step_shows_it() -> None:
    """A collector looked in three times for a minute: level each time, at another level. That is no certain growth."""
    levels = (0.0, 900.0, 300.0)
    looks = [[(1000.0 * look + INTERVAL * n, level) for n in range(5)] for look, level in enumerate(levels)]
    buckets = statistics_of(looks)
    (found,) = trends({name: buckets[name].sum(keepdims=True) for name in STATISTICS})
    assert found is not None
    assert found.slope > 0
    assert not is_significant(found)


@pytest.mark.parametrize("freedom", range(1, 31))
def test_the_table_holds_the_quantiles_of_student_s_t(freedom: int) -> None:
    """P(|T| ≤ q) is the share of ∫ cos^(ν−1) up to atan(q/√ν) (t = √ν·tan θ), by Simpson's rule: 99 %."""

    def area(upto: float) -> float:
        points = [math.cos(upto * k / 400) ** (freedom - 1) for k in range(401)]
        return (points[0] + points[-1] + 4 * sum(points[1:-1:2]) + 2 * sum(points[2:-1:2])) * upto / 1200

    share = area(math.atan(T_99[freedom - 1] / math.sqrt(freedom))) / area(math.pi / 2)
    assert share == pytest.approx(0.99, abs=2e-5)


def test_beyond_the_table_the_normal_quantile_is_used() -> None:
    (beyond,) = T_99[30:]
    assert beyond == pytest.approx(statistics.NormalDist().inv_cdf(0.995), abs=1e-3)
