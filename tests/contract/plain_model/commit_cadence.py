"""The rhythm in which a group-partition commits, and the pauses that are usual with it."""

import math
from collections.abc import Sequence
from functools import partial
from itertools import pairwise

from lagwise.domain.verdicts.buckets import HOUR_SECONDS, LONG_PAUSE_SECONDS
from lagwise.domain.verdicts.turns import ABSENCE_SECONDS, INTERVALS_OF_ABSENCE, TURN_SECONDS
from lagwise.domain.verdicts.usual_pauses import (
    HOURS_OF_USUAL_PAUSE,
    INTERVALS_OF_PAUSE,
    PAUSES_OF_RHYTHM,
    RARE_PAUSE_SECONDS,
    SHARE_OF_HOURS,
)
from lagwise.domain.verdicts.windows import (
    HOURS_OF_DAY,
    LOOKBACK_SECONDS,
)
from tests.contract.plain_model.history import (
    Movement,
    Observation,
    bucket_after,
    bucket_of,
    in_window,
    is_after,
    whole_hours_until,
    whole_micros,
)


def cadence_of(movement: Movement, standstill_seconds: float, usual_pause_seconds: float | None) -> float | None:
    """Seconds from commit to commit while there was something to commit, or the usual pause where that is longer."""
    if not movement.moves:
        return usual_pause_seconds
    mean = max(0.0, movement.backlog_seconds - standstill_seconds) / movement.moves
    return max(mean, usual_pause_seconds or 0.0)


def usual_pause_of(
    known: Sequence[Observation], as_of: float, interval_seconds: float, recreated_at: float | None
) -> float | None:
    """The longest usual pause in the whole hours of the day that ends at ``as_of``, and in the rest of it; or of three
    within the last hour. Of each hour, and of the rest, the longest pause that ended in it counts."""
    until = whole_hours_until(as_of)
    first = until - HOURS_OF_DAY * HOUR_SECONDS
    if recreated_at is not None:
        first = max(first, _hour_of(recreated_at) + HOUR_SECONDS)
    times = [at for at in _progress(known) if first <= at < until]
    longest: dict[float, float] = {}
    long = sum(b - a >= LONG_PAUSE_SECONDS for a, b in pairwise(times))
    for earlier, later in pairwise(times):
        hour = _hour_of(later)
        longest[hour] = max(longest.get(hour, 0.0), whole_micros(later - earlier))
    hours = len({_hour_of(at) for at in times})
    since = until if recreated_at is None else max(until, bucket_after(recreated_at, as_of))
    is_of_log = partial(is_after, recreated_at=recreated_at, as_of=as_of)
    hour = [at for at in _progress(known) if in_window(bucket_of(at, as_of), as_of, LOOKBACK_SECONDS) and is_of_log(at)]
    rest = times[-1:] + [at for at in _progress(known) if bucket_of(at, as_of) >= since]
    of_rest = [whole_micros(b - a) for a, b in pairwise(rest)]
    long += sum(pause >= LONG_PAUSE_SECONDS for pause in of_rest)
    if max(of_rest, default=0.0) >= LONG_PAUSE_SECONDS:
        longest[until] = max(of_rest)
        hours += 1
    rank = max(HOURS_OF_USUAL_PAUSE, math.ceil(SHARE_OF_HOURS * hours))
    usual = sorted(longest.values(), reverse=True)[rank - 1] if len(longest) >= rank else 0.0
    if long < PAUSES_OF_RHYTHM and usual < RARE_PAUSE_SECONDS:
        usual = 0.0
    of_hour = sorted((whole_micros(b - a) for a, b in pairwise(hour)), reverse=True)
    if len(of_hour) >= PAUSES_OF_RHYTHM and of_hour[PAUSES_OF_RHYTHM - 1] >= LONG_PAUSE_SECONDS:
        usual = max(usual, of_hour[PAUSES_OF_RHYTHM - 1])
    return usual if usual >= max(LONG_PAUSE_SECONDS, INTERVALS_OF_PAUSE * interval_seconds) else None


def absence_of(known: Sequence[Observation], as_of: float, interval_seconds: float) -> float:
    """The longest time without progress within the hour that ended in the last minutes; 0 where none was long enough
    to tell."""
    hour = [o.at for o in known if in_window(bucket_of(o.at, as_of), as_of, LOOKBACK_SECONDS)]
    progress = [at for at in _progress(known) if at in hour]
    absences = [
        whole_micros(b - a)
        for a, b in pairwise([*hour[:1], *progress])
        if in_window(bucket_of(b, as_of), as_of, TURN_SECONDS)
    ]
    longest = max(absences, default=0.0)
    return longest if longest >= ABSENCE_SECONDS and longest > INTERVALS_OF_ABSENCE * interval_seconds else 0.0


def _progress(known: Sequence[Observation]) -> list[float]:
    """Times of the samples at which the group had got on."""
    drained = [o.at for o in known[:1] if o.lag == 0]
    return drained + [b.at for a, b in pairwise(known) if b.lag == 0 or b.committed != a.committed]


def _hour_of(at: float) -> float:
    return at - at % HOUR_SECONDS
