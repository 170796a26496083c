"""From the samples of one group-partition to the evidence its status is judged by.

The plain-Python definition of what Spark computes from minute buckets; the contract test runs both on the same rows.
Times are seconds since the epoch, buckets are UTC minutes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from lagwise.domain import lag as lags
from lagwise.domain.trend import Statistics, Trend, samples_of, step_of, trend_of

BUCKET_SECONDS = 60.0
#: Windows on which a trend is judged, each confirmed by the next longer one (the longest by itself).
WINDOWS_SECONDS = (300.0, 900.0, 3600.0)
#: A window must hold this many commit cadences, or the sawtooth of a slow committer looks like a trend.
CADENCES_PER_WINDOW = 4
#: Rewinds, cadence and the movement of the log start are looked for in this window.
LOOKBACK_SECONDS = 3600.0
#: Two successive samples farther apart than this many intervals (and this many seconds) have a gap between them.
GAP_INTERVALS = 3.0
GAP_SECONDS = 120.0


def gap_seconds(interval_seconds: float) -> float:
    """How far apart two successive samples may be and still count as a step of the history."""
    return max(GAP_SECONDS, GAP_INTERVALS * interval_seconds)


@dataclass(frozen=True, slots=True)
class Observation:
    """One sample of a group-partition: the committed offset, and the watermarks read right after it."""

    at: float
    committed: int | None
    log_start: int | None
    high_watermark: int | None
    last_stable: int | None = None
    topic_id: str | None = None

    @property
    def lag(self) -> int | None:
        """Lag in records, None where it cannot be known (not committed, unreadable, out of range)."""
        if self.committed is None or self.high_watermark is None or self.log_start is None:
            return None
        if self.committed > self.high_watermark:
            return None
        end = lags.readable_end(self.committed, self.high_watermark, self.last_stable)
        return lags.lag(self.committed, self.log_start, end)


@dataclass(frozen=True, slots=True)
class Movement:
    """How the committed offset moved."""

    unmoved_seconds: float
    commit_cadence_seconds: float | None
    rewound_from: int | None


@dataclass(frozen=True, slots=True)
class Pace:
    """The trend of the lag on the window that suits the commit cadence, and the rates on the same window."""

    is_measurable: bool
    samples: int
    span_seconds: float
    trend: Trend | None
    longer_slope: float | None
    produce_rate_per_second: float | None
    consume_rate_per_second: float | None


def bucket_of(at: float) -> float:
    """Start of the minute a time falls into."""
    return at - at % BUCKET_SECONDS


def in_window(bucket: float, as_of: float, window_seconds: float) -> bool:
    """Whether a bucket belongs to the window that ends at ``as_of``: windows consist of whole buckets."""
    return as_of - window_seconds < bucket <= as_of


def movement_of(observations: Sequence[Observation], as_of: float, gap: float) -> Movement:
    """How the committed offset moved, from observations in order of time.

    Across a gap (see :func:`gap_seconds`) an offset can be seen to have moved, but not how often or in which
    direction.
    """
    seen = [o for o in observations if o.lag is not None]
    moved_at = seen[0].at if seen else as_of
    moves = 0
    backlog_seconds = 0.0
    rewound_from: int | None = None
    for a, b in pairwise(seen):
        if a.committed is None or b.committed is None:
            continue
        recent = in_window(bucket_of(b.at), as_of, LOOKBACK_SECONDS) and b.at - a.at <= gap
        if b.committed != a.committed:
            moved_at = b.at
            moves += recent
            if b.committed < a.committed and recent:
                rewound_from = max(rewound_from or 0, a.committed)
        if a.lag and recent:
            backlog_seconds += b.at - a.at
    return Movement(as_of - moved_at, backlog_seconds / moves if moves else None, rewound_from)


def windows_for(cadence_seconds: float | None) -> tuple[float, float] | None:
    """The window a trend is judged on and the one that must agree; None where the commits are too rare for any."""
    for window, longer in zip(WINDOWS_SECONDS, (*WINDOWS_SECONDS[1:], WINDOWS_SECONDS[-1]), strict=True):
        if (cadence_seconds or 0.0) * CADENCES_PER_WINDOW <= window:
            return window, longer
    return None


def pace_of(observations: Sequence[Observation], as_of: float, cadence_seconds: float | None, gap: float) -> Pace:
    """Trend and rates, from observations in order of time."""
    known = [o for o in observations if o.lag is not None]
    windows = windows_for(cadence_seconds)
    judged = _within(known, as_of, windows[0] if windows else WINDOWS_SECONDS[-1])
    span = judged[-1].at - judged[0].at if judged else 0.0
    rates: tuple[float | None, float | None] = (None, None)
    if span > 0:
        first, last = judged[0], judged[-1]
        rates = (
            max(0, (last.high_watermark or 0) - (first.high_watermark or 0)) / span,
            max(0, (last.committed or 0) - (first.committed or 0)) / span,
        )
    if windows is None:
        return Pace(False, len(judged), span, None, None, *rates)
    longer = trend_of(_statistics(known, as_of, windows[1], gap))
    return Pace(
        True,
        len(judged),
        span,
        trend_of(_statistics(known, as_of, windows[0], gap)),
        longer.slope if longer else None,
        *rates,
    )


def _within(known: Sequence[Observation], as_of: float, window_seconds: float) -> list[Observation]:
    return [o for o in known if in_window(bucket_of(o.at), as_of, window_seconds)]


def _statistics(known: Sequence[Observation], as_of: float, window_seconds: float, gap: float) -> Statistics:
    """Statistics of a window. The step into its first sample counts where that sample has a predecessor, because a
    bucket cannot know which window it will be merged into."""
    samples = [o for o in known if in_window(bucket_of(o.at), as_of, window_seconds)]
    merged = samples_of((o.at - as_of, float(o.lag or 0)) for o in samples)
    for a, b in pairwise(known):
        if in_window(bucket_of(b.at), as_of, window_seconds) and b.at - a.at <= gap:
            merged += step_of(b.at - a.at, float((b.lag or 0) - (a.lag or 0)))
    return merged
