"""Stage 5, correlate: alerts of groups that got worse together and share something become one shared incident. Pure.

- A shared incident is an alert of its own, which is notified **instead of** its members: once for all of them, when it
  becomes more severe, and when the last member has ended. Members are evaluated, stored, muted and acknowledged like
  any alert.
- Nothing waits: alerts that fire before the evidence suffices are notified by themselves, and join afterwards. Their
  ends go to those who were notified of them.
- A group that gets worse later joins if it shares the thing, unless that is so much later that it is another trouble.
- An existing member that gets worse that much later is another trouble, too: the shared incident is notified again.
- It comes after the mutes: what is silenced or acknowledged makes no shared incident notify, but is a member of it. Nor
  does it say how severe the shared incident is: otherwise a page that nobody got would cover the next one.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

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
from lagwise_alerts.notify.mute_state import MuteState
from lagwise_alerts.notify.notify import report, union
from lagwise_alerts.notify.shared_members import RoundIncident, find_members, worsened_at
from lagwise_alerts.rules.rule_file import RuleBook

#: Ends of members, the worst first: the trouble may go on, nobody can tell, or it is over.
_ENDS = (
    Resolution.UNKNOWN,
    Resolution.CLUSTER_REMOVED,
    Resolution.GROUP_GONE,
    Resolution.RULE_CHANGED,
    Resolution.RECOVERED,
)
_WHY = {
    Resolution.UNKNOWN: "of one at least it is not known whether it has",
    Resolution.CLUSTER_REMOVED: "the cluster of one at least is no longer watched",
    Resolution.GROUP_GONE: "one at least no longer exists, or is no longer watched",
    Resolution.RULE_CHANGED: "the rule that raised the alert of one at least was changed or removed",
}


@dataclass(frozen=True, slots=True)
class Correlated:
    """A decision in which members of shared incidents are not notified, and the decision on the shared incidents."""

    members: Decision
    shared: Decision
    #: The shared incidents by their ids.
    incidents: Mapping[str, SharedIncident]
    #: Notifications of members that the shared incidents replace.
    covered: tuple[Notification, ...]
    #: Those with a notification that an acknowledgement does not withhold.
    past_acknowledgement: frozenset[str]
    #: Those that have got a new trouble, so that what was acknowledged is not all of it any more.
    back: frozenset[str]

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
    mute_state: MuteState,
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
            joined = incidents[alert.shared_incident]
            joined.members.append(alert)
            if mute_state.mute_of(alert.subject, alert.severity, now) is None and not mute_state.is_acknowledged(alert):
                joined.audible.append(alert)

    sent = []
    for notification in decision.notifications:
        alert = changed.get(notification.alert.incident_id, notification.alert)
        incident = incidents.get(alert.shared_incident or "")
        if incident is None or notification.event is AlertEvent.RESOLVED:
            sent.append(notification if incident is None else replace(notification, alert=alert))
            continue
        incident.covered.append(notification)
        if notification.event is not AlertEvent.REPEATED:
            incident.is_back |= _is_late(alert, before.get(alert.incident_id), incident.alert, book, now)
        changed[alert.incident_id] = replace(
            not_notified(alert, before.get(alert.incident_id)),
            notified_rules=notification.alert.notified_rules,
            notified_at=now,
        )
    ended = [alert for alert in decision.changed if alert.state is AlertState.RESOLVED]
    results = [_decide(incident, ended, mute_state, book, now) for incident in incidents.values()]
    return Correlated(
        Decision(tuple(changed.values()), decision.cancelled, tuple(sent)),
        Decision(
            tuple(alert for alert, _ in results if alert != shared.get(alert.fingerprint)),
            notifications=tuple(notification for _, notification in results if notification is not None),
        ),
        {key: SharedIncident(incident.alert, tuple(incident.members)) for key, incident in incidents.items()},
        tuple(notification for incident in incidents.values() for notification in incident.covered),
        frozenset(key for key, incident in incidents.items() if incident.is_past_acknowledgement),
        frozenset(key for key, incident in incidents.items() if incident.is_back),
    )


def _is_late(alert: Alert, former: Alert | None, shared: Alert, book: RuleBook, now: datetime) -> bool:
    """Whether a member has got worse, or is heard of again, too late for that to be the trouble that was notified."""
    if shared.notified_at is not None and shared.notified_at < worsened_at(shared):
        return True  # a later trouble, of which nobody has heard so far
    if former is None or former.shared_incident != alert.shared_incident:
        return False  # it joins in this round, for which it has been early enough
    join_within = timedelta(seconds=book.shared_incidents.join_within if book.shared_incidents else 0)
    # What a mute releases got worse earlier, but nobody has heard of it yet.
    since = worsened_at(alert) if alert.worsened_at != former.worsened_at else now
    return since > worsened_at(shared) + join_within


def _decide(
    incident: RoundIncident, ended: Sequence[Alert], mute_state: MuteState, book: RuleBook, now: datetime
) -> tuple[Alert, Notification | None]:
    """The shared incident after this round, and the notification of it; None where there is nothing to report."""
    ends = {
        incident.alert.resolution,
        *(one.resolution for one in ended if one.shared_incident == incident.alert.incident_id),
    }
    incident.alert = replace(incident.alert, resolution=next((one for one in _ENDS if one in ends), None))
    if not incident.members:
        return _end(incident, book, now)
    before, members = incident.alert, incident.members
    for some in (members, incident.audible):
        some.sort(key=lambda one: (*book.rank(one.rule, one.severity), one.subject))
    # Where nobody hears of any member, what was notified before stays what the next one is compared with.
    worst = before if before.sequence and not incident.audible else (incident.audible or members)[0]
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
    event, channels = _event(incident, before, mute_state, book, now)
    if event is None:
        return alert, None
    # Whoever has not been told has not acknowledged it either.
    incident.is_past_acknowledgement = incident.is_back or (event is AlertEvent.FIRING and before.sequence > 0)
    notification = report(alert, event, channels, now)
    kept = before.fired_at or now  # those who are notified later read since when it has fired, too
    notification = replace(notification, alert=replace(notification.alert, fired_at=kept))
    if event is AlertEvent.ESCALATED:
        notification = replace(notification, previous_status=before.status, previous_severity=before.severity)
    incident.alert = notification.alert
    return notification.alert, notification


def _event(
    incident: RoundIncident, before: Alert, mute_state: MuteState, book: RuleBook, now: datetime
) -> tuple[AlertEvent | None, tuple[str, ...]]:
    """What to report of a shared incident, and to whom: to each channel that would have been notified of a member."""
    alert = incident.alert
    # As with a single alert, louder than it was last: it may have become quieter since its loudest notification. That
    # may come without a notification to cover, as when a silence or an acknowledgement of a louder member ends.
    is_louder = before.sequence > 0 and alert.severity.rank < before.severity.rank
    if not incident.covered and not is_louder:
        return None, ()
    asked = union((), tuple(name for one in incident.covered for name in one.channels))
    if before.sequence == 0:
        told = tuple(name for one in incident.members for name in one.channels if name in book.channels)
        return AlertEvent.FIRING, union(asked, told)
    new = tuple(name for name in asked if name not in before.channels)
    every = tuple(name for name in union(before.channels, asked) if name in book.channels)
    if mute_state.is_acknowledged(alert) and not incident.is_back:
        return (AlertEvent.FIRING, new) if new else (None, ())
    is_worse = book.rank(alert.rule, alert.severity) < book.rank(before.rule, before.severity)
    if is_louder or incident.is_back or (is_worse and alert.rule not in before.notified_rules):
        return AlertEvent.ESCALATED, every
    repeats = {one.alert.rule for one in incident.covered if one.event is AlertEvent.REPEATED}
    if not new or all(one.event is AlertEvent.REPEATED for one in incident.covered):
        seconds = (now - (before.notified_at or before.started_at)).total_seconds()
        if any(rule.name in repeats and seconds >= book.repeat_seconds_of(rule) for rule in book.rules):
            return AlertEvent.REPEATED, every
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


def _end(incident: RoundIncident, book: RuleBook, now: datetime) -> tuple[Alert, Notification | None]:
    before = incident.alert
    resolution = before.resolution or Resolution.RECOVERED
    why = f" Not all groups have recovered: {_WHY[resolution]}." if resolution in _WHY else ""
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
        sentence=f"The alerts of all its groups have ended.{why}",
        numbers=GroupNumbers(),
        previous_status=before.status,
        previous_severity=before.severity,
        channels=tuple(name for name in before.channels if name in book.channels),
    )
