"""What is told of an alert that was decided on: that it begins, becomes worse, lasts, or ends. Pure.

What another alert tells already is not told (:mod:`lagwise_alerts.notify.inhibit`), and what comes and goes is told
as one alert that flaps.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from lagwise.domain.group_record import GroupNumbers
from lagwise.domain.vocabulary import Status
from lagwise_alerts.model import (
    FRESH,
    Alert,
    AlertEvent,
    AlertSubject,
    Condition,
    FreshnessCondition,
    GroupCondition,
    Notification,
    Phase,
    Resolution,
)
from lagwise_alerts.notify.inhibit import inhibitor_of, stays_inhibited
from lagwise_alerts.rules.rule_file import Rule, RuleBook


def tell(
    book: RuleBook,
    before: Alert | None,
    after: Alert,
    rule: Rule,
    now: datetime,
    open_alerts: Mapping[AlertSubject, Alert],
    *,
    shows: bool,
) -> tuple[Alert, Notification | None]:
    """Tell that the alert fires, has become worse than what was told so far, or still lasts.

    ``after`` is the alert as it follows from ``before`` and an observation, ``rule`` the worst that is active, and
    ``shows`` whether the observation is what it looks for. ``open_alerts`` may tell the same already.
    """
    event = _event(book, before, after, rule, now)
    if event is None:
        return after, None
    channels = book.channels_of(rule, after.subject)
    inhibitor = inhibitor_of(after.subject, rule.severity, channels, open_alerts)
    if inhibitor is not None:
        return replace(_untold(before, after, event), inhibited_by=inhibitor.incident_id), None
    if not shows or (before is not None and stays_inhibited(before)):
        return _untold(before, after, event), None
    after = _told(book, after, rule, event, channels, now)
    return after, Notification(
        event=event,
        decided_at=now,
        alert=after,
        status=after.status,
        reason=after.reason,
        severity=after.severity,
        sentence=after.sentence,
        numbers=after.numbers,
        previous_status=before.status if before and event is AlertEvent.ESCALATED else None,
        previous_severity=before.severity if before and event is AlertEvent.ESCALATED else None,
        channels=channels,
    )


def _event(book: RuleBook, before: Alert | None, after: Alert, rule: Rule, now: datetime) -> AlertEvent | None:
    if before is None or before.phase is Phase.PENDING:
        return AlertEvent.FIRING
    louder = after.severity.rank < before.severity.rank
    worse = book.rank(after.rule, after.severity) < book.rank(before.rule, before.severity)
    if louder or (worse and rule.name not in after.told):
        return AlertEvent.ESCALATED
    told_at = before.told_at or before.fired_at or before.started_at
    return AlertEvent.REPEATED if (now - told_at).total_seconds() >= book.repeat_seconds_of(rule) else None


def _untold(before: Alert | None, after: Alert, event: AlertEvent) -> Alert:
    """The alert after an event that is not told, so that it still can be: a worsening is kept as if it were none."""
    if before is None or event is not AlertEvent.ESCALATED:
        return after
    return replace(
        after,
        rule=before.rule,
        severity=before.severity,
        status=before.status,
        reason=before.reason,
        since=before.since,
        sentence=before.sentence,
        numbers=before.numbers,
    )


def _told(
    book: RuleBook, after: Alert, rule: Rule, event: AlertEvent, channels: tuple[str, ...], now: datetime
) -> Alert:
    begins = event is AlertEvent.FIRING or (event is AlertEvent.ESCALATED and rule.name in after.told)
    begun_at = (*counting(book, after.begun_at, now), now) if begins else after.begun_at
    return replace(
        after,
        phase=Phase.FIRING,
        fired_at=now if event is AlertEvent.FIRING else after.fired_at,
        told=tuple(dict.fromkeys((*after.told, rule.name))),
        peak_severity=min(after.peak_severity or after.severity, after.severity, key=lambda s: s.rank),
        channels=tuple(dict.fromkeys((*after.channels, *channels))),
        sequence=after.sequence + 1,
        told_at=now,
        begun_at=begun_at,
        flapping=after.flapping or (book.flapping is not None and len(begun_at) >= book.flapping.times),
        inhibited_by=None,
    )


def counting(book: RuleBook, begun_at: tuple[datetime, ...], now: datetime) -> tuple[datetime, ...]:
    """The beginnings that count, at a moment, for whether an alert flaps."""
    within = 0.0 if book.flapping is None else book.flapping.within
    return tuple(at for at in begun_at if (now - at).total_seconds() < within)


_ENDINGS = {
    Resolution.GROUP_GONE: "The group no longer exists, or is no longer watched.",
    Resolution.CLUSTER_REMOVED: "The cluster is no longer among the clusters that are watched.",
    Resolution.RULE_CHANGED: "The rule that raised the alert was changed or removed.",
}


def resolve(
    book: RuleBook, alert: Alert, condition: Condition | None, resolution: Resolution, now: datetime
) -> tuple[Alert, Notification]:
    """End an alert that was told, and tell that. ``condition`` is the state of things now; None is not known."""
    ended = replace(
        alert,
        phase=Phase.RESOLVED,
        resolved_at=now,
        resolution=resolution,
        on_hold=False,
        inhibited_by=None,
        told_at=now,
        sequence=alert.sequence + 1,
    )
    status: str | None = None
    if isinstance(condition, FreshnessCondition):
        status = FRESH
    elif condition is not None:
        status = condition.status.value
    group = condition if isinstance(condition, GroupCondition) else None
    sentence = _ENDINGS.get(resolution, group.sentence if group else "New data is coming in again.")
    return ended, Notification(
        event=AlertEvent.RESOLVED,
        decided_at=now,
        alert=ended,
        status=status,
        reason=group.reason.value if group and group.status is Status.UNKNOWN and group.reason else None,
        severity=alert.peak_severity or alert.severity,
        sentence=sentence,
        numbers=group.numbers if group else GroupNumbers(),
        previous_status=alert.status,
        previous_severity=alert.severity,
        channels=tuple(name for name in alert.channels if name in book.channels),
    )
