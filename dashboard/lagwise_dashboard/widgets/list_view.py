"""A list that may be longer than a page: a field that searches all of it, what of it is shown, and its pages."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import streamlit as st

from lagwise.links.parameter_types import ListParameters
from lagwise_dashboard import address
from lagwise_dashboard.queries.listing import PAGE_ROWS, ListPage, ListQuery, Orders
from lagwise_dashboard.tables import TableColumn
from lagwise_dashboard.widgets import filters, grid
from lagwise_dashboard.widgets.grid import Sorting

T = TypeVar("T")

#: Lists of fewer rows need no field to look for one.
_MIN_SEARCHED = 10


def query(listing: ListParameters, page_rows: int = PAGE_ROWS) -> ListQuery:
    """What the address asks for."""
    text = address.get(listing.search) if listing.search else ""
    order = address.get(listing.sort) if listing.sort else ""
    return ListQuery(text, order, address.get(listing.page), page_rows)


def is_searched(listing: ListParameters) -> bool:
    """Whether only rows that hold a text are asked for."""
    return listing.search is not None and bool(address.get(listing.search))


def search(listing: ListParameters, total: int, placeholder: str, label: str) -> None:
    """The field that looks through a list of ``total`` rows; none where there is little to look through."""
    if listing.search is not None and (total >= _MIN_SEARCHED or is_searched(listing)):
        filters.search(placeholder, listing.search, label)


def match_words(listing: ListParameters, result: ListPage[Any], *, is_filtered: bool = False) -> str:
    """What a count of rows goes on with where it is not of all rows: ``that match``. ``is_filtered`` says whether they
    are filtered by more than the search."""
    if not is_filtered and not is_searched(listing):
        return ""
    return " that matches" if result.total == 1 else " that match"


def if_default_order(listing: ListParameters, words: str) -> str:
    """These words on the usual order of a list; none where the address asks for another one."""
    is_usual = listing.sort is None or address.get(listing.sort) == listing.sort.default
    return words if is_usual else ""


def has_rows(
    listing: ListParameters, result: ListPage[Any], noun: str, placeholder: str, none: str, *, within: str = ""
) -> bool:
    """Draw the search field, and return whether there is a row.

    If not, a caption says so: ``none`` where nothing was searched, else that nothing matches ``within`` a span.
    """
    search(listing, result.total, placeholder, f"Search the {noun}s")
    if not result:
        st.caption(f"No {noun} matches{within and f' {within}'}." if is_searched(listing) else none)
    return bool(result)


def table(
    listing: ListParameters,
    result: ListPage[T],
    columns: Callable[[list[T]], list[TableColumn]],
    read: Callable[[ListQuery], ListPage[T]],
    *,
    name: str,
    label: str,
    orders: Orders | None = None,
    about: Iterable[str] = (),
    links: Sequence[str] | None = None,
    linked: str = "Group",
    visible_rows: int = grid.MAX_VISIBLE_ROWS,
) -> None:
    """Draw the table of a page of the list (see :func:`grid.show`), and the numbers of its pages.

    A click on a heading sorts the whole list by one of its ``orders``; without any, the browser sorts a list of one
    page. The CSV holds the whole list, which ``read`` reads.
    """
    if orders and listing.sort is None:
        raise ValueError(f"the list {name} has orders, but no parameter for them")
    grid.show(
        columns(result.rows),
        name=name,
        label=label,
        about=about,
        links=links,
        linked=linked,
        visible_rows=visible_rows,
        sorting=sorting(listing, orders),
        sorts=result.pages == 1,
        all_rows=lambda: columns(read(result.query.all_rows).rows),
    )
    pagination(listing, result)


def sorting(listing: ListParameters, orders: Orders | None) -> Sorting | None:
    """How the list is sorted by the server; None where the browser does it."""
    return Sorting(orders, listing.sort) if orders and listing.sort else None


def pagination(listing: ListParameters, result: ListPage[Any]) -> None:
    """The numbers of the list's pages, where there are several."""
    if result.pages > 1:
        numbers = range(1, result.pages + 1)
        st.pagination(result.pages, **address.bound(listing.page, empty=result.query.page, options=numbers))
