"""Documents to translate: those of the golden files, and one in which every name is an attack."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lagwise.config import Config
from lagwise.domain.group_record import GroupNumbers
from lagwise_alerts.channels.base import Message
from lagwise_alerts.notify.group import summarise
from lagwise_alerts.notify.message import document
from tests.alerts.support import Player, book, group_condition, observation

_GOLDEN = Path(__file__).parents[1] / "golden"

#: HTML, mrkdwn, markdown, a mention, a link, a header, an escape sequence, a bidirectional override, an expression.
HOSTILE = (
    "<script>alert(1)</script> *b* _i_ `c` ```d``` [e](https://evil.example) <!channel> @here &amp; "
    "\r\nBcc: evil@evil.example\r\n\r\n\x1b[2J\u202egnp.exe\u202c {{DATE(2026-01-01T00:00:00Z)}} @{evil()} ☠ 名前"
)
#: The longest names that Kafka allows, of characters that take most room in each format.
LONGEST = tuple(character * 249 for character in ("x", "\x1b", "名", "🦆", "&", "'", "\U000e0041"))


def named(name: str) -> dict[str, Any]:
    """A document of the golden files."""
    return dict(json.loads((_GOLDEN / f"{name}.json").read_text(encoding="utf-8")))


def of_group(group: str, topic: str = "purchases") -> dict[str, Any]:
    """The document of a group of this name."""
    numbers = GroupNumbers(lag_records=12000, lag_seconds=431.5, worst_topic=topic, worst_partition=3, members=0)
    player = Player(book())
    player.see(5, observation(group_condition(0, "stopped", group=group, numbers=numbers)))
    return document(player.notified[0], Config.model_validate({"clusters": [{"bootstrap": "broker-1:9092"}]}))


DOCUMENTS = {
    "firing": named("group_firing"),
    "escalated": named("group_escalated"),
    "resolved": named("group_resolved"),
    "collection": named("collection_firing"),
    "cluster": named("cluster_firing"),
    "gone": named("group_gone"),
    "repeated": named("group_repeated"),
    "shared": named("shared_incident_firing"),
    "shared_member": named("shared_incident_member"),
    "shared_over": named("shared_incident_resolved"),
    "hostile": of_group(HOSTILE, HOSTILE),
}


def summary(documents: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Many documents as the outbox makes one of them."""
    return dict(json.loads(summarise(documents, f"summary-1-{len(documents)}")))


#: For channels that take them.
SUMMARIES = {
    "summary": summary([DOCUMENTS[name] for name in ("firing", "escalated", "resolved", "collection", "hostile")]),
    "summary_over": summary([DOCUMENTS["resolved"], DOCUMENTS["gone"]]),
    "summary_many": summary([of_group(f"group-{i:03}") for i in range(300)]),
}


def message(name: str = "firing", before: str | None = None) -> Message:
    """A document as the outbox hands it to a channel."""
    document = DOCUMENTS.get(name) or SUMMARIES[name]
    body = json.dumps(document)
    return Message(document["idempotency_key"], body, json.dumps(DOCUMENTS[before]) if before else None)
