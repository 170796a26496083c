"""The webhook of Alertmanager, version 4: for receivers that were written for Alertmanager and know nothing else.

Each message is a notification of a group of one alert. What stays the same from firing to resolved is ``groupKey`` and
``fingerprint``: both are those of the subject, whatever its severity.
"""

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from lagwise.alerts.channels.alertmanager_format import annotations_of, labels_of
from lagwise.alerts.channels.base import Message
from lagwise.alerts.channels.http import HttpChannel, Post, authorization
from lagwise.alerts.model import Event
from lagwise.config import AlertmanagerWebhook

#: What Alertmanager gives as the end of an alert that has not ended: Go's zero time.
_NEVER = "0001-01-01T00:00:00Z"


def payload(document: Mapping[str, Any], settings: AlertmanagerWebhook) -> dict[str, Any]:
    """The document as Alertmanager would send it."""
    status = "resolved" if document["event"] == Event.RESOLVED else "firing"
    labels, annotations = labels_of(document, settings.labels), annotations_of(document)
    group_labels = {name: value for name, value in labels.items() if name != "severity" and name not in settings.labels}
    alert = {
        "status": status,
        "labels": labels,
        "annotations": annotations,
        "startsAt": document["fired_at"],
        "endsAt": document["ended_at"] or _NEVER,
        "generatorURL": annotations["dashboard"],
        "fingerprint": document["fingerprint"],
    }
    return {
        "receiver": settings.name,
        "status": status,
        "alerts": [alert],
        "groupLabels": group_labels,
        "commonLabels": labels,
        "commonAnnotations": annotations,
        "externalURL": document["dashboard_url"].rpartition("/")[0],
        "version": "4",
        "groupKey": f"lagwise:{document['fingerprint']}",
        "truncatedAlerts": 0,
    }


class AlertmanagerWebhookChannel(HttpChannel):
    """Posts what Alertmanager would."""

    def __init__(self, settings: AlertmanagerWebhook, clock: Callable[[], datetime]) -> None:
        super().__init__(settings, clock)
        self._webhook = settings

    def secrets(self) -> tuple[str, ...]:
        """The header."""
        return tuple(" ".join(authorization(self._webhook.authorization).values()).split())

    def post(self, message: Message) -> Post:
        """The translated document, and its key for receivers that look at headers."""
        body = json.dumps(payload(json.loads(message.body), self._webhook)).encode("ascii")
        headers = {"Idempotency-Key": message.idempotency_key}
        return Post(body, headers | authorization(self._webhook.authorization))
