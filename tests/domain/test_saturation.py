"""What is a backlog and what only looks like one, minute by minute."""

import math
import statistics
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lagwise.domain.capacity.saturation import blocks_of
from tests.domain.saturated_minutes import Bucket, Habit, habit_of, saturated_minutes

#: 100 records/s, committed at each sample: 3,000 records are a backlog.
HABIT = Habit(100.0, 15.0)


def minute(number: int, lags: list[int], *, partition: int = 0, moves: int = 4) -> Bucket:
    start = 60.0 * number
    return Bucket(
        partition=partition,
        start=start,
        samples=len(lags),
        first_at=start,
        last_at=start + 45,
        first_committed=6000 * number,
        last_committed=6000 * number + 4500,
        last_lag=lags[-1],
        sum_lag=float(sum(lags)),
        sum_lag_lag=float(sum(lag * lag for lag in lags)),
        moves=moves,
        last_moved_at=start + 45 if moves else None,
        backlog_seconds=60.0,
    )


def draining(minutes: int = 10, partition: int = 0) -> list[Bucket]:
    """A backlog that shrinks by 50 records/s."""
    lag = 100_000
    return [minute(n, [lag - 3000 * n - 750 * i for i in range(4)], partition=partition) for n in range(minutes)]


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=60))
def test_no_sample_has_less_lag_than_the_least(lags: list[int]) -> None:
    least = minute(0, lags).least_lag
    assert least <= min(lags) + 1e-6 * max(lags) + 1e-6
    assert least >= statistics.fmean(lags) - math.sqrt(len(lags)) * statistics.pstdev(lags) - 1 - 1e-6 * max(lags)


def test_throughput_is_counted_from_movement_to_movement() -> None:
    found = blocks_of(saturated_minutes(draining(), {0: HABIT}))
    assert (found[0].start, found[-1].end) == (45.0, 585.0)
    assert {b.records / (b.end - b.start) for b in found} == {100.0}
    assert all(b.end - b.start >= 100 for b in found)


@pytest.mark.parametrize(
    ("why", "changed"),
    [
        ("less than 30 s of work was left", lambda b: replace(b, sum_lag=4 * 2900.0, sum_lag_lag=4 * 2900.0**2)),
        ("it was empty for a moment", lambda b: minute(5, [80_000, 80_000, 0, 80_000])),
        ("it was set back", lambda b: replace(b, went_back=True)),
        ("it stood still", lambda b: minute(5, [80_000] * 4, moves=0)),
    ],
)
def test_a_minute_does_not_count_where(why: str, changed: object) -> None:
    assert callable(changed)
    minutes = draining()
    minutes[5] = changed(minutes[5])
    if why == "it stood still":
        minutes[4] = replace(minutes[4], last_moved_at=minutes[4].start)
    starts = [m.start for m in saturated_minutes(minutes, {0: HABIT})]
    assert starts == [60.0 * n for n in range(10) if n != 5], why


def test_minutes_around_a_rebalance_do_not_count() -> None:
    starts = [m.start / 60 for m in saturated_minutes(draining(), {0: HABIT}, unrest=[(250.0, 265.0)])]
    assert starts == [0, 1, 2, 3, 6, 7, 8, 9]


def test_every_partition_that_is_read_must_have_a_backlog() -> None:
    habits = {0: HABIT, 1: HABIT}
    both = draining() + draining(partition=1)
    assert len(saturated_minutes(both, habits)) == 10
    assert sum(b.records for b in blocks_of(saturated_minutes(both, habits))) == 2 * 54_000
    nothing_to_read = [replace(minute(n, [0], partition=1, moves=0), last_committed=0) for n in range(10)]
    assert len(saturated_minutes(draining() + nothing_to_read, habits)) == 10
    keeps_up = [minute(n, [10, 20, 10, 20], partition=1) for n in range(10)]
    assert saturated_minutes(draining() + keeps_up, habits) == []
    stuck = [minute(n, [50_000] * 4, partition=1, moves=0) for n in range(10)]
    assert saturated_minutes(draining() + stuck, habits) == []
    assert saturated_minutes(draining() + stuck, {0: HABIT}) == []


