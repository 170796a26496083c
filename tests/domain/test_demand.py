"""The definition of what a topic was sent: hours from high watermarks, their rates, what a history is enough for."""

import math
import random
from datetime import UTC, datetime, timedelta

import pytest

from lagwise.domain.capacity.demand import rate_of_bucket, too_little
from tests.domain.topic_hours import EndMinute, TopicHour, bucket_of_rate, rates_of, topic_hours

START = datetime(2026, 3, 2, 7, 0, tzinfo=UTC)
GAP = 120.0


def end(minute: int, first: int, last: int, *, partition: int = 0, was_reset: bool = False) -> EndMinute:
    """A minute sampled at its 5th and 50th second."""
    at = START + timedelta(minutes=minute)
    return EndMinute(partition, at, at + timedelta(seconds=5), at + timedelta(seconds=50), first, last, was_reset)


def only(hours: list[TopicHour]) -> TopicHour:
    assert len(hours) == 1
    return hours[0]


def test_a_step_reaches_from_the_last_sample_of_one_minute_to_that_of_the_next() -> None:
    hour = only(topic_hours([end(0, 0, 45), end(1, 60, 105), end(2, 120, 165)], GAP))
    assert (hour.records, hour.seconds, hour.minutes, hour.partitions) == (165, 165.0, 3, 1)
    assert hour.rate_per_second == hour.max_rate_per_second == 1.0
    assert hour.max_at == START, "of equal ones the first"


def test_what_was_written_during_a_gap_is_unknown_and_no_burst() -> None:
    hour = only(topic_hours([end(0, 0, 45), end(30, 900_000, 900_045)], GAP))
    assert (hour.records, hour.minutes, hour.max_rate_per_second) == (90, 2, 1.0)


def test_a_recreated_topic_makes_no_negative_and_no_huge_rate() -> None:
    down = only(topic_hours([end(0, 1_000_000, 1_000_045), end(1, 0, 45, was_reset=True), end(2, 60, 105)], GAP))
    up = only(topic_hours([end(0, 0, 45), end(1, 5_000_000, 5_000_045, was_reset=True), end(2, 60, 105)], GAP))
    assert (down.records, down.max_rate_per_second) == (150, 1.0)
    # The third minute went back without being told as a reset: that is no rate at all.
    assert (up.records, up.minutes) == (90, 2)


def test_a_minute_counts_when_every_partition_was_sampled() -> None:
    both = [end(m, 60 * m, 60 * m + 45, partition=p) for m in range(3) for p in (0, 1)]
    hour = only(topic_hours([e for e in both if (e.minute, e.partition) != (START + timedelta(minutes=1), 1)], GAP))
    assert (hour.partitions, hour.minutes) == (2, 2)
    assert hour.rate_per_second == pytest.approx(2.0, rel=0.35)
    assert only(topic_hours(both, GAP)).minutes == 3


def test_the_records_of_each_partition_are_of_the_minutes_that_count() -> None:
    both = [end(m, 60 * m * (1 + p), (60 * m + 45) * (1 + p), partition=p) for m in range(3) for p in (0, 1)]
    assert only(topic_hours(both, GAP)).partition_records == {0: 165, 1: 330}
    hour = only(topic_hours([e for e in both if (e.minute, e.partition) != (START + timedelta(minutes=1), 1)], GAP))
    assert hour.partition_records == {0: 105, 1: 330}
    assert sum(hour.partition_records.values()) == hour.records
    still = [end(m, 7, 7, partition=p) for m in range(3) for p in (0, 1)]
    assert only(topic_hours(still, GAP)).partition_records == {0: 0, 1: 0}


def test_one_sample_is_no_rate() -> None:
    at = START + timedelta(seconds=5)
    assert topic_hours([EndMinute(0, START, at, at, 7, 7, False)], GAP) == []
    assert topic_hours([], GAP) == []


def test_the_first_step_of_an_hour_begins_in_the_hour_before() -> None:
    first, second = topic_hours([end(59, 0, 45), end(60, 60, 105)], GAP)
    assert (first.records, second.records, second.seconds) == (45, 60, 60.0)


def test_rates_are_accurate_to_within_two_percent() -> None:
    noise = random.Random(5)
    rates = [math.exp(noise.uniform(-12, 18)) for _ in range(2000)]
    assert max(abs(rate_of_bucket(bucket_of_rate(r)) / r - 1) for r in rates) <= 0.02 + 1e-9


def test_quantiles_of_a_history() -> None:
    noise = random.Random(6)
    high, ends, rates = 0, [], []
    for minute in range(60 * 24 * 3):
        before, high = high, high + (0 if minute % 5 == 0 else noise.randrange(60, 60_000))
        ends.append(end(minute, before, high))
        rates.append((high - before) / (45 if minute == 0 else 60))
    found = rates_of(topic_hours(ends, GAP))
    assert found is not None
    rates.sort()
    assert found.minutes == len(rates)
    assert found.peak_per_second == rates[-1]
    for share, value in ((0.5, found.p50_per_second), (0.95, found.p95_per_second), (0.99, found.p99_per_second)):
        assert value == pytest.approx(rates[math.ceil(share * len(rates)) - 1], rel=0.0201)


def test_nothing_written_and_nothing_known() -> None:
    found = rates_of(topic_hours([end(m, 9, 9) for m in range(10)], GAP))
    assert found is not None
    assert (found.peak_per_second, found.p50_per_second, found.p99_per_second, found.minutes) == (0.0, 0.0, 0.0, 10)
    assert rates_of([]) is None


def test_one_burst_is_the_peak_and_no_quantile() -> None:
    ends, high = [], 0
    for minute in range(600):
        before, high = high, high + (6_000_000 if minute == 333 else 60)
        ends.append(end(minute, before, high))
    found = rates_of(topic_hours(ends, GAP))
    assert found is not None
    assert found.peak_per_second == pytest.approx(100_000)
    assert found.peak_at == START + timedelta(minutes=333)
    assert found.p99_per_second == pytest.approx(1.0, rel=0.0201)


def test_too_little_history_names_what_is_missing() -> None:
    assert too_little(336, 90) is None
    assert too_little(335, 90) == (
        "too little history: 13.9 days; a forecast 90 days ahead needs 14, to have seen the week twice (until then it "
        "reaches as far ahead as the history back)"
    )
    assert (too_little(30, 60) or "").startswith("too little history: 1.2 days; a forecast 60 days ahead needs 14")
    assert "needs 2" in (too_little(0, 90) or "")
