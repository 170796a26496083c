"""An alert in the format of Alertmanager: labels identify it, annotations describe it."""

import re
from collections.abc import Mapping
from typing import Any

from lagwise_alerts.channels.message_text import message_text, shared_by
from lagwise_alerts.model import Severity

#: The labels that identify an alert.
IDENTITY = ("alertname", "cluster", "consumergroup", "shared_by")
_SEVERITIES = {Severity.PAGE: "critical", Severity.WARN: "warning", Severity.INFO: "info"}


def alertmanager_labels(document: Mapping[str, Any], more: Mapping[str, str]) -> dict[str, str]:
    """Labels that identify and route the alert, and those of its owner. During an incident mostly the severity changes.

    Alertmanager drops empty labels and rejects text that is not UTF-8.
    """
    labels = {
        **more,
        # Messages that a former version queued have no labels of an owner.
        **{_label_name(name): value for name, value in document.get("labels", {}).items()},
        "alertname": "Lagwise" + "".join(word.capitalize() for word in document["kind"].split("_")),
        "severity": _SEVERITIES[Severity(document["severity"])],
        "cluster": document["cluster"],
        "consumergroup": document["group"],
        "shared_by": shared_by(document),
    }
    return {name: value.encode("utf-8", "replace").decode("utf-8") for name, value in labels.items() if value}


def _label_name(name: str) -> str:
    """A label name that Alertmanager accepts: ours may have dots and hyphens, and begin with a digit."""
    return re.sub(r"^(?=\d)", "_", re.sub(r"[^a-zA-Z0-9_]", "_", name))


def alertmanager_annotations(document: Mapping[str, Any]) -> dict[str, str]:
    """What people read, and the id of the incident for receivers."""
    words = message_text(document)
    facts = {label.lower().replace(" ", "_"): text for label, text in words.facts}
    return {
        "summary": words.title,
        "description": facts.pop("why"),
        **facts,
        "first_command": words.first_command,
        "dashboard": words.link,
        "rule": document["rule"],
        "incident_id": document["incident_id"],
    }
