"""Stage 2, inhibit: no notification about trouble that another alert already reports. Pure.

- An alert on the collection from a cluster inhibits the alerts of the cluster's groups. It keeps doing so for a moment
  after samples come again: consumers that lost the same cluster stand still, and are about to continue.
- An alert on a group that is losing data inhibits the findings that report the same loss, for as long as they last. It
  does so where all channels of a finding have heard of it, by itself or of its shared incident.

An inhibited alert is evaluated and stored like any other.
"""

from collections.abc import Mapping
from dataclasses import replace

from lagwise.domain.vocabulary import Status
from lagwise_alerts.model import Alert, AlertEvent, AlertKind, AlertState, AlertSubject, Transition

#: For so long samples must have come again, by their own times, before groups are notified of.
BACK_AFTER_SECONDS = 60.0
#: Findings about records that the alert of a group which is losing data reports, too.
_REPORTED_AS_LOSS = frozenset({AlertKind.LOSS, AlertKind.SKIPPED})


def inhibit(
    transition: Transition, open_alerts: Mapping[AlertSubject, Alert], shared: Mapping[str, Alert]
) -> Transition:
    """The transition, without its event where another alert already reports the trouble.

    ``open_alerts`` are the alerts as they are after the transitions before this one. ``shared`` are the open shared
    incidents by their ids.
    """
    if transition.event in (None, AlertEvent.RESOLVED):
        return transition
    inhibitor = _inhibitor_of(transition.after, transition.channels, open_alerts, shared)
    if inhibitor is not None:
        withheld = transition.without_event()
        return replace(withheld, after=replace(withheld.after, inhibited_by=inhibitor.incident_id))
    if transition.before is not None and _stays_inhibited(transition.before):
        return transition.without_event()
    return transition


def _inhibitor_of(
    alert: Alert,
    channels: tuple[str, ...],
    open_alerts: Mapping[AlertSubject, Alert],
    shared: Mapping[str, Alert],
) -> Alert | None:
    """The alert that reports the same trouble to these channels; None where there is none."""
    subject = alert.subject
    if subject.group is None:
        return None
    collection = open_alerts.get(AlertSubject(AlertKind.COLLECTION, subject.cluster))
    if collection is not None and collection.state is AlertState.FIRING and _lacks_samples(collection):
        return collection
    if subject.kind not in _REPORTED_AS_LOSS:
        return None
    loss = open_alerts.get(AlertSubject(AlertKind.GROUP, subject.cluster, subject.group))
    if loss is None or loss.state is not AlertState.FIRING or loss.status != Status.LOSING_DATA:
        return None
    is_as_loud = (loss.peak_severity or loss.severity).rank <= alert.severity.rank
    # Channels hear of a member by itself, or of its shared incident.
    instead = shared.get(loss.shared_incident or "")
    told = {*loss.channels, *(instead.channels if instead is not None else ())}
    return loss if is_as_loud and told.issuperset(channels) else None


def _stays_inhibited(alert: Alert) -> bool:
    """Whether an alert stays inhibited when its inhibitor ends: a finding on lost records stays for a day."""
    subject = alert.subject
    if alert.state is not AlertState.PENDING or alert.inhibited_by is None or subject.kind not in _REPORTED_AS_LOSS:
        return False
    return alert.inhibited_by.startswith(AlertSubject(AlertKind.GROUP, subject.cluster, subject.group).fingerprint)


def _lacks_samples(alert: Alert) -> bool:
    timer = alert.clear_timer
    return timer is None or timer.held or not timer.matching or timer.seconds < BACK_AFTER_SECONDS
