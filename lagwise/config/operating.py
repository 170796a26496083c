"""Settings about operating alerts: when nobody is to be told, how many messages become one, and who may do what."""

import re
from datetime import datetime, time
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import BeforeValidator, Field, field_validator, model_validator

from lagwise.config.base import Settings
from lagwise.config.name_filter import NameFilter
from lagwise.config.values import IN_SECONDS, HttpAddress, Name, Seconds

Weekday = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
WEEKDAYS: tuple[Weekday, ...] = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


def _clock(value: object) -> object:
    """YAML 1.1 reads 22:30 without quotes as the number 1350 (base 60): that is taken as it was meant."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 24 * 60:
        return time(value // 60, value % 60)
    if isinstance(value, str) and re.fullmatch(r"([01]\d|2[0-3]):[0-5]\d(:00)?", value) is None:
        raise ValueError(f"{value!r} is not a time of day: write it as in 22:30")
    return value


TimeOfDay = Annotated[time, BeforeValidator(_clock)]


class MaintenanceWindow(Settings):
    """A time at which nobody is told of some groups: every week (`days`, `start_time`,
    `end_time`) or once (`starts_at`, `ends_at`)."""

    name: Name
    """How the window is called in pages."""
    clusters: NameFilter = NameFilter()
    """Clusters it applies to: regular expressions on the whole name."""
    groups: NameFilter | None = None
    """Groups it applies to: regular expressions on the whole name; null is all, and the collections."""
    time_zone: str = "UTC"
    """Zone of its times, as the IANA names it (`Europe/Berlin`). Summer time is followed."""
    days: tuple[Weekday, ...] = ()
    """Every week: the days on which it begins."""
    start_time: TimeOfDay | None = None
    """Every week: time of day at which it begins, as in `22:30`."""
    end_time: TimeOfDay | None = None
    """Every week: time of day at which it ends; not later than `start_time` is on the next day."""
    starts_at: datetime | None = None
    """Once: when it begins, as in `2026-11-21T22:00:00`; in `time_zone` unless it says its offset."""
    ends_at: datetime | None = None
    """Once: when it ends."""

    @field_validator("time_zone")
    @classmethod
    def _is_known(cls, name: str) -> str:
        try:
            ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise ValueError(f"{name!r} is not a time zone: write its name as the IANA has it, Europe/Berlin") from None
        return name

    @model_validator(mode="after")
    def _weekly_or_once(self) -> Self:
        weekly = (bool(self.days), self.start_time is not None, self.end_time is not None)
        once = (self.starts_at is not None, self.ends_at is not None)
        if not (all(weekly) and not any(once)) and not (all(once) and not any(weekly)):
            raise ValueError("give either days, start_time and end_time (every week), or starts_at and ends_at (once)")
        if all(once):
            starts, ends = self.once()
            if ends <= starts:
                raise ValueError("ends_at must be after starts_at")
        return self

    def once(self) -> tuple[datetime, datetime]:
        """Beginning and end of a window that is once, with their time zone."""
        zone = ZoneInfo(self.time_zone)
        starts, ends = self.starts_at, self.ends_at
        if starts is None or ends is None:
            raise ValueError("the window is every week")
        return tuple(at if at.tzinfo else at.replace(tzinfo=zone) for at in (starts, ends))  # type: ignore[return-value]


class Grouping(Settings):
    """When many messages to a channel become one, so that an outage of many groups is no flood."""

    max_messages: Annotated[int, Field(ge=1)] | None = 5
    """At most so many messages go to a channel one by one within `interval_seconds`; what is more becomes one summary \
(`lagwise.alerts.v1`). Null sends each by itself, however many they are."""
    interval_seconds: Seconds = 60.0
    """How long that is counted, and how long after a summary the next message goes out at the earliest."""


class Heartbeat(Settings):
    """The dead man's switch: an address that is asked for while all is well, of a service that tells when it is not."""

    url: HttpAddress
    """What is fetched (GET) while collection, analysis and delivery are all fresh; may be a reference."""
    interval_seconds: Annotated[float, Field(ge=5), IN_SECONDS] = 60.0
    """How often. The service should wait for at least three of them."""
    timeout_seconds: Seconds = 10.0
    """How long one request may take."""


class Role(StrEnum):
    """What somebody may do in the dashboard. An operator may all that a viewer may, and act on alerts."""

    VIEWER = "viewer"
    OPERATOR = "operator"


class SignIn(Settings):
    """Sign-in with OpenID Connect, and what those who signed in may do."""

    auth_file: Path
    """File with a section `[auth]` as Streamlit has it: `redirect_uri`, `cookie_secret`, `client_id`, \
`client_secret`, `server_metadata_url`. Readable by the dashboard only."""
    claim: str = "email"
    """Claim of the identity that roles are given by: a text, or a list of texts such as `groups`."""
    operators: tuple[str, ...] = ()
    """Who acknowledges and silences: regular expressions on the whole claim, or on one of its texts."""
    viewers: tuple[str, ...] = (".*",)
    """Who may look: regular expressions, likewise. Whoever is neither sees nothing."""

    @field_validator("operators", "viewers")
    @classmethod
    def _compiles(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        return NameFilter(include=patterns).include

    def role(self, claims: dict[str, Any]) -> Role | None:
        """The role of an identity; None is none. An e-mail address that its provider has not verified names nobody."""
        if self.claim == "email" and claims.get("email_verified") is False:
            return None
        found = claims.get(self.claim)
        texts = [text for text in (found if isinstance(found, list | tuple) else [found]) if isinstance(text, str)]
        for role, patterns in ((Role.OPERATOR, self.operators), (Role.VIEWER, self.viewers)):
            if any(re.fullmatch(pattern, text) for pattern in patterns for text in texts):
                return role
        return None
