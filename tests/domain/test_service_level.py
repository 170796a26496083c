"""What a message costs now is told from the newest measurements, and noise changes nothing."""

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from lagwise.domain.capacity.service_level import MeasuredMinute, newest_level

START = datetime(2026, 11, 26, 13, tzinfo=UTC)


def minutes(t1: Sequence[float], t2: Sequence[float] | float = 0.003, messages: int = 3_000) -> list[MeasuredMinute]:
    of_each = [t2] * len(t1) if isinstance(t2, float) else t2
    return [
        MeasuredMinute(minute=START + timedelta(minutes=n), messages=messages, t1_seconds=one, t2_seconds=other)
        for n, (one, other) in enumerate(zip(t1, of_each, strict=True))
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
    assert (level.t2_seconds, level.messages, level.changed_at) == (pytest.approx(0.003), 12_000, None)


@pytest.mark.parametrize("factor", [0.25, 0.7, 1.5, 4.0])
@pytest.mark.parametrize("seed", range(20))
def test_what_got_slower_or_quicker_is_told_in_the_third_minute(factor: float, seed: int) -> None:
    chance = random.Random(seed)
    level = newest_level(minutes(noisy(0.012, 50, chance, 0.03) + noisy(0.012 * factor, 3, chance, 0.03)))
    assert level.changed_at == START + timedelta(minutes=50)
    assert level.t1_seconds == pytest.approx(0.012 * factor, rel=0.1)
    assert level.t1_before_seconds == pytest.approx(0.012, rel=0.1)
    assert level.messages == 9_000


def test_the_newest_of_several_changes_counts() -> None:
    level = newest_level(minutes([0.010] * 10 + [0.040] * 10 + [0.020] * 5))
    assert level.t1_seconds == pytest.approx(0.020)
    assert level.changed_at == START + timedelta(minutes=20)


def test_a_change_of_t2_begins_a_new_level_of_both() -> None:
    level = newest_level(minutes([0.010] * 15, [0.003] * 10 + [0.006] * 5))
    assert (level.t1_seconds, level.t2_seconds) == (pytest.approx(0.010), pytest.approx(0.006))
    assert level.t2_before_seconds == pytest.approx(0.003)


def test_noise_is_no_change() -> None:
    changed = sum(
        newest_level(minutes(noisy(0.012, 60, random.Random(seed)))).changed_at is not None for seed in range(500)
    )
    assert changed <= 10


@pytest.mark.parametrize("t1", [[0.0], [0.0] * 30, [0.0] * 30 + [0.005] * 3, [0.005] * 30 + [0.0] * 3])
def test_work_without_waiting(t1: list[float]) -> None:
    assert newest_level(minutes(t1)).t1_seconds == pytest.approx(t1[-1])
