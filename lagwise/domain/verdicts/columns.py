"""Columns: numpy arrays of one length, the rows of a table by name, and what is done to parts of them at once.

Whole numbers and times (microseconds since the epoch) are int64 with :data:`NULL` for null, which is smaller than
every value; other numbers are float64 with NaN for null. Names are numbers of some dictionary, -1 for null.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
#: A table: arrays of the same length by name.
Columns = Mapping[str, Array]

#: Null in a column of whole numbers or times.
NULL = int(np.iinfo(np.int64).min)
#: Later than every time.
NEVER = int(np.iinfo(np.int64).max)
MICROS = 1_000_000


def taken(rows: Columns, chosen: Array) -> dict[str, Array]:
    """The rows that are chosen by their numbers, or by a mask."""
    return {name: values[chosen] for name, values in rows.items()}


def micros(seconds: float) -> int:
    """A length of time in whole microseconds."""
    return round(seconds * MICROS)


def seconds_between(earlier: Array, later: Array) -> Array:
    """Seconds from one time to another; null where either is. Exact to the microsecond."""
    is_known = (earlier != NULL) & (later != NULL)
    return np.where(is_known, (later - np.where(is_known, earlier, later)) / MICROS, np.nan)


def start_of(length_micros: int, times: Array) -> Array:
    """Start of the stretch of this length (minute, hour) that each time falls into."""
    return times - times % length_micros


def as_floats(numbers: Array) -> Array:
    """Whole numbers as float64, null as NaN."""
    return np.where(numbers == NULL, np.nan, numbers)


def or_zero(values: Array) -> Array:
    """float64 with 0 for null."""
    return np.nan_to_num(values, nan=0.0)


def ratio(amount: Array, seconds: Array) -> Array:
    """A rate per second; null where no time passed, or that is not known."""
    return np.divide(amount, seconds, out=np.full(len(seconds), np.nan), where=seconds > 0)


def is_first(*keys: Array) -> Array:
    """Whether each row begins another series: any key differs from the row before."""
    first = np.ones(len(keys[0]), bool)
    first[1:] = False
    for key in keys:
        first[1:] |= key[1:] != key[:-1]
    return first


def before(values: Array) -> Array:
    """Of each element the one before it; of the first it says nothing."""
    return np.concatenate([values[:1], values[:-1]])


def last_index(mask: Array) -> Array:
    """Of each row the number of the last row up to it that the mask holds for; -1 where there is none."""
    return np.maximum.accumulate(np.where(mask, np.arange(len(mask)), -1)) if len(mask) else np.zeros(0, np.int64)


def next_index(mask: Array) -> Array:
    """Of each row the number of the first row from it on that the mask holds for; the number of rows where there is
    none."""
    return len(mask) - 1 - last_index(mask[::-1])[::-1]


def picked(values: Array, index: Array, is_there: Array, null: float | int = NULL) -> Array:
    """The elements at these places; null where it is not there."""
    if not len(values):
        return np.full(len(index), null, values.dtype)
    return np.where(is_there, values[np.where(is_there, index, 0)], null)


@dataclass(frozen=True)
class Ranges:
    """Parts of the rows of a table: from ``start`` up to, not including, ``stop``. They may overlap, or be empty."""

    start: Array
    stop: Array

    @property
    def sizes(self) -> Array:
        """How many rows each has."""
        return np.maximum(self.stop - self.start, 0)

    @property
    def is_empty(self) -> Array:
        """Which have no row."""
        return self.start >= self.stop

    def since(self, start: Array) -> "Ranges":
        """What of each lies at or after this row."""
        return Ranges(np.maximum(self.start, start), self.stop)

    def sum(self, values: Array) -> Array:
        """The sum of each part; 0 of an empty one."""
        return self._reduced(np.add, values, 0)

    def max(self, values: Array, empty: float = NULL) -> Array:
        """The largest value of each part."""
        return self._reduced(np.maximum, values, empty)

    def min(self, values: Array, empty: int = NEVER) -> Array:
        """The smallest value of each part."""
        return self._reduced(np.minimum, values, empty)

    def _reduced(self, function: np.ufunc, values: Array, empty: float) -> Array:
        made = np.full(len(self.start), empty, values.dtype)
        some, bounds = self._bounds
        if len(bounds):
            if bounds[-1] == len(values) and bounds[:-1].max() < len(values):
                made[some] = function.reduceat(values, bounds[:-1])[::2]
            else:
                # One more element than rows, because several parts end after the last.
                padded = np.append(values, values.dtype.type(empty))
                made[some] = function.reduceat(padded, bounds)[::2]
        return made

    @cached_property
    def _bounds(self) -> tuple[Array, Array]:
        """Which parts have rows; where each of these begins and ends, one after the other."""
        some = ~self.is_empty
        return some, np.stack([self.start[some], self.stop[some]], axis=1).ravel()

    def first(self, values: Array, null: float | int = NULL) -> Array:
        """The first value of each part."""
        return picked(values, self.start, ~self.is_empty, null)

    def last(self, values: Array, null: float | int = NULL) -> Array:
        """The last value of each part."""
        return picked(values, self.stop - 1, ~self.is_empty, null)

    def bisect_left(self, ordered: Array, value: Array) -> Array:
        """In each part, in which values ascend, the first row whose value is not below this one, or ``stop``."""
        return self._bisected(ordered, value, or_equal=False)

    def bisect_right(self, ordered: Array, value: Array) -> Array:
        """In each part, in which values ascend, the first row whose value is above this one, or ``stop``."""
        return self._bisected(ordered, value, or_equal=True)

    def _bisected(self, ordered: Array, value: Array, *, or_equal: bool) -> Array:
        low, high = self.start.copy(), np.maximum(self.stop, self.start)
        open_ = np.flatnonzero(low < high)
        while len(open_):
            middle = (low[open_] + high[open_]) // 2
            seen, wanted = ordered[middle], value[open_]
            is_below = seen <= wanted if or_equal else seen < wanted
            low[open_] = np.where(is_below, middle + 1, low[open_])
            high[open_] = np.where(is_below, high[open_], middle)
            open_ = open_[low[open_] < high[open_]]
        return low

    def rows(self) -> tuple[Array, Array]:
        """Every row of every part: the number of the part, and that of the row."""
        sizes = self.sizes
        part = np.repeat(np.arange(len(sizes)), sizes)
        begins = np.cumsum(sizes) - sizes
        return part, np.arange(len(part)) - begins[part] + self.start[part]


def ranges_of(keys: Array, ordered: Array) -> Ranges:
    """Where each of these keys stands in a column in which they are in order."""
    return Ranges(np.searchsorted(ordered, keys, "left"), np.searchsorted(ordered, keys, "right"))


def runs(*keys: Array) -> Ranges:
    """The rows that follow one another with the same keys: a part for each series."""
    first = np.flatnonzero(is_first(*keys))
    return Ranges(first, np.append(first, len(keys[0]))[1:])
