"""What is written to `topic_hours` and `demand`, in plain Python, one topic at a time.

The rules are those of :mod:`lagwise.domain.capacity.demand`.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from lagwise.domain.capacity.demand import LEAST_SECONDS, LOG_WIDTH, quantile_of


@dataclass(frozen=True, slots=True)
class EndMinute:
    """The high watermarks of one partition in one minute, since the log's last reset: a row of `watermark_minutes`."""

    partition: int
    minute: datetime
    first_at: datetime
    last_at: datetime
    first_high_watermark: int
    last_high_watermark: int
    was_reset: bool


@dataclass(frozen=True, slots=True)
class TopicHour:
    """A row of `topic_hours` without its cluster and topic."""

    hour: datetime
    partitions: int
    minutes: int
    records: int
    seconds: float
    max_rate_per_second: float
    max_at: datetime
    zero_minutes: int
    rates: Mapping[int, int]
    #: The records by partition.
    partition_records: Mapping[int, int]

    @property
    def rate_per_second(self) -> float:
        """Mean rate of the minutes that count."""
        return self.records / self.seconds


@dataclass(frozen=True, slots=True)
class Rates:
    """Peak and quantiles of the minute rates of a history, records per second."""

    minutes: int
    peak_per_second: float
    peak_at: datetime
    p50_per_second: float
    p95_per_second: float
    p99_per_second: float


def bucket_of_rate(rate_per_second: float) -> int:
    """The bucket of a rate above 0."""
    return math.ceil(math.log(rate_per_second) / LOG_WIDTH)


def topic_hours(ends: Iterable[EndMinute], gap_seconds: float) -> list[TopicHour]:
    """The hours of one topic, from the minutes of all its partitions; none for an hour in which no minute counts."""
    steps: dict[datetime, dict[int, tuple[int, float]]] = {}
    before: dict[int, EndMinute] = {}
    partitions: dict[datetime, set[int]] = {}
    for end in sorted(ends, key=lambda e: (e.partition, e.minute)):
        partitions.setdefault(_hour(end.minute), set()).add(end.partition)
        step = _step(before.get(end.partition), end, gap_seconds)
        before[end.partition] = end
        if step is not None:
            steps.setdefault(end.minute, {})[end.partition] = step
    hours: dict[datetime, dict[datetime, tuple[int, float]]] = {}
    shares: dict[datetime, dict[int, int]] = {}
    for minute, its in steps.items():
        # A sum over some of the partitions is not what the topic was sent.
        if len(its) == len(partitions[_hour(minute)]):
            whole = (sum(records for records, _ in its.values()), max(seconds for _, seconds in its.values()))
            hours.setdefault(_hour(minute), {})[minute] = whole
            share = shares.setdefault(_hour(minute), {})
            for partition, (records, _) in its.items():
                share[partition] = share.get(partition, 0) + records
    return [_topic_hour(hour, shares[hour], minutes) for hour, minutes in sorted(hours.items())]


def _hour(minute: datetime) -> datetime:
    return minute.replace(minute=0)


def _step(before: EndMinute | None, end: EndMinute, gap_seconds: float) -> tuple[int, float] | None:
    """Records and seconds of one partition's minute."""
    records = end.last_high_watermark - end.first_high_watermark
    seconds = (end.last_at - end.first_at).total_seconds()
    if before is not None and not end.was_reset:
        since = (end.last_at - before.last_at).total_seconds()
        if since <= gap_seconds:
            records, seconds = end.last_high_watermark - before.last_high_watermark, since
    return (records, seconds) if seconds >= LEAST_SECONDS and records >= 0 else None


def _topic_hour(
    hour: datetime, partition_records: Mapping[int, int], minutes: Mapping[datetime, tuple[int, float]]
) -> TopicHour:
    rates = {minute: records / seconds for minute, (records, seconds) in minutes.items()}
    # Of equal ones the first.
    max_at = min(rates, key=lambda minute: (-rates[minute], minute))
    counts: dict[int, int] = {}
    for rate in rates.values():
        if rate > 0:
            counts[bucket_of_rate(rate)] = counts.get(bucket_of_rate(rate), 0) + 1
    return TopicHour(
        hour=hour,
        partitions=len(partition_records),
        minutes=len(minutes),
        records=sum(records for records, _ in minutes.values()),
        seconds=sum(seconds for _, seconds in minutes.values()),
        max_rate_per_second=rates[max_at],
        max_at=max_at,
        zero_minutes=len(minutes) - sum(counts.values()),
        rates=counts,
        partition_records=partition_records,
    )


def rates_of(hours: Sequence[TopicHour]) -> Rates | None:
    """Peak and quantiles over a history; None where there is none."""
    if not hours:
        return None
    counts: dict[int, int] = {}
    for hour in hours:
        for bucket, minutes in hour.rates.items():
            counts[bucket] = counts.get(bucket, 0) + minutes
    zeros = sum(hour.zero_minutes for hour in hours)
    # Of equal ones the first.
    busiest = min(hours, key=lambda hour: (-hour.max_rate_per_second, hour.hour))
    peak = busiest.max_rate_per_second
    p50, p95, p99 = (min(peak, quantile_of(zeros, counts, share)) for share in (0.5, 0.95, 0.99))
    return Rates(zeros + sum(counts.values()), peak, busiest.max_at, p50, p95, p99)
