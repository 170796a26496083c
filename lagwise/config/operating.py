"""Settings for operating alerts: maintenance windows, grouping, the heartbeat, sign-in and roles."""

import re
from dataclasses import dataclass
from datetime import datetime, time
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from zoneinfo import ZoneInfo

from pydantic import BeforeValidator, Field, model_validator

from lagwise.config.base import NameFilter, Settings
from lagwise.config.values import IN_SECONDS, HttpAddress, Name, Patterns, Seconds, TimeZoneName
from lagwise.config.visibility import EVERYTHING, NOTHING, Visibilities, Visibility

Weekday = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
WEEKDAYS: tuple[Weekday, ...] = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


def _clock(value: object) -> object:
    """Accept 22:30 without quotes, which YAML 1.1 reads as the number 1350 (base 60)."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 24 * 60:
        return time(value // 60, value % 60)
    if isinstance(value, str) and re.fullmatch(r"([01]\d|2[0-3]):[0-5]\d(:00)?", value) is None:
        raise ValueError(f"{value!r} is not a time of day: write it as in 22:30")
    return value


TimeOfDay = Annotated[time, BeforeValidator(_clock)]


class MaintenanceWindow(Settings):
    """A time at which alerts of some groups are not sent: every week (`days`, `start_time`, `end_time`) or once
    (`starts_at`, `ends_at`)."""

    name: Name
    """Name of the window on pages."""
    clusters: NameFilter = NameFilter()
    """Clusters that the window applies to."""
    groups: NameFilter | None = None
    """Groups that the window applies to; null is all groups, and alerts about the collection too."""
    time_zone: TimeZoneName = "UTC"
    """Time zone of the times. Daylight saving time is respected."""
    days: tuple[Weekday, ...] = ()
    """Every week: the days on which the window begins."""
    start_time: TimeOfDay | None = None
    """Every week: time of day at which the window begins, as in `22:30`."""
    end_time: TimeOfDay | None = None
    """Every week: time of day at which the window ends. A time that is not after `start_time` is on the next day."""
    starts_at: datetime | None = None
    """Once: when the window begins, as in `2026-11-21T22:00:00`. It is in `time_zone` unless it has an offset."""
    ends_at: datetime | None = None
    """Once: when the window ends."""

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
        """Beginning and end of a window that happens once, with their time zone."""
        zone = ZoneInfo(self.time_zone)
        starts, ends = self.starts_at, self.ends_at
        if starts is None or ends is None:
            raise ValueError("the window is every week")
        starts, ends = (at if at.tzinfo else at.replace(tzinfo=zone) for at in (starts, ends))
        return starts, ends


class Grouping(Settings):
    """When many messages to a channel are combined, so that an outage of many groups does not flood it."""

    max_messages: Annotated[int, Field(ge=1)] | None = 5
    """At most this many single messages go to a channel within `interval_seconds`. Further ones are combined into a \
summary (`lagwise.alerts.v1`). null disables summaries."""
    interval_seconds: Seconds = 60.0
    """The interval for `max_messages`, and the shortest time between a summary and the next message."""


class Heartbeat(Settings):
    """The dead man's switch: Lagwise requests an address while it works, and the service behind it alerts when the
    requests stop."""

    url: HttpAddress
    """Address to request (GET) while collection, analysis and delivery all work; may be a reference."""
    interval_seconds: Annotated[float, Field(ge=5), IN_SECONDS] = 60.0
    """Time between requests. The service should wait for at least three intervals before it alerts."""
    timeout_seconds: Seconds = 10.0
    """How long one request may take."""


class Role(StrEnum):
    """What a user may do in the dashboard. An operator may do all that a viewer may, and act on alerts."""

    VIEWER = "viewer"
    OPERATOR = "operator"


class Team(Settings):
    """A team of users who see the groups of their own alone."""

    name: Name
    """Name of the team."""
    members: Annotated[Patterns, Field(min_length=1)]
    """Users who belong to the team: regular expressions that match the whole claim, or one of its texts."""
    clusters: NameFilter = NameFilter()
    """Clusters that the team sees."""
    groups: NameFilter = NameFilter()
    """Groups of these clusters that the team sees."""
    may_operate: bool = False
    """Whether members may acknowledge and silence alerts about these groups."""

    @property
    def visibility(self) -> Visibility:
        """What members see."""
        return Visibility(self.clusters, self.groups)


@dataclass(frozen=True, slots=True)
class Access:
    """What a user may do (a ``role`` of None: nothing at all), the groups they see, and those they may act on."""

    role: Role | None = None
    sees: Visibilities = NOTHING
    acts_on: Visibilities = NOTHING


class SignIn(Settings):
    """Sign-in with OpenID Connect, and the roles of users."""

    auth_file: Path
    """File with the section `[auth]` of Streamlit: `redirect_uri`, `cookie_secret`, `client_id`, \
`client_secret`, `server_metadata_url`. Only the dashboard should be able to read it."""
    claim: str = "email"
    """Claim that decides the role: a text, or a list of texts such as `groups`."""
    operators: Patterns = ()
    """Users who see everything, and may acknowledge and silence: regular expressions that match the whole claim, or \
one of its texts."""
    viewers: Patterns | None = None
    """Users who see everything: regular expressions that match the whole claim, or one of its texts. null is everyone \
who can sign in, or with `teams` no one. A user with no role and no team sees nothing."""
    teams: tuple[Team, ...] = ()
    """Teams whose members see some clusters and groups only. A member of several sees what any of them sees; one who \
is also among the `operators` or `viewers` sees everything."""

    @model_validator(mode="after")
    def _teams_are_told_apart(self) -> Self:
        names = [team.name for team in self.teams]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"there are two teams {twice!r}: give each a name of its own")
        return self

    def access(self, claims: dict[str, Any]) -> Access:
        """What an identity may see and do. An unverified e-mail address has no access."""
        if self.claim == "email" and claims.get("email_verified") is False:
            return Access()
        found = claims.get(self.claim)
        texts = [text for text in (found if isinstance(found, list | tuple) else [found]) if isinstance(text, str)]

        def has_one_of(patterns: Patterns) -> bool:
            return any(re.fullmatch(pattern, text) for pattern in patterns for text in texts)

        if has_one_of(self.operators):
            return Access(Role.OPERATOR, EVERYTHING, EVERYTHING)
        everyone: Patterns = () if self.teams else (".*",)
        teams = [team for team in self.teams if has_one_of(team.members)]
        acts_on = Visibilities(tuple(team.visibility for team in teams if team.may_operate))
        role = Role.OPERATOR if acts_on.parts else Role.VIEWER
        if has_one_of(everyone if self.viewers is None else self.viewers):
            return Access(role, EVERYTHING, acts_on)
        return Access(role, Visibilities(tuple(team.visibility for team in teams)), acts_on) if teams else Access()
