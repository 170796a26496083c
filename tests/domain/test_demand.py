"""What a topic was sent: hours from high watermarks, their rates, what a history is enough for."""

import math
import random
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from lagwise.domain.capacity import topic_hours as columns
from lagwise.domain.capacity.demand import too_little
from lagwise.domain.verdicts.columns import NULL, taken
from tests.domain import topic_hours as rows
from tests.domain.topic_hours import EndMinute, TopicHour, stored

START = datetime(2026, 3, 2, 7, 0, tzinfo=UTC)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
GAP = 120.0


def end(minute: int, first: int, last: int, *, partition: int = 0, was_reset: bool = False) -> EndMinute:
    """A minute sampled at its 5th and 50th second."""
    at = START + timedelta(minutes=minute)
    return EndMinute(partition, at, at + timedelta(seconds=5), at + timedelta(seconds=50), first, last, was_reset)


def topic_hours(ends: Sequence[EndMinute]) -> list[TopicHour]:
    """The hours of one topic, by columns and by rows alike."""
    made = of_topics([ends], START.replace(minute=0, hour=0))[0]
    assert made == rows.topic_hours(ends, GAP)
    return made


def of_topics(topics: Sequence[Sequence[EndMinute]], start: datetime) -> list[list[TopicHour]]:
    """The hours of several topics from ``start`` on, by columns."""
    keyed = [(topic, end) for topic, its in enumerate(topics) for end in its]
    keyed.sort(key=lambda pair: (pair[1].partition, pair[0], pair[1].minute))
    ends = [end for _, end in keyed]
    made = columns.topic_hours(
        {
            "topic": np.array([topic for topic, _ in keyed], np.int64),
            "log": np.array([topic + len(topics) * end.partition for topic, end in keyed], np.int64),
            "partition": np.array([end.partition for end in ends], np.int64),
            **{name: times([getattr(end, name) for end in ends]) for name in ("minute", "first_at", "last_at")},
            "first_high_watermark": np.array([end.first_high_watermark for end in ends], np.int64),
            "last_high_watermark": np.array([end.last_high_watermark for end in ends], np.int64),
            "reset_at": np.where([end.was_reset for end in ends], times([end.last_at for end in ends]), NULL),
        },
        int(times([start])[0]),
        GAP,
    )
    found: list[list[TopicHour]] = [[] for _ in topics]
    for number in range(len(made.rows["topic"])):
        row = {name: values[number].item() for name, values in made.rows.items()}
        for name in ("hour", "max_at"):
            row[name] = EPOCH + timedelta(microseconds=row[name])
        records = taken(made.partition_records, made.partition_records["row"] == number)
        topic = found[row.pop("topic")]
        topic.append(
            TopicHour(
                **row,
                minute_rates=tuple(None if np.isnan(r) else float(r) for r in made.minute_rates[number]),
                partition_records=dict(zip(records["partition"].tolist(), records["records"].tolist(), strict=True)),
            )
        )
    return found


