"""From the samples of one group-partition to the evidence its status is judged by.

The plain-Python definition of what Spark computes from minute buckets; the contract test runs both on the same rows.
Times are seconds since the start of some UTC hour (see :func:`clock_from`). Samples are kept in buckets: UTC minutes,
and five of them together once they are old, so that a long window is a merge of few; for the window of a day whole
hours, whose sum changes once an hour. A topic that is re-created is another log under the same name: rates, trends and
rewinds are told from the first whole bucket after it, because the one in which it happened holds samples of both.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise

from lagwise.domain import lag as lags
from lagwise.domain.loss.records import NOTHING_LOST, Lost, LostInStep, lost_in_step, of_stretches
from lagwise.domain.trend import Statistics, Trend, samples_of, step_of, trend_of

MINUTE_SECONDS = 60.0
#: Length of the coarse buckets that old minutes are merged into.
COARSE_SECONDS = 300.0
#: Minutes older than this are merged into coarse buckets: only the longest window reaches back to them.
COARSE_AFTER_SECONDS = 900.0
#: Windows on which a trend is judged, each confirmed by the next longer one (the longest by itself).
WINDOWS_SECONDS = (300.0, 900.0, 3600.0)
#: Window for those that commit too rarely for a trend over an hour; it is confirmed by itself. Groups that commit often
#: do not use it: the ups and downs of a day say nothing about their last minutes.
DAY_SECONDS = 86_400.0
#: The window of a day consists of this many whole hours and of what came after them.
HOURS_OF_DAY = 23
#: Length of the buckets that the window of a day is merged from.
HOUR_SECONDS = 3600.0
#: The last hour counts as whole this long after its end.
HOUR_IS_WHOLE_AFTER_SECONDS = 600.0
#: A window must hold this many commit cadences, or the sawtooth of a slow committer looks like a trend.
CADENCES_PER_WINDOW = 4
#: A window must hold this many sampling intervals, or a slow collector never sees a trend.
INTERVALS_PER_WINDOW = 5
#: Rewinds and commit cadence are looked for in this window.
LOOKBACK_SECONDS = 3600.0
#: Two successive samples have a gap between them if they are farther apart than this many intervals and than
#: ``GAP_SECONDS``.
GAP_INTERVALS = 3.0
#: Two successive samples have a gap between them if they are farther apart than this and than ``GAP_INTERVALS``.
GAP_SECONDS = 120.0


def clock_from(origin: datetime) -> Callable[[datetime], float]:
    """Times as seconds since the start of the UTC hour of ``origin``: exact to the microsecond near it, which seconds
    since the epoch are not."""
    start = origin.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    return lambda at: (at - start).total_seconds()


def gap_seconds(interval_seconds: float) -> float:
    """How far apart two successive samples may be and still count as a step of the history."""
    return max(GAP_SECONDS, GAP_INTERVALS * interval_seconds)


def coarse_until(as_of: float) -> float:
    """Before this time buckets are coarse: what lies in the last quarter of an hour never is, nor what shares five
    minutes with it."""
    edge = as_of - COARSE_AFTER_SECONDS
    return edge - edge % COARSE_SECONDS


def whole_micros(seconds: float) -> float:
    """Without the noise of adding fractions up. Times are known to the microsecond; what lies exactly on a limit, such
    as three commits within three cadences, is then on the same side of it in whatever order it was summed up."""
    return round(seconds, 6)


def bucket_of(at: float, as_of: float) -> float:
    """Start of the bucket that a time falls into as seen at ``as_of``: of its minute, or of its five minutes."""
    return at - at % (COARSE_SECONDS if at < coarse_until(as_of) else MINUTE_SECONDS)


def whole_hours_until(as_of: float) -> float:
    """End of the last whole hour of the day that ends at ``as_of``: before it the day's buckets are hours."""
    edge = as_of - HOUR_IS_WHOLE_AFTER_SECONDS
    return edge - edge % HOUR_SECONDS


def bucket_in(window_seconds: float, at: float, as_of: float) -> float:
    """Start of the bucket that a time falls into in this window as seen at ``as_of``."""
    if window_seconds == DAY_SECONDS and at < whole_hours_until(as_of):
        return at - at % HOUR_SECONDS
    return bucket_of(at, as_of)


def in_window(bucket: float, as_of: float, window_seconds: float) -> bool:
    """Whether a bucket belongs to the window that ends at ``as_of``: windows consist of whole buckets."""
    if window_seconds == DAY_SECONDS:
        return whole_hours_until(as_of) - HOURS_OF_DAY * HOUR_SECONDS <= bucket <= as_of
    return as_of - window_seconds < bucket <= as_of


