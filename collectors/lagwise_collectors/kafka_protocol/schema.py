"""Messages of Kafka's protocol as declarations, and how a value is written and read by one.

A value of a structure is a dictionary by the names of its fields. A field that a version does not have is None in what
was read, and is not written.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

from lagwise_collectors.kafka_protocol import wire
from lagwise_collectors.kafka_protocol.wire import MalformedAnswer, Reader, Writer

Row = dict[str, Any]

#: No version of a message is as high.
LATEST = 1_000


class Kind(Protocol):
    """The type of a field. ``is_flexible``: the version has compact lengths and tagged fields (KIP-482)."""

    def write(self, writer: Writer, value: Any, version: int, *, is_flexible: bool) -> None: ...

    def read(self, reader: Reader, version: int, *, is_flexible: bool) -> Any: ...

    def smallest(self, version: int, *, is_flexible: bool) -> int:
        """How many bytes a value has at least."""
        ...


@dataclass(frozen=True, slots=True)
class Fixed:
    """A value of a fixed size."""

    format: struct.Struct

    def write(self, writer: Writer, value: Any, version: int, *, is_flexible: bool) -> None:
        writer.fixed(self.format, value)

    def read(self, reader: Reader, version: int, *, is_flexible: bool) -> Any:
        return reader.fixed(self.format)

    def smallest(self, version: int, *, is_flexible: bool) -> int:
        return self.format.size


@dataclass(frozen=True, slots=True)
class Sized:
    """A string, or bytes where not ``is_text``."""

    is_text: bool
    is_nullable: bool = False

    def write(self, writer: Writer, value: Any, version: int, *, is_flexible: bool) -> None:
        (writer.text if self.is_text else writer.blob)(value, is_compact=is_flexible)

    def read(self, reader: Reader, version: int, *, is_flexible: bool) -> Any:
        value: str | bytes | None = (reader.text if self.is_text else reader.blob)(is_compact=is_flexible)
        return _not_null(value, self.is_nullable)

    def smallest(self, version: int, *, is_flexible: bool) -> int:
        return 1 if is_flexible else (wire.INT16 if self.is_text else wire.INT32).size


@dataclass(frozen=True, slots=True)
class ArrayOf:
    """Values of one type, one after the other."""

    element: Kind
    is_nullable: bool = False

    def write(self, writer: Writer, value: Any, version: int, *, is_flexible: bool) -> None:
        writer.count(None if value is None else len(value), is_compact=is_flexible)
        for one in value or ():
            self.element.write(writer, one, version, is_flexible=is_flexible)

    def read(self, reader: Reader, version: int, *, is_flexible: bool) -> Any:
        smallest = self.element.smallest(version, is_flexible=is_flexible)
        count = _not_null(reader.count(smallest, is_compact=is_flexible), self.is_nullable)
        if count is None:
            return None
        return [self.element.read(reader, version, is_flexible=is_flexible) for _ in range(count)]

    def smallest(self, version: int, *, is_flexible: bool) -> int:
        return 1 if is_flexible else wire.INT32.size


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a structure, in the versions from ``since`` to ``until``."""

    name: str
    kind: Kind
    since: int = 0
    until: int = LATEST


@dataclass(frozen=True, slots=True, eq=False)  # compared by identity, which is what the caches below need to be fast
class Struct:
    """Fields one after the other. One that ``is_nullable`` has a byte before it that says whether it is there."""

    fields: tuple[Field, ...]
    is_nullable: bool = False

    def write(self, writer: Writer, value: Mapping[str, Any] | None, version: int, *, is_flexible: bool) -> None:
        if self.is_nullable:
            writer.fixed(wire.INT8, -1 if value is None else 1)
        if value is None:
            return
        for one in parts_of(self, version)[0]:
            one.kind.write(writer, value[one.name], version, is_flexible=is_flexible)
        if is_flexible:
            writer.varint(0)

    def read(self, reader: Reader, version: int, *, is_flexible: bool) -> Row | None:
        if self.is_nullable and reader.fixed(wire.INT8) < 0:
            return None
        present, absent = parts_of(self, version)
        row = {one.name: one.kind.read(reader, version, is_flexible=is_flexible) for one in present}
        if is_flexible:
            reader.skip_tagged_fields()
        row.update(absent)
        return row

    def smallest(self, version: int, *, is_flexible: bool) -> int:
        if self.is_nullable:
            return 1
        return _smallest(self, version, is_flexible)


def struct_of(*fields: Field, is_nullable: bool = False) -> Struct:
    """A structure of these fields."""
    return Struct(fields, is_nullable)


def rows_of(*fields: Field, is_nullable: bool = False) -> ArrayOf:
    """An array of structures of these fields."""
    return ArrayOf(Struct(fields), is_nullable)


@dataclass(frozen=True, slots=True)
class Api:
    """One request and its answer: name and key are those of Kafka's definitions, in ``ListGroupsRequest.json`` and
    ``ListGroupsResponse.json`` below ``clients/src/main/resources/common/message`` of Kafka's sources."""

    name: str
    key: int
    #: The versions that we speak.
    lowest: int
    highest: int
    flexible_since: int
    request: Struct
    response: Struct

    def encode(self, value: Mapping[str, Any], version: int) -> bytes:
        """The body of a request."""
        writer = Writer()
        self.request.write(writer, value, version, is_flexible=version >= self.flexible_since)
        return bytes(writer.data)

    def decode(self, body: bytes, version: int) -> Row:
        """The body of an answer. Raises MalformedAnswer."""
        reader = Reader(body)
        value = self.response.read(reader, version, is_flexible=version >= self.flexible_since)
        if value is None or reader.left:
            raise MalformedAnswer(f"{self.name} v{version}: {reader.left} bytes too many")
        return value


def _not_null(value: Any, is_nullable: bool) -> Any:
    if value is None and not is_nullable:
        raise MalformedAnswer("null where a value must be")
    return value


@cache
def parts_of(struct_: Struct, version: int) -> tuple[tuple[Field, ...], Row]:
    """The fields that a version has, and those that it lacks as null."""
    present = tuple(one for one in struct_.fields if one.since <= version <= one.until)
    return present, {one.name: None for one in struct_.fields if one not in present}


@cache
def _smallest(struct_: Struct, version: int, is_flexible: bool) -> int:
    present, _ = parts_of(struct_, version)
    # Without any field it would be 0, and the length of an array unbounded.
    return max(1, sum(one.kind.smallest(version, is_flexible=is_flexible) for one in present) + is_flexible)


BOOL = Fixed(wire.BOOL)
INT8 = Fixed(wire.INT8)
INT16 = Fixed(wire.INT16)
INT32 = Fixed(wire.INT32)
INT64 = Fixed(wire.INT64)
UINT16 = Fixed(wire.UINT16)
UUID = Fixed(wire.UUID)
STRING = Sized(is_text=True)
NULLABLE_STRING = Sized(is_text=True, is_nullable=True)
BYTES = Sized(is_text=False)
