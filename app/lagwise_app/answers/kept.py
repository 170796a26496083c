"""What is made of a table of the present state, kept in memory until the table has a newer version."""

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

from lagwise.tables.schema import Table
from lagwise.tables.store import Lake

T = TypeVar("T")

#: How long an answer is given without looking for a newer version: in an object store, looking takes a request.
CHECK_SECONDS = 1.0


class KeptResult(Generic[T]):
    """What ``make`` makes of a lake's newest version of a table, made once for each. Safe to use from threads.

    Callers share the result: they must not change it.
    """

    def __init__(self, table: Table, make: Callable[[Lake], T]) -> None:
        self._table, self._make = table, make
        self._kept: WeakKeyDictionary[Lake, tuple[float, int | None, T]] = WeakKeyDictionary()
        self._making = threading.Lock()

    def of(self, lake: Lake) -> T:
        """The result, at most a second behind the lake. Raises LakeError."""
        with self._making:
            kept = self._kept.get(lake)
            if kept is not None and time.monotonic() - kept[0] < CHECK_SECONDS:
                return kept[2]
            checked_at, version = time.monotonic(), lake.version(self._table)
            made = kept[2] if kept is not None and kept[1] == version else self._make(lake)
            self._kept[lake] = checked_at, version, made
            return made
