"""Lists that may be longer than a page of them: what an address says of each."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from lagwise.links.parameter_types import Parameter, SortOrder, order, page_number, text


@dataclass(frozen=True, slots=True, eq=False)
class ListParameters:
    """The names of one list in an address: the number of its page, the text that its rows hold, and their order.

    ``follows`` are the parameters that decide which rows there are and how they are sorted: after a change of any of
    them the list starts at its first page.
    """

    page: Parameter[int]
    search: Parameter[str] | None
    sort: SortOrder | None
    follows: frozenset[Parameter[Any]]

    @property
    def parameters(self) -> tuple[Parameter[Any], ...]:
        """All that it has."""
        return tuple(p for p in (self.search, self.sort, self.page) if p is not None)


def listing(
    page: Parameter[int],
    *,
    search: Parameter[str] | None = None,
    sort: SortOrder | None = None,
    follows: Iterable[Parameter[Any]] = (),
) -> ListParameters:
    """A list with parameters that exist."""
    own = (p for p in (search, sort) if p is not None)
    return ListParameters(page, search, sort, frozenset((*own, *follows)))


def named(
    name: str, of: str, *, searched: str = "", orders: Iterable[str] = (), follows: Iterable[Parameter[Any]] = ()
) -> ListParameters:
    """A list ``of`` something (in the plural) with parameters of its own, ``NAME_page`` and so on.

    ``searched`` is where its text is looked for, and ``orders`` are the names of its orders, the usual one first;
    without either it has no such parameter.
    """
    keys = tuple(orders)
    return listing(
        page_number(f"{name}_page", f"Which page of the {of}."),
        search=text(f"{name}_q", f"Only the {of} with this text in {searched}.") if searched else None,
        sort=order(f"{name}_sort", f"The order of the {of}.", keys) if keys else None,
        follows=follows,
    )
