"""The models and their interval on odd histories: a clear answer, never a crash, an infinite or a made-up number."""

import numpy as np
import pytest

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
    for values in (made.rate, made.low, made.high):
        assert np.isfinite(values).all()
        assert (values >= 0).all()
    assert (made.low <= made.rate).all()
    assert (made.rate <= made.high).all()
    assert all(np.isfinite(value) for value in (made.mase, made.baseline_mase, *(made.peak or ())) if value is not None)
    return made


def test_no_history_no_forecast() -> None:
    for rates in (np.array([]), np.full(5, 3.0), np.full(400, np.nan), np.full(LEAST_HOURS - 1, 3.0)):
        assert forecast(rates, rates, HOURS) is None


@pytest.mark.parametrize("length", [LEAST_HOURS, 71, 100, LEAST_WEEKLY_HOURS - 1])
def test_with_less_than_two_weeks_the_forecast_reaches_no_further_than_the_history(length: int) -> None:
    made = of(weekly(14)[:length])
    assert len(made.rate) == length // 24 * 24
    assert (made.season_hours, made.peak) == (24, None)


@pytest.mark.parametrize("length", [LEAST_WEEKLY_HOURS, 337, 500, 24 * 28, 24 * 61 + 7])
def test_from_two_weeks_on_it_reaches_to_the_horizon(length: int) -> None:
    made = of(weekly(70)[:length])
    assert len(made.rate) == HOURS
    assert made.season_hours == 168
    assert made.peak is not None
    assert 0 < made.peak[0] <= made.peak[1] <= made.peak[2]


def test_it_finds_the_shape_of_a_week_better_than_the_baseline_does() -> None:
    rates = weekly(84)
    made = of(rates[: 56 * 24], 28 * 24)
    assert made.mase is not None
    assert made.baseline_mase is not None
    assert made.mase < 0.9 * made.baseline_mase
    truth = rates[56 * 24 :]
    assert np.abs(made.rate / truth - 1).mean() < 0.12
    assert 0.85 < ((truth >= made.low) & (truth <= made.high)).mean() < 0.97


def test_the_baseline_is_used_where_nothing_is_better() -> None:
    exact = np.tile(np.round(weekly(7)), 8)
    made = of(exact)
    assert made.model == "seasonal-naive"
    assert made.mase is None, "from week to week nothing changes: there is no unit"
    # Models see no rate above a high quantile.
    assert made.rate[:168] == pytest.approx(np.minimum(exact[:168], np.quantile(exact, 0.995)))


def test_zero_and_constant_rates_stay_what_they_are() -> None:
    nothing, same = of(np.zeros(24 * 30)), of(np.full(24 * 30, 7.0))
    assert not nothing.rate.any()
    assert not nothing.high.any()
    assert nothing.peak == (1.0, 1.0, 1.0)
    assert set(same.rate) == set(same.low) == set(same.high) == {7.0}


def test_one_burst_is_not_forecast() -> None:
    rates = np.full(24 * 40, 2.0)
    rates[24 * 39] = 1e9
    assert of(rates).rate.max() == 2.0


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
    assert made.rate[: 24 * 7].mean() == pytest.approx(rates[-24 * 7 :].mean(), rel=0.15)


def test_beyond_what_was_tested_the_interval_widens() -> None:
    made = of(weekly(42))
    width = (made.high - made.low) / made.rate
    assert made.tested_hours == 14 * 24
    assert width[-168:].mean() > 1.8 * width[:168].mean()


def test_a_model_that_fails_is_not_elected(monkeypatch: pytest.MonkeyPatch) -> None:
    from statsforecast import models

    def fails(*_: object, **__: object) -> None:
        raise ValueError("singular")

    monkeypatch.setattr(models.SeasonalWindowAverage, "forecast", fails)
    made = of(weekly(40))
    assert made.model == "seasonal-naive"
    assert made.mase == made.baseline_mase


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
