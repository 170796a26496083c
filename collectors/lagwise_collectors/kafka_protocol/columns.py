"""Arrays of named arrays that are read as columns, without an object for each element where it can be."""

import struct
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lagwise_collectors.kafka_protocol import wire
from lagwise_collectors.kafka_protocol.schema import ArrayOf, Field, Fixed, Row, Struct, parts_of
from lagwise_collectors.kafka_protocol.wire import MalformedAnswer, Reader

#: From so many elements on, reading all of them with numpy is cheaper than one by one.
_FEW = 16
#: Elements that are read one by one become arrays whenever there are so many of them.
_ROWS = 4096
_NUMPY_TYPES = {"b": "i1", "h": "i2", "i": "i4", "q": "i8"}


@dataclass(frozen=True, slots=True)
class ColumnsOf(ArrayOf):
    """An array of structures of a name and an array of structures, of which one field is a text and all others are
    numbers.

    What is read is a dictionary: the list of the names, under ``rows`` how many inner structures each has, and a column
    by the name of each inner field, of all inner structures one after the other. Numbers are an array; texts are a list
    in which an empty one is None like an absent one, or None where there is no text at all.
    """

    def read(self, reader: Reader, version: int, *, is_flexible: bool) -> Row:
        count = reader.count(self.element.smallest(version, is_flexible=is_flexible), is_compact=is_flexible)
        if count is None:
            raise MalformedAnswer("null where an array must be")
        assert isinstance(self.element, Struct)
        name, inner = self.element.fields
        assert isinstance(inner.kind, ArrayOf)
        assert isinstance(inner.kind.element, Struct)
        smallest = inner.kind.element.smallest(version, is_flexible=is_flexible)
        layout = _layout(inner.kind.element, version, is_flexible)
        names: list[str] = []
        rows: list[int] = []
        columns = _Columns(layout)
        for _ in range(count):
            names.append(name.kind.read(reader, version, is_flexible=is_flexible))
            size = reader.count(smallest, is_compact=is_flexible)
            if size is None:
                raise MalformedAnswer("null where an array must be")
            rows.append(size)
            if size < _FEW or not columns.read_block(reader, size):
                for start in range(0, size, _ROWS):
                    columns.read_one_by_one(reader, min(_ROWS, size - start))
            if is_flexible:
                reader.skip_tagged_fields()
        _, absent = parts_of(inner.kind.element, version)
        return {name.name: names, "rows": rows, **columns.finish(), **absent}


@dataclass(frozen=True, slots=True)
class _Layout:
    """The bytes of an inner structure: numbers, the length of the text, the text, and more numbers."""

    before: tuple[Field, ...]
    text: Field
    after: tuple[Field, ...]
    is_flexible: bool
    numbers_before: struct.Struct
    numbers_after: struct.Struct

    def numpy_type(self, length: int) -> np.dtype[Any]:
        """Of structures with a text of this length, whose own length takes as few bytes as can be."""
        return _numpy_type(self, length)


