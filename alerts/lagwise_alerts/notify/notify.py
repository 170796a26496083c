"""Stage 3, notify: the notification of an alert that begins, becomes worse, lasts, or ends. Pure.

An alert that comes and goes is marked as flapping here.
"""

from dataclasses import replace
from datetime import datetime

from lagwise.domain.group_record import GroupNumbers
from lagwise.domain.vocabulary import Status
from lagwise_alerts.model import (
    FRESH,
    HEALTHY,
    Alert,
    AlertEvent,
    AlertState,
    ClusterCondition,
    FreshnessCondition,
    GroupCondition,
    Notification,
    Resolution,
    Transition,
)
from lagwise_alerts.rules.flapping import recent_starts
from lagwise_alerts.rules.rule_file import RuleBook

_ENDINGS = {
    Resolution.GROUP_GONE: "The group no longer exists, or is no longer watched.",
    Resolution.CLUSTER_REMOVED: "The cluster is no longer among the clusters that are watched.",
    Resolution.RULE_CHANGED: "The rule that raised the alert was changed or removed.",
}
#: By the status at the end.
_IS_OVER = {FRESH: "New data is coming in again.", HEALTHY: "The newest samples no longer show it."}


def notify(transition: Transition, book: RuleBook, now: datetime) -> tuple[Alert, Notification | None]:
    """The alert after a transition, and the notification of it; None where there is nothing to report."""
    if transition.event is AlertEvent.RESOLVED:
        return _notify_end(transition, book, now)
    if transition.event is None or not transition.matches_now:
        return transition.without_event().after, None
    before, event = transition.before, transition.event
    notification = report(_as_firing(transition.after, event, book, now), event, transition.channels, now)
    if before is not None and event is AlertEvent.ESCALATED:
        notification = replace(notification, previous_status=before.status, previous_severity=before.severity)
    return notification.alert, notification


def _as_firing(alert: Alert, event: AlertEvent, book: RuleBook, now: datetime) -> Alert:
    """The alert once it fires, and whether it is flapping by now."""
    begins = event is AlertEvent.FIRING or (event is AlertEvent.ESCALATED and alert.rule in alert.notified_rules)
    starts = (*recent_starts(book.flapping, alert.recent_starts, now), now) if begins else alert.recent_starts
    return replace(
        alert,
        state=AlertState.FIRING,
        recent_starts=starts,
        flapping=alert.flapping or (book.flapping is not None and book.flapping.is_flapping(starts)),
        inhibited_by=None,
    )


def report(alert: Alert, event: AlertEvent, channels: tuple[str, ...], now: datetime) -> Notification:
    """The notification of an alert that fires. The alert in it has the notification on record."""
    notified = replace(
        alert,
        fired_at=now if event is AlertEvent.FIRING else alert.fired_at,
        notified_rules=union(alert.notified_rules, (alert.rule,)),
        peak_severity=min(alert.peak_severity or alert.severity, alert.severity, key=lambda s: s.rank),
        channels=union(alert.channels, channels),
        sequence=alert.sequence + 1,
        notified_at=now,
    )
    return Notification(
        event=event,
        decided_at=now,
        alert=notified,
        status=alert.status,
        reason=alert.reason,
        severity=alert.severity,
        sentence=alert.sentence,
        numbers=alert.numbers,
        previous_status=None,
        previous_severity=None,
        channels=channels,
    )


def union(names: tuple[str, ...], more: tuple[str, ...]) -> tuple[str, ...]:
    """All names, each once, in their order."""
    return tuple(dict.fromkeys((*names, *more)))


def _notify_end(transition: Transition, book: RuleBook, now: datetime) -> tuple[Alert, Notification]:
    """The end goes to every channel that was notified and still exists."""
    alert = replace(transition.after, notified_at=now, sequence=transition.after.sequence + 1)
    condition = transition.condition
    status: str | None = None
    if isinstance(condition, FreshnessCondition):
        status = FRESH
    elif isinstance(condition, ClusterCondition):
        status = HEALTHY
    elif condition is not None:
        status = condition.status.value
    group = condition if isinstance(condition, GroupCondition) else None
    ending = None if alert.resolution is None else _ENDINGS.get(alert.resolution)
    return alert, Notification(
        event=AlertEvent.RESOLVED,
        decided_at=now,
        alert=alert,
        status=status,
        reason=group.reason.value if group and group.status is Status.UNKNOWN and group.reason else None,
        severity=alert.peak_severity or alert.severity,
        sentence=ending or (group.sentence if group else _IS_OVER.get(status or "", "")),
        numbers=group.numbers if group else GroupNumbers(),
        previous_status=alert.status,
        previous_severity=alert.severity,
        channels=tuple(name for name in transition.channels if name in book.channels),
    )
