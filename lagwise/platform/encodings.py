"""How a text may appear in what programs print: quoted, escaped, URL-encoded, in base64 or in hex."""

import base64
import html
import json
import math
import re
from urllib.parse import quote, quote_plus

#: The base64 and hex of a shorter text would be found by chance.
_SHORTEST_ENCODED = 6
#: Shorter lines of a text of several lines are brackets and the like.
_SHORTEST_LINE = 16


def encodings(text: str) -> set[str]:
    """A text, and how it appears in JSON, Python, HTML, URLs, base64 (also within a longer text) and hex.

    Of a text of several lines, each long line by itself, too.
    """
    lines = {line.strip() for line in text.splitlines()} if "\n" in text else set()
    pieces = {text} | {line for line in lines if len(line) >= _SHORTEST_LINE and not line.startswith("-----")}
    return {one for piece in pieces for one in (*_quoted(piece), *_encoded(piece)) if one}


def _quoted(text: str) -> set[str]:
    in_addresses = {quote(text), quote(text, safe=""), quote_plus(text)}
    in_addresses |= {re.sub("%..", lambda found: found[0].lower(), one) for one in in_addresses}
    in_json = {json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]}
    return {text, repr(text)[1:-1], html.escape(text), html.escape(text, quote=False)} | in_json | in_addresses


def _encoded(text: str) -> set[str]:
    data = text.encode("utf-8", "surrogateescape")
    if len(data) < _SHORTEST_ENCODED:
        return set()
    digits = data.hex()
    return {digits, digits.upper()} | {one for before in range(3) for one in _in_base64(data, before)}


def _in_base64(data: bytes, before: int) -> set[str]:
    """The base64 characters that depend on the data alone, where ``before`` bytes (modulo 3) precede it."""
    padded = bytes(before) + data
    first, end = math.ceil(8 * before / 6), 8 * len(padded) // 6
    return {encode(padded).decode("ascii")[first:end] for encode in (base64.b64encode, base64.urlsafe_b64encode)}
