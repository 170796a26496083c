"""What mutes alerts at a moment: silences, maintenance windows and acknowledgements. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, time, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo

from lagwise.config.operating import WEEKDAYS, MaintenanceWindow
from lagwise_alerts.model import Alert, AlertEvent, AlertSubject, Severity


@dataclass(frozen=True, slots=True)
class Matcher:
    """Selects alerts: regular expressions on the whole cluster, group, kind and severity; None is any."""

    cluster: str | None = None
    group: str | None = None
    kind: str | None = None
    severity: str | None = None

    def matches(self, subject: AlertSubject, severity: Severity) -> bool:
        """Whether it selects an alert. A pattern for groups never selects an alert that is about no group."""
        values = {"cluster": subject.cluster, "group": subject.group, "kind": subject.kind, "severity": severity}
        return all(
            (value := values[name]) is not None and re.fullmatch(pattern, value, re.DOTALL)
            for name, pattern in self.patterns.items()
        )

    @property
    def patterns(self) -> dict[str, str]:
        """The given patterns, by what they are on."""
        given = {"cluster": self.cluster, "group": self.group, "kind": self.kind, "severity": self.severity}
        return {name: pattern for name, pattern in given.items() if pattern is not None}

    @property
    def one_group(self) -> tuple[str | None, str | None]:
        """Cluster and name of the only group whose alerts it selects; None, None where it may select several."""
        cluster, group = (None if p is None else _literal_name(p) for p in (self.cluster, self.group))
        return (None, None) if cluster is None or group is None else (cluster, group)


def literal_pattern(name: str) -> str:
    """The pattern that matches one name and no other, readable: only characters with a meaning are escaped."""
    return re.sub(r"([\\.^$*+?{}\[\]()|])", r"\\\1", name)


def _literal_name(pattern: str) -> str | None:
    """The name of which this is the :func:`literal_pattern`; None where it is that of none."""
    name = re.sub(r"\\(.)", r"\1", pattern, flags=re.DOTALL)
    return name if literal_pattern(name) == pattern else None


@dataclass(frozen=True, slots=True)
class Silence:
    """Mutes the selected alerts from ``starts_at`` until ``ends_at``, which is excluded."""

    id: int
    matcher: Matcher
    starts_at: datetime
    ends_at: datetime
    comment: str
    created_by: str
    created_at: datetime

    def is_in_force(self, now: datetime) -> bool:
        """Whether it mutes alerts at this moment."""
        return self.starts_at <= now < self.ends_at


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """Somebody has taken on an alert. ``severity`` is how loud the alert was then."""

    incident_id: str
    severity: Severity
    by: str
    at: datetime
    comment: str

    def covers(self, severity: Severity) -> bool:
        """Whether an alert of this severity is no louder than what was acknowledged."""
        return severity.rank >= self.severity.rank


class MuteCause(StrEnum):
    """What mutes an alert."""

    SILENCE = "silence"
    MAINTENANCE = "maintenance"


@dataclass(frozen=True, slots=True)
class Mute:
    """Why an alert is muted: ``name`` is the number of the silence or the name of the maintenance window."""

    cause: MuteCause
    name: str
    until: datetime


@dataclass(frozen=True, slots=True)
class Withheld:
    """A notification that was withheld, because its alert was muted."""

    incident_id: str
    #: ``firing`` where no notification of the alert has been sent yet, else ``escalated``.
    event: AlertEvent
    #: The rule whose notification was withheld.
    rule: str
    channels: tuple[str, ...]
    #: What was notified last: status and severity.
    previous_status: str | None
    previous_severity: Severity | None
    withheld_at: datetime


@dataclass(frozen=True, slots=True)
class MuteState:
    """Everything that mutes alerts. Acknowledgements and withheld notifications are keyed by incident."""

    silences: tuple[Silence, ...] = ()
    windows: tuple[MaintenanceWindow, ...] = ()
    acknowledgements: Mapping[str, Acknowledgement] = field(default_factory=dict)
    withheld: Mapping[str, Withheld] = field(default_factory=dict)

    def mute_of(self, subject: AlertSubject, severity: Severity, now: datetime) -> Mute | None:
        """What mutes an alert at this moment; of several, what lasts longest. None is nothing."""
        mutes = [
            Mute(MuteCause.SILENCE, str(silence.id), silence.ends_at)
            for silence in self.silences
            if silence.is_in_force(now) and silence.matcher.matches(subject, severity)
        ]
        for window in self.windows:
            until = maintenance_ends_at(window, now)
            if until is not None and maintenance_covers(window, subject):
                mutes.append(Mute(MuteCause.MAINTENANCE, window.name, until))
        return max(mutes, key=lambda mute: mute.until, default=None)

    def is_acknowledged(self, alert: Alert) -> bool:
        """Whether somebody has acknowledged the alert at its present severity or a louder one."""
        acknowledgement = self.acknowledgements.get(alert.incident_id)
        return acknowledgement is not None and acknowledgement.covers(alert.severity)


def maintenance_ends_at(window: MaintenanceWindow, now: datetime) -> datetime | None:
    """When the maintenance window that is open at this moment ends; None where it is not open.

    A weekly window follows the wall clock of its time zone. On a day on which the clock changes it begins and ends at
    its usual times, and so is an hour shorter or longer.
    """
    if not window.days:
        starts, ends = window.once()
        return ends if starts <= now < ends else None
    zone = ZoneInfo(window.time_zone)
    today = now.astimezone(zone).date()
    open_until = []
    for day in (today - timedelta(days=1), today):
        if WEEKDAYS[day.weekday()] in window.days:
            start_time, end_time = window.start_time or time(), window.end_time or time()
            last_day = day + timedelta(days=1) if end_time <= start_time else day
            starts = datetime.combine(day, start_time, zone)
            # fold=1: an hour that the clock repeats belongs to the window both times.
            ends = datetime.combine(last_day, end_time, zone).replace(fold=1)
            if starts <= now < ends:
                open_until.append(ends)
    return max(open_until, default=None)


def maintenance_covers(window: MaintenanceWindow, subject: AlertSubject) -> bool:
    """Whether the window covers a subject. A window that names groups covers no collection, and none the analysis."""
    if subject.cluster is None or not window.clusters.selects(subject.cluster):
        return False
    return window.groups is None or (subject.group is not None and window.groups.selects(subject.group))
