"""The models and their interval on odd histories: a clear answer, never a crash, an infinite or a made-up number."""

import numpy as np
import pytest

from lagwise_spark.tasks import forecast_models as models
from lagwise_spark.tasks.forecast_models import Steps, combined, weights_of
from lagwise_spark.tasks.forecasting import (
    LEAST_HOURS,
    LEAST_WEEKLY_HOURS,
    RateForecast,
    forecast,
    growth_per_month,
)

HOURS = 90 * 24


def weekly(days: int, seed: int = 1) -> np.ndarray:
    t, noise = np.arange(24 * days), np.random.default_rng(seed)
    shape = (1 + 0.6 * np.sin(t * np.pi / 12)) * np.where(t // 24 % 7 >= 5, 0.5, 1.0)
    made: np.ndarray = 500 * shape * np.exp(noise.normal(0, 0.1, len(t)))
    return made


def of(rates: np.ndarray, hours: int = HOURS) -> RateForecast:
    made = forecast(rates, 1.5 * rates, hours)
    assert made is not None
    for band in (made.rates, made.maxima):
        if band is not None:
            assert np.isfinite(band.high).all()
            assert (band.low >= 0).all()
            assert (band.low <= band.middle).all()
            assert (band.middle <= band.high).all()
    assert sum(made.shares.values()) == pytest.approx(1.0)
    assert all(np.isfinite(value) for value in (made.mase, made.baseline_mase, *(made.peak or ())) if value is not None)
    return made


def test_no_history_no_forecast() -> None:
    for rates in (np.array([]), np.full(5, 3.0), np.full(400, np.nan), np.full(LEAST_HOURS - 1, 3.0)):
        assert forecast(rates, rates, HOURS) is None


@pytest.mark.parametrize("length", [LEAST_HOURS, 71, 100, LEAST_WEEKLY_HOURS - 1])
def test_with_less_than_two_weeks_the_forecast_reaches_no_further_than_the_history(length: int) -> None:
    made = of(weekly(14)[:length])
    assert len(made.rates.middle) == length // 24 * 24
    assert (made.season_hours, made.maxima, made.peak) == (24, None, None)


@pytest.mark.parametrize("length", [LEAST_WEEKLY_HOURS, 337, 500, 24 * 28, 24 * 61 + 7])
def test_from_two_weeks_on_it_reaches_to_the_horizon(length: int) -> None:
    made = of(weekly(70)[:length])
    assert len(made.rates.middle) == HOURS
    assert made.season_hours == 168
    assert made.maxima is not None
    assert len(made.maxima.middle) == 90
    assert made.peak is not None
    assert 0 < made.peak[0] <= made.peak[1] <= made.peak[2]


def test_it_finds_the_shape_of_a_week_better_than_the_baseline_does() -> None:
    rates = weekly(84)
    made = of(rates[: 56 * 24], 28 * 24)
    assert made.mase is not None
    assert made.baseline_mase is not None
    assert made.mase < 0.9 * made.baseline_mase
    truth = rates[56 * 24 :]
    assert np.abs(made.rates.middle / truth - 1).mean() < 0.12
    assert 0.85 < ((truth >= made.rates.low) & (truth <= made.rates.high)).mean() < 0.97


def test_a_baseline_that_is_never_wrong_gets_all_the_weight() -> None:
    exact = np.tile(np.round(weekly(7)), 8)
    made = of(exact)
    assert made.shares["seasonal-naive"] == 1.0
    assert made.mase is None, "from week to week nothing changes: there is no unit"
    # Models see no rate above a high quantile.
    assert made.rates.middle[:168] == pytest.approx(np.minimum(exact[:168], np.quantile(exact, 0.995)))


def test_zero_and_constant_rates_stay_what_they_are() -> None:
    nothing, same = of(np.zeros(24 * 30)), of(np.full(24 * 30, 7.0))
    assert not nothing.rates.high.any()
    assert nothing.peak == (0.0, 0.0, 0.0)
    assert set(same.rates.middle) == set(same.rates.low) == set(same.rates.high) == {7.0}
    assert same.maxima is not None
    assert set(same.maxima.low) == set(same.maxima.high) == {10.5}
    assert same.peak == (10.5, 10.5, 10.5)


def test_one_burst_is_not_forecast() -> None:
    rates = np.full(24 * 40, 2.0)
    rates[24 * 39] = 1e9
    made = of(rates)
    assert made.rates.middle.max() == pytest.approx(2.0)
    assert made.maxima is not None
    assert made.maxima.middle.max() == pytest.approx(3.0)
    assert made.peak is not None
    assert made.peak[1] == pytest.approx(3.0)
    assert made.peak[2] > 1e9, "but it may come again"


def test_gaps_of_days_count_in_no_error() -> None:
    whole = weekly(60)
    gappy = whole.copy()
    gappy[24 * 20 : 24 * 26] = np.nan
    gappy[24 * 50 : 24 * 53] = np.nan
    gappy[-5:] = np.nan
    made = of(gappy)
    assert made.mase == pytest.approx(of(whole).mase or 0, rel=0.25)
    only_now_and_then = np.where(np.arange(len(whole)) % 3 == 0, whole, np.nan)
    assert of(only_now_and_then).season_hours == 168


def test_a_level_that_shifts_is_followed() -> None:
    rates = weekly(90)
    rates[24 * 55 :] *= 3
    made = of(rates)
    assert made.rates.middle[: 24 * 7].mean() == pytest.approx(rates[-24 * 7 :].mean(), rel=0.15)


def test_beyond_what_was_tested_the_interval_widens() -> None:
    made = of(weekly(42))
    width = (made.rates.high - made.rates.low) / made.rates.middle
    assert made.tested_hours == 14 * 24
    assert width[-168:].mean() > 1.8 * width[:168].mean()


def test_a_model_that_fails_has_no_weight(monkeypatch: pytest.MonkeyPatch) -> None:
    from statsforecast.models import Theta

    def fails(*_: object, **__: object) -> None:
        raise ValueError("singular")

    assert of(weekly(40)).shares["theta"] > 0.01
    monkeypatch.setattr(Theta, "forecast", fails)
    assert of(weekly(40)).shares["theta"] == 0.0


def test_a_model_that_is_twice_as_wrong_has_a_sixteenth_of_the_weight() -> None:
    weights = weights_of(np.array([[1.0, 2.0, 0.5], [3.0, 6.0, 1.5]]))
    assert weights / weights[0] == pytest.approx([1, 1 / 16, 16])
    once = weights_of(np.array([[1.0, np.nan], [4.0, 2.0]]))
    assert once / once[0] == pytest.approx([1, 16]), "compared at the starts at which it gave a forecast"
    assert weights_of(np.array([[1.0, np.nan]])).tolist() == [1.0, 0.0]
    for nothing in ([[0.0, 0.0]], [[0.0, 1.0]], [[np.nan, 1.0]]):
        assert weights_of(np.array(nothing)).tolist() == [1.0, 0.0]


def test_the_pool_is_the_weighted_mean_of_the_models_that_give_something() -> None:
    made = np.array([[1.0, 1.0], [3.0, 5.0], [np.nan, 7.0]])
    assert combined(made, np.array([0.2, 0.2, 0.6])) == pytest.approx([2.0, 3.0])


def test_each_model_says_what_its_name_promises() -> None:
    """Of ten weeks of a shape, each twice as high as the one before."""
    shape = 1.0 + np.arange(168) % 24
    weeks = np.concatenate([shape * 2.0**week for week in range(10)])
    steps = Steps(24, 168)
    assert models.repeated(weeks, 200, steps) == pytest.approx(np.resize(shape * 512, 200))
    # The last eight are 4 to 512 times the shape; the two in the middle are 32 and 64.
    assert models.usual(weeks, 200, steps) == pytest.approx(np.resize(shape * 48, 200))
    smoothed = shape
    for week in range(1, 10):
        smoothed = 0.3 * shape * 2.0**week + 0.7 * smoothed
    assert models.smoothed(weeks, 200, steps) == pytest.approx(np.resize(smoothed, 200))
    assert models.level(weeks, 200, steps) == pytest.approx(np.resize(shape * 512, 200))


def test_trends_are_continued_and_fade_out() -> None:
    t = np.arange(24 * 70)
    rising = (1 + 0.5 * np.sin(t * np.pi / 12)) * (100 + t / 24)
    now = rising[-168:].mean()
    by_theta, by_damped = (
        model(rising, 24 * 84, Steps(24, 168)).reshape(-1, 168).mean(axis=1) for model in (models.theta, models.damped)
    )
    for weeks in (by_theta, by_damped):
        assert now < weeks[0] < weeks[-1] < now + 84
    assert by_damped[-1] - by_damped[-2] < 0.8 * (by_damped[1] - by_damped[0])


def test_a_weekday_without_traffic_says_nothing_about_the_level() -> None:
    working = np.where(np.arange(24 * 70) // 24 % 7 >= 5, 0.0, 50.0)
    for model in (models.level, models.theta, models.damped):
        assert model(working, 24 * 14, Steps(24, 168)) == pytest.approx(working[: 24 * 14], rel=1e-3)


def test_growth_is_forecast_from_four_weeks_on() -> None:
    month = 30 * 24
    t = np.arange(24 * 90)
    grown = growth_per_month(weekly(90) * (1 + 0.10 * t / month))
    assert grown is not None
    # A tenth of where it began is less of the mean, which is 15 % above that.
    assert grown[1] <= grown[0] <= grown[2]
    assert grown[0] == pytest.approx(0.10 / 1.15, abs=0.015)
    assert growth_per_month(weekly(27)) is None
    assert growth_per_month(np.zeros(24 * 60)) is None
    assert growth_per_month(np.full(24 * 60, np.nan)) is None
