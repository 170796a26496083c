"""From minutes of high watermarks to hours of topics, on columns (:mod:`lagwise.domain.verdicts.columns`).

:mod:`lagwise.domain.capacity.demand` has the rules.
"""

from dataclasses import dataclass

import numpy as np

from lagwise.domain.capacity.demand import LEAST_SECONDS, LOG_WIDTH
from lagwise.domain.verdicts.buckets import HOUR
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
        rows: topic, and the columns of `topic_hours` from ``hour`` to ``zero_minutes``.
        rates: the minutes with a rate above 0, counted: row (of the hour), bucket, minutes; in order of the two.
        partition_records: row, partition, records; in order of the two.
    """

    rows: Columns
    rates: Columns
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
            "zero_minutes": hours.sum((rate == 0).astype(np.int64)),
        },
        rates=_counted(row[rate > 0], rate[rate > 0]),
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


def _counted(row: Array, rate: Array) -> Columns:
    bucket = np.ceil(np.log(rate) / LOG_WIDTH).astype(np.int64)
    order = np.lexsort((bucket, row))
    row, bucket = row[order], bucket[order]
    alike = runs(row, bucket)
    return {"row": row[alike.start], "bucket": bucket[alike.start], "minutes": alike.sizes}


def _by_partition(row: Array, partition: Array, records: Array) -> Columns:
    order = np.lexsort((partition, row))
    row, partition = row[order], partition[order]
    same = runs(row, partition)
    return {"row": row[same.start], "partition": partition[same.start], "records": same.sum(records[order])}
