"""How many records were deleted before a group read them: told from samples, as two numbers between which it lies."""

from collections.abc import Iterable
from typing import NamedTuple


class Lost(NamedTuple):
    """Records that were deleted unread, and how many seconds ago samples first and last showed it (None: never)."""

    at_least: int
    at_most: int
    first_seconds: float | None
    last_seconds: float | None


NOTHING_LOST = Lost(0, 0, None, None)


def of_partitions(losses: Iterable[Lost]) -> Lost:
    """What was lost on several partitions together."""
    those = list(losses)
    firsts = [lost.first_seconds for lost in those if lost.first_seconds is not None]
    lasts = [lost.last_seconds for lost in those if lost.last_seconds is not None]
    return Lost(
        sum(lost.at_least for lost in those),
        sum(lost.at_most for lost in those),
        max(firsts, default=None),
        min(lasts, default=None),
    )
