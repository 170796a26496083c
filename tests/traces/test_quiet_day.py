"""A day of office hours, deployments and scaling: nobody is in trouble, and nobody is said to be.

What CI judges is the first hour and a quarter of some groups, which begins before the offices open and ends after a
deployment; ``make test-long`` judges every sample of the day.
"""

from bisect import bisect_left
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from lagwise.traces.trace import read_trace
from tests.traces import quiet_day
from tests.traces.made_day import late, untrue

pytestmark = pytest.mark.thorough

#: What CI judges: this much of the day, of every so many groups.
HOURS, EVERY = 1.25, 3


def false_words(seed: int, number: int, hours: float) -> list[str]:
    """Every false verdict on a group, once it can be judged, in words."""
    trace = quiet_day.trace_of(seed, number, hours)
    return untrue(trace, range(bisect_left(trace.sample_times, quiet_day.SETTLED_S), len(trace.sample_times)))


@pytest.mark.parametrize("seed", quiet_day.SEEDS)
def test_no_false_alarm_when_the_offices_open(seed: int) -> None:
    assert [words for n in range(seed - 1, quiet_day.GROUPS, EVERY) for words in false_words(seed, n, HOURS)] == []


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", quiet_day.SEEDS)
def test_no_false_alarm_in_the_whole_day(seed: int) -> None:
    """About two minutes a seed on two cores."""
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        results = [pool.submit(false_words, seed, n, quiet_day.HOURS) for n in range(quiet_day.GROUPS)]
        assert [words for result in results for words in result.result()] == []


@pytest.mark.parametrize("number", range(0, quiet_day.GROUPS, 9))
def test_what_is_written_is_read_within_the_objective(number: int) -> None:
    assert late(quiet_day.trace_of(1 + number % 3, number, 6.0)) == []


@pytest.mark.parametrize("seed", quiet_day.SEEDS)
def test_a_group_can_always_read_more_than_is_written(seed: int) -> None:
    group = quiet_day.Group(seed, 9)
    for step in range(int(quiet_day.HOURS * 3600 / quiet_day.STEP_S)):
        group.step(step)
    assert group.headroom >= quiet_day.LEAST_HEADROOM


def test_much_happens_in_it() -> None:
    """Guards the tests above."""
    groups = [quiet_day.Group(seed, n) for seed in quiet_day.SEEDS for n in range(quiet_day.GROUPS)]
    plans = [group.operations for group in groups]
    assert {round(group.commit_every_s / 5) for group in groups} == {0, 1, 3, 12}
    assert {group.interval_s for group in groups} == {15.0, 30.0}
    assert {group.partitions for group in groups} >= {1, 2, 12}
    assert min(group.rate for group in groups) < 0.1 < 3000 < max(group.rate for group in groups)
    assert {plan.protocol for plan in plans} == {"eager", "incremental", "static"}
    assert sum(len(plan.members) > 2 for plan in plans) > 20
    for group in groups:
        day, before, after = group.day, group.day.opens_s, group.day.opens_s + group.day.opens_within_s
        before, after = (day.load(at - quiet_day.BEGINS_AT_S) for at in (before, after))
        assert after > 2 * before, group.name
        noon, night = (day.load(at * 3600 - quiet_day.BEGINS_AT_S) for at in (13, 25))
        assert noon > 3 * night, group.name
    for plan in plans:
        lengths = [pause.to_s - pause.from_s for pause in plan.pauses]
        assert max(lengths) <= 60
        assert any(pause.to_s < HOURS * 3600 for pause in plan.pauses if pause.to_s - pause.from_s >= 20)


def test_a_part_of_the_day_is_the_same_in_every_trace() -> None:
    short, long = (quiet_day.trace_of(2, 5, hours) for hours in (1.0, 2.0))
    end = max(row["sampled_at"] for row in short.rows["commits"])
    for table in ("commits", "watermarks", "groups", "members"):
        assert short.rows[table] == [row for row in long.rows[table] if row["sampled_at"] <= end]


def test_the_written_trace_equals_the_judged_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ["--seed", "2", "--first", "3", "--groups", "1", "--hours", "1.25"]
    monkeypatch.setattr("sys.argv", ["quiet_day", str(tmp_path), *arguments])
    quiet_day.main()
    (folder,) = tmp_path.iterdir()
    assert read_trace(folder) == quiet_day.trace_of(2, 3, 1.25)
