"""Lists of which a page is fetched at a time. Filters and orders are the lake's, so that they reach over all rows."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar, overload

from lagwise.domain import humanise
from lagwise.links.parameter_types import REVERSED
from lagwise.tables.schema import Table
from lagwise.tables.store import Lake
from lagwise_dashboard.queries.base import Reach, Row, rows

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Term:
    """An expression of SQL to sort by. What is unknown comes last, whichever way round."""

    sql: str
    descending: bool = False

    def written(self, *, turned: bool) -> str:
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


def order_by(orders: Orders, asked: str, ties: Terms) -> str:
    """The terms of a statement's ``order by``: an order by its name, turned round with a ``-`` before it. Those that
    are alike stand as ``ties`` says, so that a page does not flicker. A name that is not there is the first order."""
    terms, turned = _found(orders, asked)
    return ", ".join([*(t.written(turned=turned) for t in terms), *(t.written(turned=False) for t in ties)])


def is_descending(orders: Orders, asked: str) -> bool:
    """Whether this order begins with the largest."""
    terms, turned = _found(orders, asked)
    return terms[0].descending != turned


def _found(orders: Orders, asked: str) -> tuple[Terms, bool]:
    key = asked.removeprefix(REVERSED)
    return (orders[key], asked != key) if key in orders else (next(iter(orders.values())), False)


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
    def whole(self) -> "ListQuery":
        """All pages as one."""
        return replace(self, page=1, page_rows=ALL_ROWS)

    def within(self, of: int) -> "ListQuery":
        """The same, or the last page where the list is shorter than that."""
        return replace(self, page=min(self.page, max(1, math.ceil(of / self.page_rows))))


#: The first page of a list in its usual order.
FIRST_PAGE = ListQuery()


@dataclass(frozen=True, slots=True)
class ListPage(Sequence[T], Generic[T]):
    """The rows of one page of a list, and how many there are on all pages."""

    rows: list[T]
    of: int
    asked: ListQuery

    @property
    def pages(self) -> int:
        """How many pages there are."""
        return max(1, math.ceil(self.of / self.asked.page_rows))

    def counted(self, noun: str) -> str:
        """``12 partitions``, or ``501–1,000 of 10,000 partitions``."""
        of = humanise.plural(self.of, noun)
        if len(self.rows) == self.of:
            return of
        return f"{self.asked.offset + 1:,}–{self.asked.offset + len(self.rows):,} of {of}"

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
    tables: Mapping[Table, Reach],
    matching: str,
    parameters: Mapping[str, Any],
    asked: ListQuery,
    orders: Orders,
    ties: Terms,
) -> ListPage[Row]:
    """One page of what the statement ``matching`` finds. Beyond the last page it is the last."""
    order = order_by(orders, asked.order, ties)
    found = rows(
        lake,
        tables,
        f"""with matching as ({matching})
            select *, count(*) over () as "of" from matching order by {order} limit $limit offset $offset""",  # noqa: S608 (statements of our own)
        {**parameters, "limit": asked.page_rows, "offset": asked.offset},
    )
    if found:
        return ListPage([{k: v for k, v in row.items() if k != "of"} for row in found], found[0]["of"], asked)
    if asked.page == 1:
        return ListPage([], 0, asked)
    first = page_of(lake, tables, matching, parameters, replace(asked, page=1), orders, ties)
    last = asked.within(first.of)
    return first if last.page == 1 else page_of(lake, tables, matching, parameters, last, orders, ties)
