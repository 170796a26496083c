"""What a group-partition leaves unread when it last commits before a pause: the troughs of a sawtooth.

The lag of a group that commits or restarts every two minutes swings by far more than it grows in that time, and a line
through all samples needs many teeth to tell growth from them. From trough to trough nothing swings.
"""

import numpy as np

from lagwise.domain.verdicts.buckets import last_progress, pauses
from lagwise.domain.verdicts.changes import next_bucket
from lagwise.domain.verdicts.columns import MICROS, Array, Columns, Ranges, before, is_first, ranges_of
from lagwise.domain.verdicts.trend import MINIMUM_SAMPLES, slope_and_margin

#: Shorter pauses than this make no teeth that a mean over a minute would not smooth …
PAUSE_SECONDS = 30.0
#: … and those of a slow collector are its own.
INTERVALS_OF_TOOTH = 1.5


def troughs(
    buckets: Columns,
    since: Array,
    part: Ranges,
    recent: Ranges,
    start_of_hour: Array,
    as_of: Array,
    interval_seconds: Array,
) -> dict[str, Array]:
    """The troughs of each case, which lie in its ``part`` of the buckets, as do the pauses after them: the last hour,
    or what of it comes after the last change. ``recent`` is its last quarter of an hour. See the comments at the
    columns.

    ``since`` is the result of :func:`lagwise.domain.verdicts.buckets.last_progress_before`.
    """
    pause = pauses(buckets, since)
    ended = np.flatnonzero(pause >= PAUSE_SECONDS)
    case, place = Ranges(np.searchsorted(ended, part.start), np.searchsorted(ended, part.stop)).rows()
    end = ended[place]
    start = since[end]
    minute, last_at, last_lag = (buckets[name] for name in ("minute", "last_at", "last_lag"))
    # Rows may be samples. Pauses within one bucket do not count, because finished buckets do not show them.
    counts = (start >= part.start[case]) & (pause[end] > INTERVALS_OF_TOOTH * interval_seconds[case])
    counts &= minute[end] >= next_bucket(minute[start], as_of[case])
    case, start, end = case[counts], start[counts], end[counts]
    at = last_progress(buckets)[start]

    def last_of_bucket(row: Array, stop: Array) -> Array:
        return Ranges(row, stop).bisect_left(minute, next_bucket(minute[row], as_of[case])) - 1

    # What was unread at the end of the bucket, without what was written since.
    start, end = last_of_bucket(start, end), last_of_bucket(end, part.stop[case])
    written = last_lag + buckets["last_committed"]
    rate = np.maximum(0, written[end] - written[start]) / ((last_at[end] - last_at[start]) / MICROS)
    lag = np.maximum(0.0, last_lag[start] - rate * ((last_at[start] - at) / MICROS))
    t = (at - as_of[case]) / MICROS
    slope, margin = _line(case, t, lag, len(as_of))
    is_recent = start >= recent.start[case]
    recent_slope, recent_margin = _line(case[is_recent], t[is_recent], lag[is_recent], len(as_of))
    its = ranges_of(np.arange(len(as_of)), case)
    is_told = its.sizes > MINIMUM_SAMPLES
    slope = np.where(is_told, slope, np.nan)
    return {
        # The trend through the troughs since the last change, with its interval; NaN with less than six.
        "trough_slope": slope,
        "trough_low": slope - margin,
        "trough_high": slope + margin,
        # The same of the last quarter of an hour; NaN with less than five.
        "recent_trough_slope": recent_slope,
        "recent_trough_low": recent_slope - recent_margin,
        "recent_trough_high": recent_slope + recent_margin,
        # By how much the last trough lies below the highest one since a change within the hour, as long as there are
        # too few for a trend; NaN otherwise.
        "trough_drop": np.where(
            is_told | (part.start <= start_of_hour), np.nan, its.max(lag, empty=np.nan) - its.last(lag, np.nan)
        ),
    }


def _line(case: Array, t: Array, lag: Array, count: int) -> tuple[Array, Array]:
    """Slope and margin of the line through the points (t, lag) of each case; these are in order of case and time."""
    is_step = ~is_first(case)
    dt, dlag = (np.where(is_step, x - before(x), 0.0) for x in (t, lag))

    def total(values: Array) -> Array:
        return np.bincount(case, values, count)

    return slope_and_margin(
        {
            "samples": total(np.ones(len(case))).astype(np.int64),
            "sum_t": total(t),
            "sum_tt": total(t * t),
            "sum_lag": total(lag),
            "sum_lag_lag": total(lag * lag),
            "sum_t_lag": total(t * lag),
            "steps": total(is_step).astype(np.int64),
            "sum_dt_dt": total(dt * dt),
            "sum_dt_dlag": total(dt * dlag),
            "sum_dlag_dlag": total(dlag * dlag),
        }
    )
