"""Primitive types of Kafka's protocol. Every length that comes from outside is compared with what is there."""

import struct
from typing import Any

from lagwise_collectors.kafka.requests.errors import KafkaTrouble

#: A variable-length integer of 32 bits has at most this many bytes.
_MOST_VARINT_BYTES = 5


class MalformedAnswer(KafkaTrouble):
    """Bytes that are not what Kafka's definitions say."""

    def __init__(self, detail: str) -> None:
        super().__init__("malformed", detail)


class Reader:
    """Reads one answer from its beginning on. Raises MalformedAnswer where bytes are missing or make no sense."""

    __slots__ = ("at", "data")

    def __init__(self, data: bytes) -> None:
        self.data = data
        #: How many bytes were read.
        self.at = 0

    @property
    def left(self) -> int:
        """Bytes that were not read yet."""
        return len(self.data) - self.at

    def take(self, count: int) -> bytes:
        """The next bytes."""
        start = self._skip(count)
        return self.data[start : self.at]

    def peek(self, count: int) -> memoryview:
        """The next bytes, which stay to be read."""
        return memoryview(self.data)[self.at : self.at + count]

    def fixed(self, format_: struct.Struct) -> Any:
        """The next value of a fixed size."""
        start = self._skip(format_.size)
        return format_.unpack_from(self.data, start)[0]

    def varint(self) -> int:
        """An unsigned integer of up to 32 bits, seven to a byte."""
        value = 0
        for position in range(_MOST_VARINT_BYTES):
            byte = self.data[self._skip(1)]
            value |= (byte & 0x7F) << (7 * position)
            if byte < 0x80:
                if value >= 1 << 32:
                    break
                return value
        raise MalformedAnswer("a variable-length integer has more than 32 bits")

    def count(self, smallest: int, *, is_compact: bool) -> int | None:
        """The number of elements of an array, each of at least ``smallest`` bytes; None: there is no array."""
        count = self.varint() - 1 if is_compact else self.fixed(INT32)
        if count == -1:
            return None
        if count < 0 or count * smallest > self.left:
            raise MalformedAnswer(f"an array of {count} elements in {self.left} bytes")
        return int(count)

    def text(self, *, is_compact: bool) -> str | None:
        """A string; None: there is none."""
        found = self._sized(self.varint() - 1 if is_compact else self.fixed(INT16))
        try:
            return None if found is None else found.decode("utf-8")
        except UnicodeDecodeError:
            raise MalformedAnswer("a string that is not UTF-8") from None

    def blob(self, *, is_compact: bool) -> bytes | None:
        """Bytes; None: there are none."""
        return self._sized(self.varint() - 1 if is_compact else self.fixed(INT32))

    def skip_tagged_fields(self) -> None:
        """Pass over optional fields: none of those that we need is one."""
        fields = self.varint()
        if fields > self.left:
            raise MalformedAnswer(f"{fields} tagged fields in {self.left} bytes")
        for _ in range(fields):
            self.varint()
            self._skip(self.varint())

    def _sized(self, length: int) -> bytes | None:
        return None if length == -1 else self.take(length)

    def _skip(self, count: int) -> int:
        start = self.at
        if count < 0 or count > len(self.data) - start:
            raise MalformedAnswer(f"{count} bytes were announced, {len(self.data) - start} are there")
        self.at = start + count
        return start


class Writer:
    """Collects the bytes of one request."""

    __slots__ = ("data",)

    def __init__(self) -> None:
        self.data = bytearray()

    def fixed(self, format_: struct.Struct, value: Any) -> None:
        """A value of a fixed size."""
        self.data += format_.pack(value)

    def varint(self, value: int) -> None:
        """An unsigned integer of up to 32 bits, seven to a byte."""
        while value > 0x7F:
            self.data.append(value & 0x7F | 0x80)
            value >>= 7
        self.data.append(value)

    def count(self, count: int | None, *, is_compact: bool) -> None:
        """The number of elements of an array; None: there is no array."""
        self._length(INT32, count, is_compact=is_compact)

    def text(self, value: str | None, *, is_compact: bool) -> None:
        """A string; None: there is none."""
        encoded = None if value is None else value.encode("utf-8")
        self._length(INT16, None if encoded is None else len(encoded), is_compact=is_compact)
        self.data += encoded or b""

    def blob(self, value: bytes | None, *, is_compact: bool) -> None:
        """Bytes; None: there are none."""
        self._length(INT32, None if value is None else len(value), is_compact=is_compact)
        self.data += value or b""

    def _length(self, format_: struct.Struct, length: int | None, *, is_compact: bool) -> None:
        number = -1 if length is None else length
        if is_compact:
            self.varint(number + 1)
        else:
            self.fixed(format_, number)


INT8 = struct.Struct(">b")
INT16 = struct.Struct(">h")
INT32 = struct.Struct(">i")
INT64 = struct.Struct(">q")
UINT16 = struct.Struct(">H")
BOOL = struct.Struct(">?")
UUID = struct.Struct(">16s")
