"""The race between a reader and retention: both go through the same records, in the same order.

The record at an offset is read once all before it are, and is deleted when it is as old as is kept. How old each
unread record is, the history of the high watermark tells. So no rate at which records are written has to be taken to
go on: a burst that was written within a minute is deleted within a minute, too, however well the reader keeps pace by
then, and its lag may shrink all the while.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from lagwise.domain.time_lag import Age, Log


class Unread(NamedTuple):
    """An offset, and how old (in seconds) its record is."""

    offset: int
    age_seconds: float


def unread_of(position: int, age: Age, log: Log, now: float) -> list[Unread]:
    """What is known of the ages of all that is unread, in order of offsets: at ``position``, which has that ``age``,
    and wherever a later sample saw the end of the log."""
    beyond = [Unread(p.high_watermark, max(0.0, now - p.at)) for p in log.points if p.high_watermark > position]
    return [Unread(position, age.seconds), *beyond]


def rate_while_behind(consume_rate_per_second: float, span_seconds: float, age_seconds: float) -> float:
    """How fast a group reads at most while it has something to read, from its mean rate over so many seconds: before
    the oldest unread record was written, there may have been nothing. It is taken to have read it all since then."""
    return consume_rate_per_second * max(1.0, span_seconds / age_seconds) if age_seconds > 0 else 0.0


def seconds_to_overtaking(
    unread: Sequence[Unread], consume_rate_per_second: float, kept_seconds: float | None
) -> float | None:
    """Time until a record is as old as ``kept_seconds`` that is not read by then, at this rate; None is never, or not
    known. Only what is written already counts, so it is never more than ``kept_seconds``.

    Between two known ages, records are taken to have been written at one rate.
    """
    if kept_seconds is None or not consume_rate_per_second or not unread:
        return None
    begin = unread[0].offset
    if unread[0].age_seconds >= kept_seconds:
        return 0.0
    for a, b in pairwise(unread):
        read_at = [u.age_seconds + (u.offset - begin) / consume_rate_per_second for u in (a, b)]  # their ages then
        if read_at[1] > kept_seconds:
            share = (kept_seconds - read_at[0]) / (read_at[1] - read_at[0])
            return kept_seconds - a.age_seconds - share * (b.age_seconds - a.age_seconds)
    return None
