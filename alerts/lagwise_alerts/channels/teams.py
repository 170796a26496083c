"""Microsoft Teams, through a webhook of the Workflows app: an Adaptive Card.

Text blocks and fact sets interpret Markdown. Text runs do not, so all untrusted text is in text runs.
"""

import json
from collections.abc import Mapping
from typing import Any

from lagwise.config.channels import Teams
from lagwise_alerts.channels.base import Message
from lagwise_alerts.channels.http import HttpChannel, Post
from lagwise_alerts.channels.message_text import cut, message_text, some_lines, whole_command
from lagwise_alerts.model import Severity

#: Teams rejects longer messages. It counts after the workflow has put the card as a string into a message of its own.
#: The lengths of the parts keep a message below this limit in every script.
MAX_BYTES = 28_672
_LONGEST_TITLE = 400
_LONGEST_FACT = 900
_LONGEST_COMMAND = 3000
_LONGEST_LINK = 4000
#: Limits of the list in a summary.
_MAX_LINES, _LONGEST_LINE = 20, 140

_COLOURS = {Severity.PAGE: "Attention", Severity.WARN: "Warning", Severity.INFO: "Accent"}


def payload(document: Mapping[str, Any]) -> dict[str, Any]:
    """The message with its card."""
    words = message_text(document)
    title = cut(f"{words.symbol} {words.title}", _LONGEST_TITLE)
    colour = "Good" if words.is_over else _COLOURS[words.severity]
    body = [_text_block({"text": title, "size": "Large", "weight": "Bolder", "color": colour})]
    body += [
        _text_block({"text": f"{label}: ", "weight": "Bolder"}, {"text": cut(text, _LONGEST_FACT)})
        for label, text in words.facts
    ]
    body += [_text_block({"text": line}) for line in some_lines(words.lines, _MAX_LINES, _LONGEST_LINE)]
    body.append(_text_block({"text": whole_command(words.first_command, _LONGEST_COMMAND), "fontType": "Monospace"}))
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "fallbackText": title,
        "msteams": {"width": "Full"},
        "body": body,
    }
    if words.link and len(words.link) <= _LONGEST_LINK:
        card["actions"] = [{"type": "Action.OpenUrl", "title": "Open in Lagwise", "url": words.link}]
    attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": None, "content": card}
    return {"type": "message", "attachments": [attachment]}


def _text_block(*runs: Mapping[str, str]) -> dict[str, Any]:
    return {"type": "RichTextBlock", "inlines": [{"type": "TextRun", **run} for run in runs]}


class TeamsChannel(HttpChannel[Teams]):
    """Posts to one workflow."""

    def post(self, message: Message) -> Post:
        """The card, in UTF-8: escapes would count six bytes for each character of most scripts."""
        return Post(json.dumps(payload(json.loads(message.body)), ensure_ascii=False).encode("utf-8"))
