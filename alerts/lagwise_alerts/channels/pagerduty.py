"""PagerDuty, Events API v2. One incident of ours is one alert of theirs: ``incident_id`` is the ``dedup_key``.

PagerDuty answers 202 when it has accepted an event: any other 2xx comes from something in between, such as the sign-in
page of a proxy. 400 is a rejection with a reason; 429 and 5xx are retried.
"""

import json
from collections.abc import Mapping
from typing import Any

from lagwise.config.channels import PagerDuty
from lagwise.platform.logs import escape
from lagwise.platform.secrets import resolve
from lagwise_alerts.channels.base import Message
from lagwise_alerts.channels.http import HttpChannel, Post
from lagwise_alerts.channels.message_text import cut, message_text
from lagwise_alerts.model import Severity

ACCEPTED = 202
#: PagerDuty rejects longer summaries.
LONGEST_SUMMARY = 1024
#: An event may have 512,000 bytes; no name or sentence needs as much.
_LONGEST_DETAIL = 8000

_SEVERITIES = {Severity.PAGE: "critical", Severity.WARN: "warning", Severity.INFO: "info"}


def payload(document: Mapping[str, Any], routing_key: str) -> dict[str, Any]:
    """The event."""
    words = message_text(document)
    partition = document["worst_partition"]
    details = {label: cut(text, _LONGEST_DETAIL) for label, text in words.facts}
    details |= {
        "First command": cut(words.first_command, _LONGEST_DETAIL),
        "Rule": document["rule"],
        "Incident": document["incident_id"],
    }
    event = {
        "summary": cut(words.title, LONGEST_SUMMARY),
        "source": escape(document["cluster"] or "lagwise"),
        "severity": _SEVERITIES[words.severity],
        "timestamp": document["decided_at"],
        "component": escape(partition["topic"]) if partition else None,
        "group": escape(document["group"] or ""),
        "class": document["status"],
        "custom_details": details,
    }
    return {
        "routing_key": routing_key,
        "event_action": "resolve" if words.is_over else "trigger",
        "dedup_key": document["incident_id"],
        "client": "Lagwise",
        **(
            {"client_url": words.link, "links": [{"href": words.link, "text": "Open in Lagwise"}]} if words.link else {}
        ),
        "payload": {name: value for name, value in event.items() if value},
    }


class PagerDutyChannel(HttpChannel[PagerDuty]):
    """Posts events to one service."""

    def secrets(self) -> tuple[str, ...]:
        """The routing key, which is part of the body."""
        return (resolve(self._settings.routing_key),)

    def is_accepted(self, status: int) -> bool:
        """PagerDuty accepts an event with 202."""
        return status == ACCEPTED

    def post(self, message: Message) -> Post:
        """The event of a message."""
        event = payload(json.loads(message.body), resolve(self._settings.routing_key))
        return Post(json.dumps(event).encode("ascii"))
