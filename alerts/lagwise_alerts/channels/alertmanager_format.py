"""An alert as Alertmanager knows them: labels that say which it is, annotations that say how it is."""

import re
from collections.abc import Mapping
from typing import Any

from lagwise_alerts.channels.message_text import message_text
from lagwise_alerts.model import Severity

#: The labels that say which alert it is.
IDENTITY = ("alertname", "cluster", "consumergroup")
_SEVERITIES = {Severity.PAGE: "critical", Severity.WARN: "warning", Severity.INFO: "info"}


def labels_of(document: Mapping[str, Any], more: Mapping[str, str]) -> dict[str, str]:
    """What identifies and routes the alert, with those of its owner. Mostly it is only the severity that changes in the
    course of an incident.

    Alertmanager takes an empty label for none, and refuses text that is no UTF-8.
    """
    labels = {
        **more,
        # Messages that a former version queued have no labels of an owner.
        **{_label_name(name): value for name, value in document.get("labels", {}).items()},
        "alertname": "Lagwise" + "".join(word.capitalize() for word in document["kind"].split("_")),
        "severity": _SEVERITIES[Severity(document["severity"])],
        "cluster": document["cluster"],
        "consumergroup": document["group"],
    }
    return {name: value.encode("utf-8", "replace").decode("utf-8") for name, value in labels.items() if value}


def _label_name(name: str) -> str:
    """A label's name as Alertmanager allows it: ours may have dots and hyphens, and begin with a digit."""
    return re.sub(r"^(?=\d)", "_", re.sub(r"[^a-zA-Z0-9_]", "_", name))


def annotations_of(document: Mapping[str, Any]) -> dict[str, str]:
    """What people read, and what receivers need to tell incidents apart."""
    told = message_text(document)
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