@dataclass(frozen=True, slots=True)
class Observation:
    """One sample of a group-partition: the committed offset, and the watermarks read right after it. ``next_record``
    is the offset of the next record there is, where that was looked up."""

    at: float
    committed: int | None
    log_start: int | None
    high_watermark: int | None
    last_stable: int | None = None
    topic_id: str | None = None
    next_record: int | None = None
    #: Lag in records, None where it cannot be known (not committed, unreadable, out of range). Kept, because every
    #: rule asks for it.
    lag: int | None = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "lag", self._lag())

    @property
    def reads_from(self) -> int:
        """The offset of the next record, as far as it was looked up. The offset must be committed."""
        assert self.committed is not None
        return lags.reads_from(self.committed, self.next_record)

    def _lag(self) -> int | None:
        if self.committed is None or self.high_watermark is None or self.log_start is None:
            return None
        if self.committed > self.high_watermark:
            return None
        end = lags.readable_end(self.committed, self.high_watermark, self.last_stable)
        return lags.lag(self.reads_from, self.log_start, end)


@dataclass(frozen=True, slots=True)
class Movement:
    """How the committed offset moved."""

    #: When the offset was first seen where it is now; None where it was never seen.
    moved_at: float | None
    #: When nothing was last unread.
    drained_at: float | None
    #: How often the offset was seen to move within the look-back.
    moves: int
    #: For how much of the look-back there was something to commit.
    backlog_seconds: float
    #: The highest offset before a rewind within the look-back.
    rewound_from: int | None
    #: Records that were deleted unread, as seen in the samples of the shortest trend window.
    lost_lately: int = 0
    #: Number of records by which the offset was rewound within the look-back.
    rewound_records: int = 0
    #: When the last rewind within the look-back was seen.
    rewound_at: float | None = None
    #: Records that were deleted unread, as seen in the samples of a day.
    lost_of_day: Lost = NOTHING_LOST


@dataclass(frozen=True, slots=True)
class Pace:
    """The trend of the lag on the window that suits the commit cadence, and the rate of the commits on it.

    ``window_seconds`` is that window; the trend is not ``is_measurable`` where even a day is too short, and the rate
    is then that of an hour.
    """

    window_seconds: float
    is_measurable: bool
    samples: int
    span_seconds: float
    trend: Trend | None
    longer: Trend | None
    consume_rate_per_second: float | None


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
    observations: Sequence[Observation], as_of: float, gap: float, *, recreated_at: float | None = None
) -> Movement:
    """How the committed offset moved, from observations in order of time.

    Across a gap (see :func:`gap_seconds`) an offset can be seen to have moved, but not how often.
    """
    seen = [o for o in observations if o.lag is not None]
    moved_at = seen[0].at if seen else None
    drained_at = max((o.at for o in seen if o.lag == 0), default=None)
    moves = 0
    backlog_seconds = 0.0
    rewound_from: int | None = None
    rewound_records = 0
    rewound_at: float | None = None
    for a, b, is_step in known_steps(seen, gap):
        assert a.committed is not None
        assert b.committed is not None
        counts = is_step and in_window(bucket_of(b.at, as_of), as_of, LOOKBACK_SECONDS)
        if b.committed != a.committed:
            moved_at = b.at
            moves += counts
        if counts and a.lag:
            backlog_seconds += b.at - a.at
        if counts and _went_back(a, b) and _is_after(b.at, recreated_at, as_of):
            rewound_from = max(rewound_from or 0, a.committed)
            rewound_records += a.committed - b.committed
            rewound_at = b.at
    lost = [(o.at, _lost_at(previous, o)) for previous, o in _with_previous(seen)]
    lately = sum(n.at_least for at, n in lost if _counts(at, as_of, WINDOWS_SECONDS[0], recreated_at))
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
        lost_lately=lately,
        rewound_records=rewound_records,
        rewound_at=rewound_at,
        lost_of_day=of_stretches(stretches.values()),
    )


def _stretch_of(at: float, as_of: float) -> tuple[bool, float]:
    """Of the stretches in which losses are counted: the whole hours of the day, and since then what belongs to a window
    but not to a shorter one."""
    if at < whole_hours_until(as_of):
        return True, at - at % HOUR_SECONDS
    windows = [window for window in WINDOWS_SECONDS if in_window(bucket_of(at, as_of), as_of, window)]
    return False, min(windows, default=DAY_SECONDS)


def _with_previous(seen: Sequence[Observation]) -> list[tuple[Observation | None, Observation]]:
    """Each observation with the one before it, None where that is of another topic, or there is none."""
    pairs: list[tuple[Observation | None, Observation]] = [(None, seen[0])] if seen else []
    return pairs + [(a if is_step else None, b) for a, b, is_step in known_steps(seen, math.inf)]