def in_turns(*turns: tuple[int, int, int]) -> list[Bucket]:
    """Partitions 0 and 1 with a backlog all along; each turn is a partition, and its first and last minute."""
    moving = {(partition, number) for partition, first, last in turns for number in range(first, last + 1)}
    return [
        replace(
            minute(number, [90_000 - 10 * number] * 4, partition=partition, moves=4 * ((partition, number) in moving)),
            last_committed=6000 * number,
        )
        for partition in (0, 1)
        for number in range(60)
    ]


def saturated_numbers(minutes: list[Bucket], owners: Callable[[Bucket], int] = lambda _: 0) -> list[int]:
    return [round(m.start / 60) for m in saturated_minutes(minutes, {0: HABIT, 1: HABIT}, owner=owners)]


def test_a_partition_waits_for_its_turn_for_as_long_as_it_takes_if_it_comes_back() -> None:
    there_and_back = in_turns((0, 0, 14), (1, 15, 39), (0, 40, 59))
    # Partition 1 has not moved before its turn, and is taken to come back for ten minutes after it.
    assert saturated_numbers(there_and_back) == list(range(49 + 1))
    assert saturated_numbers(in_turns((0, 0, 14), (1, 15, 59))) == list(range(24 + 1)), "it may be stuck"


def test_that_another_member_goes_on_says_nothing_of_the_first() -> None:
    there_and_back = in_turns((0, 0, 14), (1, 15, 39), (0, 40, 59))

    def handed_over(bucket: Bucket) -> int:
        return 1 if bucket.partition == 0 and bucket.start >= 40 * 60 else 0

    assert 25 not in saturated_numbers(there_and_back, handed_over)
    assert 25 in saturated_numbers(there_and_back)


def test_a_partition_does_not_wait_where_its_owner_is_idle() -> None:
    pause = in_turns((0, 0, 14), (0, 40, 59), (1, 15, 20), (1, 39, 39))
    assert not set(range(23, 38)) & set(saturated_numbers(pause))


def test_stretches_end_where_members_or_partitions_change() -> None:
    members = {60.0 * n: 2 if n < 5 else 3 for n in range(10)}
    found = blocks_of(saturated_minutes(draining(), {0: HABIT}, members=members))
    assert [(b.start, b.end, b.members) for b in found] == [
        (45.0, 165.0, 2),
        (165.0, 285.0, 2),
        (345.0, 465.0, 3),
        (465.0, 585.0, 3),
    ]
    more = draining() + [m for m in draining(partition=1) if m.start >= 300]
    assert [(b.start, b.end) for b in blocks_of(saturated_minutes(more, {0: HABIT, 1: HABIT}))][-1] == (465.0, 585.0)


def test_a_level_backlog_and_a_short_one_make_no_block() -> None:
    level = [minute(n, [50_000] * 4) for n in range(30)]
    assert len(saturated_minutes(level, {0: HABIT})) == 30
    assert blocks_of(saturated_minutes(level, {0: HABIT})) == []
    assert blocks_of(saturated_minutes(draining(2), {0: HABIT})) == []
    assert blocks_of([]) == []


def test_the_cadence_is_that_of_the_liveliest_five_minutes() -> None:
    def five(number: int, moves: int) -> Bucket:
        return replace(
            minute(5 * number, [9000] * 20, moves=moves), last_at=300.0 * number + 285, backlog_seconds=300.0
        )

    assert habit_of([five(0, 5), five(1, 0), five(2, 4)]).cadence_seconds == 60.0
    assert habit_of([five(0, 1), five(1, 0), five(2, 0)]).cadence_seconds == 900.0
    never = habit_of([five(0, 0), five(1, 0)])
    assert never.cadence_seconds is None
    assert saturated_minutes(draining(), {0: never}) == []
    # Of a cadence of a minute, two minutes of reading must be unread.
    assert Habit(100.0, 60.0).needed_backlog == 12_000
