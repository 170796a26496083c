"""Alerts in words: their severity, what they are about, and as marks of a chart."""

from lagwise_alerts.operate import CLUSTER_FINDINGS, Alert, AlertKind, Severity
from lagwise_dashboard import appearance, escaping
from lagwise_dashboard.appearance import Appearance

#: What is told of an alert among other events begins so.
ALERT = "Alert "
#: How each severity looks.
SEVERITIES: dict[Severity, Appearance] = {
    Severity.PAGE: Appearance("page", "◆", "#BE123C", "red", "It pages someone."),
    Severity.WARN: Appearance("warn", "▲", "#B45309", "orange", "It can wait for the morning."),
    Severity.INFO: Appearance("info", "●", "#2563EB", "blue", "For information."),
}


def about(row: Alert) -> str:
    """What an alert is about, in plain text."""
    if row.subject.kind is AlertKind.ANALYSIS:
        return "the analysis"
    if row.subject.kind is AlertKind.COLLECTION:
        return f"collection from {escaping.visible(row.subject.cluster)}"
    if row.subject.kind in CLUSTER_FINDINGS:
        return f"{_finding_words(row)}: cluster {escaping.visible(row.subject.cluster)}"
    if row.subject.kind is AlertKind.SHARED_INCIDENT:
        return f"shared incident: {escaping.visible(row.subject.shared_by)}"
    finding = "" if row.subject.kind is AlertKind.GROUP else f"{_finding_words(row)}: "
    return f"{finding}{escaping.visible(row.subject.group)} ({escaping.visible(row.subject.cluster)})"


def _finding_words(row: Alert) -> str:
    return row.subject.kind.value.replace("_", " ")


def severity_label(severity: Severity) -> str:
    """Sign and word of a severity."""
    return SEVERITIES[severity].label


def began_text(row: Alert) -> str:
    """The beginning of an alert, as it is told among other events. Of one that was escalated since, what it began with
    is no longer known."""
    return f"{ALERT}firing" if len(row.notified_rules) > 1 else f"{ALERT}{_severity_and_cause(row)}"


def escalated_text(row: Alert, *, latest: bool) -> str:
    """An escalation among other events: what it was escalated to is known of the latest one."""
    return f"{ALERT}escalated to {_severity_and_cause(row)}" if latest else f"{ALERT}escalated"


def resolved_text(row: Alert) -> str:
    """The end of an alert, as it is told among other events."""
    return f"{ALERT}resolved ({_cause(row)})"


def _severity_and_cause(row: Alert) -> str:
    return f"{severity_label(row.severity)}: {_cause(row)}"


def _cause(row: Alert) -> str:
    of_cluster = row.subject.kind in CLUSTER_FINDINGS
    is_finding = of_cluster or (row.subject.group is not None and row.subject.kind is not AlertKind.GROUP)
    return _finding_words(row) if is_finding else appearance.of_status(row.status).word
