"""Lists of which a page is fetched at a time. Filters and orders are the lake's, so that they reach over all rows."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar, overload

from lagwise.domain import humanise
from lagwise.links.parameter_types import REVERSED
from lagwise.tables.schema import Table
from lagwise.tables.store import Lake
from lagwise_dashboard.queries.base import Row, ScanLimit, rows

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Term:
    """An expression of SQL to sort by. What is unknown comes last, whichever way round."""

    sql: str
    descending: bool = False

    def as_sql(self, *, turned: bool) -> str:
        """The term as it stands in a statement, turned round or not."""
        return f"{self.sql} {'desc' if self.descending != turned else 'asc'} nulls last"


#: What is sorted by first, second, …
Terms = tuple[Term, ...]
#: The orders of a list by their names in its address.
Orders = Mapping[str, Terms]


def rising(sql: str) -> Terms:
    """The smallest first."""
    return (Term(sql),)


def falling(sql: str) -> Terms:
    """The largest first."""
    return (Term(sql, descending=True),)


def order_by(orders: Orders, query: str, ties: Terms) -> str:
    """The terms of a statement's ``order by``: an order by its name, turned round with a ``-`` before it. Those that
    are alike stand as ``ties`` says, so that a page does not flicker. A name that is not there is the first order."""
    terms, turned = _order_of(orders, query)
    return ", ".join([*(t.as_sql(turned=turned) for t in terms), *(t.as_sql(turned=False) for t in ties)])


def is_descending(orders: Orders, query: str) -> bool:
    """Whether this order begins with the largest."""
    terms, turned = _order_of(orders, query)
    return terms[0].descending != turned


def _order_of(orders: Orders, query: str) -> tuple[Terms, bool]:
    key = query.removeprefix(REVERSED)
    return (orders[key], query != key) if key in orders else (next(iter(orders.values())), False)


PAGE_ROWS = 500
#: As many rows as any list has: for what takes away the whole of it.
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
    lake: Lake,
    tables: Mapping[Table, ScanLimit],
    matching: str,
    parameters: Mapping[str, Any],
    query: ListQuery,
    orders: Orders,
    ties: Terms,
) -> ListPage[Row]:
    """One page of what the statement ``matching`` finds. Beyond the last page it is the last."""
    order = order_by(orders, query.order, ties)
    result = rows(
        lake,
        tables,
        f"""with matching as ({matching})
            select *, count(*) over () as total_rows from matching order by {order} limit $limit offset $offset""",  # noqa: S608 (statements of our own)
        {**parameters, "limit": query.page_rows, "offset": query.offset},
    )
    if result:
        return ListPage(
            [{k: v for k, v in row.items() if k != "total_rows"} for row in result], result[0]["total_rows"], query
        )
    if query.page == 1:
        return ListPage([], 0, query)
    first = page_of(lake, tables, matching, parameters, replace(query, page=1), orders, ties)
    last = query.within(first.total)
    return first if last.page == 1 else page_of(lake, tables, matching, parameters, last, orders, ties)
