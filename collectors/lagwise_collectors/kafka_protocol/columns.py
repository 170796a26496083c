"""Arrays of structures that are read as columns, without an object for each element where it can be."""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lagwise_collectors.kafka_protocol import wire
from lagwise_collectors.kafka_protocol.schema import ArrayOf, Field, Fixed, Kind, Row, Sized, Struct, parts_of
from lagwise_collectors.kafka_protocol.wire import MalformedAnswer, Reader, Writer

#: From so many elements on, reading all of them with numpy is cheaper than one by one …
_FEW = 4
#: … and from so many on where one by one is as cheap as it can be.
_FEW_OF_ONE_TEXT = 16
#: Elements that are read one by one become arrays whenever there are so many of them.
_ROWS = 4096
_NUMPY_TYPES = {"b": "i1", "h": "i2", "i": "i4", "q": "i8"}


class NumberLists(NamedTuple):
    """A column of lists of numbers: how many each has, and all of them one after the other."""

    counts: NDArray[np.int64]
    values: NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class ColumnsOf(ArrayOf):
    """An array of structures that have one array of structures themselves. The inner ones have numbers, arrays of
    numbers, and at most one text.

    What is read is a dictionary: a list by the name of each outer field, under ``rows`` how many inner structures each
    outer one has, and by the name of the inner array a dictionary with a column for each inner field, of all inner
    structures one after the other. Numbers are an array, arrays of numbers are :class:`NumberLists`; texts are a list
    in which an empty one is None like an absent one, or None where there is no text at all.

    The same is written, where all inner fields are numbers.
    """

    def read(self, reader: Reader, version: int, *, is_flexible: bool) -> Any:
        count = reader.count(self.element.smallest(version, is_flexible=is_flexible), is_compact=is_flexible)
        if count is None:
            raise MalformedAnswer("null where an array must be")
        present, absent, inner, element = self._parts(version)
        smallest = element.smallest(version, is_flexible=is_flexible)
        columns = _Columns(_layout(element, version, is_flexible))
        outer: Row = {one.name: [] for one in present if one is not inner}
        rows: list[int] = []
        for _ in range(count):
            for one in present:
                if one is inner:
                    size = reader.count(smallest, is_compact=is_flexible)
                    if size is None:
                        raise MalformedAnswer("null where an array must be")
                    rows.append(size)
                    columns.read(reader, size)
                else:
                    outer[one.name].append(one.kind.read(reader, version, is_flexible=is_flexible))
            if is_flexible:
                reader.skip_tagged_fields()
        return {**outer, "rows": rows, inner.name: columns.finish() | parts_of(element, version)[1], **absent}

    def write(self, writer: Writer, value: Any, version: int, *, is_flexible: bool) -> None:
        if not isinstance(value, Mapping):
            ArrayOf.write(self, writer, value, version, is_flexible=is_flexible)
            return
        present, _, inner, element = self._parts(version)
        rows, columns = value["rows"], value[inner.name]
        layout = _layout(element, version, is_flexible)
        assert not layout.variable, "only numbers can be written as columns"
        block = np.zeros(sum(rows), layout.numpy_type(()))
        for one in layout.numbers:
            block[one.name] = columns[one.name]
        data, start = block.tobytes(), 0
        writer.count(len(rows), is_compact=is_flexible)
        for number, count in enumerate(rows):
            for one in present:
                if one is inner:
                    writer.count(count, is_compact=is_flexible)
                    end = start + count * block.itemsize
                    writer.data += data[start:end]
                    start = end
                else:
                    one.kind.write(writer, value[one.name][number], version, is_flexible=is_flexible)
            if is_flexible:
                writer.varint(0)

    def _parts(self, version: int) -> tuple[tuple[Field, ...], Row, Field, Struct]:
        """The outer fields that a version has, those that it lacks, the inner array and its structure."""
        assert isinstance(self.element, Struct)
        present, absent = parts_of(self.element, version)
        [inner] = [one for one in present if isinstance(one.kind, ArrayOf)]
        assert isinstance(inner.kind, ArrayOf)
        assert isinstance(inner.kind.element, Struct)
        return present, absent, inner, inner.kind.element


