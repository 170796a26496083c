"""Expressions of SQL that several statements share. None of them holds anything from outside."""

from collections.abc import Iterable

from lagwise.domain.vocabulary import DISPLAY_ORDER


def quoted(words: Iterable[str]) -> str:
    """Words of our own as texts of SQL, with commas between them."""
    return ", ".join(f"'{word}'" for word in words)


def rank(column: str, words: Iterable[str]) -> str:
    """The place of a column's word among these, from 1 on; null where it is none of them."""
    return f"list_position([{quoted(words)}], {column})"


#: The place of a status in the display order; null of one that only a newer version knows.
STATUS_RANK = rank("status", DISPLAY_ORDER)
#: The worst status first, of equal ones the oldest unread record and then the largest lag: terms of an order.
WORST_FIRST = [STATUS_RANK, "lag_seconds desc", "lag desc"]
#: Orders by how far behind a row is and how fast it moves, by their names in an address.
LAG_ORDERS = {
    "age": ["lag_seconds desc"],
    "lag": ["lag desc"],
    "in": ["produce_rate_per_second desc"],
    "out": ["consume_rate_per_second desc"],
}
#: The worst status of several rows. One that only a newer version knows is the last.
WORST_STATUS = f"arg_min(status, coalesce({STATUS_RANK}, 99)) as status"
#: How far several partitions are behind, as one row.
LAG_OF_SEVERAL = """
    sum(lag)::bigint as lag, max(lag_seconds) as lag_seconds,
    arg_max(coalesce(lag_seconds_is_lower_bound, false), lag_seconds) as lag_seconds_is_lower_bound,
    sum(produce_rate_per_second) as produce_rate_per_second,
    sum(consume_rate_per_second) as consume_rate_per_second
"""
#: When the first of several partitions loses something.
FIRST_LOSS = """
    min(seconds_to_loss) as seconds_to_loss,
    arg_min(coalesce(seconds_to_loss_is_upper_bound, false), seconds_to_loss) as seconds_to_loss_is_upper_bound
"""