def _lost_at(previous: Observation | None, now: Observation) -> LostInStep:
    assert now.log_start is not None
    if previous is None:
        return lost_in_step(now.reads_from, now.log_start)
    return lost_in_step(now.reads_from, now.log_start, previous.reads_from, previous.log_start)


def standstill_of(
    movement: Movement,
    lag: int | None,
    age_seconds: float | None,
    as_of: float,
    *,
    age_is_lower_bound: bool = False,
) -> float:
    """For how long the committed offset has stayed where it is while there was something to read.

    That is since it moved, since there was last nothing to read, and since the oldest unread record was written,
    whichever came last. The age alone would not do: records of a transaction are old when they can first be read. One
    that is a lower bound says nothing: the record was there before the log's history begins, which it does anew
    whenever the log goes back.
    """
    if not lag or age_seconds is None or movement.moved_at is None:
        return 0.0
    since = max(movement.moved_at, movement.drained_at if movement.drained_at is not None else movement.moved_at)
    stands = whole_micros(as_of - since)
    return stands if age_is_lower_bound else min(stands, age_seconds)


def windows_for(
    moves: int, backlog_seconds: float, interval_seconds: float, usual_pause_seconds: float | None = None
) -> tuple[float, float] | None:
    """The window a trend is judged on and the one that must agree; None where the commits are too rare for any."""
    needed = max(INTERVALS_PER_WINDOW * interval_seconds, CADENCES_PER_WINDOW * (usual_pause_seconds or 0.0))
    if moves:
        needed = max(needed, CADENCES_PER_WINDOW * backlog_seconds / moves)
    for window, longer in zip(WINDOWS_SECONDS, (*WINDOWS_SECONDS[1:], WINDOWS_SECONDS[-1]), strict=True):
        if needed <= window:
            return window, longer
    return (DAY_SECONDS, DAY_SECONDS) if needed <= DAY_SECONDS else None


def pace_of(
    observations: Sequence[Observation],
    as_of: float,
    movement: Movement,
    *,
    interval_seconds: float,
    gap: float,
    recreated_at: float | None = None,
    usual_pause_seconds: float | None = None,
) -> Pace:
    """Trend of the lag and rate of the commits, from observations in order of time. ``usual_pause_seconds`` is
    :func:`lagwise.domain.commit_cadence.usual_pause_of`."""
    known = [o for o in observations if o.lag is not None]
    windows = windows_for(movement.moves, movement.backlog_seconds, interval_seconds, usual_pause_seconds)
    window = windows[0] if windows else WINDOWS_SECONDS[-1]
    judged = [o for o in known if _counts(o.at, as_of, window, recreated_at)]
    span = whole_micros(judged[-1].at - judged[0].at) if judged else 0.0
    rate: float | None = None
    if span > 0:
        rate = max(0, (judged[-1].committed or 0) - (judged[0].committed or 0)) / span
    if windows is None:
        return Pace(window, False, len(judged), span, None, None, rate)

    def trend_over(seconds: float) -> Trend | None:
        return trend_of(_statistics(known, as_of, seconds, gap, recreated_at))

    return Pace(window, True, len(judged), span, trend_over(windows[0]), trend_over(windows[1]), rate)


def _went_back(a: Observation, b: Observation) -> bool:
    """Whether the group went back: with a log that did so itself it had to, and between two series of samples that lie
    upon each other, because the collector's clock was put back, everything does."""
    assert a.committed is not None
    assert b.committed is not None
    assert a.high_watermark is not None
    assert b.high_watermark is not None
    return b.committed < a.committed and b.high_watermark >= a.high_watermark


def _is_after(at: float, recreated_at: float | None, as_of: float, window_seconds: float = LOOKBACK_SECONDS) -> bool:
    if recreated_at is None:
        return True
    return bucket_in(window_seconds, at, as_of) > bucket_in(window_seconds, recreated_at, as_of)


def _counts(at: float, as_of: float, window_seconds: float, recreated_at: float | None) -> bool:
    bucket = bucket_in(window_seconds, at, as_of)
    return in_window(bucket, as_of, window_seconds) and _is_after(at, recreated_at, as_of, window_seconds)


def _statistics(
    known: Sequence[Observation], as_of: float, window_seconds: float, gap: float, recreated_at: float | None
) -> Statistics:
    """Statistics of a window. The step into its first sample counts where that sample has a predecessor, because a
    bucket cannot know which window it will be merged into."""
    counting = {o.at for o in known if _counts(o.at, as_of, window_seconds, recreated_at)}
    merged = samples_of((o.at - as_of, float(o.lag or 0)) for o in known if o.at in counting)
    for a, b, is_step in known_steps(known, gap):
        if is_step and b.at in counting:
            merged += step_of(b.at - a.at, float((b.lag or 0) - (a.lag or 0)))
    return merged