@dataclass(frozen=True, slots=True, eq=False)
class _Layout:
    """The bytes of an inner structure in one version."""

    fields: tuple[Field, ...]
    numbers: tuple[Field, ...]
    #: The text and the arrays.
    variable: tuple[Field, ...]
    version: int
    is_flexible: bool
    #: The numbers before and after the one text; None: there is something else of variable length, or nothing.
    around_text: tuple[struct.Struct, struct.Struct] | None

    def numpy_type(self, lengths: tuple[int, ...]) -> np.dtype[Any]:
        """Of structures in which texts and arrays have these lengths, which themselves take as few bytes as can be."""
        return _numpy_type(self, lengths)

    def first_lengths(self, reader: Reader) -> tuple[int, ...] | None:
        """Of the texts and arrays of the structure that comes next; None: a length takes more bytes than usual, or the
        structure ends beyond the bytes that are there."""
        data, at, lengths = reader.data, reader.at, []
        for one in self.fields:
            if isinstance(one.kind, Fixed):
                at += one.kind.format.size
                continue
            header = _length_header(one.kind, self.is_flexible)
            if at + header.size > len(data):
                return None
            announced = header.unpack_from(data, at)[0]
            if self.is_flexible and announced >= 0x80:
                return None
            length = max(0, announced - self.is_flexible)
            at += header.size + length * _item_bytes(one.kind)
            if at > len(data):
                return None
            lengths.append(length)
        return tuple(lengths)


class _Columns:
    """Columns while they are read."""

    def __init__(self, layout: _Layout) -> None:
        self._layout = layout
        self._few = _FEW if layout.around_text is None else _FEW_OF_ONE_TEXT
        self._numbers: dict[str, list[NDArray[Any]]] = {
            one.name: [np.empty(0, _native_type(one.kind))] for one in layout.numbers
        }
        lists = [one.name for one in layout.variable if isinstance(one.kind, ArrayOf)]
        self._counts: dict[str, list[NDArray[np.int64]]] = {name: [np.empty(0, np.int64)] for name in lists}
        self._values: dict[str, list[NDArray[np.int32]]] = {name: [np.empty(0, np.int32)] for name in lists}
        self._texts: list[str | None] = []
        self._rows: list[tuple[Any, ...]] = []

    def read(self, reader: Reader, count: int) -> None:
        """Read so many structures."""
        if count >= self._few and self._read_block(reader, count):
            return
        one_by_one = self._read_one_by_one if self._layout.around_text is None else self._read_around_text
        for start in range(0, count, _ROWS):
            one_by_one(reader, min(_ROWS, count - start))
            if len(self._rows) >= _ROWS:
                self._flush()

    def finish(self) -> Row:
        """The columns by name."""
        self._flush()
        columns: Row = {name: np.concatenate(parts, dtype=parts[0].dtype) for name, parts in self._numbers.items()}
        for name, parts in self._counts.items():
            columns[name] = NumberLists(np.concatenate(parts), np.concatenate(self._values[name], dtype=np.int32))
        for one in self._layout.variable:
            if isinstance(one.kind, Sized):
                columns[one.name] = self._texts if any(self._texts) else None
        return columns

    def _read_block(self, reader: Reader, count: int) -> bool:
        """Read so many structures if texts and arrays of all are as long as the first one's; otherwise nothing."""
        layout = self._layout
        lengths = layout.first_lengths(reader)
        if lengths is None or count * (type_ := layout.numpy_type(lengths)).itemsize > reader.left:
            return False
        block = np.frombuffer(reader.peek(count * type_.itemsize), type_)
        for one, length in zip(layout.variable, lengths, strict=True):
            announced = block[_length_of(one)]
            is_same = announced == length + layout.is_flexible
            if not length and isinstance(one.kind, Sized) and one.kind.is_nullable:
                is_same |= announced == layout.is_flexible - 1  # null, which means the same as an empty one
            if not is_same.all():
                return False
        if layout.is_flexible and block[_TAGS].any():
            return False
        texts: list[str | None] = []
        for one, length in zip(layout.variable, lengths, strict=True):
            if isinstance(one.kind, Sized):
                joined = block[one.name].tobytes()
                starts = range(0, len(joined), length or 1)
                texts = [_text(joined[at : at + length]) for at in starts] if length else [None] * count
        reader.take(count * type_.itemsize)
        self._flush()
        for one in layout.numbers:
            self._numbers[one.name].append(block[one.name])
        for one, length in zip(layout.variable, lengths, strict=True):
            if isinstance(one.kind, ArrayOf):
                self._counts[one.name].append(np.full(count, length))
                self._values[one.name].append(block[one.name].reshape(-1))
        self._texts += texts
        return True

    def _read_one_by_one(self, reader: Reader, count: int) -> None:
        layout, version, is_flexible = self._layout, self._layout.version, self._layout.is_flexible
        for _ in range(count):
            row = [one.kind.read(reader, version, is_flexible=is_flexible) for one in layout.fields]
            self._rows.append(tuple(row))
            if is_flexible:
                reader.skip_tagged_fields()

    def _read_around_text(self, reader: Reader, count: int) -> None:
        """One by one, where the only thing of variable length is a text."""
        assert self._layout.around_text is not None
        before, after = self._layout.around_text
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

    def _flush(self) -> None:
        if not self._rows:
            return
        is_around_text = self._layout.around_text is not None
        fields = self._layout.numbers if is_around_text else self._layout.fields
        for one, values in zip(fields, zip(*self._rows, strict=True), strict=True):
            if isinstance(one.kind, Fixed):
                self._numbers[one.name].append(np.array(values, _native_type(one.kind)))
            elif isinstance(one.kind, ArrayOf):
                self._counts[one.name].append(np.array([len(some) for some in values], np.int64))
                self._values[one.name].append(np.array([number for some in values for number in some], np.int32))
            else:
                self._texts += [text or None for text in values]
        self._rows.clear()


