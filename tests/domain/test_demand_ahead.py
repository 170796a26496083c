"""The forecast of busy hours as one of busy minutes."""

from datetime import UTC, datetime, timedelta

import pytest

from lagwise.domain.capacity_verdict import DemandAhead
from lagwise.domain.demand_ahead import busy_minutes

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
#: Twenty days, every half of one; the last week's busiest hour is 16.
HOURS = [DemandAhead(NOW + timedelta(hours=12 * i), 10.0 + i % 7, 14.0 + i % 7) for i in range(40)]


def test_all_are_raised_by_as_much_as_the_peak_is_above_the_last_weeks_busiest_hour() -> None:
    found = busy_minutes(HOURS, 40.0)
    assert [day.at for day in found] == [hour.at for hour in HOURS]
    assert [day.mean for day in found] == pytest.approx([hour.mean * 2.5 for hour in HOURS])
    assert [day.upper for day in found] == pytest.approx([hour.upper * 2.5 for hour in HOURS])


@pytest.mark.parametrize("peak", [0.0, 9.0, 16.0])
def test_a_peak_that_is_no_higher_lowers_none(peak: float) -> None:
    assert busy_minutes(HOURS, peak) == tuple(HOURS)


def test_nothing_stays_nothing() -> None:
    silent = [DemandAhead(NOW, 0.0, 1.0)]
    assert busy_minutes(silent, 5.0) == tuple(silent)
    assert busy_minutes([], 5.0) == ()
