"""An alert as Alertmanager knows them: labels that say which it is, annotations that say how it is."""

from collections.abc import Mapping
from typing import Any

from lagwise.alerts.channels.telling import tell
from lagwise.alerts.model import Severity

_SEVERITIES = {Severity.PAGE: "critical", Severity.WARN: "warning", Severity.INFO: "info"}


def labels_of(document: Mapping[str, Any], more: Mapping[str, str]) -> dict[str, str]:
    """What identifies and routes the alert. Only the severity changes in the course of an incident.

    Alertmanager takes an empty label for none, and refuses text that is no UTF-8.
    """
    labels = {
        **more,
        "alertname": "Lagwise" + "".join(word.capitalize() for word in document["kind"].split("_")),
        "severity": _SEVERITIES[Severity(document["severity"])],
        "cluster": document["cluster"],
        "consumergroup": document["group"],
    }
    return {name: value.encode("utf-8", "replace").decode("utf-8") for name, value in labels.items() if value}


def annotations_of(document: Mapping[str, Any]) -> dict[str, str]:
    """What people read, and what receivers need to tell incidents apart."""
    told = tell(document)
    facts = {label.lower().replace(" ", "_"): text for label, text in told.facts}
    return {
        "summary": told.title,
        "description": facts.pop("why"),
        **facts,
        "first_command": told.first_command,
        "dashboard": told.link,
        "rule": document["rule"],
        "incident_id": document["incident_id"],
    }
