"""The document as text, for channels that people read: the same facts in the same order everywhere.

A summary of many alerts (``lagwise.alerts.v1``) has a line per alert instead of facts.

Names in it are untrusted. This module removes control characters, bidirectional overrides and line breaks. Each channel
escapes the markup of its own format (mrkdwn, HTML, Markdown).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from lagwise.domain.humanise import count, duration, rate
from lagwise.platform.logs import escape
from lagwise_alerts.model import CLUSTER_FINDINGS, AlertEvent, AlertKind, Severity
from lagwise_alerts.notify.group import SUMMARY_SCHEMA

_SEVERITY_WORDS = {Severity.PAGE: "Page", Severity.WARN: "Warning", Severity.INFO: "Info"}
#: Shown next to the word, never instead of it.
_SYMBOLS = {Severity.PAGE: "🔴", Severity.WARN: "🟠", Severity.INFO: "🔵"}
_OVER_SYMBOL = "✅"
_MORE = "…"


@dataclass(frozen=True, slots=True)
class MessageText:
    """The text of one alert, or of a summary."""

    event: str
    severity: Severity
    symbol: str
    title: str
    #: Label and text of each fact on one alert; empty for a summary.
    facts: tuple[tuple[str, str], ...]
    #: One line per alert of a summary; empty for one alert.
    lines: tuple[str, ...]
    #: Never cut off: half a command must not be pasted.
    first_command: str
    #: Page of the dashboard; empty where the dashboard has no address.
    link: str
    #: Whether every alert in it has ended.
    is_over: bool


def message_text(document: Mapping[str, Any]) -> MessageText:
    """The text of a document."""
    if document["schema"] == SUMMARY_SCHEMA:
        return _summary_text(document)
    over = document["event"] == AlertEvent.RESOLVED
    is_of_cluster = document["kind"] in CLUSTER_FINDINGS
    facts = [
        ("Since", _display_time(document["since"])),
        ("Lasted", _lasted(document) if over else None),
        ("How bad", _how_bad(document)),
        ("Why", document["sentence"]),
        ("What will happen", document["outlook"] or (None if over or is_of_cluster else "Not known yet.")),
        ("Worst partition", _worst(document["worst_partition"])),
        # Messages that a former version queued have neither of these.
        ("Owner", document.get("team")),
        ("Part of", _part_of(document)),
    ]
    return MessageText(
        event=document["event"],
        severity=Severity(document["severity"]),
        symbol=_symbol(document),
        title=_title(document),
        facts=tuple((label, escape(text)) for label, text in facts if text),
        lines=(),
        first_command=escape(document["first_command"]),
        link=_link(document),
        is_over=over,
    )


def _summary_text(document: Mapping[str, Any]) -> MessageText:
    """The text of a summary: its worst alert decides its severity."""
    alerts = document["alerts"]
    over = all(alert["event"] == AlertEvent.RESOLVED for alert in alerts)
    worst = {**document, "event": AlertEvent.RESOLVED if over else AlertEvent.FIRING}
    return MessageText(
        event=document["event"],
        severity=Severity(document["severity"]),
        symbol=_symbol(worst),
        title=_title(worst),
        facts=(),
        lines=tuple(f"{_symbol(alert)} {_title(alert)}" for alert in alerts),
        first_command="lagwise alert list",
        link=_link(document),
        is_over=over,
    )


def _symbol(document: Mapping[str, Any]) -> str:
    return _OVER_SYMBOL if document["event"] == AlertEvent.RESOLVED else _SYMBOLS[Severity(document["severity"])]


def _title(document: Mapping[str, Any]) -> str:
    """``Page: …``, ``Worse, page: …``, ``Over: …``; of a repeated alert the summary says that it still fires."""
    word = _SEVERITY_WORDS[Severity(document["severity"])]
    if document["event"] == AlertEvent.ESCALATED:
        word = f"Worse, {word.lower()}"
    if document["event"] == AlertEvent.RESOLVED:
        word = "Over"
    return escape(f"{word}: {document['summary']}")


def _link(document: Mapping[str, Any]) -> str:
    url = str(document["dashboard_url"])
    return url if url.startswith(("http://", "https://")) else ""


def some_lines(lines: Sequence[str], most: int, longest: int) -> list[str]:
    """The first ``most`` lines, each cut to ``longest`` characters, and how many more there are."""
    more = [f"{_MORE} and {len(lines) - most} more, see the dashboard"] if len(lines) > most else []
    return [cut(line, longest) for line in lines[:most]] + more


def cut(text: str, most: int) -> str:
    """Text of at most ``most`` characters; an ellipsis shows where it was cut."""
    return text if len(text) <= most else text[: most - len(_MORE)] + _MORE


def whole_command(command: str, most: int) -> str:
    """The command, or where to find it if it is too long: half a command must not be pasted."""
    return command if len(command) <= most else "(too long for this message: the dashboard has it)"


def _how_bad(document: Mapping[str, Any]) -> str | None:
    """How many records are unread, and how old the oldest is; for stale data its age."""
    records, seconds = document["lag_records"], document["lag_seconds"]
    if document["kind"] == AlertKind.SHARED_INCIDENT and document["event"] == AlertEvent.RESOLVED:
        return None
    if document["kind"] in CLUSTER_FINDINGS:
        return None
    if document["kind"] in ("collection", "analysis"):
        if document["event"] == AlertEvent.RESOLVED:
            return None
        age = (_moment(document["decided_at"]) - _moment(document["since"])).total_seconds()
        return f"No new data for {_exact_duration(age)}."
    parts = ["An unknown number of unread records" if records is None else f"{count(records)} unread records"]
    if seconds:
        least = "at least " if document["lag_seconds_is_lower_bound"] else ""
        parts.append(f"the oldest {least}{_exact_duration(seconds)} old")
    text = ", ".join(parts) + "."
    rates = [document["produce_rate_per_second"], document["consume_rate_per_second"]]
    if None not in rates:
        text += f" {rate(rates[0])} records/s come in, {rate(rates[1])} are read."
    if document["records_lost"]:
        text += f" {count(document['records_lost'])} records lost."
    return text


def _exact_duration(seconds: float) -> str:
    """``431 s (7 min 11 s)``: to compare, and to read."""
    words, exact = duration(round(seconds)), f"{round(max(0.0, seconds)):,} s"
    return exact if words == exact else f"{exact} ({words})"


def _worst(partition: Mapping[str, Any] | None) -> str | None:
    if partition is None:
        return None
    number = partition["partition"]
    return f"{partition['topic']}" + ("" if number is None else f", partition {number}")


def shared_by(document: Mapping[str, Any]) -> str:
    """What the groups of a shared incident share, in words that stay the same until it ends; empty for other alerts."""
    if document["kind"] != AlertKind.SHARED_INCIDENT:
        return ""
    things = document["shared_incident"]["shared_by"]
    return " and ".join(f"{one['kind'].replace('_', ' ')} {one['name']}" for one in things)


def _part_of(document: Mapping[str, Any]) -> str | None:
    """The shared incident that a group's alert is part of."""
    shared = document.get("shared_incident")
    if shared is None or shared["id"] == document["incident_id"]:
        return None
    return f"A shared incident. {shared['sentence']}"


def _lasted(document: Mapping[str, Any]) -> str:
    begin, end = _moment(document["fired_at"]), _moment(document["ended_at"])
    return f"{duration(round((end - begin).total_seconds()))}, until {_display_time(document['ended_at'])}"


def _display_time(text: str) -> str:
    return f"{_moment(text):%Y-%m-%d %H:%M:%S} UTC"


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)
