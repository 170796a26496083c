"""The forecast of busy hours as one of busy minutes."""

from datetime import UTC, datetime, timedelta

import pytest

from lagwise.domain.capacity.verdict import DemandAhead, busy_minutes

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
#: Twenty days, every half of one; the last week's busiest hour is 16.
HOURS = [(NOW + timedelta(hours=12 * i), 10.0 + i % 7, 14.0 + i % 7) for i in range(40)]


def test_all_are_raised_by_as_much_as_the_peak_is_above_the_last_weeks_busiest_hour() -> None:
    found = busy_minutes(HOURS, 40.0)
    assert [minute.at for minute in found] == [at for at, _, _ in HOURS]
    assert [minute.mean for minute in found] == pytest.approx([mean * 2.5 for _, mean, _ in HOURS])
    assert [minute.upper for minute in found] == pytest.approx([upper * 2.5 for _, _, upper in HOURS])


@pytest.mark.parametrize("peak", [0.0, 9.0, 16.0])
def test_a_peak_that_is_no_higher_lowers_none(peak: float) -> None:
    assert busy_minutes(HOURS, peak) == tuple(DemandAhead(*hour) for hour in HOURS)


def test_below_nothing_is_nothing_and_no_interval_ends_below_its_mean() -> None:
    assert busy_minutes([(NOW, -3.0, -1.0), (NOW, 8.0, 7.0)], 8.0) == (DemandAhead(NOW, 0, 0), DemandAhead(NOW, 8, 8))


def test_nothing_stays_nothing() -> None:
    assert busy_minutes([(NOW, 0.0, 1.0)], 5.0) == (DemandAhead(NOW, 0.0, 1.0),)
    assert busy_minutes([], 5.0) == ()
