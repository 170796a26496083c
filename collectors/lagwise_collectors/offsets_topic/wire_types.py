"""Kafka's primitive types out of bytes (https://kafka.apache.org/protocol, "Protocol Primitive Types")."""

import base64
import struct
from collections.abc import Callable
from typing import TypeVar

_Item = TypeVar("_Item")

_INT8, _INT16, _INT32, _INT64 = (struct.Struct(">" + code) for code in "bhiq")
_LONGEST_VARINT = 5


class MalformedRecordError(ValueError):
    """Bytes that do not follow their schema."""


class ByteReader:
    """Reads values from bytes, one after the other. Every method raises MalformedRecordError beyond the end.

    In a ``flexible`` record (KIP-482) texts, blobs and arrays have compact lengths.
    """

    __slots__ = ("_at", "_data", "flexible")

    def __init__(self, data: bytes, *, flexible: bool = False) -> None:
        self._data = data
        self._at = 0
        self.flexible = flexible

    def int8(self) -> int:
        return self._fixed(_INT8)

    def int16(self) -> int:
        return self._fixed(_INT16)

    def int32(self) -> int:
        return self._fixed(_INT32)

    def int64(self) -> int:
        return self._fixed(_INT64)

    def uuid(self) -> str:
        """As Kafka's tools print it: Base64 in its URL-safe alphabet, without padding."""
        return base64.urlsafe_b64encode(self.take(16)).decode().rstrip("=")

    def unsigned_varint(self) -> int:
        value = 0
        for shift in range(0, 7 * _LONGEST_VARINT, 7):
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise MalformedRecordError("a varint that does not end")

    def take(self, size: int) -> bytes:
        """So many bytes."""
        end = self._at + size
        if size < 0 or end > len(self._data):
            raise MalformedRecordError(f"{size} bytes wanted where {len(self._data) - self._at} are left")
        taken = self._data[self._at : end]
        self._at = end
        return taken

    def string(self) -> str:
        return self._text(self._length(_INT16))

    def nullable_string(self) -> str | None:
        size = self._length(_INT16)
        return None if size == -1 else self._text(size)

    def blob(self) -> bytes:
        return self.take(self._length(_INT32))

    def array(self, item: Callable[[], _Item]) -> list[_Item]:
        count = self._length(_INT32)
        # Every item takes a byte at least: a count beyond that is garbage, and must not take memory.
        if count < 0 or count > len(self._data) - self._at:
            raise MalformedRecordError(f"an array of {count}")
        return [item() for _ in range(count)]

    def int32s(self) -> tuple[int, ...]:
        """An array of int32."""
        count = self._length(_INT32)
        if count < 0:
            raise MalformedRecordError(f"an array of {count}")
        return struct.unpack(f">{count}i", self.take(4 * count))

    def tags(self) -> dict[int, bytes]:
        """Tagged fields by tag (KIP-482)."""
        return {self.unsigned_varint(): self.take(self.unsigned_varint()) for _ in range(self.unsigned_varint())}

    def _fixed(self, layout: struct.Struct) -> int:
        value: int = layout.unpack(self.take(layout.size))[0]
        return value

    def _length(self, layout: struct.Struct) -> int:
        return self.unsigned_varint() - 1 if self.flexible else self._fixed(layout)

    def _text(self, size: int) -> str:
        try:
            return self.take(size).decode()
        except UnicodeDecodeError as error:
            raise MalformedRecordError("text that is not UTF-8") from error
