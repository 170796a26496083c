"""From the samples of one group-partition to how it moves.

Times are seconds since the start of some UTC hour. Samples are looked at in buckets, as windows consist of whole ones:
minutes, five of them once they are old, and whole hours for the window of a day.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise

from lagwise.domain.loss.records import NOTHING_LOST, Lost
from lagwise.domain.verdicts.buckets import FIVE_MINUTES_SECONDS, HOUR_SECONDS, MINUTE_SECONDS
from lagwise.domain.verdicts.samples import GAP_INTERVALS, GAP_SECONDS, TRANSACTION_HANGS_AFTER_SECONDS
from lagwise.domain.verdicts.windows import (
    CADENCES_PER_WINDOW,
    COARSE_AFTER_SECONDS,
    DAY_SECONDS,
    HOUR_IS_WHOLE_AFTER_SECONDS,
    HOURS_OF_DAY,
    INTERVALS_PER_WINDOW,
    LOOKBACK_SECONDS,
    WINDOWS_SECONDS,
)
from tests.contract.plain_model.losses import LostInStep, lost_in_step, of_stretches
from tests.contract.plain_model.records import Trend
from tests.contract.plain_model.trend import trend_of

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
    known: Sequence[Observation], as_of: float, gap: float, *, recreated_at: float | None = None
) -> Movement:
    """How the committed offset moved, from observations whose lag is known, in order of time."""
    moved_at = known[0].at if known else None
    drained_at = max((o.at for o in known if o.lag == 0), default=None)
    moves = 0
    backlog_seconds = 0.0
    rewound_from: int | None = None
    rewound_records = 0
    rewound_at: float | None = None
    for a, b, is_step in known_steps(known, gap):
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
    )


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
    judged = [o for o in known if _counts(o.at, as_of, window, recreated_at)]
    span = whole_micros(judged[-1].at - judged[0].at) if judged else 0.0
    rate = max(0, (judged[-1].committed or 0) - (judged[0].committed or 0)) / span if span > 0 else None
    if windows is None:
        return Pace(window, False, len(judged), span, None, None, rate)

    def trend_over(seconds: float) -> Trend | None:
        """The step into the first sample of a window counts where that sample has a predecessor, because a bucket
        cannot know which window it will be merged into."""
        counting = {o.at for o in known if _counts(o.at, as_of, seconds, recreated_at)}
        samples = [(o.at - as_of, float(o.lag or 0)) for o in known if o.at in counting]
        steps = [
            (a, b) for a, b, is_step in known_steps(known, gap_of(interval_seconds)) if is_step and b.at in counting
        ]
        return trend_of(samples, [(b.at - a.at, float((b.lag or 0) - (a.lag or 0))) for a, b in steps])

    return Pace(window, True, len(judged), span, trend_over(windows[0]), trend_over(windows[1]), rate)


def _went_back(a: Observation, b: Observation) -> bool:
    """Whether the group went back, and not with a log that did so itself."""
    assert None not in (a.committed, b.committed, a.high_watermark, b.high_watermark)
    return b.committed < a.committed and b.high_watermark >= a.high_watermark


def _is_after(at: float, recreated_at: float | None, as_of: float, window_seconds: float = LOOKBACK_SECONDS) -> bool:
    if recreated_at is None:
        return True
    return bucket_in(window_seconds, at, as_of) > bucket_in(window_seconds, recreated_at, as_of)


def _counts(at: float, as_of: float, window_seconds: float, recreated_at: float | None) -> bool:
    bucket = bucket_in(window_seconds, at, as_of)
    return in_window(bucket, as_of, window_seconds) and _is_after(at, recreated_at, as_of, window_seconds)