class _Columns:
    """Columns while they are read."""

    def __init__(self, layout: _Layout) -> None:
        self._layout = layout
        self._fields = (*layout.before, *layout.after)
        self._numbers: dict[str, list[NDArray[Any]]] = {
            one.name: [np.empty(0, _native_type(one))] for one in self._fields
        }
        self._texts: list[str | None] = []
        self._rows: list[tuple[Any, ...]] = []

    def read_block(self, reader: Reader, count: int) -> bool:
        """Read so many structures if the texts of all are as long as the first one's; otherwise nothing is read."""
        layout = self._layout
        length = _first_length(reader, layout)
        if length is None or count * (type_ := layout.numpy_type(length)).itemsize > reader.left:
            return False
        block = np.frombuffer(reader.peek(count * type_.itemsize), type_)
        announced = block["length"]
        is_same = announced == length + layout.is_flexible
        if not length:  # a null text and an empty one differ in the length only, and mean the same
            is_same |= announced == layout.is_flexible - 1
        if not is_same.all() or (layout.is_flexible and block["tags"].any()):
            return False
        joined = block["text"].tobytes()
        texts = [_text(joined[at : at + length]) for at in range(0, len(joined), length)] if length else [None] * count
        reader.take(count * type_.itemsize)
        self._flush()
        for one in self._fields:
            self._numbers[one.name].append(block[one.name])
        self._texts += texts
        return True

    def read_one_by_one(self, reader: Reader, count: int) -> None:
        """Read so many structures."""
        before, after = self._layout.numbers_before, self._layout.numbers_after
        is_flexible = self._layout.is_flexible
        rows, texts, data = self._rows, self._texts, reader.data
        last = len(data) - after.size - is_flexible - 1
        for _ in range(count):
            at = reader.at
            # What nearly all are: a length of one byte, and no tagged fields. Without a call for each part of it.
            if is_flexible and at + before.size <= last and (length := data[at + before.size]) < 0x80:
                text_at = at + before.size + 1
                end = text_at + max(0, length - 1)
                if end <= last and not data[end + after.size]:
                    rows.append(before.unpack_from(data, at) + after.unpack_from(data, end))
                    texts.append(_text(data[text_at:end]) if length > 1 else None)
                    reader.at = end + after.size + 1
                    continue
            numbers = before.unpack(reader.take(before.size))
            texts.append(reader.text(is_compact=is_flexible) or None)
            rows.append(numbers + after.unpack(reader.take(after.size)))
            if is_flexible:
                reader.skip_tagged_fields()
        if len(rows) >= _ROWS:
            self._flush()

    def finish(self) -> Row:
        """The columns by name."""
        self._flush()
        columns: Row = {name: np.concatenate(parts, dtype=parts[0].dtype) for name, parts in self._numbers.items()}
        columns[self._layout.text.name] = self._texts if any(self._texts) else None
        return columns

    def _flush(self) -> None:
        if self._rows:
            for one, values in zip(self._fields, zip(*self._rows, strict=True), strict=True):
                self._numbers[one.name].append(np.array(values, _native_type(one)))
            self._rows.clear()


@lru_cache(maxsize=64)
def _layout(inner: Struct, version: int, is_flexible: bool) -> _Layout:
    present, _ = parts_of(inner, version)
    [at] = [number for number, one in enumerate(present) if not isinstance(one.kind, Fixed)]
    before, after = present[:at], present[at + 1 :]
    numbers = (
        struct.Struct(">" + "".join(one.kind.format.format[-1] for one in some if isinstance(one.kind, Fixed)))
        for some in (before, after)
    )
    return _Layout(before, present[at], after, is_flexible, *numbers)


@lru_cache(maxsize=64)
def _numpy_type(layout: _Layout, length: int) -> np.dtype[Any]:
    fields = [(one.name, f">{_native_type(one)}") for one in layout.before]
    fields += [("length", "u1" if layout.is_flexible else ">i2"), ("text", f"V{length}")]
    fields += [(one.name, f">{_native_type(one)}") for one in layout.after]
    return np.dtype([*fields, ("tags", "u1")] if layout.is_flexible else fields)


def _native_type(field: Field) -> str:
    assert isinstance(field.kind, Fixed)
    return _NUMPY_TYPES[field.kind.format.format[-1]]


def _first_length(reader: Reader, layout: _Layout) -> int | None:
    """Of the text of the structure that comes next; None: its length takes more bytes than usual, or none are there."""
    size = layout.numbers_before.size
    if not layout.is_flexible:
        found = reader.peek(size + 2)[size:]
        return max(0, wire.INT16.unpack(found)[0]) if len(found) == 2 else None
    found = reader.peek(size + 1)[size:]
    return max(0, found[0] - 1) if len(found) == 1 and found[0] < 0x80 else None


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise MalformedAnswer("a string that is not UTF-8") from None
