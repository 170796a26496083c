"""Stage 7, group: when many messages to a channel become one, and the document of that one. Pure.

A channel gets at most a number of messages within an interval, one by one and at once. Where more wait, they become one
summary, a document ``lagwise.alerts.v1`` (its JSON Schema is in this folder). A summary uses up what is left of the
interval: messages after it wait, and go out together.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from lagwise.config.operating import Grouping
from lagwise.links import pages
from lagwise_alerts.model import AlertEvent, Severity

SUMMARY_SCHEMA = "lagwise.alerts.v1"
#: The event of a summary.
SUMMARY_EVENT = "summary"

#: Words for events, in the order of a summary.
_EVENT_WORDS = {
    AlertEvent.FIRING.value: "firing",
    AlertEvent.ESCALATED.value: "worse",
    AlertEvent.RESOLVED.value: "over",
}


@dataclass(frozen=True, slots=True)
class SentMessage:
    """A message that was delivered: when, and whether it was a summary."""

    at: datetime
    is_summary: bool


@dataclass(frozen=True, slots=True)
class SendSingly:
    """The first ``count`` messages of the queue go out one by one."""

    count: int


@dataclass(frozen=True, slots=True)
class SendSummary:
    """All waiting messages go out as one summary."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing goes out before this moment."""

    until: datetime


NextSend = SendSingly | SendSummary | Wait


def next_send(waiting: int, sent: Sequence[SentMessage], policy: Grouping, now: datetime) -> NextSend:
    """How ``waiting`` messages that were not tried yet go out, given the messages that were ``sent`` recently."""
    if policy.max_messages is None:
        return SendSingly(waiting)
    interval = timedelta(seconds=policy.interval_seconds)
    recent = sorted((one for one in sent if one.at > now - interval), key=lambda one: one.at)
    summaries = [one for one in recent if one.is_summary]
    if summaries:
        return Wait(summaries[-1].at + interval)
    left = policy.max_messages - len(recent)
    if left <= 0:
        return Wait(recent[len(recent) - policy.max_messages].at + interval)
    return SendSingly(waiting) if waiting <= left else SendSummary()


def summarise(documents: Sequence[Mapping[str, Any]], key: str) -> str:
    """One document of many ``lagwise.alert.v1``, in their order, as JSON in ASCII."""
    events = Counter(str(document["event"]) for document in documents)
    open_ones = [document for document in documents if document["event"] != AlertEvent.RESOLVED.value]
    severities = [Severity(document["severity"]) for document in open_ones or documents]
    page = str(documents[-1]["dashboard_url"])
    tree = {
        "schema": SUMMARY_SCHEMA,
        "event": SUMMARY_EVENT,
        "severity": min(severities, key=lambda severity: severity.rank).value,
        "summary": _summary(documents, events),
        "events": dict(events),
        "decided_at": max(str(document["decided_at"]) for document in documents),
        "dashboard_url": pages.link(pages.ALERTS, base=page.rpartition("/")[0]),
        "alerts": list(documents),
        "idempotency_key": key,
    }
    return json.dumps(tree, ensure_ascii=True, allow_nan=False)


def _summary(documents: Sequence[Mapping[str, Any]], events: Mapping[str, int]) -> str:
    """One line for a subject line, a chat title, a pager: how many of what, and of which clusters."""
    words = [f"{events[event]} {word}" for event, word in _EVENT_WORDS.items() if events.get(event)]
    words += [f"{count} {event}" for event, count in events.items() if event not in _EVENT_WORDS]
    statuses = Counter(
        str(document["status"]).replace("_", " ")
        for document in documents
        if document["event"] != AlertEvent.RESOLVED.value and document["status"] is not None
    )
    what = ", ".join(f"{count} {status}" for status, count in statuses.most_common(3))
    clusters = sorted({str(document["cluster"]) for document in documents if document["cluster"] is not None})
    where = f" on {', '.join(clusters[:3])}{' and others' if len(clusters) > 3 else ''}" if clusters else ""
    return f"{len(documents)} alerts{where}: {', '.join(words)}" + (f" ({what})" if what else "")
