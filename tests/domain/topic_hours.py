"""What is written to `topic_hours` and `demand`, in plain Python, one topic at a time.

The rules are those of :mod:`lagwise.domain.capacity.demand`.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from lagwise.domain.capacity.demand import LEAST_SECONDS


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
    #: As they are stored, of every minute of the hour: None is not known.
    minute_rates: tuple[float | None, ...]
    #: The records by partition.
    partition_records: Mapping[int, int]

    @property
    def rate_per_second(self) -> float:
        """Mean rate of the minutes that count."""
        return self.records / self.seconds


def stored(rate_per_second: float) -> float:
    """As exact as minutes are stored: rounded up to eight binary digits."""
    mantissa, exponent = math.frexp(rate_per_second)
    return math.ldexp(math.ceil(mantissa * 256) / 256, exponent)


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
    by_minute: list[float | None] = [None] * 60
    for minute, (_, seconds) in sorted(minutes.items()):
        covered = max(1, round(seconds / 60))
        for at in range(max(0, minute.minute - covered + 1), minute.minute):
            if minute.replace(minute=at) not in minutes:
                by_minute[at] = stored(rates[minute])
        by_minute[minute.minute] = stored(rates[minute])
    return TopicHour(
        hour=hour,
        partitions=len(partition_records),
        minutes=len(minutes),
        records=sum(records for records, _ in minutes.values()),
        seconds=sum(seconds for _, seconds in minutes.values()),
        max_rate_per_second=rates[max_at],
        max_at=max_at,
        minute_rates=tuple(by_minute),
        partition_records=partition_records,
    )
