"""Bodies of responses: JSON as fastjson writes it, which is not always JSON.

Brokers write maps with numbers for keys without quotes (``{0:128}``), and maps whose keys are objects
(``{{"topic":"T","queueId":0}:{…}}``). Standard text goes to the C parser; so does text whose only fault is bare keys,
after quotes were put around them; the rest is read here, objects that stand as keys becoming :class:`ObjectKey`.
"""

import json
import re
from collections.abc import Callable, Mapping
from json.decoder import JSONDecodeError
from typing import Any

from lagwise_collectors.rocketmq.remoting.errors import MalformedResponse

_DEEPEST = 64
_decoder = json.JSONDecoder(strict=False)
#: The C parser of one value that begins at a position: the value, and where it ends.
_scan: Callable[[str, int], tuple[Any, int]] = getattr(_decoder, "scan_once")  # noqa: B009 (typeshed has it not)
_SPACE = re.compile(r"[ \t\r\n]*")
#: Outside of strings, a number before a colon is a bare key: where one begins, and where it ends.
_BEGIN, _END = re.compile(r"(?<=[{,])(?=-?\d+:)"), re.compile(r"(?<=\d)(?=:)")
#: A key that is no string begins so.
_ODD_KEY = re.compile(r"[{,\[][ \t\r\n]*[{\[0-9'-]")


class ObjectKey(tuple[tuple[str, Any], ...]):
    """An object that is the key of a map: its items, sorted by name."""

    __slots__ = ()

    def fields(self) -> dict[str, Any]:
        """As the object that it was."""
        return dict(self)


#: What stands after a backslash: two halves of a character, one half alone, or anything else.
_ESCAPED = re.compile(r"\\(?:u[dD][89abAB]\w\w\\u[dD][c-fC-F]\w\w|(u[dD][89a-fA-F]\w\w)|.)", re.DOTALL)


def without_halves(text: str) -> str:
    """JSON whose texts can all be written: a lone surrogate, which any client can put into a name of its own, and
    which no table or log takes, becomes U+FFFD."""
    if "\\ud" not in text and "\\uD" not in text:
        return text
    return _ESCAPED.sub(lambda found: "\\ufffd" if found[1] else found[0], text)


def read(body: bytes) -> Any:
    """The value of a body; None where it is empty. Keys that were bare numbers come as text. Raises Malformed."""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        raise MalformedResponse("a body is not UTF-8") from None
    if not text.strip():
        return None
    text = without_halves(text)
    try:
        return _decoder.decode(text)
    except (ValueError, RecursionError):
        pass
    try:
        # An object key shows at once; without one, bare keys are all that can be wrong.
        if "{{" not in text and (quoted := _with_quoted_keys(text)) is not None:
            return _decoder.decode(quoted)
    except (ValueError, RecursionError):
        pass
    try:
        value, end = _value(text, _skip(text, 0), 0)
        if _skip(text, end) != len(text):
            raise MalformedResponse("the body has trailing data")
    except (JSONDecodeError, StopIteration, ValueError, RecursionError, TypeError, IndexError) as error:
        raise MalformedResponse(f"a body cannot be read: {error or type(error).__name__}") from None
    return value


def _with_quoted_keys(text: str) -> str | None:
    """Text with quotes around bare keys; what stands inside of strings is left alone. None where the
    quotation marks alone do not show which text that is."""
    if any(sign in text for sign in "\\\0\1"):
        return None
    parts = text.split('"')
    parts[::2] = _END.sub("\1", _BEGIN.sub("\1", "\0".join(parts[::2]))).split("\0")
    return '"'.join(parts).replace("\1", '"')


def _skip(text: str, position: int) -> int:
    found = _SPACE.match(text, position)
    return position if found is None else found.end()


def _value(text: str, position: int, depth: int) -> tuple[Any, int]:
    if depth > _DEEPEST:
        raise MalformedResponse("a body is nested too deeply")
    first = text[position : position + 1]
    if first == "{":
        if not _ODD_KEY.match(text, position):
            try:  # an object that begins like a standard one mostly is one
                return _scan(text, position)
            except (JSONDecodeError, StopIteration):
                pass
        return _object(text, position + 1, depth)
    if first == "[":
        return _array(text, position + 1, depth)
    return _scan(text, position)


def _object(text: str, position: int, depth: int) -> tuple[dict[Any, Any], int]:
    found: dict[Any, Any] = {}
    position = _skip(text, position)
    if text[position : position + 1] == "}":
        return found, position + 1
    while True:
        key, position = _value(text, _skip(text, position), depth + 1)
        if isinstance(key, dict):
            key = ObjectKey(sorted(key.items()))
        elif not isinstance(key, str):
            key = str(key)
        position = _expect(text, position, ":")
        found[key], position = _value(text, _skip(text, position), depth + 1)
        position = _skip(text, position)
        if text[position : position + 1] == "}":
            return found, position + 1
        position = _expect(text, position, ",")


def _array(text: str, position: int, depth: int) -> tuple[list[Any], int]:
    found: list[Any] = []
    position = _skip(text, position)
    if text[position : position + 1] == "]":
        return found, position + 1
    while True:
        value, position = _value(text, _skip(text, position), depth + 1)
        found.append(value)
        position = _skip(text, position)
        if text[position : position + 1] == "]":
            return found, position + 1
        position = _expect(text, position, ",")


def _expect(text: str, position: int, sign: str) -> int:
    position = _skip(text, position)
    if text[position : position + 1] != sign:
        raise MalformedResponse(f"a body lacks a {sign!r} at character {position}")
    return position + 1


def mapping(found: Any, name: str | None = None) -> Mapping[Any, Any]:
    """A map: the value itself, or what stands in it under a name (nothing there is an empty one). Raises Malformed."""
    if name is not None:
        found = mapping(found).get(name)
        found = {} if found is None else found
    if not isinstance(found, dict):
        raise MalformedResponse(f"{name or 'a body'} is no map")
    return found


def whole(found: Mapping[Any, Any], name: str) -> int:
    """A whole number that stands under a name. Raises Malformed."""
    return whole_of(found.get(name), name)


def whole_of(value: Any, name: str) -> int:
    """A whole number, also one that came as text. Raises Malformed."""
    if isinstance(value, str) and re.fullmatch(r"-?\d{1,19}", value):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not -(2**63) <= value < 2**63:
        raise MalformedResponse(f"{name} is no whole number")
    return value


def text_of(found: Mapping[Any, Any], name: str) -> str:
    """A text that stands under a name. Raises Malformed."""
    value = found.get(name)
    if not isinstance(value, str):
        raise MalformedResponse(f"{name} is no text")
    return value
