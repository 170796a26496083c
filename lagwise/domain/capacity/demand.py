"""What a topic was sent: rates of minutes from high watermarks, hours of these, and the peak and quantiles of them all.

The plain-Python definition of what Spark writes to `topic_hours`. A rate is what the high watermark rose by from the
last sample of one minute to the last of the next, over the time between the two. Across a gap of the collector, and
where the log went back or is another topic's, there is no such step: then it counts from the minute's own first sample,
where that is at least half a minute before. What was written meanwhile is unknown, and no burst.

Compacted away or deleted records, and the markers of transactions, take offsets too: rates count these as records.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

#: A rate over less time than this is none: a few records one after the other would make a peak.
LEAST_SECONDS = 30.0
#: Rates are counted in buckets, each this much wider than the one before: a quantile is told to within 2 %. DDSketch,
#: Masson, Rim and Lee, VLDB 2019.
RELATIVE_ERROR = 0.02
LOG_WIDTH = math.log((1 + RELATIVE_ERROR) / (1 - RELATIVE_ERROR))

#: A day's shape needs two days of history, a week's two weeks: less shows nothing twice.
LEAST_DAYS, LEAST_WEEKLY_DAYS = 2, 14


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


def rate_of_bucket(bucket: int) -> float:
    """The rate that is within 2 % of every rate in the bucket."""
    return math.exp(bucket * LOG_WIDTH) * (1 - RELATIVE_ERROR)


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


def quantile_of(zeros: int, counts: Mapping[int, int], share: float) -> float:
    """The least rate that at least this share of the minutes do not exceed."""
    wanted = math.ceil(share * (zeros + sum(counts.values())))
    seen = zeros
    for bucket, minutes in sorted(counts.items()):
        if seen >= wanted:
            break
        seen += minutes
        if seen >= wanted:
            return rate_of_bucket(bucket)
    return 0.0


def too_little(history_hours: int, horizon_days: int) -> str | None:
    """Why so much history is too little for a forecast at the horizon; None where it is enough."""
    days = history_hours / 24
    if days >= LEAST_WEEKLY_DAYS:
        return None
    so_far = f"too little history: {math.floor(days * 10) / 10:.1f} days"
    ahead = f"a forecast {horizon_days} days ahead needs {LEAST_WEEKLY_DAYS}, to have seen the week twice"
    if days >= LEAST_DAYS:
        return f"{so_far}; {ahead} (until then it reaches as far ahead as the history back)"
    return f"{so_far}; {ahead}, and one of the next days needs {LEAST_DAYS}"
