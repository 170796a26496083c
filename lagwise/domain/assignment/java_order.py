"""The orders of Java's collections, where Kafka's assignors let them decide.

The sticky assignors walk over ``HashMap`` and ``HashSet``. Their order is no accident of a run: it follows from
``String.hashCode`` and from the size of the table (``java.util.HashMap``: a power of two, at least 16, doubled when it
is more than three quarters full; within a bucket the order is that of insertion), so it can be computed.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Generic, TypeVar

from lagwise.domain.assignment.model import NotDeterminedError, Partition

K = TypeVar("K")

_BITS = 0xFFFFFFFF
_SMALLEST_TABLE = 16
#: A bucket that outgrows this becomes a tree, whose order is another.
_LONGEST_BUCKET = 8


@lru_cache(maxsize=1 << 16)
def string_key(text: str) -> bytes:
    """Sorts as ``String.compareTo`` does: by UTF-16 code unit, not by code point."""
    return text.encode("utf-16-be", "surrogatepass")


def partition_key(partition: Partition) -> tuple[bytes, int]:
    """Sorts partitions by topic, then number."""
    return string_key(partition[0]), partition[1]


def string_hash(text: str) -> int:
    """``String.hashCode``, as an unsigned number."""
    units = string_key(text)
    value = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & _BITS
    return value


def partition_hash(partition: Partition) -> int:
    """``TopicPartition.hashCode`` of Kafka's clients, as an unsigned number."""
    topic, number = partition
    return (31 * (31 + number) + string_hash(topic)) & _BITS


class JavaHashSet(Generic[K]):
    """The order in which a ``HashSet``, or the keys of a ``HashMap``, would be walked over.

    Raises NotDeterminedError where a bucket would grow so long that Java turns it into a tree.
    """

    def __init__(self, hash_of: Callable[[K], int], keys: Iterable[K] = ()) -> None:
        self._hash_of = hash_of
        self._table = _SMALLEST_TABLE
        self._spread: dict[K, int] = {}
        self._buckets: Counter[int] = Counter()
        for key in keys:
            self.add(key)

    def add(self, key: K) -> None:
        """Put a key in; one that is there keeps its place."""
        if key in self._spread:
            return
        value = self._hash_of(key)
        self._spread[key] = value ^ value >> 16
        self._buckets[self._bucket(key)] += 1
        if self._buckets[self._bucket(key)] > _LONGEST_BUCKET:
            raise NotDeterminedError("too many names share a hash")
        if len(self._spread) > self._table * 3 // 4:
            self._table *= 2
            self._buckets = Counter(map(self._bucket, self._spread))

    def remove(self, key: K) -> None:
        """Take a key out; the table keeps its size."""
        self._buckets[self._bucket(key)] -= 1
        del self._spread[key]

    def _bucket(self, key: K) -> int:
        return self._spread[key] & (self._table - 1)

    def __iter__(self) -> Iterator[K]:
        # A dict keeps the order of insertion and sorting keeps it within a bucket, as Java does.
        return iter(sorted(self._spread, key=self._bucket))

    def __len__(self) -> int:
        return len(self._spread)
