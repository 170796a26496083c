"""Buckets of samples: sufficient statistics, so that any window is a merge of buckets and never a re-read of samples.

A bucket is a sample, a minute, five minutes or an hour; all have the same columns (the table ``minutes`` explains
them), and :func:`merged` makes the longer ones of the shorter.
"""

from collections.abc import Iterable

import numpy as np

from lagwise.domain.verdicts.columns import (
    MICROS,
    NEVER,
    NULL,
    Array,
    Columns,
    Ranges,
    is_first,
    last_index,
    picked,
    runs,
    start_of,
)
from lagwise.domain.verdicts.samples import steps_of

#: Lengths of buckets in seconds …
MINUTE_SECONDS, FIVE_MINUTES_SECONDS, HOUR_SECONDS = 60, 300, 3600
#: … and in microseconds.
MINUTE, FIVE_MINUTES, HOUR = (s * MICROS for s in (MINUTE_SECONDS, FIVE_MINUTES_SECONDS, HOUR_SECONDS))

#: Shorter pauses than this show well enough in the mean of an hour.
LONG_PAUSE_SECONDS = 300.0

#: Sums over samples (t in seconds since the start of the bucket, lag in records) and over steps: they add up once they
#: share an origin of time.
STATISTICS = (
    "samples", "sum_t", "sum_tt", "sum_lag", "sum_lag_lag", "sum_t_lag", "steps", "sum_dt_dt", "sum_dt_dlag",
    "sum_dlag_dlag",
)  # fmt: skip
#: What adds up as it is, and of what the largest or the smallest counts.
SUMS = ("moves", "backlog_seconds", "rewound_records", "lost_at_least", "lost_at_most")
LATEST = ("last_moved_at", "last_drained_at", "rewound_from", "rewound_at", "last_lost_at", "max_lag")
EARLIEST = ("first_progress_at", "first_lost_at")


def of_samples(samples: Columns, gap_seconds: Array) -> dict[str, Array]:
    """One bucket a sample, which starts with its minute. Samples in order of pair and time."""
    at, committed, lag = samples["at"], samples["committed"], samples["lag"]
    step = steps_of(samples, gap_seconds)
    minute = start_of(MINUTE, at)
    t, y = (at - minute) / MICROS, lag.astype(np.float64)
    progress = step["moved"] | (lag == 0)
    lost = step["lost_at_least"] > 0
    return {
        "pair": samples["pair"],
        "minute": minute,
        "samples": np.ones(len(at), np.int64),
        "first_at": at,
        "last_at": at,
        "first_committed": committed,
        "last_committed": committed,
        "last_lag": lag,
        "max_lag": lag,
        "sum_t": t,
        "sum_tt": t * t,
        "sum_lag": y,
        "sum_lag_lag": y * y,
        "sum_t_lag": t * y,
        "steps": step["is_step"].astype(np.int64),
        "sum_dt_dt": step["dt"] * step["dt"],
        "sum_dt_dlag": step["dt"] * step["dlag"],
        "sum_dlag_dlag": step["dlag"] * step["dlag"],
        "moves": (step["is_step"] & step["moved"]).astype(np.int64),
        "last_moved_at": np.where(step["moved"], at, NULL),
        "backlog_seconds": np.where(step["began_with_lag"], step["dt"], 0.0),
        "last_drained_at": np.where(lag == 0, at, NULL),
        "first_progress_at": np.where(progress, at, NEVER),
        "rewound_from": np.where(step["went_back"], step["previous_committed"], NULL),
        "rewound_records": np.where(step["went_back"], step["previous_committed"] - committed, 0),
        "rewound_at": np.where(step["went_back"], at, NULL),
        "lost_at_least": step["lost_at_least"],
        "lost_at_most": step["lost_at_most"],
        "first_lost_at": np.where(lost, at, NEVER),
        "last_lost_at": np.where(lost, at, NULL),
    }


def shifted(rows: Columns, by_seconds: Array) -> dict[str, Array]:
    """The statistics as they are once every t has become t + ``by_seconds``: another origin of time."""
    n = rows["samples"]
    return {name: rows[name] for name in STATISTICS} | {
        "sum_t": rows["sum_t"] + n * by_seconds,
        "sum_tt": rows["sum_tt"] + 2 * by_seconds * rows["sum_t"] + n * by_seconds * by_seconds,
        "sum_t_lag": rows["sum_t_lag"] + by_seconds * rows["sum_lag"],
    }


def merged(rows: Columns, length: int) -> dict[str, Array]:
    """Buckets of this length (microseconds) from shorter ones, in order of pair and time."""
    start = start_of(length, rows["minute"])
    parts = runs(rows["pair"], start)
    in_bucket = shifted(rows, (rows["minute"] - start) / MICROS)
    return {
        "minute": parts.first(start),
        **{name: parts.first(rows[name]) for name in ("pair", "first_at", "first_committed")},
        **{name: parts.last(rows[name]) for name in ("last_at", "last_committed", "last_lag")},
        **{name: parts.sum(in_bucket[name]) for name in STATISTICS},
        **_merged(parts, rows),
    }


def _merged(parts: Ranges, rows: Columns) -> dict[str, Array]:
    return (
        {name: parts.sum(rows[name]) for name in SUMS}
        | {name: parts.max(rows[name]) for name in LATEST}
        | {name: parts.min(rows[name]) for name in EARLIEST}
    )


def last_progress_before(rows: Columns) -> Array:
    """Number of the last bucket before each, of its pair, in which the group got on: the offset moved, or nothing was
    unread. -1 where there is none."""
    index = last_index(last_progress(rows) != NULL)
    index = np.append(-1, index[:-1]) if len(index) else index
    starts = last_index(is_first(rows["pair"]))
    return np.where(index >= starts, index, -1)


def last_progress(rows: Columns) -> Array:
    """When the group last got on in each bucket; null where it did not."""
    return np.maximum(rows["last_moved_at"], rows["last_drained_at"])


def pauses(rows: Columns, since: Array) -> Array:
    """The seconds without progress that ended in each bucket and began in the bucket ``since``; NaN where that is -1,
    or no progress was made."""
    began = picked(last_progress(rows), since, since >= 0)
    ended = rows["first_progress_at"]
    is_pause = (began != NULL) & (ended != NEVER)
    return np.where(is_pause, np.where(is_pause, ended, 0) - np.where(is_pause, began, 0), np.nan) / MICROS


def hours_of(rows: Columns) -> dict[str, Array]:
    """Hours from shorter buckets, each with the longest pause within it and the number of long ones. A pause across the
    start of the hour is told with the day, which knows the hour before."""
    since = last_progress_before(rows)
    began = picked(last_progress(rows), since, since >= 0)
    pause = np.where(
        start_of(HOUR, np.maximum(began, 0)) == start_of(HOUR, rows["minute"]), pauses(rows, since), np.nan
    )
    parts = runs(rows["pair"], start_of(HOUR, rows["minute"]))
    longest = parts.max(np.where(np.isnan(pause), -1.0, pause), empty=-1)
    return merged(rows, HOUR) | {
        "longest_pause_seconds": np.where(longest < 0, np.nan, longest),
        "long_pauses": parts.sum((pause >= LONG_PAUSE_SECONDS).astype(np.int64)),
    }


def together(parts: Iterable[Columns]) -> dict[str, Array]:
    """The rows of several tables."""
    tables = list(parts)
    return {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}
