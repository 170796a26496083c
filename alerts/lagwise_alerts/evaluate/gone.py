"""When what an alert is about is no longer there: deleted, or no longer watched, or just not seen this time."""

from datetime import datetime

from lagwise_alerts.model import Alert, Resolution, Situation

#: A group that is missing for this long, in the time of the data, is gone …
GONE_AFTER_SECONDS = 60.0
#: … but where reading its cluster met errors, only after this long: it may just not have been listed.
GONE_DESPITE_ERRORS_AFTER_SECONDS = 600.0


def why_gone(alert: Alert, observation: Situation, now: datetime) -> Resolution | None:
    """Why the alert of a subject that was not observed ends now; None while it does not, or that cannot be told."""
    subject = alert.subject
    if subject.cluster is not None and subject.cluster not in observation.clusters:
        return Resolution.CLUSTER_REMOVED
    if subject.group is None or subject.cluster is None:
        return None
    view = observation.clusters[subject.cluster]
    if view.judged_until is None or (now - view.judged_until).total_seconds() > view.valid_for_seconds:
        return None
    patience = GONE_AFTER_SECONDS if view.without_errors else GONE_DESPITE_ERRORS_AFTER_SECONDS
    missing_seconds = (view.judged_until - alert.last_as_of).total_seconds()
    return Resolution.GROUP_GONE if missing_seconds >= patience else None
