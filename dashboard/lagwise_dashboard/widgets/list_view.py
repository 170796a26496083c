"""A list that may be longer than a page: a field that looks through all of it, what of it is shown, and its pages."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from lagwise.links.parameter_types import ListParameters
from lagwise_dashboard import address
from lagwise_dashboard.queries.listing import PAGE_ROWS, ListPage, ListQuery, Orders
from lagwise_dashboard.widgets import filters
from lagwise_dashboard.widgets.grid import Sorting

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


def search(listing: ListParameters, result: ListPage[Any], placeholder: str, label: str) -> None:
    """The field that looks through the list; none where there is little to look through."""
    if listing.search is not None and (result.total >= _MIN_SEARCHED or is_searched(listing)):
        filters.search(placeholder, listing.search, label)


def match_words(result: ListPage[Any], *, is_filtered: bool) -> str:
    """What a count of rows goes on with, where it is not of all rows: ``that match``."""
    return "" if not is_filtered else " that matches" if result.total == 1 else " that match"


def if_default_order(listing: ListParameters, words: str) -> str:
    """These words on the usual order of a list; none where the address asks for another one."""
    is_usual = listing.sort is None or address.get(listing.sort) == listing.sort.default
    return words if is_usual else ""


def sorting(listing: ListParameters, by: Mapping[str, str], orders: Orders) -> Sorting:
    """Sorting by the headings of the list's table: orders by title of the column."""
    if listing.sort is None:
        raise ValueError("this list has no orders")
    return Sorting(by, orders, listing.sort)


def pagination(listing: ListParameters, result: ListPage[Any]) -> None:
    """The numbers of the list's pages, where there are several."""
    if result.pages > 1:
        numbers = range(1, result.pages + 1)
        st.pagination(result.pages, **address.bound(listing.page, empty=result.query.page, options=numbers))
