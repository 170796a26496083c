"""When maintenance windows hold: every week by the clock on the wall, also when it changes, and once."""

from datetime import UTC, datetime
from typing import Any

import pytest

from lagwise.config import Config
from lagwise.config.load import validated
from lagwise.config.operating import MaintenanceWindow
from lagwise.platform.errors import ConfigError
from lagwise_alerts.model import AlertKind, AlertSubject
from lagwise_alerts.notify.mute_state import maintenance_covers, maintenance_ends_at

NIGHT = {"days": ["sat"], "start_time": "22:30", "end_time": "04:00", "time_zone": "Europe/Berlin"}
NOON = {"days": ["mon", "tue"], "start_time": "12:00", "end_time": "13:00"}
CHANGE = {"days": ["sun"], "start_time": "01:00", "end_time": "04:00", "time_zone": "Europe/Berlin"}
TWICE = {"days": ["sun"], "start_time": "01:00", "end_time": "02:30", "time_zone": "Europe/Berlin"}
DAY = {"days": ["wed"], "start_time": "00:00", "end_time": "00:00"}
ONCE = {"starts_at": "2026-11-21T22:00:00", "ends_at": "2026-11-22T02:00:00", "time_zone": "America/New_York"}
OFFSET = {"starts_at": "2026-11-21T22:00:00+05:30", "ends_at": "2026-11-21T23:00:00+05:30"}


def window(given: dict[str, Any]) -> MaintenanceWindow:
    return MaintenanceWindow.model_validate({"name": "w", **given})


@pytest.mark.parametrize(
    ("given", "now", "until", "why"),
    [
        (NIGHT, "2026-11-21 21:29:59", None, "22:29:59 in Berlin"),
        (NIGHT, "2026-11-21 21:30:00", "2026-11-22 03:00:00", "it begins at 22:30 in Berlin"),
        (NIGHT, "2026-11-22 02:59:59", "2026-11-22 03:00:00", "the night of Saturday is on Sunday, too"),
        (NIGHT, "2026-11-22 03:00:00", None, "its end is not part of it"),
        (NIGHT, "2026-11-20 23:00:00", None, "Saturday has just begun in Berlin, but its night has not"),
        (NIGHT, "2026-11-22 22:00:00", None, "Sunday night is none of it"),
        (NIGHT, "2026-07-18 20:30:00", "2026-07-19 02:00:00", "in summer the same wall clock is an hour earlier"),
        (NOON, "2026-11-23 12:30:00", "2026-11-23 13:00:00", "Monday"),
        (NOON, "2026-11-24 12:30:00", "2026-11-24 13:00:00", "Tuesday"),
        (NOON, "2026-11-25 12:30:00", None, "Wednesday"),
        (DAY, "2026-11-25 00:00:00", "2026-11-26 00:00:00", "from midnight to midnight is the whole day"),
        (DAY, "2026-11-25 23:59:59", "2026-11-26 00:00:00", "until its last second"),
        (DAY, "2026-11-26 00:00:00", None, "and not longer"),
        (CHANGE, "2026-03-29 00:00:00", "2026-03-29 02:00:00", "the clock leaps from 2 to 3: two hours"),
        (CHANGE, "2026-10-25 02:59:59", "2026-10-25 03:00:00", "it goes from 3 back to 2: four hours"),
        (TWICE, "2026-10-25 01:15:00", "2026-10-25 01:30:00", "half past two the second time is still it"),
        (ONCE, "2026-11-22 02:59:59", None, "21:59:59 in New York"),
        (ONCE, "2026-11-22 03:00:00", "2026-11-22 07:00:00", "22:00 in New York"),
        (ONCE, "2026-11-22 07:00:00", None, "over"),
        (OFFSET, "2026-11-21 17:00:00", "2026-11-21 17:30:00", "an offset that is said counts"),
    ],
)
def test_when_it_holds(given: dict[str, Any], now: str, until: str | None, why: str) -> None:
    found = maintenance_ends_at(window(given), _utc(now))
    assert (None if found is None else found.astimezone(UTC)) == (None if until is None else _utc(until)), why


@pytest.mark.parametrize(
    ("given", "subject", "concerned"),
    [
        ({}, AlertSubject(AlertKind.GROUP, "shop", "orders"), True),
        ({}, AlertSubject(AlertKind.COLLECTION, "shop"), True),
        ({}, AlertSubject(AlertKind.ANALYSIS), False),
        ({"clusters": {"include": ["shop"]}}, AlertSubject(AlertKind.GROUP, "bank", "orders"), False),
        ({"groups": {"include": ["or.*"]}}, AlertSubject(AlertKind.LOSS, "shop", "orders"), True),
        (
            {"groups": {"include": [".*"], "exclude": ["orders"]}},
            AlertSubject(AlertKind.GROUP, "shop", "orders"),
            False,
        ),
        ({"groups": {"include": [".*"]}}, AlertSubject(AlertKind.COLLECTION, "shop"), False),
    ],
)
def test_what_it_concerns(given: dict[str, Any], subject: AlertSubject, concerned: bool) -> None:
    assert maintenance_covers(window(NOON | given), subject) is concerned


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "either days, start_time and end_time"),
        ({"days": ["sat"]}, "either days, start_time and end_time"),
        (NIGHT | ONCE, "either days, start_time and end_time"),
        (NIGHT | {"time_zone": "Berlin"}, "not a time zone"),
        (NIGHT | {"time_zone": "../etc/passwd"}, "not a time zone"),
        (NIGHT | {"days": ["Saturday"]}, "days.0"),
        (NIGHT | {"start_time": "24:00"}, "write it as in 22:30"),
        ({"starts_at": "2026-11-21T22:00:00", "ends_at": "2026-11-21T21:00:00"}, "ends_at must be after starts_at"),
    ],
)
def test_what_cannot_be_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        validated({"alerts": {"maintenance": [{"name": "w", **given}]}}, where="here")


def test_it_survives_being_written_and_read() -> None:
    """The product hands its settings to its parts as a file."""
    config = Config.model_validate({"alerts": {"maintenance": [{"name": "a", **NIGHT}, {"name": "b", **ONCE}]}})
    assert Config.model_validate(config.model_dump(mode="json", exclude_unset=True)) == config


def test_a_time_without_quotes_is_what_it_looks_like() -> None:
    """YAML 1.1 reads 22:30 as a number to the base 60."""
    assert window(NIGHT | {"start_time": 22 * 60 + 30}) == window(NIGHT)


def _utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)
