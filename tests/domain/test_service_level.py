"""What a message costs now is told from the newest measurements, and noise changes nothing."""

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from lagwise.domain.capacity.service_level import LevelChange, MeasuredMinute, newest_level

START = datetime(2026, 11, 26, 13, tzinfo=UTC)


def minutes(
    t1: Sequence[float], t2: Sequence[float] | float = 0.003, messages: Sequence[int] | int = 3_000
) -> list[MeasuredMinute]:
    of_each = [t2] * len(t1) if isinstance(t2, float) else t2
    counts = [messages] * len(t1) if isinstance(messages, int) else messages
    return [
        MeasuredMinute(minute=START + timedelta(minutes=n), messages=count, t1_seconds=one, t2_seconds=other)
        for n, (one, other, count) in enumerate(zip(t1, of_each, counts, strict=True))
    ]


def noisy(mean: float, count: int, chance: random.Random, share: float = 0.08) -> list[float]:
    """Means of minutes that scatter by this share, each a little like the one before."""
    off, made = 0.0, []
    for _ in range(count):
        off = 0.3 * off + chance.gauss(0.0, share)
        made.append(mean * max(0.1, 1 + off))
    return made


def test_without_a_change_it_is_the_mean_of_all() -> None:
    level = newest_level(minutes([0.010, 0.0104, 0.0102, 0.0098]))
    assert level.t1_seconds == pytest.approx(0.0101)
    assert (level.t2_seconds, level.messages) == (pytest.approx(0.003), 12_000)
    assert (level.t1_change, level.t2_change) == (None, None)


@pytest.mark.parametrize("factor", [0.25, 0.7, 1.5, 4.0])
@pytest.mark.parametrize("seed", range(20))
def test_what_got_slower_or_quicker_is_found_after_three_minutes(factor: float, seed: int) -> None:
    chance = random.Random(seed)
    level = newest_level(minutes(noisy(0.012, 50, chance, 0.03) + noisy(0.012 * factor, 3, chance, 0.03)))
    assert level.t1_change is not None
    assert level.t1_change.at == START + timedelta(minutes=50)
    assert level.t1_change.before_seconds == pytest.approx(0.012, rel=0.1)
    assert level.t1_seconds == pytest.approx(0.012 * factor, rel=0.1)
    assert (level.t2_change, level.messages) == (None, 9_000)


def test_the_newest_of_several_changes_counts() -> None:
    level = newest_level(minutes([0.010] * 10 + [0.040] * 10 + [0.020] * 5))
    assert level.t1_seconds == pytest.approx(0.020)
    assert level.t1_change == LevelChange(START + timedelta(minutes=20), pytest.approx(0.040))


def test_a_change_of_t2_begins_a_new_level_of_both() -> None:
    level = newest_level(minutes([0.010] * 12 + [0.020] * 8, [0.003] * 15 + [0.006] * 5))
    assert (level.t1_seconds, level.t2_seconds) == (pytest.approx(0.020), pytest.approx(0.006))
    assert level.t1_change == LevelChange(START + timedelta(minutes=12), pytest.approx(0.010))
    assert level.t2_change == LevelChange(START + timedelta(minutes=15), pytest.approx(0.003))
    assert level.messages == 15_000


def test_noise_is_no_change() -> None:
    changed = sum(
        newest_level(minutes(noisy(0.012, 60, random.Random(seed)))).t1_change is not None for seed in range(500)
    )
    assert changed <= 10


def drawn(counts: Sequence[int], chance: random.Random) -> list[MeasuredMinute]:
    """Minutes whose messages wait for 12 ms on average, exponentially."""
    means = [chance.gammavariate(count, 0.012 / count) for count in counts]
    return minutes(means, messages=counts)


@pytest.mark.parametrize("few", [1, 10, 100, 1_000])
@pytest.mark.parametrize("tail", [2, 5, 10, 30])
def test_a_load_that_falls_is_no_change(few: int, tail: int) -> None:
    """A few messages tell little of what one costs."""
    levels = [newest_level(drawn([3_000] * (60 - tail) + [few] * tail, random.Random(seed))) for seed in range(50)]
    assert sum(level.t1_change is not None for level in levels) <= 1
    assert all(level.t1_seconds == pytest.approx(0.012, rel=0.1) for level in levels if level.t1_change is None)


def test_a_load_that_goes_up_and_down_is_no_change() -> None:
    changed = 0
    for seed in range(200):
        chance = random.Random(seed)
        counts = [max(1, round(chance.lognormvariate(4, 1.5))) for _ in range(60)]
        changed += newest_level(drawn(counts, chance)).t1_change is not None
    assert changed <= 4


def test_what_a_message_costs_is_that_of_the_busy_minutes() -> None:
    """In the night batches are small, and each message costs more: nobody sizes for that."""
    level = newest_level(minutes([0.010] * 30 + [0.050] * 30, messages=[3_000] * 30 + [100] * 30))
    assert (level.t1_seconds, level.t1_change) == (pytest.approx(0.010), None)


@pytest.mark.parametrize("t1", [[0.0], [0.0] * 30, [0.0] * 30 + [0.005] * 3, [0.005] * 30 + [0.0] * 3])
def test_work_without_waiting(t1: list[float]) -> None:
    assert newest_level(minutes(t1)).t1_seconds == pytest.approx(t1[-1])


@pytest.mark.parametrize("factor", [8.0, 40.0])
def test_messages_that_take_so_long_that_few_are_left_are_no_quiet_minutes(factor: float) -> None:
    slow = 0.012 * factor
    counts = [3_000] * 30 + [int(3_000 * 0.015 / (slow + 0.003))] * 3
    level = newest_level(minutes([0.012] * 30 + [slow] * 3, messages=counts))
    assert level.t1_seconds == pytest.approx(slow)
    assert level.t1_change == LevelChange(START + timedelta(minutes=30), pytest.approx(0.012))


def test_a_doubt_of_the_level_before_is_over_with_it() -> None:
    some = [replace(minute, t1_doubt="run_queue") for minute in minutes([0.040] * 20)]
    after = [replace(minute, minute=minute.minute + timedelta(minutes=20)) for minute in minutes([0.012] * 10)]
    assert newest_level(some).t1_doubt == "run_queue"
    assert newest_level([*some, *after]).t1_doubt is None