def times(values: Sequence[datetime]) -> np.ndarray:
    return np.array([(at - EPOCH) // timedelta(microseconds=1) for at in values], np.int64)


def only(hours: list[TopicHour]) -> TopicHour:
    assert len(hours) == 1
    return hours[0]


def test_a_step_reaches_from_the_last_sample_of_one_minute_to_that_of_the_next() -> None:
    hour = only(topic_hours([end(0, 0, 45), end(1, 60, 105), end(2, 120, 165)]))
    assert (hour.records, hour.seconds, hour.minutes, hour.partitions) == (165, 165.0, 3, 1)
    assert hour.rate_per_second == hour.max_rate_per_second == 1.0
    assert hour.max_at == START, "of equal ones the first"


def test_what_was_written_during_a_gap_is_unknown_and_no_burst() -> None:
    hour = only(topic_hours([end(0, 0, 45), end(30, 900_000, 900_045)]))
    assert (hour.records, hour.minutes, hour.max_rate_per_second) == (90, 2, 1.0)


def test_a_recreated_topic_makes_no_negative_and_no_huge_rate() -> None:
    down = only(topic_hours([end(0, 1_000_000, 1_000_045), end(1, 0, 45, was_reset=True), end(2, 60, 105)]))
    up = only(topic_hours([end(0, 0, 45), end(1, 5_000_000, 5_000_045, was_reset=True), end(2, 60, 105)]))
    assert (down.records, down.max_rate_per_second) == (150, 1.0)
    # The third minute went back without being told as a reset: that is no rate at all.
    assert (up.records, up.minutes) == (90, 2)


def test_a_minute_counts_when_every_partition_was_sampled() -> None:
    both = [end(m, 60 * m, 60 * m + 45, partition=p) for m in range(3) for p in (0, 1)]
    hour = only(topic_hours([e for e in both if (e.minute, e.partition) != (START + timedelta(minutes=1), 1)]))
    assert (hour.partitions, hour.minutes) == (2, 2)
    assert hour.rate_per_second == pytest.approx(2.0, rel=0.35)
    assert only(topic_hours(both)).minutes == 3


def test_the_records_of_each_partition_are_of_the_minutes_that_count() -> None:
    both = [end(m, 60 * m * (1 + p), (60 * m + 45) * (1 + p), partition=p) for m in range(3) for p in (0, 1)]
    assert only(topic_hours(both)).partition_records == {0: 165, 1: 330}
    hour = only(topic_hours([e for e in both if (e.minute, e.partition) != (START + timedelta(minutes=1), 1)]))
    assert hour.partition_records == {0: 105, 1: 330}
    assert sum(hour.partition_records.values()) == hour.records
    still = [end(m, 7, 7, partition=p) for m in range(3) for p in (0, 1)]
    assert only(topic_hours(still)).partition_records == {0: 0, 1: 0}


def test_one_sample_is_no_rate() -> None:
    at = START + timedelta(seconds=5)
    assert topic_hours([EndMinute(0, START, at, at, 7, 7, False)]) == []
    assert topic_hours([]) == []


def test_the_first_step_of_an_hour_begins_in_the_hour_before() -> None:
    first, second = topic_hours([end(59, 0, 45), end(60, 60, 105)])
    assert (first.records, second.records, second.seconds) == (45, 60, 60.0)


@pytest.mark.parametrize("seed", range(40))
def test_columns_and_rows_agree_on_random_histories(seed: int) -> None:
    """Of several topics, with gaps, resets, logs that go back, single samples and partitions that come and go."""
    noise = random.Random(seed)
    topics = [list(random_ends(noise, partition)) for partition in [noise.randrange(1, 5) for _ in range(4)]]
    start = START.replace(hour=noise.choice([0, 8, 9]), minute=0)
    expected = [[hour for hour in rows.topic_hours(ends, GAP) if hour.hour >= start] for ends in topics]
    # Of what lies more than a gap before, nothing is needed.
    early = start - timedelta(seconds=GAP)
    assert of_topics([[end for end in ends if end.minute >= early] for ends in topics], start) == expected
    assert any(expected)


def random_ends(noise: random.Random, partitions: int) -> Iterator[EndMinute]:
    for partition in range(partitions):
        high = noise.randrange(10_000)
        for minute in range(noise.choice([0, 0, 70]), noise.choice([180, 180, 100])):
            before = high
            was_reset = noise.random() < 0.02
            high = noise.randrange(500) if was_reset else high + noise.choice([0, -5, 60, noise.randrange(9_000_000)])
            at = START + timedelta(minutes=minute)
            first, last = sorted(at + timedelta(seconds=noise.randrange(120) / 2) for _ in range(2))
            if noise.random() < 0.9:
                yield EndMinute(partition, at, first, last, min(before, high), high, was_reset)


def test_every_minute_has_the_rate_of_the_step_that_covers_it() -> None:
    first, second = topic_hours([end(58, 0, 45), end(59, 60, 165), end(60, 60, 465), end(62, 0, 1065)])
    assert first.minute_rates == (*[None] * 58, 1.0, 2.0)
    # Two minutes passed between the last two samples.
    assert second.minute_rates == (5.0, 5.0, 5.0, *[None] * 57)


def test_rates_are_rounded_up_by_less_than_a_percent_and_so_are_few() -> None:
    noise = random.Random(5)
    rates = [math.exp(noise.uniform(-12, 18)) for _ in range(5_000)]
    assert all(1.0 <= stored(rate) / rate < 1.01 for rate in rates)
    assert len({stored(rate) for rate in rates}) <= 128 * 44, "44 octaves"
    assert all(np.float32(stored(rate)) == stored(rate) for rate in rates)


def test_a_minute_with_a_rate_of_its_own_keeps_it() -> None:
    """Of two partitions one was not sampled in the second minute, so that its next step covers two."""
    both = [end(m, 60 * m, 60 * m + 60, partition=p) for m in range(4) for p in (0, 1)]
    both = [e for e in both if (e.minute.minute, e.partition) != (1, 1)]
    found = only(topic_hours(both)).minute_rates[:4]
    assert found[0] == stored(120 / 45)
    assert found[1] == found[2] == pytest.approx(180 / 120), "both partitions' records over the longer time"
    assert found[3] == pytest.approx(2.0)


def test_too_little_history_names_what_is_missing() -> None:
    assert too_little(336, 90) is None
    assert too_little(335, 90) == (
        "too little history: 13.9 days; a forecast 90 days ahead needs 14, to have seen the week twice (until then it "
        "reaches as far ahead as the history back)"
    )
    assert (too_little(30, 60) or "").startswith("too little history: 1.2 days; a forecast 60 days ahead needs 14")
    assert "needs 2" in (too_little(0, 90) or "")
