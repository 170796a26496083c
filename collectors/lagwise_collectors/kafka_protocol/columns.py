"""Arrays of structures that are read as columns: no object is made for an element that is as long as the others."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from lagwise_collectors.kafka_protocol.schema import ArrayOf, Fixed, Row, Sized, Struct, parts_of
from lagwise_collectors.kafka_protocol.wire import MalformedAnswer, Reader

#: Numbers as an array, texts as a list in which an empty one is None like an absent one; None: no element has any.
Columns = dict[str, Any]

#: Elements of different lengths are rows first. Never more of them at once: a row takes 20 times its bytes.
_ROWS = 512
_NUMPY_TYPES = {"b": "i1", "h": "i2", "i": "i4", "q": "i8"}


@dataclass(frozen=True, slots=True)
class ColumnsOf(ArrayOf):
    """An array of structures of numbers and texts; what is read is a dictionary of columns by the names of the fields.

    Where all texts of a field are as long as the first one (as a rule there are none), each element takes the same
    bytes, and numpy reads all of them at once.
    """

    def read(self, reader: Reader, version: int, *, is_flexible: bool) -> Columns:
        element = self.element
        assert isinstance(element, Struct)
        count = reader.count(element.smallest(version, is_flexible=is_flexible), is_compact=is_flexible)
        if count is None:
            raise MalformedAnswer("null where an array must be")
        if not count:
            return _columns_of_rows(element, version, ())
        whole = _uniform(reader, element, count, version, is_flexible=is_flexible)
        if whole is not None:
            return whole
        parts = []
        for start in range(0, count, _ROWS):
            some = range(min(_ROWS, count - start))
            rows = [element.read(reader, version, is_flexible=is_flexible) or {} for _ in some]
            parts.append(_columns_of_rows(element, version, rows))
        return {name: _joined([part[name] for part in parts]) for name in parts[0]}


def _uniform(reader: Reader, element: Struct, count: int, version: int, *, is_flexible: bool) -> Columns | None:
    """The columns where all elements are as long as the first; None, and nothing read, where they are not."""
    start = reader.at
    first = element.read(reader, version, is_flexible=is_flexible) or {}
    size = reader.at - start
    reader.at = start
    present, absent = parts_of(element, version)
    texts = {one.name: one.kind.is_nullable for one in present if isinstance(one.kind, Sized)}
    lengths = tuple(len(first[name].encode()) if first[name] else 0 for name in texts)
    layout = _layout(element, version, is_flexible, lengths)
    if layout.itemsize != size or count * size > reader.left:
        return None
    block = np.frombuffer(reader.peek(count * size), layout)
    for (name, is_nullable), length in zip(texts.items(), lengths, strict=True):
        announced = block[f"length of {name}"]
        is_same = announced == length + is_flexible
        if not length and is_nullable:  # a null text and an empty one differ in the length only, and mean the same
            is_same |= announced == is_flexible - 1
        if not is_same.all():
            return None
    if is_flexible and block["tags"].any():
        return None
    reader.take(count * size)
    columns: Columns = {}
    for one in present:
        column = block[one.name]
        if one.name in texts:
            columns[one.name] = _decoded(column.tobytes(), column.dtype.itemsize)
        else:
            columns[one.name] = column.astype(column.dtype.newbyteorder("="))
    return columns | absent


@lru_cache(maxsize=64)
def _layout(element: Struct, version: int, is_flexible: bool, lengths: tuple[int, ...]) -> np.dtype[Any]:
    """The bytes of an element whose texts have these lengths, while a length of its own takes one byte."""
    left = list(lengths)
    fields: list[tuple[str, str]] = []
    for one in parts_of(element, version)[0]:
        if isinstance(one.kind, Fixed):
            fields.append((one.name, f">{_NUMPY_TYPES[one.kind.format.format[-1]]}"))
        else:
            fields.append((f"length of {one.name}", "u1" if is_flexible else ">i2"))
            fields.append((one.name, f"V{left.pop(0)}"))
    if is_flexible:
        fields.append(("tags", "u1"))
    return np.dtype(fields)


def _decoded(texts: bytes, length: int) -> list[str | None] | None:
    if not length:
        return None
    try:
        return [texts[at : at + length].decode("utf-8") for at in range(0, len(texts), length)]
    except UnicodeDecodeError:
        raise MalformedAnswer("a string that is not UTF-8") from None


def _columns_of_rows(element: Struct, version: int, rows: Sequence[Row]) -> Columns:
    present, absent = parts_of(element, version)
    columns: Columns = {}
    for one in present:
        values = [row[one.name] for row in rows]
        if isinstance(one.kind, Fixed):
            columns[one.name] = np.array(values, _NUMPY_TYPES[one.kind.format.format[-1]])
        else:
            columns[one.name] = [value or None for value in values]
    return columns | absent


def _joined(parts: list[Any]) -> Any:
    if parts[0] is None:
        return None
    if isinstance(parts[0], list):
        return [value for part in parts for value in part]
    return np.concatenate(parts)
