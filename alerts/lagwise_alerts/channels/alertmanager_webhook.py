"""The webhook of Alertmanager, version 4, for receivers that were written for Alertmanager.

Each message is a notification of a group of one alert, or of many. What stays the same from firing to resolved is the
``fingerprint`` of an alert: it is that of the subject, whatever its severity.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from lagwise.config.channels import AlertmanagerWebhook
from lagwise_alerts.channels.alertmanager_format import IDENTITY, alertmanager_annotations, alertmanager_labels
from lagwise_alerts.channels.base import Message
from lagwise_alerts.channels.http import HttpChannel, Post
from lagwise_alerts.model import AlertEvent
from lagwise_alerts.notify.group import SUMMARY_SCHEMA

#: The end of an alert that has not ended, as Alertmanager writes it: Go's zero time.
_NEVER = "0001-01-01T00:00:00Z"


def payload(document: Mapping[str, Any], settings: AlertmanagerWebhook) -> dict[str, Any]:
    """The document as Alertmanager would send it; a summary is a group of many alerts."""
    is_summary = document["schema"] == SUMMARY_SCHEMA
    alerts = [_alert(one, settings) for one in (document["alerts"] if is_summary else [document])]
    firing = any(alert["status"] == "firing" for alert in alerts)
    common = _common([alert["labels"] for alert in alerts])
    group = {} if is_summary else {name: common[name] for name in IDENTITY if name in common}
    return {
        "receiver": settings.name,
        "status": "firing" if firing else "resolved",
        "alerts": alerts,
        "groupLabels": group,
        "commonLabels": common,
        "commonAnnotations": _common([alert["annotations"] for alert in alerts]),
        "externalURL": document["dashboard_url"].rpartition("/")[0],
        "version": "4",
        "groupKey": f"lagwise:{document['idempotency_key'] if is_summary else document['fingerprint']}",
        "truncatedAlerts": 0,
    }


def _alert(document: Mapping[str, Any], settings: AlertmanagerWebhook) -> dict[str, Any]:
    annotations = alertmanager_annotations(document)
    return {
        "status": "resolved" if document["event"] == AlertEvent.RESOLVED else "firing",
        "labels": alertmanager_labels(document, settings.labels),
        "annotations": annotations,
        "startsAt": document["fired_at"],
        "endsAt": document["ended_at"] or _NEVER,
        "generatorURL": annotations["dashboard"],
        "fingerprint": document["fingerprint"],
    }


def _common(each: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """The pairs that all of them have."""
    return {name: value for name, value in each[0].items() if all(one.get(name) == value for one in each)}


class AlertmanagerWebhookChannel(HttpChannel[AlertmanagerWebhook]):
    """Posts what Alertmanager would."""

    def post(self, message: Message) -> Post:
        """The translated document, and its key for receivers that look at headers."""
        body = json.dumps(payload(json.loads(message.body), self._settings)).encode("ascii")
        return Post(body, {"Idempotency-Key": message.idempotency_key})