_TAGS = " tags"


def _length_of(field: Field) -> str:
    return f"{field.name} length"


@lru_cache(maxsize=64)
def _layout(inner: Struct, version: int, is_flexible: bool) -> _Layout:
    fields, _ = parts_of(inner, version)
    variable = tuple(one for one in fields if not isinstance(one.kind, Fixed))
    around_text = None
    if len(variable) == 1 and isinstance(variable[0].kind, Sized):
        at = fields.index(variable[0])
        before, after = (
            struct.Struct(">" + "".join(one.kind.format.format[-1] for one in some if isinstance(one.kind, Fixed)))
            for some in (fields[:at], fields[at + 1 :])
        )
        around_text = before, after
    numbers = tuple(one for one in fields if isinstance(one.kind, Fixed))
    return _Layout(fields, numbers, variable, version, is_flexible, around_text)


@lru_cache(maxsize=64)
def _numpy_type(layout: _Layout, lengths: tuple[int, ...]) -> np.dtype[Any]:
    fields: list[Any] = []
    left = list(lengths)
    for one in layout.fields:
        if isinstance(one.kind, Fixed):
            fields.append((one.name, f">{_native_type(one.kind)}"))
            continue
        length = left.pop(0)
        header = "u1" if layout.is_flexible else f">i{_length_header(one.kind, False).size}"
        fields.append((_length_of(one), header))
        if isinstance(one.kind, ArrayOf):
            fields.append((one.name, f">{_native_type(one.kind.element)}", (length,)))
        else:
            fields.append((one.name, f"V{length}"))
    return np.dtype([*fields, (_TAGS, "u1")] if layout.is_flexible else fields)


_UINT8 = struct.Struct(">B")


def _length_header(kind: Kind, is_flexible: bool) -> struct.Struct:
    """What the length of a text or an array is written as, where it takes as few bytes as can be."""
    if is_flexible:
        return _UINT8
    return wire.INT16 if isinstance(kind, Sized) else wire.INT32


def _item_bytes(kind: Kind) -> int:
    if isinstance(kind, ArrayOf):
        assert isinstance(kind.element, Fixed)
        return kind.element.format.size
    return 1


def _native_type(kind: Kind) -> str:
    assert isinstance(kind, Fixed)
    return _NUMPY_TYPES[kind.format.format[-1]]


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise MalformedAnswer("a string that is not UTF-8") from None
