"""Frames of the remoting protocol: requests out, responses in, headers as JSON and in RocketMQ's binary form.

A frame is ``u32 length`` (of what follows) · ``u32 mark`` (header form << 24 | header length) · header · body. A server
answers in the header form of *its* settings, whatever it was asked in: both are read.
"""

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lagwise_collectors.rocketmq.remoting.errors import MalformedResponse
from lagwise_collectors.rocketmq.remoting.response_bodies import without_halves

#: Longer frames are refused: 500 groups on 20 topics of 16 queues answer with about 2 MB.
LONGEST_FRAME = 256 * 1024 * 1024

_JSON, _BINARY = 0, 1
_RESPONSE = 1  # bit 0 of the header's flag
#: Any version of 5.x; a server goes by it for what it may answer (V4_9_4 and later: standard JSON where asked for).
_VERSION = 500
_LENGTHS = struct.Struct(">II")
_FIXED = struct.Struct(">hbhiii")


@dataclass(frozen=True, slots=True)
class Request:
    """One request: its code, its fields, and what it is about, for messages."""

    code: int
    what: str
    fields: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame that arrived. ``code`` is 0 where the request worked."""

    code: int
    opaque: int
    is_response: bool
    remark: str | None
    fields: Mapping[str, str]
    body: bytes


def encode(request: Request, opaque: int, fields: Mapping[str, str]) -> bytes:
    """The frame of a request; ``fields`` are its fields as they are sent (signed, where they are)."""
    header = {
        "code": request.code,
        "language": "OTHER",
        "version": _VERSION,
        "opaque": opaque,
        "flag": 0,
        "serializeTypeCurrentRPC": "JSON",
        "extFields": dict(fields),
    }
    encoded = json.dumps(header, separators=(",", ":")).encode()
    return _LENGTHS.pack(4 + len(encoded), _JSON << 24 | len(encoded)) + encoded


def length_of(prefix: bytes) -> int:
    """How many bytes follow the first four. Raises Malformed for what no frame can have."""
    (length,) = struct.unpack(">I", prefix)
    if not 4 <= length <= LONGEST_FRAME:
        raise MalformedResponse(f"a frame of {length} bytes is announced")
    return int(length)


def decode(frame: bytes) -> Frame:
    """A frame without its length. Raises Malformed."""
    if len(frame) < 4:
        raise MalformedResponse("a frame ends before its header")
    (mark,) = struct.unpack_from(">I", frame)
    form, end = mark >> 24, 4 + (mark & 0xFFFFFF)
    if end > len(frame):
        raise MalformedResponse("a header is longer than its frame")
    if form == _JSON:
        return _of_json(frame[4:end], frame[end:])
    if form == _BINARY:
        return _of_binary(frame[4:end], frame[end:])
    raise MalformedResponse(f"a header of the unknown form {form}")


def _of_json(header: bytes, body: bytes) -> Frame:
    try:
        found: Any = json.loads(without_halves(header.decode()))
    except (ValueError, RecursionError) as error:
        raise MalformedResponse(f"a header is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise MalformedResponse("a header is not an object")
    code, opaque, flag = (_number(found, name) for name in ("code", "opaque", "flag"))
    remark, fields = found.get("remark"), found.get("extFields") or {}
    if not isinstance(fields, dict) or not isinstance(remark, str | None):
        raise MalformedResponse("a header's fields are not texts")
    texts = {name: str(value) for name, value in fields.items() if value is not None}
    return Frame(code, opaque, bool(flag & _RESPONSE), remark, texts, body)


def _number(header: Mapping[str, Any], name: str) -> int:
    value = header.get(name, 0)
    if not isinstance(value, int):
        raise MalformedResponse(f"a header's {name} is not a number")
    return value


def _of_binary(header: bytes, body: bytes) -> Frame:
    try:
        code, _language, _version, opaque, flag, remark_length = _FIXED.unpack_from(header)
        remark, position = _text(header, _FIXED.size, remark_length)
        (length,) = struct.unpack_from(">i", header, position)
        position += 4
        if length < 0 or position + length > len(header):
            raise MalformedResponse("a header's fields are longer than it")
        end, fields = position + length, {}
        while position < end:
            (size,) = struct.unpack_from(">h", header, position)
            name, position = _text(header, position + 2, size)
            (size,) = struct.unpack_from(">i", header, position)
            fields[name], position = _text(header, position + 4, size)
    except struct.error:
        raise MalformedResponse("a binary header ends too soon") from None
    return Frame(code, opaque, bool(flag & _RESPONSE), remark or None, fields, body)


def _text(header: bytes, start: int, length: int) -> tuple[str, int]:
    if length < 0 or start + length > len(header):
        raise MalformedResponse("a text of a header is longer than it")
    try:
        return header[start : start + length].decode(), start + length
    except UnicodeDecodeError:
        raise MalformedResponse("a text of a header is not UTF-8") from None
