"""What of a decision is told, and what is withheld: pure, so that it can be proved in a table.

A decision says what happened; operators say what they want to hear of it. Between the two stand three rules:

- **Muted** (a silence or a maintenance window holds): nothing begins and nothing gets worse as far as people know. What
  still holds when nothing mutes it any more is told then: it is *owed*.
- **Acknowledged**: somebody has it. It is not told again, unless it becomes louder than what was acknowledged.
- **The end is told** to everybody who was told of the beginning, also while muted or acknowledged: it wakes nobody, and
  without it a receiver would show the alert for ever. Whoever was told nothing is not told of the end.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from lagwise.config.operating import MaintenanceWindow
from lagwise_alerts.model import Alert, AlertEvent, AlertSubject, Decision, Notification, Phase, Severity
from lagwise_alerts.notify import maintenance


@dataclass(frozen=True, slots=True)
class Matcher:
    """Which alerts are meant: regular expressions on the whole cluster, group, kind and severity; None is any."""

    cluster: str | None = None
    group: str | None = None
    kind: str | None = None
    severity: str | None = None

    def matches(self, subject: AlertSubject, severity: Severity) -> bool:
        """Whether an alert is meant. A pattern for groups never means an alert that is about no group."""
        return all(
            pattern is None or (value is not None and re.fullmatch(pattern, value, re.DOTALL) is not None)
            for pattern, value in (
                (self.cluster, subject.cluster),
                (self.group, subject.group),
                (self.kind, subject.kind.value),
                (self.severity, severity.value),
            )
        )


def exactly(name: str) -> str:
    """The pattern of one name and no other, for people to read: what has no meaning in a pattern is left as it is."""
    return re.sub(r"([\\.^$*+?{}\[\]()|])", r"\\\1", name)


@dataclass(frozen=True, slots=True)
class Silence:
    """Nobody is told of the alerts that are meant, from ``starts_at`` until ``ends_at``, which is not part of it."""

    id: int
    matcher: Matcher
    starts_at: datetime
    ends_at: datetime
    comment: str
    created_by: str
    created_at: datetime

    def holds(self, now: datetime) -> bool:
        """Whether it is in force."""
        return self.starts_at <= now < self.ends_at


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """Somebody has taken an alert on, when it was so loud."""

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
    """Why an alert is not told: the silence's number or the window's name, and when that ends."""

    cause: MuteCause
    name: str
    until: datetime


@dataclass(frozen=True, slots=True)
class Owed:
    """Something that was withheld: ``firing`` where nobody was told anything, else ``escalated``.

    ``rule`` is the rule it was withheld for, the previous status and severity what people know.
    """

    incident_id: str
    event: AlertEvent
    rule: str
    channels: tuple[str, ...]
    previous_status: str | None
    previous_severity: Severity | None
    withheld_at: datetime


@dataclass(frozen=True, slots=True)
class Orders:
    """Everything that operators and settings say about telling; acknowledgements and debts by incident."""

    silences: tuple[Silence, ...] = ()
    windows: tuple[MaintenanceWindow, ...] = ()
    acknowledgements: Mapping[str, Acknowledgement] = field(default_factory=dict)
    owed: Mapping[str, Owed] = field(default_factory=dict)

    def mute(self, subject: AlertSubject, severity: Severity, now: datetime) -> Mute | None:
        """What mutes an alert at this moment; the one that lasts longest. None is nothing."""
        found = [
            Mute(MuteCause.SILENCE, str(silence.id), silence.ends_at)
            for silence in self.silences
            if silence.holds(now) and silence.matcher.matches(subject, severity)
        ]
        for window in self.windows:
            until = maintenance.ends_at(window, now)
            if until is not None and maintenance.concerns(window, subject):
                found.append(Mute(MuteCause.MAINTENANCE, window.name, until))
        return max(found, key=lambda mute: mute.until, default=None)

    def is_taken(self, alert: Alert) -> bool:
        """Whether somebody has acknowledged the alert, as loud as it is."""
        given = self.acknowledgements.get(alert.incident_id)
        return given is not None and given.covers(alert.severity)


@dataclass(frozen=True, slots=True)
class Muted:
    """A decision of which only what is to be told is told; the debts that are new or changed, and those that are over
    (incidents)."""

    decision: Decision
    owed: tuple[Owed, ...] = ()
    settled: tuple[str, ...] = ()


def tell(decision: Decision, before: Mapping[str, Alert], orders: Orders, now: datetime) -> Muted:
    """What of a decision is told, given the open alerts ``before`` it by fingerprint."""
    changed = {alert.incident_id: alert for alert in decision.changed}
    known = {alert.incident_id: alert for alert in before.values()}
    told: list[Notification] = []
    owed: list[Owed] = []
    settled = [incident for incident in decision.cancelled if incident in orders.owed]
    for notification in decision.notifications:
        incident = notification.alert.incident_id
        former, debt = known.get(incident), orders.owed.get(incident)
        if notification.event is AlertEvent.RESOLVED:
            told.append(notification)
            settled += [incident] if debt else []
        elif orders.mute(notification.alert.subject, notification.severity, now) is not None:
            changed[incident] = _untold(notification.alert, former)
            if notification.event is not AlertEvent.REPEATED:
                owed.append(_debt(notification, former, debt, now))
        elif orders.is_taken(notification.alert):
            changed[incident] = _untold(notification.alert, former)
            settled += [incident] if debt else []
        else:
            told.append(_as_people_know(notification, former, debt))
            changed[incident] = told[-1].alert
            settled += [incident] if debt else []
    spoken = {notification.alert.incident_id for notification in decision.notifications}
    for incident, debt in orders.owed.items():
        alert = changed.get(incident) or known.get(incident)
        if incident in spoken or alert is None or alert.phase is not Phase.FIRING:
            continue
        if orders.is_taken(alert) or not _is_worth_telling(alert, debt):
            settled.append(incident)
        elif _matches_now(alert) and orders.mute(alert.subject, alert.severity, now) is None:
            told.append(_late(alert, debt, now))
            changed[incident] = told[-1].alert
            settled.append(incident)
    return Muted(
        Decision(tuple(changed.values()), decision.cancelled, tuple(told)),
        tuple(owed),
        tuple(dict.fromkeys(settled)),
    )


def _untold(alert: Alert, former: Alert | None) -> Alert:
    """The alert as it is, and what people know of it as it was."""
    was_told = former is not None and former.sequence > 0
    return replace(
        alert,
        sequence=former.sequence if former else 0,
        channels=former.channels if former else (),
        peak_severity=former.peak_severity if former else None,
        told=former.told if former and was_told else alert.told,
        told_at=former.told_at if former else None,
    )


def _debt(notification: Notification, former: Alert | None, debt: Owed | None, now: datetime) -> Owed:
    never_told = former is None or former.sequence == 0
    channels = (*(debt.channels if debt else ()), *notification.channels)
    return Owed(
        incident_id=notification.alert.incident_id,
        event=AlertEvent.FIRING if never_told else AlertEvent.ESCALATED,
        rule=notification.alert.rule,
        channels=tuple(dict.fromkeys(channels)),
        previous_status=debt.previous_status if debt else notification.previous_status,
        previous_severity=debt.previous_severity if debt else notification.previous_severity,
        withheld_at=debt.withheld_at if debt else now,
    )


def _as_people_know(notification: Notification, former: Alert | None, debt: Owed | None) -> Notification:
    """What gets worse after its beginning was withheld begins, as far as people know."""
    if debt is None and (former is None or former.sequence > 0):
        return notification
    channels = tuple(dict.fromkeys((*(debt.channels if debt else ()), *notification.channels)))
    never_told = former is None or former.sequence == 0
    alert = replace(notification.alert, channels=tuple(dict.fromkeys((*notification.alert.channels, *channels))))
    if not never_told:
        return replace(notification, alert=alert, channels=channels)
    return replace(
        notification,
        event=AlertEvent.FIRING,
        alert=replace(alert, fired_at=notification.decided_at),
        channels=channels,
        previous_status=None,
        previous_severity=None,
    )


def _is_worth_telling(alert: Alert, debt: Owed) -> bool:
    """Whether what was withheld is still the case. Where it got better than that, people know what is left."""
    if debt.event is AlertEvent.FIRING:
        return True
    is_louder = debt.previous_severity is not None and alert.severity.rank < debt.previous_severity.rank
    return is_louder or alert.rule == debt.rule


def _matches_now(alert: Alert) -> bool:
    """Not in the calm that may be its end, nor on hold: then it is waited for what comes of that."""
    return any(clock.active and clock.matching and not clock.held for clock in alert.clocks)


def _late(alert: Alert, debt: Owed, now: datetime) -> Notification:
    """What was withheld, told as it stands now."""
    is_first = debt.event is AlertEvent.FIRING
    louder: Iterable[Severity] = (alert.peak_severity or alert.severity, alert.severity)
    alert = replace(
        alert,
        sequence=alert.sequence + 1,
        channels=tuple(dict.fromkeys((*alert.channels, *debt.channels))),
        peak_severity=min(louder, key=lambda severity: severity.rank),
        told=tuple(dict.fromkeys((*alert.told, alert.rule))),
        fired_at=now if is_first else alert.fired_at,
        told_at=now,
    )
    return Notification(
        event=debt.event,
        decided_at=now,
        alert=alert,
        status=alert.status,
        reason=alert.reason,
        severity=alert.severity,
        sentence=alert.sentence,
        numbers=alert.numbers,
        previous_status=None if is_first else debt.previous_status,
        previous_severity=None if is_first else debt.previous_severity,
        channels=debt.channels,
    )
