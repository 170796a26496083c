"""Stage 4, mute: what a silence, a maintenance window or an acknowledgement keeps from being sent. Pure.

- **Muted** (by a silence or a maintenance window): no notification of a beginning or a worsening. It is *withheld*, and
  sent once nothing mutes the alert any more, if it still applies then.
- **Acknowledged**: somebody has taken the alert on. No notification, unless it becomes louder than what was
  acknowledged.
- **The end always goes out** to every channel that was notified, muted and acknowledged or not. An end wakes no one;
  without it a receiver would show the alert forever. A channel that was not notified gets no end either.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from lagwise_alerts.model import Alert, AlertEvent, AlertState, Decision, Notification
from lagwise_alerts.notify.mute_state import MuteState, Withheld
from lagwise_alerts.notify.notify import report, union


@dataclass(frozen=True, slots=True)
class MuteResult:
    """A decision without what is muted. ``no_longer_withheld`` are incidents."""

    decision: Decision
    #: Notifications that are withheld from now on, or differently than before.
    withheld: tuple[Withheld, ...] = ()
    no_longer_withheld: tuple[str, ...] = ()
    #: Incidents whose acknowledgement is void: they have got a trouble that nobody has taken on.
    no_longer_acknowledged: tuple[str, ...] = ()
    #: Notifications of single groups that shared incidents replace.
    covered: tuple[Notification, ...] = ()


def mute(decision: Decision, alerts: Mapping[str, Alert], state: MuteState, now: datetime) -> MuteResult:
    """Withhold the muted notifications of a decision, and send those that nothing mutes any more.

    ``alerts`` are the open alerts before the decision, by fingerprint.
    """
    changed = {alert.incident_id: alert for alert in decision.changed}
    before = {alert.incident_id: alert for alert in alerts.values()}
    notifications: list[Notification] = []
    withheld: list[Withheld] = []
    done = [incident for incident in decision.cancelled if incident in state.withheld]
    for notification in decision.notifications:
        incident = notification.alert.incident_id
        former, earlier = before.get(incident), state.withheld.get(incident)
        if notification.event is AlertEvent.RESOLVED:
            notifications.append(notification)
        elif state.mute_of(notification.alert.subject, notification.severity, now) is not None:
            changed[incident] = not_notified(notification.alert, former)
            if notification.event is not AlertEvent.REPEATED:
                withheld.append(_withhold(notification, former, earlier, now))
            continue
        elif state.is_acknowledged(notification.alert):
            changed[incident] = not_notified(notification.alert, former)
        else:
            notifications.append(_with_earlier(notification, former, earlier))
            changed[incident] = notifications[-1].alert
        if earlier is not None:
            done.append(incident)
    decided = {notification.alert.incident_id for notification in decision.notifications}
    for incident, earlier in state.withheld.items():
        alert = changed.get(incident) or before.get(incident)
        if incident in decided or alert is None or alert.state is not AlertState.FIRING:
            continue
        if state.is_acknowledged(alert) or not _still_applies(alert, earlier):
            done.append(incident)
        elif matches_now(alert) and state.mute_of(alert.subject, alert.severity, now) is None:
            notifications.append(_unmuted(alert, earlier, now))
            changed[incident] = notifications[-1].alert
            done.append(incident)
    return MuteResult(
        Decision(tuple(changed.values()), decision.cancelled, tuple(notifications)),
        tuple(withheld),
        tuple(dict.fromkeys(done)),
    )


def not_notified(alert: Alert, former: Alert | None) -> Alert:
    """The alert as it is now, with the record of its notifications as it was before; None is none."""
    was_notified = former is not None and former.sequence > 0
    return replace(
        alert,
        sequence=former.sequence if former else 0,
        channels=former.channels if former else (),
        peak_severity=former.peak_severity if former else None,
        notified_rules=former.notified_rules if former and was_notified else alert.notified_rules,
        notified_at=former.notified_at if former else None,
    )


def _withhold(notification: Notification, former: Alert | None, earlier: Withheld | None, now: datetime) -> Withheld:
    is_first = former is None or former.sequence == 0
    return Withheld(
        incident_id=notification.alert.incident_id,
        event=AlertEvent.FIRING if is_first else AlertEvent.ESCALATED,
        rule=notification.alert.rule,
        channels=union(earlier.channels if earlier else (), notification.channels),
        previous_status=earlier.previous_status if earlier else notification.previous_status,
        previous_severity=earlier.previous_severity if earlier else notification.previous_severity,
        withheld_at=earlier.withheld_at if earlier else now,
    )


def _with_earlier(notification: Notification, former: Alert | None, earlier: Withheld | None) -> Notification:
    """A notification that also covers what was withheld earlier: a worsening is then the beginning for its readers."""
    # A shared incident was notified instead of its members: a member that it covers has not been withheld.
    is_known = former is None or former.sequence > 0 or former.shared_incident is not None
    if earlier is None and is_known:
        return notification
    channels = union(earlier.channels if earlier else (), notification.channels)
    alert = replace(notification.alert, channels=union(notification.alert.channels, channels))
    if former is not None and former.sequence > 0:
        return replace(notification, alert=alert, channels=channels)
    return replace(
        notification,
        event=AlertEvent.FIRING,
        alert=replace(alert, fired_at=notification.decided_at),
        channels=channels,
        previous_status=None,
        previous_severity=None,
    )


def _still_applies(alert: Alert, earlier: Withheld) -> bool:
    """Whether a withheld worsening is still there. If the alert got better since, readers know what is left."""
    if earlier.event is AlertEvent.FIRING:
        return True
    is_louder = earlier.previous_severity is not None and alert.severity.rank < earlier.previous_severity.rank
    return is_louder or alert.rule == earlier.rule


def matches_now(alert: Alert) -> bool:
    """Whether an active rule matches now. Otherwise the alert may be about to end, or its data is missing."""
    return any(timer.active and timer.matching and not timer.held for timer in alert.rule_timers)


def _unmuted(alert: Alert, earlier: Withheld, now: datetime) -> Notification:
    """The withheld notification, with the alert as it is now."""
    notification = report(alert, earlier.event, earlier.channels, now)
    if earlier.event is AlertEvent.FIRING:
        return notification
    return replace(notification, previous_status=earlier.previous_status, previous_severity=earlier.previous_severity)
