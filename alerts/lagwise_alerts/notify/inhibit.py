"""When one alert tells the trouble of another already: the other is decided on, and kept, but not told.

- A cluster of which no samples come silences its groups. Once samples come again, what the first of them show is held
  back for a moment: consumers that lost the same cluster stand still, and are about to go on.
- A group that is losing data silences the findings that tell the same loss again, for as long as they last.
"""

from collections.abc import Mapping

from lagwise.domain.vocabulary import Status
from lagwise_alerts.model import Alert, AlertKind, AlertState, AlertSubject, Severity

#: How long samples must have come again, in their own time, before groups are told of.
BACK_AFTER_SECONDS = 60.0
#: Findings that tell of records that the group's own alert tells of while they are being lost.
_TOLD_AS_LOSS = frozenset({AlertKind.LOSS, AlertKind.SKIPPED})


def inhibitor_of(
    subject: AlertSubject, severity: Severity, channels: tuple[str, ...], open_alerts: Mapping[AlertSubject, Alert]
) -> Alert | None:
    """The alert that tells it already; None where it is to be told.

    ``severity`` and ``channels`` are those with which it would be told.
    """
    if subject.group is None:
        return None
    blind = open_alerts.get(AlertSubject(AlertKind.COLLECTION, subject.cluster))
    if blind is not None and blind.state is AlertState.FIRING and _is_blind(blind):
        return blind
    if subject.kind not in _TOLD_AS_LOSS:
        return None
    loss = open_alerts.get(AlertSubject(AlertKind.GROUP, subject.cluster, subject.group))
    if loss is None or loss.state is not AlertState.FIRING or loss.status != Status.LOSING_DATA:
        return None
    was_notified = (loss.peak_severity or loss.severity).rank <= severity.rank and set(channels) <= set(loss.channels)
    return loss if was_notified else None


def stays_inhibited(alert: Alert) -> bool:
    """Whether what was told by another alert is not told by this one either when that one is over: a loss that is over
    is found for a day."""
    subject = alert.subject
    if alert.state is not AlertState.PENDING or alert.inhibited_by is None or subject.kind not in _TOLD_AS_LOSS:
        return False
    return alert.inhibited_by.startswith(AlertSubject(AlertKind.GROUP, subject.cluster, subject.group).fingerprint)


def _is_blind(alert: Alert) -> bool:
    return (
        alert.clear_timer is None
        or alert.clear_timer.held
        or not alert.clear_timer.matching
        or alert.clear_timer.seconds < BACK_AFTER_SECONDS
    )
