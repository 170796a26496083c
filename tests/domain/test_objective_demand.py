"""What a lag objective takes of a topic: recorded, scaled by the forecast, of a week to come, never above the peak."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lagwise.domain.capacity.objective_demand import (
    ObjectiveDemand,
    PlannedLoad,
    objective_demand,
    why_unknown,
)
from lagwise.domain.capacity.verdict import DemandAhead
from lagwise.domain.sizing.objective import LEAST_MINUTES, ObjectiveRate
from lagwise.domain.sizing.workload import SizeBy

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
#: 400 a second keep five minutes, 600 at the upper end of a week; the highest minute had 1,000.
KEPT = [
    ObjectiveRate(seconds, rate, 1.5 * rate, NOW - timedelta(days=2), NOW - timedelta(days=2) + timedelta(minutes=6))
    for seconds, rate in ((0.0, 1_000.0), (300.0, 400.0))
]
#: The busy hours had a mean of 200; those to come 220, and 300 at worst.
HOURS = tuple(DemandAhead(NOW + timedelta(days=d), 180.0 + 20 * d, 260.0 + 20 * d) for d in (1, 2))
ASKED: dict[str, Any] = {
    "minutes": LEAST_MINUTES, "peak_per_second": 1_000.0, "peak_high_per_second": 1_000.0,
    "busy_hour_per_second": 200.0, "hours_ahead": HOURS,
}  # fmt: skip


def takes(objective_seconds: float = 300.0, **changed: Any) -> ObjectiveDemand:
    found = objective_demand(KEPT, objective_seconds, **ASKED | changed)
    assert found is not None
    return found


def test_what_was_recorded_is_scaled_by_the_busy_hours_to_come() -> None:
    found = takes()
    assert (found.recorded.rate_per_second, found.week_per_second) == (400.0, 600.0)
    assert [point.mean for point in found.ahead] == pytest.approx([400.0, 440.0])
    assert [point.upper for point in found.ahead] == pytest.approx([600 * 280 / 200, 600 * 300 / 200])
    assert found.planned_per_second == pytest.approx(900.0)
    assert found.planned_evidence == (
        "the busiest 6 minutes from 2026-11-20 12:00 UTC decide, of 2 d recorded; raised by a factor of 2.25 to the "
        "upper end of the forecast for 2026-11-24"
    )


def test_a_longer_burst_and_growth_count_up_to_the_highest_minute() -> None:
    found = takes(peak_per_second=500.0, peak_high_per_second=700.0)
    assert found.planned_per_second == 500.0
    assert found.planned_evidence.endswith("; raised by a factor of 1.25 to the highest minute so far or forecast")
    assert [(point.mean, point.upper) for point in found.ahead] == [(400.0, 700.0), (pytest.approx(440.0), 700.0)]
    assert takes(peak_per_second=500.0, hours_ahead=()).planned_per_second == 500.0
    assert takes(peak_per_second=400.0, hours_ahead=()).planned_per_second == 400.0


RATES = st.floats(0.0, 1e6)


@given(RATES, RATES, RATES, RATES, RATES, st.floats(0.0, 7_200.0), st.lists(st.tuples(RATES, RATES), max_size=4))
def test_the_plan_is_between_what_was_recorded_and_the_plan_by_the_peak(
    recorded: float, high: float, peak: float, peak_high: float, busy: float, objective: float, hours: list[Any]
) -> None:
    peak = max(peak, recorded)  # no objective takes more than the highest minute
    kept = [
        ObjectiveRate(seconds, share * recorded, max(share * recorded, high), NOW, NOW + timedelta(minutes=1))
        for seconds, share in ((0.0, 1.0), (300.0, 0.5), (3_600.0, 0.25))
    ]
    ahead = [DemandAhead(NOW + timedelta(hours=n), min(h), max(h)) for n, h in enumerate(hours)]
    found = objective_demand(
        kept, objective, minutes=LEAST_MINUTES, peak_per_second=peak, peak_high_per_second=peak_high,
        busy_hour_per_second=busy, hours_ahead=ahead,
    )  # fmt: skip
    assert found is not None
    # On a chord, rounding takes the last bit.
    peak *= 1 + 1e-12
    assert found.recorded.rate_per_second <= found.planned_per_second <= peak
    assert all(point.mean <= peak and point.upper <= max(peak, peak_high) for point in found.ahead)


def test_it_is_never_scaled_down() -> None:
    quiet = tuple(DemandAhead(point.at, 1.0, 2.0) for point in HOURS)
    found = takes(hours_ahead=quiet)
    assert found.planned_per_second == 600.0
    assert found.planned_evidence.endswith("; raised by a factor of 1.5 to the upper end of what a week takes")


def test_without_a_forecast_or_a_busy_hour_nothing_is_scaled() -> None:
    assert takes(hours_ahead=()).ahead == takes(busy_hour_per_second=0.0).ahead == ()
    exact = objective_demand([KEPT[0]], 0.0, **ASKED | {"hours_ahead": (), "peak_per_second": 1_000.0})
    assert exact is not None
    assert exact.planned_evidence == exact.evidence


def test_of_less_than_two_days_nothing_follows() -> None:
    assert objective_demand([], 300.0, **ASKED | {"minutes": LEAST_MINUTES - 1}) is None
    before = "unknown before two days of minutes are recorded ({} so far); until then, the peak decides"
    assert why_unknown(420) == before.format("7 h")
    assert why_unknown(LEAST_MINUTES - 1) == before.format("1 d 23 h")
    assert why_unknown(None) == why_unknown(0) == before.format("none")


def test_with_two_days_it_is_not_said_that_they_are_missing() -> None:
    assert why_unknown(LEAST_MINUTES) == "unknown until the next verdict; until then, the peak decides"


def test_what_decides() -> None:
    found, minutes = takes(), (DemandAhead(NOW, 1_000.0, 1_100.0),)
    by_objective = PlannedLoad(400.0, found.ahead, 300.0)
    by_peak = PlannedLoad(900.0, minutes, None)
    assert PlannedLoad.of(900.0, minutes, found, SizeBy.OBJECTIVE) == by_objective
    assert PlannedLoad.of(900.0, minutes, found, SizeBy.PEAK) == by_peak
    assert PlannedLoad.of(900.0, minutes, None, SizeBy.OBJECTIVE) == by_peak
