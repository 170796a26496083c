"""Lists that are read a page at a time. The lake filters and sorts them, so that both apply to all rows."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar, overload

from lagwise.domain import humanise
from lagwise.links.parameter_types import REVERSED
from lagwise.tables.store import Lake
from lagwise_dashboard.queries.base import Row, Tables, rows

T = TypeVar("T")

#: Expressions of SQL to sort by, the first of them first; one that ends in ``desc`` has the largest value first. What
#: is unknown comes last, whichever way round.
Terms = list[str]
_DESCENDING = " desc"


class Orders(dict[str, Terms]):
    """The orders of a list by their names in its address, the usual one first.

    Rows that are alike in one stand in the usual order, and then by ``key``, so that a page does not flicker.
    """

    def __init__(self, by_name: Mapping[str, Terms], key: Sequence[str] = ()) -> None:
        super().__init__(by_name)
        self.key = key

    def as_sql(self, order: str) -> str:
        """A statement's ``order by``: an order by its name, reversed with a ``-`` before it. A name that is not
        there is the usual order."""
        terms, is_reversed = self._find(order)
        usual = next(iter(self.values()))
        return ", ".join([*(_as_sql(t, is_reversed=is_reversed) for t in terms), *map(_as_sql, (*usual, *self.key))])

    def is_descending(self, order: str) -> bool:
        """Whether this order begins with the largest."""
        terms, is_reversed = self._find(order)
        return terms[0].endswith(_DESCENDING) != is_reversed

    def _find(self, order: str) -> tuple[Terms, bool]:
        name = order.removeprefix(REVERSED)
        if name in self:
            return self[name], name != order
        return next(iter(self.values())), False


def _as_sql(term: str, *, is_reversed: bool = False) -> str:
    is_descending = term.endswith(_DESCENDING) != is_reversed
    return f"{term.removesuffix(_DESCENDING)} {'desc' if is_descending else 'asc'} nulls last"


PAGE_ROWS = 500
#: More rows than any list has: for a file of the whole list.
ALL_ROWS = 10_000_000


@dataclass(frozen=True, slots=True)
class ListQuery:
    """Which rows of a list: those that hold ``text``, in an order by its name, and of these one page, from 1 on."""

    text: str = ""
    order: str = ""
    page: int = 1
    page_rows: int = PAGE_ROWS

    @property
    def offset(self) -> int:
        """Rows before the page."""
        return (self.page - 1) * self.page_rows

    @property
    def all_rows(self) -> "ListQuery":
        """All pages as one."""
        return replace(self, page=1, page_rows=ALL_ROWS)

    def within(self, total: int) -> "ListQuery":
        """The same, or the last page where the list is shorter than that."""
        return replace(self, page=min(self.page, max(1, math.ceil(total / self.page_rows))))


#: The first page of a list in its usual order.
FIRST_PAGE = ListQuery()


@dataclass(frozen=True, slots=True)
class ListPage(Sequence[T], Generic[T]):
    """The rows of one page of a list, and how many there are on all pages."""

    rows: list[T]
    total: int
    query: ListQuery

    @property
    def pages(self) -> int:
        """How many pages there are."""
        return max(1, math.ceil(self.total / self.query.page_rows))

    def counted(self, noun: str) -> str:
        """``12 partitions``, or ``501–1,000 of 10,000 partitions``."""
        total = humanise.plural(self.total, noun)
        if len(self.rows) == self.total:
            return total
        return f"{self.query.offset + 1:,}–{self.query.offset + len(self.rows):,} of {total}"

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, place: int) -> T: ...
    @overload
    def __getitem__(self, place: slice) -> list[T]: ...
    def __getitem__(self, place: int | slice) -> T | list[T]:
        return self.rows[place]


def page_of(
    lake: Lake, tables: Tables, matching: str, parameters: Mapping[str, Any], query: ListQuery, orders: Orders
) -> ListPage[Row]:
    """One page of what the statement ``matching`` finds. Beyond the last page it is the last."""
    result = rows(
        lake,
        tables,
        f"""with matching as ({matching})
            select *, count(*) over () as total_rows from matching
            order by {orders.as_sql(query.order)} limit $limit offset $offset""",  # noqa: S608 (statements of our own)
        {**parameters, "limit": query.page_rows, "offset": query.offset},
    )
    if result:
        totals = [row.pop("total_rows") for row in result]
        return ListPage(result, totals[0], query)
    if query.page == 1:
        return ListPage([], 0, query)
    first = page_of(lake, tables, matching, parameters, replace(query, page=1), orders)
    last = query.within(first.total)
    return first if last.page == 1 else page_of(lake, tables, matching, parameters, last, orders)
