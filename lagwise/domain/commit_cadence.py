"""The rhythm in which a group-partition commits: from commit to commit lately, and the pauses that are usual with it.

A job that cron starts every hour commits every few seconds for three minutes and then not at all: the mean of its last
hour is no rhythm. Its pauses are, as far as a day shows them again and again. A pause lasts from one sample at which
the group had got on (the offset had moved, or nothing was unread) to the next.
"""

import math
from collections.abc import Sequence
from itertools import pairwise

from lagwise.domain.history import HOUR_SECONDS, HOURS_OF_DAY, Observation, whole_hours_until, whole_micros

#: Shorter pauses show well enough in the mean of an hour …
USUAL_PAUSE_SECONDS = 300.0
#: … and those of a slow collector's interval or two are its own.
INTERVALS_OF_PAUSE = 2.0
#: A pause is usual if one as long came to its end in this many hours of the day …
HOURS_OF_USUAL_PAUSE = 2
#: … and in this share of those in which the group got on: some outages or deployments a day are no rhythm.
SHARE_OF_HOURS = 0.25


def cadence_of(
    moves: int, backlog_seconds: float, standstill_seconds: float, usual_pause_seconds: float | None = None
) -> float | None:
    """Seconds from commit to commit while there was something to commit, or the usual pause where that is longer; None
    before the first commit.

    The standstill that still lasts is left out: a group that has stopped would otherwise be given ever more time.
    """
    if not moves:
        return usual_pause_seconds
    return max(max(0.0, backlog_seconds - standstill_seconds) / moves, usual_pause_seconds or 0.0)


def usual_pause_of(
    observations: Sequence[Observation], as_of: float, interval_seconds: float, *, recreated_at: float | None = None
) -> float | None:
    """The longest usual pause (seconds) in the whole hours of the day that ends at ``as_of``, from observations in
    order of time; None where no pause is usual.

    Of each hour the longest pause that ended in it counts. A topic that was re-created is another one: the hours up to
    that tell nothing.
    """
    until = whole_hours_until(as_of)
    first = until - HOURS_OF_DAY * HOUR_SECONDS
    if recreated_at is not None:
        first = max(first, _hour_of(recreated_at) + HOUR_SECONDS)
    times = [at for at in _progress(observations) if first <= at < until]
    longest: dict[float, float] = {}
    for earlier, later in pairwise(times):
        hour = _hour_of(later)
        longest[hour] = max(longest.get(hour, 0.0), whole_micros(later - earlier))
    rank = usual_rank(len({_hour_of(at) for at in times}))
    if len(longest) < rank:
        return None
    usual = sorted(longest.values(), reverse=True)[rank - 1]
    return usual if usual >= max(USUAL_PAUSE_SECONDS, INTERVALS_OF_PAUSE * interval_seconds) else None


def usual_rank(hours: int) -> int:
    """Which of the hours' longest pauses, from the longest on, is usual: in so many hours the group got on."""
    return max(HOURS_OF_USUAL_PAUSE, math.ceil(SHARE_OF_HOURS * hours))


def _progress(observations: Sequence[Observation]) -> list[float]:
    """Times of the samples at which the group had got on."""
    seen = [o for o in observations if o.lag is not None]
    drained = [o.at for o in seen[:1] if o.lag == 0]
    return drained + [b.at for a, b in pairwise(seen) if b.lag == 0 or b.committed != a.committed]


def _hour_of(at: float) -> float:
    return at - at % HOUR_SECONDS
