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
from lagwise_alerts.model import Alert, AlertEvent, AlertState, AlertSubject, Decision, Notification, Severity
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


def literal_pattern(name: str) -> str:
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
class Withheld:
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
class MuteState:
    """Everything that operators and settings say about telling; acknowledgements and debts by incident."""

    silences: tuple[Silence, ...] = ()
    windows: tuple[MaintenanceWindow, ...] = ()
    acknowledgements: Mapping[str, Acknowledgement] = field(default_factory=dict)
    withheld: Mapping[str, Withheld] = field(default_factory=dict)

    def mute_of(self, subject: AlertSubject, severity: Severity, now: datetime) -> Mute | None:
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

    def is_acknowledged(self, alert: Alert) -> bool:
        """Whether somebody has acknowledged the alert, as loud as it is."""
        given = self.acknowledgements.get(alert.incident_id)
        return given is not None and given.covers(alert.severity)


@dataclass(frozen=True, slots=True)
class MuteResult:
    """A decision of which only what is to be told is told; the debts that are new or changed, and those that are over
    (incidents)."""

    decision: Decision
    withheld: tuple[Withheld, ...] = ()
    no_longer_withheld: tuple[str, ...] = ()


def mute(decision: Decision, before: Mapping[str, Alert], state: MuteState, now: datetime) -> MuteResult:
    """What of a decision is told, given the open alerts ``before`` it by fingerprint."""
    changed = {alert.incident_id: alert for alert in decision.changed}
    known = {alert.incident_id: alert for alert in before.values()}
    notifications: list[Notification] = []
    withheld: list[Withheld] = []
    no_longer_withheld = [incident for incident in decision.cancelled if incident in state.withheld]
    for notification in decision.notifications:
        incident = notification.alert.incident_id
        former, withheld_before = known.get(incident), state.withheld.get(incident)
        if notification.event is AlertEvent.RESOLVED:
            notifications.append(notification)
            no_longer_withheld += [incident] if withheld_before else []
        elif state.mute_of(notification.alert.subject, notification.severity, now) is not None:
            changed[incident] = _untold(notification.alert, former)
            if notification.event is not AlertEvent.REPEATED:
                withheld.append(_debt(notification, former, withheld_before, now))
        elif state.is_acknowledged(notification.alert):
            changed[incident] = _untold(notification.alert, former)
            no_longer_withheld += [incident] if withheld_before else []
        else:
            notifications.append(_as_people_know(notification, former, withheld_before))
            changed[incident] = notifications[-1].alert
            no_longer_withheld += [incident] if withheld_before else []
    spoken = {notification.alert.incident_id for notification in decision.notifications}
    for incident, withheld_before in state.withheld.items():
        alert = changed.get(incident) or known.get(incident)
        if incident in spoken or alert is None or alert.state is not AlertState.FIRING:
            continue
        if state.is_acknowledged(alert) or not _is_worth_telling(alert, withheld_before):
            no_longer_withheld.append(incident)
        elif _matches_now(alert) and state.mute_of(alert.subject, alert.severity, now) is None:
            notifications.append(_late(alert, withheld_before, now))
            changed[incident] = notifications[-1].alert
            no_longer_withheld.append(incident)
    return MuteResult(
        Decision(tuple(changed.values()), decision.cancelled, tuple(notifications)),
        tuple(withheld),
        tuple(dict.fromkeys(no_longer_withheld)),
    )


def _untold(alert: Alert, former: Alert | None) -> Alert:
    """The alert as it is, and what people know of it as it was."""
    was_notified = former is not None and former.sequence > 0
    return replace(
        alert,
        sequence=former.sequence if former else 0,
        channels=former.channels if former else (),
        peak_severity=former.peak_severity if former else None,
        notified_rules=former.notified_rules if former and was_notified else alert.notified_rules,
        notified_at=former.notified_at if former else None,
    )


def _debt(
    notification: Notification, former: Alert | None, withheld_before: Withheld | None, now: datetime
) -> Withheld:
    never_told = former is None or former.sequence == 0
    channels = (*(withheld_before.channels if withheld_before else ()), *notification.channels)
    return Withheld(
        incident_id=notification.alert.incident_id,
        event=AlertEvent.FIRING if never_told else AlertEvent.ESCALATED,
        rule=notification.alert.rule,
        channels=tuple(dict.fromkeys(channels)),
        previous_status=withheld_before.previous_status if withheld_before else notification.previous_status,
        previous_severity=withheld_before.previous_severity if withheld_before else notification.previous_severity,
        withheld_at=withheld_before.withheld_at if withheld_before else now,
    )


def _as_people_know(notification: Notification, former: Alert | None, withheld_before: Withheld | None) -> Notification:
    """What gets worse after its beginning was withheld begins, as far as people know."""
    if withheld_before is None and (former is None or former.sequence > 0):
        return notification
    channels = tuple(dict.fromkeys((*(withheld_before.channels if withheld_before else ()), *notification.channels)))
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


def _is_worth_telling(alert: Alert, withheld_before: Withheld) -> bool:
    """Whether what was withheld is still the case. Where it got better than that, people know what is left."""
    if withheld_before.event is AlertEvent.FIRING:
        return True
    is_louder = (
        withheld_before.previous_severity is not None and alert.severity.rank < withheld_before.previous_severity.rank
    )
    return is_louder or alert.rule == withheld_before.rule


def _matches_now(alert: Alert) -> bool:
    """Not in the calm that may be its end, nor on hold: then it is waited for what comes of that."""
    return any(timer.active and timer.matching and not timer.held for timer in alert.rule_timers)


def _late(alert: Alert, withheld_before: Withheld, now: datetime) -> Notification:
    """What was withheld, told as it stands now."""
    is_first = withheld_before.event is AlertEvent.FIRING
    louder: Iterable[Severity] = (alert.peak_severity or alert.severity, alert.severity)
    alert = replace(
        alert,
        sequence=alert.sequence + 1,
        channels=tuple(dict.fromkeys((*alert.channels, *withheld_before.channels))),
        peak_severity=min(louder, key=lambda severity: severity.rank),
        notified_rules=tuple(dict.fromkeys((*alert.notified_rules, alert.rule))),
        fired_at=now if is_first else alert.fired_at,
        notified_at=now,
    )
    return Notification(
        event=withheld_before.event,
        decided_at=now,
        alert=alert,
        status=alert.status,
        reason=alert.reason,
        severity=alert.severity,
        sentence=alert.sentence,
        numbers=alert.numbers,
        previous_status=None if is_first else withheld_before.previous_status,
        previous_severity=None if is_first else withheld_before.previous_severity,
        channels=withheld_before.channels,
    )
