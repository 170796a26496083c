"""What lists may be sorted by. Sorting is the database's: more rows may match than are shown."""

from collections.abc import Mapping
from dataclasses import dataclass

from lagwise.links.parameter_types import REVERSED


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
