"""Many messages as one: the document ``lagwise.alerts.v1``. Its JSON Schema is beside this module."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from lagwise.links import pages
from lagwise_alerts.model import AlertEvent, Severity

SCHEMA = "lagwise.alerts.v1"
#: In the place of an event, where a message is a summary.
SUMMARY_EVENT = "summary"

#: In the order in which they are spoken of.
_EVENT_WORDS = {
    AlertEvent.FIRING.value: "firing",
    AlertEvent.ESCALATED.value: "worse",
    AlertEvent.RESOLVED.value: "over",
}


def summarise(documents: Sequence[Mapping[str, Any]], key: str) -> str:
    """One document of many ``lagwise.alert.v1``, in their order, as JSON in ASCII."""
    events = Counter(str(document["event"]) for document in documents)
    open_ones = [document for document in documents if document["event"] != AlertEvent.RESOLVED.value]
    severities = [Severity(document["severity"]) for document in open_ones or documents]
    page = str(documents[-1]["dashboard_url"])
    tree = {
        "schema": SCHEMA,
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
