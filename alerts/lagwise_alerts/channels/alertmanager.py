"""Puts alerts into an Alertmanager (``/api/v2/alerts``), as Prometheus does.

Alertmanager keeps alerts in memory, ends alerts that are not sent again, and identifies an alert by its labels. So:

- Each alert has an end far ahead (``endsAt``): a restart of Lagwise must not look like a recovery.
- Firing alerts are sent again every ``repeat_seconds``, so that a restarted Alertmanager gets them soon. The outbox
  knows what it delivered last of each firing incident, so this survives restarts of Lagwise, too.
- The severity is a label, for routing. If it changes, the alert with the old label is ended in the same request.
- The end goes through the outbox, like every message, until Alertmanager accepts it.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from lagwise.config.channels import Alertmanager
from lagwise.platform.errors import ConfigError
from lagwise.platform.timestamps import timestamp
from lagwise_alerts.channels.alertmanager_format import alertmanager_annotations, alertmanager_labels
from lagwise_alerts.channels.base import DeliveryOutcome, Message
from lagwise_alerts.channels.http import HttpChannel, Post
from lagwise_alerts.model import AlertEvent


def payload(
    document: Mapping[str, Any], before: Mapping[str, Any] | None, settings: Alertmanager, now: datetime
) -> list[dict[str, Any]]:
    """The alert, and the end of the alert ``before`` where its labels differ: to Alertmanager that is another alert."""
    over = document["event"] == AlertEvent.RESOLVED
    ends = document["ended_at"] if over else timestamp(now + timedelta(seconds=settings.expire_seconds))
    alerts = [_alert(document, settings, ends)]
    if before is not None and alertmanager_labels(before, settings.labels) != alerts[0]["labels"]:
        ended = _alert(before, settings, document["decided_at"])
        alerts = [ended] if over else [*alerts, ended]
    return alerts


def _alert(document: Mapping[str, Any], settings: Alertmanager, ends: str) -> dict[str, Any]:
    annotations = alertmanager_annotations(document)
    alert = {
        "labels": alertmanager_labels(document, settings.labels),
        "annotations": annotations,
        "startsAt": document["fired_at"],
        "endsAt": ends,
    }
    return alert | ({"generatorURL": annotations["dashboard"]} if annotations["dashboard"] else {})


class AlertmanagerChannel(HttpChannel[Alertmanager]):
    """Posts to one Alertmanager."""

    path = "/api/v2/alerts"

    @property
    def repeat_seconds(self) -> float:
        """How often firing alerts are sent again."""
        return self._settings.repeat_seconds

    def post(self, message: Message) -> Post:
        """The alert of a message."""
        before = json.loads(message.before) if message.before is not None else None
        return _request(payload(json.loads(message.body), before, self._settings, self._clock()))

    def repeat(self, bodies: Sequence[str]) -> DeliveryOutcome:
        """Send all firing alerts in one request."""
        now = self._clock()
        alerts = [alert for body in bodies for alert in payload(json.loads(body), None, self._settings, now)]
        try:
            return self.deliver(_request(alerts))
        except ConfigError as error:
            return DeliveryOutcome(str(error))


def _request(alerts: list[dict[str, Any]]) -> Post:
    return Post(json.dumps(alerts).encode("ascii"))
