"""Slack, through an incoming webhook: a message of blocks, within their limits.

Untrusted names are in plain text and preformatted text, in which Slack interprets nothing. Only the fallback text and
the link are mrkdwn, and escaped.
"""

import json
from collections.abc import Mapping
from typing import Any

from lagwise.config.channels import Slack
from lagwise_alerts.channels.base import Message
from lagwise_alerts.channels.http import HttpChannel, Post
from lagwise_alerts.channels.message_text import MessageText, cut, message_text, some_lines, whole_command

#: Limits of Block Kit: blocks of a message; characters of a header, a section, a section's field; fields of a section.
MAX_BLOCKS, LONGEST_HEADER, LONGEST_SECTION, LONGEST_FIELD, MAX_FIELDS = 50, 150, 3000, 2000, 10
#: All blocks together: an undocumented limit (`msg_blocks_too_long`).
MAX_CHARACTERS = 13_000
#: The lengths of the parts, which together stay below ``MAX_CHARACTERS``.
_LONGEST_TITLE, _LONGEST_PROSE, _LONGEST_FACT, _LONGEST_COMMAND, _LONGEST_LINK = 900, 1200, 600, 2800, 3000
#: Limits of the list in a summary, which fits into one section.
_MAX_LINES, _LONGEST_LINE = 20, 140
#: Facts that get a section of their own; the others share one, in two columns.
_PROSE = ("Why", "What will happen")


def payload(document: Mapping[str, Any]) -> dict[str, Any]:
    """The message."""
    words = message_text(document)
    return {"text": mrkdwn(cut(f"{words.symbol} {words.title}", _LONGEST_TITLE)), "blocks": list(_blocks(words))}


def mrkdwn(text: str) -> str:
    """Text that Slack shows as it is and does not take for a mention or a link."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _blocks(words: MessageText) -> list[dict[str, Any]]:
    prose = [(label, text) for label, text in words.facts if label in _PROSE]
    fields = [(label, text) for label, text in words.facts if label not in _PROSE]
    blocks: list[dict[str, Any]] = [{"type": "header", "text": _plain(f"{words.symbol} {words.title}", LONGEST_HEADER)}]
    if len(f"{words.symbol} {words.title}") > LONGEST_HEADER:
        blocks.append({"type": "section", "text": _plain(words.title, _LONGEST_TITLE)})
    columns = [_plain(f"{label}\n{text}", _LONGEST_FACT) for label, text in fields]
    lines = some_lines(words.lines, _MAX_LINES, _LONGEST_LINE)
    command = _preformatted(whole_command(words.first_command, _LONGEST_COMMAND))
    if columns:
        blocks.append({"type": "section", "fields": columns})
    if lines:
        blocks.append({"type": "section", "text": _plain("\n".join(lines), LONGEST_SECTION)})
    blocks += [{"type": "section", "text": _plain(f"{label}: {text}", _LONGEST_PROSE)} for label, text in prose]
    blocks.append({"type": "rich_text", "elements": [command]})
    if words.link and len(words.link) <= _LONGEST_LINK:
        link = f"<{mrkdwn(words.link)}|Open in Lagwise>"
        blocks.append({"type": "context", "elements": [{"type": "mrkdwn", "text": link, "verbatim": True}]})
    return blocks


def _plain(text: str, most: int) -> dict[str, Any]:
    return {"type": "plain_text", "text": cut(text, most), "emoji": False}


def _preformatted(text: str) -> dict[str, Any]:
    return {"type": "rich_text_preformatted", "elements": [{"type": "text", "text": text}]}


class SlackChannel(HttpChannel[Slack]):
    """Posts into one channel of Slack."""

    def post(self, message: Message) -> Post:
        """The message in blocks."""
        return Post(json.dumps(payload(json.loads(message.body))).encode("ascii"))
