"""Stage 5, correlate: alerts of groups that got worse together and share something become one shared incident. Pure.

- A shared incident is an alert of its own, which is notified **instead of** its members: once for all of them, when it
  becomes more severe, and when the last member has ended. Members are evaluated, stored, muted and acknowledged like
  any alert.
- Nothing waits: alerts that fire before the evidence suffices are notified by themselves, and join afterwards. Their
  ends go to those who were notified of them.
- A group that gets worse later joins if it shares the thing, unless that is so much later that it is another trouble.
- It comes after the mutes: what is silenced or acknowledged makes no shared incident notify, but is a member of it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from lagwise.domain.group_record import GroupNumbers
from lagwise_alerts.model import (
    Alert,
    AlertEvent,
    AlertState,
    Decision,
    Notification,
    Resolution,
    RuleTimer,
    SharedIncident,
    Situation,
)
from lagwise_alerts.notify.mute import matches_now, not_notified
from lagwise_alerts.notify.notify import report, union
from lagwise_alerts.notify.shared_members import RoundIncident, find_members
from lagwise_alerts.rules.rule_file import RuleBook

#: Ends of members, from the one that says most about the shared incident.
_ENDS = tuple(Resolution)


@dataclass(frozen=True, slots=True)
class Correlated:
    """A decision in which members of shared incidents are not notified, and the decision on the shared incidents."""

    members: Decision
    shared: Decision
    #: The shared incidents by their ids.
    incidents: Mapping[str, SharedIncident]

    def named(self, notification: Notification) -> Notification:
        """The notification with the shared incident that it is about, or that its alert is part of."""
        alert = notification.alert
        found = self.incidents.get(alert.shared_incident or alert.incident_id)
        return replace(notification, shared_incident=found)


def correlate(
    decision: Decision,
    alerts: Mapping[str, Alert],
    shared: Mapping[str, Alert],
    situation: Situation,
    book: RuleBook,
    now: datetime,
) -> Correlated:
    """Gather alerts in shared incidents. ``alerts`` and ``shared`` are the open ones before the decision."""
    before = {alert.incident_id: alert for alert in alerts.values()}
    changed = {alert.incident_id: alert for alert in decision.changed}
    open_alerts = {
        key: alert
        for key, alert in {**before, **changed}.items()
        if alert.state is not AlertState.RESOLVED and key not in decision.cancelled
    }
    incidents = {alert.incident_id: RoundIncident(alert) for alert in shared.values()}
    for alert in find_members(open_alerts, before, incidents, situation, book, now):
        changed[alert.incident_id] = open_alerts[alert.incident_id] = alert
    for alert in open_alerts.values():
        if alert.state is AlertState.FIRING and alert.shared_incident in incidents:
            incidents[alert.shared_incident].members.append(alert)

    sent = []
    for notification in decision.notifications:
        alert = changed.get(notification.alert.incident_id, notification.alert)
        incident = incidents.get(alert.shared_incident or "")
        if incident is None or notification.event is AlertEvent.RESOLVED:
            sent.append(notification if incident is None else replace(notification, alert=alert))
            continue
        incident.covered.append(notification)
        changed[alert.incident_id] = replace(
            not_notified(alert, before.get(alert.incident_id)),
            notified_rules=notification.alert.notified_rules,
            notified_at=now,
        )
    ended = [alert for alert in decision.changed if alert.state is AlertState.RESOLVED]
    results = [_decide(incident, ended, book, now) for incident in incidents.values()]
    return Correlated(
        Decision(tuple(changed.values()), decision.cancelled, tuple(sent)),
        Decision(
            tuple(alert for alert, _ in results if alert != shared.get(alert.fingerprint)),
            notifications=tuple(notification for _, notification in results if notification is not None),
        ),
        {key: SharedIncident(incident.alert, tuple(incident.members)) for key, incident in incidents.items()},
    )


def _decide(
    incident: RoundIncident, ended: Sequence[Alert], book: RuleBook, now: datetime
) -> tuple[Alert, Notification | None]:
    """The shared incident after this round, and the notification of it; None where there is nothing to report."""
    if not incident.members:
        return _end(incident, ended, book, now)
    before, members = incident.alert, incident.members
    members.sort(key=lambda one: (*book.rank(one.rule, one.severity), one.subject))
    worst = members[0]
    on_hold = all(one.on_hold for one in members)
    alert = incident.alert = replace(
        before,
        rule=worst.rule,
        severity=worst.severity,
        status=worst.status,
        reason=worst.reason,
        last_as_of=max(one.last_as_of for one in members),
        numbers=_numbers(members),
        labels=dict(set.intersection(*(set(one.labels.items()) for one in members))),
        on_hold=on_hold,
        rule_timers=(RuleTimer(worst.rule, True, any(map(matches_now, members)), on_hold, 0.0),),
    )
    event, channels = _event(incident, before, book, now)
    if event is None:
        return alert, None
    notification = report(alert, event, channels, now)
    kept = before.fired_at or now  # those who are notified later read since when it has fired, too
    notification = replace(notification, alert=replace(notification.alert, fired_at=kept))
    if event is AlertEvent.ESCALATED:
        notification = replace(notification, previous_status=before.status, previous_severity=before.severity)
    incident.alert = notification.alert
    return notification.alert, notification


def _event(
    incident: RoundIncident, before: Alert, book: RuleBook, now: datetime
) -> tuple[AlertEvent | None, tuple[str, ...]]:
    """What to report of a shared incident, and to whom: to each channel that would have been notified of a member."""
    alert = incident.alert
    if not incident.covered:
        return None, ()
    asked = union((), tuple(name for one in incident.covered for name in one.channels))
    if before.sequence == 0:
        told = tuple(name for one in incident.members for name in one.channels if name in book.channels)
        return AlertEvent.FIRING, union(asked, told)
    if all(one.event is AlertEvent.REPEATED for one in incident.covered):
        notified_at = before.notified_at or before.started_at
        rule = next((one for one in book.rules if one.name == alert.rule), None)
        is_due = rule is not None and (now - notified_at).total_seconds() >= book.repeat_seconds_of(rule)
        return (AlertEvent.REPEATED, before.channels) if is_due else (None, ())
    is_louder = before.peak_severity is None or alert.severity.rank < before.peak_severity.rank
    is_worse = book.rank(alert.rule, alert.severity) < book.rank(before.rule, before.severity)
    if is_louder or incident.is_back or (is_worse and alert.rule not in before.notified_rules):
        return AlertEvent.ESCALATED, union(before.channels, asked)
    new = tuple(name for name in asked if name not in before.channels)
    return (AlertEvent.FIRING, new) if new else (None, ())


def _numbers(members: Iterable[Alert]) -> GroupNumbers:
    """How bad it is in total, which is unknown where that of a member is; and the first loss of all."""
    each = [one.numbers for one in members]
    records = [one.lag_records for one in each if one.lag_records is not None]
    lost = [one.records_lost for one in each if one.records_lost is not None]
    ages = [one.lag_seconds for one in each if one.lag_seconds is not None]
    # The age of a group that is not known may be higher.
    is_lower_bound = len(ages) < len(each) or any(one.lag_seconds_is_lower_bound for one in each)
    losses = [(one.seconds_to_loss, one) for one in each if one.seconds_to_loss is not None]
    _, first = min(losses, key=lambda pair: pair[0], default=(None, GroupNumbers()))
    return GroupNumbers(
        lag_records=sum(records) if len(records) == len(each) else None,
        lag_seconds=max(ages, default=None),
        lag_seconds_is_lower_bound=is_lower_bound if ages else None,
        seconds_to_loss=first.seconds_to_loss,
        seconds_to_loss_is_upper_bound=first.seconds_to_loss_is_upper_bound,
        loss_cause=first.loss_cause,
        records_lost=sum(lost) if len(lost) == len(each) else None,
    )


def _end(
    incident: RoundIncident, ended: Sequence[Alert], book: RuleBook, now: datetime
) -> tuple[Alert, Notification | None]:
    before = incident.alert
    ends = {one.resolution for one in ended if one.shared_incident == before.incident_id}
    resolution = next((one for one in _ENDS if one in ends), Resolution.RECOVERED)
    alert = replace(
        before,
        state=AlertState.RESOLVED,
        resolved_at=now,
        resolution=resolution,
        on_hold=False,
        rule_timers=(),
        notified_at=now,
        sequence=before.sequence + 1,
    )
    incident.alert = alert
    return alert, Notification(
        event=AlertEvent.RESOLVED,
        decided_at=now,
        alert=alert,
        status=None,
        reason=None,
        severity=before.peak_severity or before.severity,
        sentence="The alerts of all its groups have ended.",
        numbers=GroupNumbers(),
        previous_status=before.status,
        previous_severity=before.severity,
        channels=tuple(name for name in before.channels if name in book.channels),
    )
