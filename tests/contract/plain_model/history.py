"""From the samples of one group-partition to how it moves.

Times are seconds since the start of some UTC hour. Samples are looked at in buckets, as windows consist of whole ones:
minutes, five of them once they are old, and whole hours for the window of a day.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from itertools import pairwise

from lagwise.domain.loss.records import NOTHING_LOST, Lost
from lagwise.domain.verdicts.buckets import FIVE_MINUTES_SECONDS, HOUR_SECONDS, MINUTE_SECONDS
from lagwise.domain.verdicts.changes import (
    CADENCES_OF_OUTAGE,
    COARSE_AFTER_SECONDS,
    COMMITS_BESIDE_OUTAGE,
    OUTAGE_SECONDS,
    SHARE_OF_DROP,
    SHARE_OF_LAG,
    SHARE_OF_LEAP,
    SHARE_OF_OUTAGE,
    SHARE_OF_SQUARES,
    STEPS_OF_HOUR,
)
from lagwise.domain.verdicts.samples import GAP_INTERVALS, GAP_SECONDS, TRANSACTION_HANGS_AFTER_SECONDS
from lagwise.domain.verdicts.trend import MINIMUM_SAMPLES
from lagwise.domain.verdicts.troughs import INTERVALS_OF_TOOTH, PAUSE_SECONDS
from lagwise.domain.verdicts.windows import (
    CADENCES_PER_BLOCK,
    CADENCES_PER_WINDOW,
    DAY_SECONDS,
    HOUR_IS_WHOLE_AFTER_SECONDS,
    HOURS_OF_DAY,
    INTERVALS_PER_WINDOW,
    LOOKBACK_SECONDS,
    WINDOWS_SECONDS,
)
from tests.contract.plain_model.losses import LostInStep, lost_in_step, of_stretches
from tests.contract.plain_model.records import Trend
from tests.contract.plain_model.trend import over_blocks, trend_of

Clock = Callable[[datetime], float]


def clock_from(origin: datetime) -> Clock:
    """Times as seconds since the start of the UTC hour of ``origin``: exact to the microsecond near it, which seconds
    since the epoch are not."""
    start = origin.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    return lambda at: (at - start).total_seconds()


def gap_of(interval_seconds: float) -> float:
    return max(GAP_SECONDS, GAP_INTERVALS * interval_seconds)


def whole_micros(seconds: float) -> float:
    """Without the noise of adding fractions up: what lies exactly on a limit, such as three commits within three
    cadences, is on the same side of it in whatever order it was summed up."""
    return round(seconds, 6)


def bucket_of(at: float, as_of: float) -> float:
    """Start of the bucket that a time falls into as seen at ``as_of``: of its minute, or of its five minutes."""
    edge = as_of - COARSE_AFTER_SECONDS
    is_coarse = at < edge - edge % FIVE_MINUTES_SECONDS
    return at - at % (FIVE_MINUTES_SECONDS if is_coarse else MINUTE_SECONDS)


def bucket_after(at: float, as_of: float) -> float:
    """Start of the bucket after the one that a time falls into as seen at ``as_of``."""
    edge = as_of - COARSE_AFTER_SECONDS
    is_coarse = at < edge - edge % FIVE_MINUTES_SECONDS
    return bucket_of(at, as_of) + (FIVE_MINUTES_SECONDS if is_coarse else MINUTE_SECONDS)


def whole_hours_until(as_of: float) -> float:
    edge = as_of - HOUR_IS_WHOLE_AFTER_SECONDS
    return edge - edge % HOUR_SECONDS


def bucket_in(window_seconds: float, at: float, as_of: float) -> float:
    """Start of the bucket that a time falls into in this window as seen at ``as_of``."""
    if window_seconds == DAY_SECONDS and at < whole_hours_until(as_of):
        return at - at % HOUR_SECONDS
    return bucket_of(at, as_of)


def in_window(bucket: float, as_of: float, window_seconds: float) -> bool:
    if window_seconds == DAY_SECONDS:
        return whole_hours_until(as_of) - HOURS_OF_DAY * HOUR_SECONDS <= bucket <= as_of
    return as_of - window_seconds < bucket <= as_of


def is_held_back(
    committed: int | None, high_watermark: int | None, last_stable: int | None, last_stable_seconds: float | None
) -> bool:
    if committed is None or high_watermark is None or last_stable is None or last_stable_seconds is None:
        return False
    return committed <= last_stable < high_watermark and last_stable_seconds >= TRANSACTION_HANGS_AFTER_SECONDS


@dataclass(frozen=True, slots=True)
class Observation:
    """One sample of a group-partition: the committed offset, and the ends of the log read right after it."""

    at: float
    committed: int | None
    log_start: int | None
    high_watermark: int | None
    last_stable: int | None = None
    topic_id: str | None = None
    next_record: int | None = None

    @property
    def reads_from(self) -> int:
        assert self.committed is not None
        return self.committed if self.next_record is None else max(self.committed, self.next_record)

    @property
    def lag(self) -> int | None:
        if self.committed is None or self.high_watermark is None or self.log_start is None:
            return None
        if self.committed > self.high_watermark:
            return None
        end = self.high_watermark
        if self.last_stable is not None and self.committed <= self.last_stable:
            end = min(end, self.last_stable)
        return max(0, end - max(self.reads_from, self.log_start))


@dataclass(frozen=True, slots=True)
class Movement:
    """How the committed offset moved."""

    moved_at: float | None
    drained_at: float | None
    moves: int
    backlog_seconds: float
    rewound_from: int | None
    lost_lately: int = 0
    rewound_records: int = 0
    rewound_at: float | None = None
    lost_of_day: Lost = NOTHING_LOST
    change: "Change | None" = None


@dataclass(frozen=True, slots=True)
class Change:
    """When a group-partition last began to move in another way, and when its last outage ended."""

    at: float
    resumed_at: float | None


@dataclass(frozen=True, slots=True)
class Pace:
    """The trend of the lag on the window that suits the commit cadence, and the rate of the commits on it."""

    window_seconds: float
    is_measurable: bool
    samples: int
    span_seconds: float
    trend: Trend | None
    longer: Trend | None
    consume_rate_per_second: float | None
    spacing_seconds: float | None = None
    begins_with_change: bool = False
    highest_lag_of_window: int | None = None
    longest: Trend | None = None
    earlier: Trend | None = None
    mean_lag: float | None = None
    longest_mean_lag: float | None = None
    at_troughs: Trend | None = None
    at_recent_troughs: Trend | None = None
    trough_drop: float | None = None


def known_steps(known: Sequence[Observation], gap: float) -> list[tuple[Observation, Observation, bool]]:
    """Successive observations, and whether they make a step: no gap and no other topic between them."""
    steps = []
    topic_id: str | None = None
    for a, b in pairwise(known):
        topic_id = a.topic_id or topic_id
        is_other = topic_id is not None and b.topic_id is not None and b.topic_id != topic_id
        steps.append((a, b, not is_other and b.at - a.at <= gap))
    return steps


def movement_of(
    known: Sequence[Observation],
    as_of: float,
    gap: float,
    *,
    recreated_at: float | None = None,
    usual_pause_seconds: float | None = None,
) -> Movement:
    """How the committed offset moved, from observations whose lag is known, in order of time."""
    moved_at = known[0].at if known else None
    drained_at = max((o.at for o in known if o.lag == 0), default=None)
    moves = 0
    backlog_seconds = 0.0
    rewound_from: int | None = None
    rewound_records = 0
    rewound_at: float | None = None
    change = change_of(known, as_of, gap, recreated_at, usual_pause_seconds)
    for a, b, is_step in known_steps(known, gap):
        assert a.committed is not None
        assert b.committed is not None
        counts = is_step and in_window(bucket_of(b.at, as_of), as_of, LOOKBACK_SECONDS)
        is_of_pace = counts and is_after(b.at, change.resumed_at if change else None, as_of)
        if b.committed != a.committed:
            moved_at = b.at
            moves += is_of_pace
        if is_of_pace and a.lag:
            backlog_seconds += b.at - a.at
        if counts and _went_back(a, b) and is_after(b.at, recreated_at, as_of):
            rewound_from = max(rewound_from or 0, a.committed)
            rewound_records += a.committed - b.committed
            rewound_at = b.at
    lost = [(o.at, _lost_at(previous, o)) for previous, o in _with_previous(known)]
    stretches: dict[tuple[bool, float], list[tuple[float, LostInStep]]] = {}
    for at, n in lost:
        if _counts(at, as_of, DAY_SECONDS, recreated_at):
            stretches.setdefault(_stretch_of(at, as_of), []).append((as_of - at, n))
    return Movement(
        moved_at=moved_at,
        drained_at=drained_at,
        moves=moves,
        backlog_seconds=whole_micros(backlog_seconds),
        rewound_from=rewound_from,
        lost_lately=sum(n.at_least for at, n in lost if _counts(at, as_of, WINDOWS_SECONDS[0], recreated_at)),
        rewound_records=rewound_records,
        rewound_at=rewound_at,
        lost_of_day=of_stretches(stretches.values()),
        change=change,
    )


def change_of(
    known: Sequence[Observation],
    as_of: float,
    gap: float,
    recreated_at: float | None,
    usual_pause_seconds: float | None,
) -> Change | None:
    """The last end of an outage, leap of the log start or of the offset, or rewind within the hour."""
    hour = [o.at for o in known if _counts(o.at, as_of, LOOKBACK_SECONDS, recreated_at)]
    within = {*hour}
    steps = [(a, b) for a, b, is_step in known_steps(known, gap) if is_step and b.at in within]
    lost = {o.at: _lost_at(before, o).at_least for before, o in _with_previous(known) if o.at in within}
    rewound = {b.at: (a.committed or 0) - (b.committed or 0) for a, b in steps if _went_back(a, b)}
    leaps = [_leapt_at(amounts, as_of) for amounts in (lost, rewound)]
    leaps.append(_skipped_at([o for o in known if o.at in within], steps, as_of))
    of_log = [
        (a, b)
        for a, b, is_step in known_steps(known, gap)
        if is_step and is_after(b.at, recreated_at, as_of, DAY_SECONDS)
    ]
    resumed_at = _resumed_at(known, hour, steps, of_log, as_of, recreated_at, usual_pause_seconds)
    at = max((one for one in (resumed_at, *leaps) if one is not None), default=None)
    return None if at is None else Change(at, resumed_at)


def _leapt_at(amounts: Mapping[float, int], as_of: float) -> float | None:
    some = {at: amount for at, amount in amounts.items() if amount > 0}
    if not some:
        return None
    last = max(some)
    in_bucket = sum(amount for at, amount in some.items() if bucket_of(at, as_of) == bucket_of(last, as_of))
    return last if in_bucket >= SHARE_OF_LEAP * sum(some.values()) else None


def _skipped_at(
    hour: Sequence[Observation], steps: Sequence[tuple[Observation, Observation]], as_of: float
) -> float | None:
    """The bucket in which the lag dropped by most of all that it moved within the hour, in a step or two."""
    if len(steps) < STEPS_OF_HOUR:
        return None
    squares: dict[float, float] = {}
    for a, b in steps:
        bucket = bucket_of(b.at, as_of)
        squares[bucket] = squares.get(bucket, 0.0) + float((b.lag or 0) - (a.lag or 0)) ** 2
    for bucket, its in squares.items():
        earlier = [o for o in hour if bucket_of(o.at, as_of) < bucket]
        if its > SHARE_OF_SQUARES * sum(squares.values()) and earlier:
            last = [o for o in hour if bucket_of(o.at, as_of) == bucket][-1]
            before = float(earlier[-1].lag or 0)
            drop = before - (last.lag or 0)
            is_most = drop > 0 and drop >= SHARE_OF_LAG * before
            return bucket if is_most and SHARE_OF_DROP <= drop * drop / its <= 1 / SHARE_OF_DROP else None
    return None


def _resumed_at(
    known: Sequence[Observation],
    hour: Sequence[float],
    steps: Sequence[tuple[Observation, Observation]],
    every_step: Sequence[tuple[Observation, Observation]],
    as_of: float,
    recreated_at: float | None,
    usual_pause_seconds: float | None,
) -> float | None:
    """When the last outage ended: a long pause without another one like it."""
    progress = [o.at for o in known[:1] if o.lag == 0]
    progress += [b.at for a, b in pairwise(known) if b.lag == 0 or b.committed != a.committed]
    within, every_progress = {*hour}, progress
    progress = [at for at in every_progress if at in within]
    buckets = [bucket_of(seen, as_of) for seen in hour]
    pauses: dict[float, float] = {}
    for number, at in enumerate(progress):
        earlier = bisect_left(buckets, bucket_of(at, as_of))  # how many were seen in earlier buckets
        stood = hour[earlier - 1] - (progress[number - 1] if number else hour[0]) if earlier else 0.0
        if stood >= OUTAGE_SECONDS:
            pauses[at] = stood
    until = whole_hours_until(as_of)
    day = [(a, b) for a, b in every_step if until - HOURS_OF_DAY * HOUR_SECONDS <= b.at < until]
    others = sum(b.committed != a.committed for a, b in steps) - len(pauses)
    seconds = (
        sum(b.at - a.at for a, b in steps if a.lag) - sum(pauses.values()) - (as_of - max(progress, default=as_of))
    )
    if others < COMMITS_BESIDE_OUTAGE:
        others = sum(b.committed != a.committed for a, b in day)
        seconds = sum(b.at - a.at for a, b in day if a.lag)
        of_day = [
            at
            for at in every_progress
            if until - HOURS_OF_DAY * HOUR_SECONDS <= at < until and is_after(at, recreated_at, as_of, DAY_SECONDS)
        ]
        last = max((b.at for _, b in day), default=until)
        seconds -= last - max(of_day, default=last)
    if others < COMMITS_BESIDE_OUTAGE:
        return None
    cadence = max(0.0, seconds) / others
    outages = [
        at
        for at, stood in pauses.items()
        if stood >= CADENCES_OF_OUTAGE * cadence
        and sorted([other for when, other in pauses.items() if when != at] + [0.0, 0.0])[-2] <= SHARE_OF_OUTAGE * stood
        and (usual_pause_seconds or 0.0) <= SHARE_OF_OUTAGE * stood
    ]
    return max(outages, default=None)


def highest_lag_since(known: Sequence[Observation], change: Change | None, as_of: float) -> int | None:
    since = -math.inf if change is None else bucket_of(change.at, as_of)
    return max((o.lag or 0 for o in known if bucket_of(o.at, as_of) >= since), default=None)


def _stretch_of(at: float, as_of: float) -> tuple[bool, float]:
    """Of the stretches in which losses are counted: the whole hours of the day, and since then what belongs to a window
    but not to a shorter one."""
    if at < whole_hours_until(as_of):
        return True, at - at % HOUR_SECONDS
    windows = [window for window in WINDOWS_SECONDS if in_window(bucket_of(at, as_of), as_of, window)]
    return False, min(windows, default=DAY_SECONDS)


def _with_previous(known: Sequence[Observation]) -> list[tuple[Observation | None, Observation]]:
    """Each observation with the one before it, None where that is of another topic, or there is none."""
    pairs: list[tuple[Observation | None, Observation]] = [(None, known[0])] if known else []
    return pairs + [(a if is_step else None, b) for a, b, is_step in known_steps(known, math.inf)]


def _lost_at(previous: Observation | None, now: Observation) -> LostInStep:
    assert now.log_start is not None
    if previous is None:
        return lost_in_step(now.reads_from, now.log_start)
    return lost_in_step(now.reads_from, now.log_start, previous.reads_from, previous.log_start)


def standstill_of(
    movement: Movement, lag: int | None, age_seconds: float | None, as_of: float, *, age_is_lower_bound: bool
) -> float:
    """For how long the committed offset has stayed where it is while there was something to read."""
    if not lag or age_seconds is None or movement.moved_at is None:
        return 0.0
    since = max(movement.moved_at, movement.drained_at if movement.drained_at is not None else movement.moved_at)
    stands = whole_micros(as_of - since)
    return stands if age_is_lower_bound else min(stands, age_seconds)


def windows_for(
    movement: Movement, interval_seconds: float, usual_pause_seconds: float | None
) -> tuple[float, float] | None:
    """The window a trend is judged on and the one that must agree; None where the commits are too rare for any."""
    needed = max(INTERVALS_PER_WINDOW * interval_seconds, CADENCES_PER_WINDOW * (usual_pause_seconds or 0.0))
    if movement.moves:
        needed = max(needed, CADENCES_PER_WINDOW * movement.backlog_seconds / movement.moves)
    for window, longer in zip(WINDOWS_SECONDS, (*WINDOWS_SECONDS[1:], WINDOWS_SECONDS[-1]), strict=True):
        if needed <= window:
            return window, longer
    return (DAY_SECONDS, DAY_SECONDS) if needed <= DAY_SECONDS else None


def pace_of(
    known: Sequence[Observation],
    as_of: float,
    movement: Movement,
    *,
    interval_seconds: float,
    recreated_at: float | None,
    usual_pause_seconds: float | None,
) -> Pace:
    """Trend of the lag and rate of the commits, from observations whose lag is known, in order of time."""
    windows = windows_for(movement, interval_seconds, usual_pause_seconds)
    window = windows[0] if windows else WINDOWS_SECONDS[-1]
    changed_at = movement.change.at if movement.change else None

    @cache
    def counting_in(seconds: float) -> list[Observation]:
        """Those since the last change: the day does not know of it."""
        return [
            o
            for o in known
            if _counts(o.at, as_of, seconds, recreated_at)
            and (seconds == DAY_SECONDS or is_after(o.at, changed_at, as_of))
        ]

    judged = counting_in(window)
    count = sum(_counts(o.at, as_of, window, recreated_at) for o in known)
    span = whole_micros(judged[-1].at - judged[0].at) if judged else 0.0
    # Right after a change the rate is that of before.
    read = (
        judged
        if span > 0 or window == DAY_SECONDS
        else [o for o in known if _counts(o.at, as_of, window, recreated_at)]
    )
    seconds = whole_micros(read[-1].at - read[0].at) if read else 0.0
    rate = max(0, (read[-1].committed or 0) - (read[0].committed or 0)) / seconds if seconds > 0 else None
    uncut = [o.at for o in known if _counts(o.at, as_of, window, recreated_at)]
    first_of_pace = judged[0].at if judged else math.inf
    is_cut = window != DAY_SECONDS and any(at < first_of_pace for at in uncut)
    highest = max((o.lag or 0 for o in judged), default=None) if window != DAY_SECONDS else None
    spacing = span / (len(judged) - 1) if len(judged) > 1 else None
    hour = [o.at for o in counting_in(LOOKBACK_SECONDS)]
    begins = min((o.at for o in known if _counts(o.at, as_of, LOOKBACK_SECONDS, recreated_at)), default=None)
    has_changed = begins is not None and begins < min(hour, default=math.inf)
    left = troughs_of(known, {*hour}, as_of, interval_seconds)
    trough_drop = max(lag for _, lag in left) - left[-1][1] if left and has_changed else None
    at_troughs = None
    if len(left) > MINIMUM_SAMPLES:
        trough_drop = None
        at_troughs = _line(left)
    buckets_of_late = {bucket_of(o.at, as_of) for o in counting_in(WINDOWS_SECONDS[1])}
    at_recent_troughs = _line([(t, lag) for t, lag in left if bucket_of(as_of + t, as_of) in buckets_of_late])
    if windows is None:
        return Pace(
            window,
            False,
            count,
            span,
            None,
            None,
            rate,
            spacing,
            is_cut,
            highest,
            at_troughs=at_troughs,
            at_recent_troughs=at_recent_troughs,
            trough_drop=trough_drop,
        )
    longest = max(windows[1], WINDOWS_SECONDS[-1])

    def trend_over(seconds: float, without: float | None = None) -> Trend | None:
        """Of a window, ``without`` the samples of a shorter one. The step into its first sample counts where that
        sample has a predecessor, because a bucket cannot know which window it will be merged into."""
        counting = {o.at for o in counting_in(seconds)} - {o.at for o in counting_in(without or -1.0)}
        samples = [(o.at - as_of, float(o.lag or 0)) for o in known if o.at in counting]
        steps = [
            (a, b) for a, b, is_step in known_steps(known, gap_of(interval_seconds)) if is_step and b.at in counting
        ]
        trend = trend_of(samples, [(b.at - a.at, float((b.lag or 0) - (a.lag or 0))) for a, b in steps])
        if seconds == DAY_SECONDS:
            return trend
        is_slow = CADENCES_PER_BLOCK * movement.backlog_seconds > MINUTE_SECONDS * movement.moves
        length = FIVE_MINUTES_SECONDS if is_slow or seconds == WINDOWS_SECONDS[-1] else MINUTE_SECONDS
        blocks: dict[float, list[tuple[float, float]]] = {}
        for at, lag in samples:
            blocks.setdefault(at + as_of - (at + as_of) % length, []).append((at, lag))
        means = [(sum(t for t, _ in its) / len(its), sum(lag for _, lag in its) / len(its)) for its in blocks.values()]
        return over_blocks(trend, means)

    def mean_lag(seconds: float) -> float | None:
        lags = [o.lag or 0 for o in counting_in(seconds)]
        return sum(lags) / len(lags) if lags else None

    return Pace(
        window,
        True,
        count,
        span,
        trend_over(windows[0]),
        trend_over(windows[1]),
        rate,
        spacing,
        is_cut,
        highest,
        trend_over(longest),
        trend_over(longest, without=windows[1]) if windows[1] < WINDOWS_SECONDS[-1] else None,
        mean_lag(window),
        mean_lag(longest),
        at_troughs,
        at_recent_troughs,
        trough_drop,
    )


def _line(points: Sequence[tuple[float, float]]) -> Trend | None:
    return trend_of(points, [(t - s, after - before) for (s, before), (t, after) in pairwise(points)])


def troughs_of(
    known: Sequence[Observation], counting: Collection[float], as_of: float, interval_seconds: float
) -> list[tuple[float, float]]:
    """(t, lag) of each last commit before a pause: what was unread at the last sample of its bucket, without what was
    written in between."""
    progress = {o.at for o in known[:1] if o.lag == 0}
    progress |= {b.at for a, b in pairwise(known) if b.lag == 0 or b.committed != a.committed}
    buckets: dict[float, list[Observation]] = {}
    for o in known:
        if o.at in counting:
            buckets.setdefault(bucket_of(o.at, as_of), []).append(o)
    got_on = [
        (min(times), max(times), its[-1])
        for its in buckets.values()
        if (times := [o.at for o in its if o.at in progress])
    ]
    found = []
    for (_, stopped_at, last), (resumed_at, _, later) in pairwise(got_on):
        pause = whole_micros(resumed_at - stopped_at)
        if pause < PAUSE_SECONDS or pause <= INTERVALS_OF_TOOTH * interval_seconds:
            continue
        written = max(0, (later.lag or 0) + (later.committed or 0) - (last.lag or 0) - (last.committed or 0))
        since = written / (later.at - last.at) * (last.at - stopped_at)
        found.append((stopped_at - as_of, max(0.0, (last.lag or 0) - since)))
    return found


def _went_back(a: Observation, b: Observation) -> bool:
    """Whether the group went back, and not with a log that did so itself."""
    assert None not in (a.committed, b.committed, a.high_watermark, b.high_watermark)
    return b.committed < a.committed and b.high_watermark >= a.high_watermark


def is_after(at: float, recreated_at: float | None, as_of: float, window_seconds: float = LOOKBACK_SECONDS) -> bool:
    if recreated_at is None:
        return True
    return bucket_in(window_seconds, at, as_of) > bucket_in(window_seconds, recreated_at, as_of)


def _counts(at: float, as_of: float, window_seconds: float, recreated_at: float | None) -> bool:
    bucket = bucket_in(window_seconds, at, as_of)
    return in_window(bucket, as_of, window_seconds) and is_after(at, recreated_at, as_of, window_seconds)
