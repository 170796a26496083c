"""From rows of the lake, as Arrow, to columns of the rules (:mod:`lagwise.domain.verdicts.columns`), and back."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lagwise.domain.verdicts.columns import NULL, Array, Columns
from lagwise_spark.tasks.row_groups import RowGroup

TIMESTAMP = pa.timestamp("us", tz="UTC")


class Numbering:
    """Numbers in the place of names, in the order of their first appearance; -1 is null."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def names(self) -> list[str]:
        """The names, by their numbers."""
        return list(self._numbers)

    def of(self, values: pa.ChunkedArray | pa.Array) -> Array:
        """The numbers of a column of names. Names come as dictionaries, as files hold them: each is looked at once."""
        chunks = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
        parts = [
            self._of(chunk if pa.types.is_dictionary(chunk.type) else chunk.dictionary_encode()) for chunk in chunks
        ]
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)

    def _of(self, encoded: pa.DictionaryArray) -> Array:
        known = self._numbers
        numbers = [known.setdefault(name, len(known)) for name in encoded.dictionary.to_pylist()]
        places = pc.fill_null(encoded.indices, len(numbers)).to_numpy(zero_copy_only=False)
        of_each: Array = np.array([*numbers, -1], np.int64)[places]
        return of_each

    def number(self, name: str | None) -> int:
        """The number of one name, which is new or not."""
        return -1 if name is None else self._numbers.setdefault(name, len(self._numbers))

    def named(self, numbers: Array) -> pa.Array:
        """The names of these numbers."""
        names = pa.array([*self._numbers, None], pa.string())
        return names.take(pa.array(np.where(numbers < 0, len(names) - 1, numbers)))


def numbers_of(values: pa.ChunkedArray | pa.Array, null: int = NULL) -> Array:
    """A column of whole numbers or times."""
    chunks = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
    return _together([_filled(chunk.cast(pa.int64()), null) for chunk in chunks], np.dtype(np.int64))


def decimals_of(values: pa.ChunkedArray | pa.Array) -> Array:
    """A column of decimals."""
    chunks = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
    return _together([_filled(chunk, np.nan) for chunk in chunks], np.dtype(np.float64))


def _filled(values: pa.Array, null: float) -> Array:
    return np.asarray((pc.fill_null(values, null) if values.null_count else values).to_numpy(zero_copy_only=False))


def _together(parts: Sequence[Array], kind: np.dtype[Any]) -> Array:
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if parts else np.zeros(0, kind)


def flags_of(values: pa.ChunkedArray | pa.Array) -> Array:
    """A column of yes and no; null is no."""
    whole = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    return np.asarray(pc.fill_null(whole, False).to_numpy(zero_copy_only=False))


def places_among(values: pa.ChunkedArray | pa.Array, words: Sequence[str]) -> Array:
    """The place of each name among the words; -1 of null, and of any other."""
    names = values.cast(pa.string()) if pa.types.is_dictionary(values.type) else values
    places = pc.index_in(names, pa.array(words, pa.string()))
    return np.asarray(pc.fill_null(places, -1).to_numpy().astype(np.int64))


def lists_with(lists: pa.ChunkedArray, word: str) -> Array:
    """Whether each list of names holds the word."""
    whole = lists.combine_chunks()
    held = np.zeros(len(whole), bool)
    held[pc.list_parent_indices(whole).to_numpy()[places_among(pc.list_flatten(whole), [word]) >= 0]] = True
    return held


def columns_of(rows: pa.Table, schema: pa.Schema, names: Iterable[str]) -> dict[str, Array]:
    """These columns of rows, by the types that their table declares."""
    made: dict[str, Array] = {}
    for name in names:
        kind = schema.field(name).type
        made[name] = (
            decimals_of(rows[name])
            if pa.types.is_floating(kind)
            else flags_of(rows[name])
            if pa.types.is_boolean(kind)
            else numbers_of(rows[name])
        )
    return made


def column_of_parts(parts: Sequence[RowGroup], field: pa.Field, null: int = NULL) -> Array:
    """The same of one column, whose rows come in parts; ``null`` stands for null in a column of whole numbers."""
    kind: np.dtype[Any]
    of: Callable[[pa.Array], Array]
    missing: float
    if pa.types.is_floating(field.type):
        kind, of, missing = np.dtype(np.float64), decimals_of, np.nan
    elif pa.types.is_boolean(field.type):
        kind, of, missing = np.dtype(bool), flags_of, False
    else:
        kind, of, missing = np.dtype(np.int64), partial(numbers_of, null=null), null

    def values(part: RowGroup) -> Any:
        if field.name not in part.same:
            return of(part.columns[field.name])
        value = part.same[field.name]
        return missing if value is None else value

    return in_one(parts, kind, values)


def in_one(parts: Sequence[RowGroup], kind: np.dtype[Any], values: Callable[[RowGroup], Any]) -> Array:
    """A column of that kind from what ``values`` makes of each part: an array, or the one value of all its rows."""
    made = np.empty(sum(part.count for part in parts), kind)
    start = 0
    for part in parts:
        made[start : start + part.count] = values(part)
        start += part.count
    return made


def arrow_of(values: Array, kind: pa.DataType) -> pa.Array:
    """A column of the rules as a column of the lake."""
    if pa.types.is_boolean(kind):
        return pa.array(values)
    if pa.types.is_floating(kind):
        return pa.array(values, mask=np.isnan(values))
    made = pa.array(values.astype(np.int64), mask=values == NULL)
    return made.cast(kind)


def lists_of(sizes: Array, elements: Columns, kind: pa.ListType) -> pa.Array:
    """A column of lists of structs, from the elements of all lists, one after the other."""
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    fields = list(kind.value_type)
    structs = pa.StructArray.from_arrays([arrow_of(elements[f.name], f.type) for f in fields], fields=fields)
    return pa.ListArray.from_arrays(pa.array(offsets), structs, type=kind)


def table_of(rows: Columns, made: Mapping[str, pa.Array], schema: pa.Schema) -> pa.Table:
    """Rows of the lake, of columns that are ``made`` as Arrow and of others."""
    columns = [made[f.name] if f.name in made else arrow_of(rows[f.name], f.type) for f in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def combined(numbers: Sequence[Array], sizes: Sequence[int]) -> Array:
    """One number for each combination of numbers, of which there are so many of each kind; the first counts most."""
    key = np.zeros(len(numbers[0]), np.int64)
    whole = 1
    for number, size in zip(numbers, sizes, strict=True):
        whole *= max(1, size)
        key = key * max(1, size) + number
    if whole >= 1 << 62:
        raise OverflowError(f"{whole} combinations of names are more than a number can tell apart")
    return key


def places_in(keys: Array, wanted: Array) -> Array:
    """Of each wanted key the place among ``keys``, which are distinct; -1 where it is not among them."""
    if not len(keys):
        return np.full(len(wanted), -1)
    order = np.argsort(keys)
    place = order[np.minimum(np.searchsorted(keys, wanted, sorter=order), len(keys) - 1)]
    return np.where(keys[place] == wanted, place, -1)


def stacked(parts: Sequence[Columns]) -> dict[str, Array]:
    """The rows of several tables of the same columns."""
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
