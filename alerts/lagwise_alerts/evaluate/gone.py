"""When an alert ends because its subject is gone: deleted, or no longer watched, and not just missed once."""

from datetime import datetime

from lagwise_alerts.model import Alert, Resolution, Situation

#: A group that is missing for this long, in the time of the data, is gone.
GONE_AFTER_SECONDS = 60.0
#: The same where reading its cluster met errors: the group may just not have been listed.
GONE_DESPITE_ERRORS_AFTER_SECONDS = 600.0


def resolution_if_gone(alert: Alert, situation: Situation, now: datetime) -> Resolution | None:
    """Why the alert of a subject that was not observed ends now; None while it does not end."""
    subject = alert.subject
    if subject.cluster is not None and subject.cluster not in situation.clusters:
        return Resolution.CLUSTER_REMOVED
    if subject.group is None or subject.cluster is None:
        return None
    view = situation.clusters[subject.cluster]
    if view.judged_until is None or (now - view.judged_until).total_seconds() > view.valid_for_seconds:
        return None
    patience = GONE_AFTER_SECONDS if view.without_errors else GONE_DESPITE_ERRORS_AFTER_SECONDS
    missing_seconds = (view.judged_until - alert.last_as_of).total_seconds()
    return Resolution.GROUP_GONE if missing_seconds >= patience else None
