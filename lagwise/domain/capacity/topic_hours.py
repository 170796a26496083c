"""From minutes of high watermarks to hours of topics, on columns (:mod:`lagwise.domain.verdicts.columns`).

:mod:`lagwise.domain.capacity.demand` has the rules.
"""

from dataclasses import dataclass

import numpy as np

from lagwise.domain.capacity.demand import LEAST_SECONDS, MINUTES_OF_HOUR
from lagwise.domain.verdicts.buckets import HOUR, MINUTE, MINUTE_SECONDS
from lagwise.domain.verdicts.columns import (
    MICROS,
    NEVER,
    NULL,
    Array,
    Columns,
    before,
    is_first,
    micros,
    runs,
    start_of,
    taken,
)


@dataclass(frozen=True)
class TopicHours:
    """Hours of topics in which any minute counts, in order of topic and time.

    Attributes:
        rows: topic, and the columns of `topic_hours` from ``hour`` to ``max_at``.
        minute_rates: records per second of every minute of each row, 60 a row, each rounded up by less than 1 %; NaN is
            not known.
        partition_records: row, partition, records; in order of the two.
    """

    rows: Columns
    minute_rates: Array
    partition_records: Columns


def topic_hours(ends: Columns, start: int, gap_seconds: float) -> TopicHours:
    """The hours from ``start`` (microseconds since the epoch) on, of whole topics.

    ``ends`` are rows of `watermark_minutes` in order of log and minute, with numbers for topics and logs. They begin
    one gap before ``start``, because there the first steps do.
    """
    steps = _steps(ends, gap_seconds)
    steps = taken(steps, steps["minute"] >= start)
    steps = taken(steps, np.lexsort((steps["minute"], steps["topic"])))
    hours, minutes = runs(steps["topic"], steps["hour"]), runs(steps["topic"], steps["minute"])
    steps["partitions"] = np.repeat(hours.sum(steps["is_new"]), hours.sizes)
    # A sum over some of the partitions is not what the topic was sent.
    is_whole = minutes.sum(steps["counts"]) == steps["partitions"][minutes.start]
    steps = taken(steps, np.repeat(is_whole, minutes.sizes))
    minutes = runs(steps["topic"], steps["minute"])
    minute = taken(steps, minutes.start)
    records, length = minutes.sum(steps["records"]), minutes.max(steps["micros"])
    rate = records / (length / MICROS)
    hours = runs(minute["topic"], minute["hour"])
    row = np.repeat(np.arange(len(hours.start)), hours.sizes)
    max_rate = hours.max(rate)
    return TopicHours(
        rows={
            **{name: minute[name][hours.start] for name in ("topic", "hour", "partitions")},
            "minutes": hours.sizes,
            "records": hours.sum(records),
            # Whole microseconds: their sum is the same in whatever order they are added.
            "seconds": hours.sum(length) / MICROS,
            "max_rate_per_second": max_rate,
            # Of equal ones the first.
            "max_at": hours.min(np.where(rate == max_rate[row], minute["minute"], NEVER)),
        },
        minute_rates=_by_minute(row, minute["minute"] - minute["hour"], length / MICROS, rate),
        partition_records=_by_partition(np.repeat(row, minutes.sizes), steps["partition"], steps["records"]),
    )


def _steps(ends: Columns, gap_seconds: float) -> dict[str, Array]:
    """What each minute of a log tells: records, microseconds, and whether these make a rate."""
    hour = start_of(HOUR, ends["minute"])
    since = ends["last_at"] - before(ends["last_at"])
    is_step = ~is_first(ends["log"]) & (ends["reset_at"] == NULL) & (since <= micros(gap_seconds))
    rise = {
        name: ends[f"last_{name}"] - np.where(is_step, before(ends[f"last_{name}"]), ends[f"first_{name}"])
        for name in ("at", "high_watermark")
    }
    return {
        **{name: ends[name] for name in ("topic", "partition", "minute")},
        "hour": hour,
        "is_new": is_first(ends["log"], hour).astype(np.int64),
        "records": rise["high_watermark"],
        "micros": rise["at"],
        "counts": ((rise["at"] >= micros(LEAST_SECONDS)) & (rise["high_watermark"] >= 0)).astype(np.int64),
    }


def _by_minute(row: Array, since_hour: Array, length_seconds: Array, rate: Array) -> Array:
    """The rates on a grid of minutes, a row an hour. A step over several minutes has its rate in each of them, as far
    as they are of the same hour."""
    grid = np.full((row.max(initial=-1) + 1, MINUTES_OF_HOUR), np.nan)
    at = since_hour // MINUTE
    covered = np.clip(np.rint(length_seconds / MINUTE_SECONDS), 1, MINUTES_OF_HOUR).astype(np.int64)
    # From the farthest back on, so that a minute's own rate is written last.
    for back in reversed(range(covered.max(initial=0))):
        its = (covered > back) & (at >= back)
        grid[row[its], at[its] - back] = rate[its]
    return rounded_up(grid)


def rounded_up(rates: Array) -> Array:
    """Rates to eight binary digits: 128 values from a rate to twice that. With a dictionary of so few values, a minute
    takes a byte and a half in the lake, where it would take five, and up is the side on which capacity errs."""
    mantissa, exponent = np.frexp(rates)
    rounded: Array = np.ldexp(np.ceil(mantissa * 256) / 256, exponent)
    return rounded


def _by_partition(row: Array, partition: Array, records: Array) -> Columns:
    order = np.lexsort((partition, row))
    row, partition = row[order], partition[order]
    same = runs(row, partition)
    return {"row": row[same.start], "partition": partition[same.start], "records": same.sum(records[order])}
